package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// What is wrong with a load is named as it was written, before anything is read or measured.
func TestWrongLoad(t *testing.T) {
	for flags, want := range map[string]string{
		"--reports k":             `"k" is no number`,
		"--reports 1kk":           `"1kk" is no number`,
		"--reports NaN":           `"NaN" is no number`,
		"--reports infM":          `"infM" is no number`,
		"--reports=-1":            "--reports -1 is outside 0..",
		"--reports 1e308G":        "--reports +Inf is outside",
		"--flows 0":               "--flows 0 is outside 1..",
		"--hops 1G":               "is outside 1..10000000",
		"--path 65":               "--path 65 is outside 1..64",
		"--collectors 0":          "--collectors 0 is outside 1..",
		"--life 1ms":              "--life 1ms is below 1s",
		"--unit=-1s":              "--unit -1s is below 0s",
		"--format xml":            `"xml" is neither table nor json`,
		"--reports 1.5M --path 1": "is read",
	} {
		c := SizeCommand(func(string) (Sized, error) { return Sized{}, errors.New("is read") })
		c.SetArgs(strings.Fields(flags))
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
