package settings

import (
	"reflect"
	"strings"
)

// Diff returns the paths of the keys in which two settings structs of the same type differ.
func Diff(a, b any) []string {
	return diff(nil, reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem(), "")
}

func diff(out []string, a, b reflect.Value, path string) []string {
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			out = append(out, path)
		}
		return out
	}
	for _, f := range fieldsOf(a.Type()) {
		out = diff(out, a.FieldByIndex(f.Index), b.FieldByIndex(f.Index), join(path, f.key))
	}
	return out
}

// Below reports whether the path is one of the given keys or lies below one.
func Below(path string, keys ...string) bool {
	for _, k := range keys {
		if path == k || strings.HasPrefix(path, k+".") || strings.HasPrefix(path, k+"[") {
			return true
		}
	}
	return false
}
