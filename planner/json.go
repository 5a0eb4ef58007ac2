package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// ReadJSON reads one JSON value and nothing after it. Errors say at which byte, and of which element where v knows.
func ReadJSON(r io.Reader, v any) error {
	in := &counter{r: r}
	d := json.NewDecoder(in)
	if err := d.Decode(v); err != nil {
		return jsonError(err, in.n)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("byte %d: more than one JSON value", d.InputOffset())
	}
	return nil
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// jsonError says where the JSON is wrong, or at which byte it ends.
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
	return fmt.Errorf("byte %d: %w", offset, err)
}

// elementError is a value of the wrong kind in an element that has a name.
type elementError struct{ element, detail string }

func (e *elementError) Error() string { return e.element + ": " + e.detail }

// InElement names the element in which a value has the wrong kind.
func InElement(err error, format string, args ...any) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &elementError{fmt.Sprintf(format, args...), wrongType(t)}
	}
	return err
}

// wrongType says which kind of value is where another one should be.
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
