package console

import (
	"reflect"
	"testing"
)

// A console has room for all that a record may have.
func TestConsoleLimits(t *testing.T) {
	v := reflect.ValueOf(limits)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("no %s: a record with some is refused", v.Type().Field(i).Name)
		}
	}
}
