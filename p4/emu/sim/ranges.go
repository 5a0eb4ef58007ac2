package sim

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// CheckRanges holds the fields of the struct that config points to against the ranges in their tags, for callers that make one without
// a file of settings.
func CheckRanges(config any) error {
	var errs []error
	v := reflect.ValueOf(config).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		low, high, ok := strings.Cut(f.Tag.Get("range"), "..")
		if !ok {
			continue
		}
		inside, err := false, error(nil)
		switch x := v.Field(i).Interface().(type) {
		case time.Duration:
			inside, err = within(x, low, high, time.ParseDuration)
		case float64:
			inside, err = within(x, low, high, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
		case int:
			inside, err = within(x, low, high, strconv.Atoi)
		case int64:
			inside, err = within(x, low, high, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
		}
		if err != nil || !inside {
			errs = append(errs, fmt.Errorf("%s: %v is outside %s..%s", f.Tag.Get("yaml"), v.Field(i), low, high))
		}
	}
	return errors.Join(errs...)
}

// within reports whether low <= x <= high, which a float that is no number never is.
func within[T cmp.Ordered](x T, low, high string, parse func(string) (T, error)) (bool, error) {
	from, err := parse(low)
	to, err2 := parse(high)
	return from <= x && x <= to, errors.Join(err, err2)
}
