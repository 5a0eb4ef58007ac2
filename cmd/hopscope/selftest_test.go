package main

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/traffic"
)

// TestSelftestSays holds that a rate which the sender did not go beyond is called the least, and one at which reports were lost
// soon after is not.
func TestSelftestSays(t *testing.T) {
	for _, c := range []struct {
		best traffic.Step
		want string
	}{
		{traffic.Step{Asked: 800_000, Rate: 612_345, KeepsUp: true}, "This machine keeps up with at least 612345 reports/s, sending them included.\n"},
		{traffic.Step{Asked: 400_000, Rate: 399_000, KeepsUp: true}, "This machine keeps up with 399000 reports/s, sending them included.\n"},
		{traffic.Step{}, "This machine kept up with none of these rates.\n"},
	} {
		var b strings.Builder
		if err := writeSelftest(&b, "table", nil, c.best); err != nil || b.String() != c.want {
			t.Errorf("%+v: %q, %v, want %q", c.best, b.String(), err, c.want)
		}
	}
	var b strings.Builder
	if err := writeSelftest(&b, "json", nil, traffic.Step{Asked: 800_000, Rate: 612_345, KeepsUp: true}); err != nil || !strings.Contains(b.String(), `"sender_was_the_limit":true`) {
		t.Errorf("%s, %v", b.String(), err)
	}
}
