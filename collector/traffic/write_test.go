package traffic

import (
	"strings"
	"testing"
)

// TestWriteSearch checks the report of a search. A rate that the sender did not exceed is called the least. A rate
// above which reports were lost soon is not.
func TestWriteSearch(t *testing.T) {
	for _, c := range []struct {
		best Step
		want string
	}{
		{Step{Asked: 800_000, Rate: 612_345, KeepsUp: true}, "This machine keeps up with at least 612345 reports/s, sending them included.\n"},
		{Step{Asked: 400_000, Rate: 399_000, KeepsUp: true}, "This machine keeps up with 399000 reports/s, sending them included.\n"},
		{Step{}, "This machine kept up with none of these rates.\n"},
	} {
		var b strings.Builder
		if err := WriteSearch(&b, "table", nil, c.best); err != nil || b.String() != c.want {
			t.Errorf("%+v: %q, %v, want %q", c.best, b.String(), err, c.want)
		}
	}
	var b strings.Builder
	if err := WriteSearch(&b, "json", nil, Step{Asked: 800_000, Rate: 612_345, KeepsUp: true}); err != nil || !strings.Contains(b.String(), `"sender_was_the_limit":true`) {
		t.Errorf("%s, %v", b.String(), err)
	}
}
