package loop

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/planner/control"
)

// Records are written as encoding/json does, whatever their fields and texts are.
func TestAppendRecord(t *testing.T) {
	texts := []string{"x", "", "agent a-1 ~", "a\"b", `a\b`, "<b> & c", "a\nb\x00\x7f", "\u2028 über", "\xff\xfe", "in\xe2\x80"}
	kind := reflect.TypeFor[control.Record]()
	for n := range 1 << kind.NumField() {
		var r control.Record
		v := reflect.ValueOf(&r).Elem()
		for k := range kind.NumField() {
			if n>>k&1 == 0 {
				continue
			}
			text := texts[(n+k)%len(texts)]
			switch f := v.Field(k); f.Kind() {
			case reflect.String:
				f.SetString(text)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(n) - 500)
			case reflect.Uint32, reflect.Uint64:
				f.SetUint(uint64(n + k))
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Pointer:
				f.Set(reflect.ValueOf(new(int)))
			case reflect.Slice:
				if f.Type().Elem().Kind() == reflect.Struct {
					f.Set(reflect.ValueOf([]control.Change{{Op: control.Insert, Entry: control.Entry{Epoch: 1, Key: text, Value: text}, Why: text, Skipped: n%3 == 0}}[:n%2]))
					continue
				}
				f.Set(reflect.ValueOf(texts[:(n+k)%len(texts)]))
			default:
				t.Fatalf("field %s is a %v", kind.Field(k).Name, f.Kind())
			}
		}
		want, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRecord([]byte("|"), &r); string(got) != "|"+string(want) {
			t.Fatalf("%+v:\n%s, want\n%s", r, got, want)
		}
	}
}
