package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/cmd/internal/plan"
)

// TestCoverPageFlags: the table on the page of covers has one row for every flag that defines the plan. Every other
// flag is named on that page or on that of all plans.
func TestCoverPageFlags(t *testing.T) {
	page := string(fileOf(t, "../../docs/plan-cover.md"))
	both := page + string(fileOf(t, "../../docs/plans.md"))
	seen := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--[^|]*").FindAllString(strings.ReplaceAll(page, `\|`, "/"), -1) {
		if seen[row] {
			t.Errorf("two rows begin with %s", row)
		}
		seen[row] = true
	}
	if len(seen) < 15 {
		t.Errorf("%d rows of flags were found, want at least 15", len(seen))
	}
	cover, _, err := plan.Command().Find([]string{"cover"})
	if err != nil {
		t.Fatal(err)
	}
	cover.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(both, "--"+f.Name) {
			t.Errorf("no page names --%s", f.Name)
		}
	})
}
