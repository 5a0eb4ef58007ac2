package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// ReadJSON reads one JSON value into v. It is strict: unknown keys, duplicate keys of an object, and anything after the
// value are errors, which name the key and its place. Otherwise a misspelt key would silently mean a default. Keys are
// case-sensitive.
//
// A type of v with an UnmarshalJSON of its own must have the keys of its fields where it reads an object.
func ReadJSON(r io.Reader, v any) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(v); err != nil {
		return jsonError(err, int64(len(b)))
	}
	k := keys{b: b[:d.InputOffset()], types: map[reflect.Type]object{}}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("byte %d: more than one JSON value", d.InputOffset())
	}
	k.value(reflect.TypeOf(v))
	return k.err
}

// ReadProblem reads a problem from JSON into p, as strictly as [ReadJSON], and validates it.
func ReadProblem[P interface{ Validate() error }](r io.Reader, p P) (P, error) {
	err := ReadJSON(r, p)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		var none P
		return none, err
	}
	return p, nil
}

// jsonError names the place where the JSON is wrong, or the byte at which it ends.
func jsonError(err error, offset int64) error {
	if err == io.EOF {
		return errors.New("byte 0: no JSON object: the file is empty")
	}
	if e, ok := errors.AsType[*elementError](err); ok {
		return e
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", s.Offset, err)
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("byte %d: %s", t.Offset, wrongType(t))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("byte %d: %w", offset, err)
	}
	return err // of an UnmarshalJSON, which names its element
}

// elementError is a value of the wrong kind in an element that has a name.
type elementError struct{ element, detail string }

func (e *elementError) Error() string { return e.element + ": " + e.detail }

// InElement names the element in which a value has the wrong type. An UnmarshalJSON calls it, since the decoder has no
// offset of what such a method reads.
func InElement(err error, format string, args ...any) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &elementError{fmt.Sprintf(format, args...), wrongType(t)}
	}
	return err
}

// wrongType names the type of a value and the expected one.
func wrongType(t *json.UnmarshalTypeError) string {
	field := ""
	if t.Field != "" {
		field = t.Field + ": "
	}
	if strings.HasPrefix(t.Value, "number ") {
		return field + t.Value + " is out of range"
	}
	got := map[string]string{"array": "a list", "object": "an object", "bool": "a boolean"}[t.Value]
	if got == "" {
		got = "a " + t.Value
	}
	want := "a number"
	switch t.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "a boolean"
	case reflect.Slice:
		want = "a list"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	return fmt.Sprintf("%s%s cannot be %s", field, got, want)
}

// keys walks over well-formed JSON, beside the type that it was read into, and checks the keys.
type keys struct {
	b    []byte
	at   int
	path []byte // of the present value, as queries[2].widths[0]
	err  error  // the first; the walk ends with it

	types map[reflect.Type]object
}

// object holds the possible keys of an object, and the types of their values.
type object struct {
	fields map[string]reflect.Type // of a struct; nil: all keys are allowed
	elem   reflect.Type            // of the values then; nil if nothing is known of them
}

// objectOf returns the possible keys of an object that is read into t.
func (k *keys) objectOf(t reflect.Type) (o object) {
	switch {
	case t == nil:
	case t.Kind() == reflect.Map:
		o.elem = t.Elem()
	case t.Kind() == reflect.Struct:
		var ok bool
		if o, ok = k.types[t]; !ok {
			o.fields = map[string]reflect.Type{}
			addFields(o.fields, t)
			k.types[t] = o
		}
	}
	return o
}

// addFields lists the fields of a struct by their keys, those of embedded structs included.
func addFields(fields map[string]reflect.Type, t reflect.Type) {
	var own []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, hasTag := f.Tag.Lookup("json")
		switch {
		case f.Anonymous && !hasTag && f.Type.Kind() == reflect.Struct:
			addFields(fields, f.Type)
		case f.IsExported() && tag != "-":
			own = append(own, f)
		}
	}
	for _, f := range own { // these hide embedded ones
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Type
	}
}

// space skips white space and the given punctuation.
func (k *keys) space(also byte) {
	for k.at < len(k.b) && (k.b[k.at] <= ' ' || k.b[k.at] == also) {
		k.at++
	}
}

// value walks over the next value. With a nil type all keys are allowed, once.
func (k *keys) value(t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k.space(0)
	switch k.b[k.at] {
	case '{':
		k.object(t)
	case '[':
		k.array(t)
	case '"':
		k.text()
	default:
		for k.at < len(k.b) && strings.IndexByte(",]} \t\r\n", k.b[k.at]) < 0 {
			k.at++
		}
	}
}

// text skips a string and returns it as written, with its quotes.
func (k *keys) text() []byte {
	begin := k.at
	for k.at++; k.b[k.at] != '"'; k.at++ {
		if k.b[k.at] == '\\' {
			k.at++
		}
	}
	k.at++
	return k.b[begin:k.at]
}

func (k *keys) array(t reflect.Type) {
	var elem reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		elem = t.Elem()
	}
	k.at++
	base := len(k.path)
	for n := 0; k.err == nil; n++ {
		if k.space(','); k.b[k.at] == ']' {
			k.at++
			return
		}
		k.path = append(strconv.AppendInt(append(k.path[:base], '['), int64(n), 10), ']')
		k.value(elem)
		k.path = k.path[:base]
	}
}

func (k *keys) object(t reflect.Type) {
	o := k.objectOf(t)
	seen := make(map[string]bool, len(o.fields))
	base := len(k.path)
	k.at++
	for k.err == nil {
		if k.space(','); k.b[k.at] == '}' {
			k.at++
			return
		}
		begin := k.at
		name := unquote(k.text())
		elem := o.elem
		if o.fields != nil {
			var ok bool
			if elem, ok = o.fields[name]; !ok {
				k.fail(begin, "unknown key %q", name)
				return
			}
		}
		if seen[name] {
			k.fail(begin, "key %q is there twice", name)
			return
		}
		seen[name] = true
		k.space(':')
		if base > 0 {
			k.path = append(k.path, '.')
		}
		k.path = append(k.path, name...)
		k.value(elem)
		k.path = k.path[:base]
	}
}

// unquote gives the text of a string.
func unquote(b []byte) (s string) {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	if json.Unmarshal(b, &s) != nil {
		return string(b) // cannot be: the decoder has read it
	}
	return s
}

// fail ends the walk at a key of the present object.
func (k *keys) fail(at int, format string, name string) {
	what := fmt.Sprintf(format, name)
	if len(k.path) > 0 {
		what = string(k.path) + ": " + what
	}
	k.err = fmt.Errorf("byte %d: %s", at, what)
}

// Difference names the key in which two values of one struct type first differ, by its JSON, with both values: "mean is 3, not 2".
func Difference(got, want any) string {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		a, b := g.Field(i).Interface(), w.Field(i).Interface()
		if reflect.DeepEqual(a, b) {
			continue
		}
		if f := g.Type().Field(i); f.Anonymous {
			return Difference(a, b)
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			return fmt.Sprintf("%s is %v, not %v", name, a, b)
		}
		return fmt.Sprintf("%s is %v, not %v", g.Type().Field(i).Name, a, b)
	}
	return ""
}
