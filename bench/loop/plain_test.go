package loop

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestPlain names lossy links by probes alone, over the paths of ports that switches hash with salts. With a hundred
// probes on each link and cycle, nearly all are named within five cycles, and hardly another one is.
func TestPlain(t *testing.T) {
	table, err := runPlain(context.Background(), options{Seed: 1, Seeds: 5})
	if err != nil {
		t.Fatal(err)
	}
	if table.Ways != 32*31*plainPorts || table.False != 0 || len(table.Rows) != 12 {
		t.Errorf("%+v", table)
	}
	for _, r := range table.Rows {
		last := r.Cycles[plainCycles-1]
		least := 0.95
		if !r.Each && r.Ratio < .05 { // five packets are lost of a link, in the mean
			least = 0.7
		}
		if last.Right+last.Missed != 5*r.Lossy || last.precision() < least || last.recall() < least {
			t.Errorf("%d links that lose %g, each %v: %+v", r.Lossy, r.Ratio, r.Each, r.Cycles)
		}
	}
	var b strings.Builder
	if err := table.Print(&b); err != nil || strings.Count(b.String(), "\n") != 15 {
		t.Errorf("%v\n%s", err, &b)
	}
	if !slices.ContainsFunc(Sections, func(s section) bool { return s.Name == "plain" }) {
		t.Error("there is no section plain")
	}
}
