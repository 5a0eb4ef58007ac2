package settings

import (
	"reflect"
	"strings"
)

// field is one key of a settings struct.
type field struct {
	reflect.StructField        // whose Index counts from the outer struct
	key                 string // in the file
}

// fieldsOf lists the keys of a settings struct in their order. The keys of an embedded struct, and those of a field with
// the tag `yaml:",inline"`, stand among those of the struct around it.
func fieldsOf(t reflect.Type) (fields []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Type.Kind() == reflect.Struct && (option == "inline" || f.Anonymous && key == ""):
			for _, in := range fieldsOf(f.Type) {
				in.Index = append([]int{i}, in.Index...)
				fields = append(fields, in)
			}
		case key != "" && f.IsExported():
			f.Index = []int{i}
			fields = append(fields, field{f, key})
		}
	}
	return fields
}

// Documented is a settings struct with its own texts for some of its keys, because their meaning depends on the place
// of use. These override the tags.
type Documented interface{ Doc(key string) string }

// docOf returns the meaning of a key of v.
func docOf(v reflect.Value, f *field) string {
	for i := len(f.Index) - 1; i >= 0; i-- { // from the struct that holds the key outwards
		s := v
		if i > 0 {
			s = v.FieldByIndex(f.Index[:i])
		}
		if d, ok := s.Interface().(Documented); ok {
			if text := d.Doc(f.key); text != "" {
				return text
			}
		}
	}
	return f.Tag.Get("doc")
}

// SetDefaults sets the defaults of every part of a settings struct. It calls the method SetDefaults of each field, and
// of each field of embedded structs, that has one. A field that needs its key has SetDefaultsFor instead.
func SetDefaults(of any) {
	v := reflect.ValueOf(of).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || !v.Field(i).CanAddr() {
			continue
		}
		switch part := v.Field(i).Addr().Interface().(type) {
		case interface{ SetDefaultsFor(key string) }:
			part.SetDefaultsFor(f.Tag.Get("yaml"))
		case interface{ SetDefaults() }:
			part.SetDefaults()
		}
	}
}

// Part is one field of a settings struct: the key of its section and a pointer to its value.
type Part struct {
	Key, doc string
	Value    any
}

// Parts lists the sections of a settings struct.
func Parts(of any) (parts []Part) {
	v := reflect.ValueOf(of).Elem()
	for _, f := range fieldsOf(v.Type()) {
		if f.Type.Kind() == reflect.Struct {
			parts = append(parts, Part{f.key, docOf(v, &f), v.FieldByIndex(f.Index).Addr().Interface()})
		}
	}
	return parts
}
