package settings

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Print writes a settings struct as a YAML file that [Load] reads back, each key under a comment with its meaning and
// range. Argument of points to the struct.
func Print(w io.Writer, of any) error {
	var b bytes.Buffer
	printStruct(&b, reflect.ValueOf(of).Elem(), "")
	_, err := w.Write(b.Bytes())
	return err
}

// Value returns the value of a key such as "events.end_after" as [Print] writes it, and the meaning of the key. It returns
// false for a key that does not exist, and for one that holds others or a list. Argument of points to the struct.
func Value(of any, key string) (value, doc string, ok bool) {
	v := reflect.ValueOf(of).Elem()
	for name := range strings.SplitSeq(key, ".") {
		for v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return "", "", false
		}
		fields := fieldsOf(v.Type())
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == name })
		if i < 0 {
			return "", "", false
		}
		doc, v = docOf(v, &fields[i])+limits(fields[i].Tag), v.FieldByIndex(fields[i].Index)
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
		return "", "", false
	}
	return format(v), doc, true
}

func printStruct(b *bytes.Buffer, v reflect.Value, indent string) {
	for _, f := range fieldsOf(v.Type()) {
		if doc := docOf(v, &f); doc != "" {
			for _, line := range wrap(doc+limits(f.Tag), 100-len(indent)) {
				fmt.Fprintf(b, "%s# %s\n", indent, line)
			}
		}
		printValue(b, v.FieldByIndex(f.Index), indent, f.key)
	}
}

func printValue(b *bytes.Buffer, v reflect.Value, indent, key string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		fmt.Fprintf(b, "%s%s:\n", indent, key)
		printStruct(b, v, indent+"  ")
	case reflect.Slice:
		if v.Len() == 0 {
			fmt.Fprintf(b, "%s%s: []\n", indent, key)
			return
		}
		fmt.Fprintf(b, "%s%s:\n", indent, key)
		for i := range v.Len() {
			e := v.Index(i)
			if e.Kind() != reflect.Struct {
				fmt.Fprintf(b, "%s  - %s\n", indent, format(e))
				continue
			}
			var inner bytes.Buffer
			printStruct(&inner, e, indent+"    ")
			s := inner.String()
			fmt.Fprintf(b, "%s  -\n%s", indent, s)
		}
	default:
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, format(v))
	}
}

func format(v reflect.Value) string {
	switch {
	case v.Type() == durationType:
		return shortDuration(time.Duration(v.Int()))
	case v.Kind() == reflect.String:
		out, err := yaml.Marshal(v.String())
		if err != nil {
			return strconv.Quote(v.String())
		}
		return strings.TrimSpace(string(out))
	default:
		return fmt.Sprint(v.Interface())
	}
}

// shortDuration is time.Duration.String without "0s" and "0m" at its end: 10m, not 10m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func limits(tag reflect.StructTag) string {
	if r := tag.Get("range"); r != "" {
		return " Range: " + r + "."
	}
	if o := tag.Get("oneof"); o != "" {
		var names []string
		for _, n := range strings.Split(o, "|") {
			if n == "" {
				n = `""`
			}
			names = append(names, n)
		}
		return " One of: " + strings.Join(names, ", ") + "."
	}
	return ""
}

func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func describe(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 10s"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}
