package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/cmd/internal/plan"
)

// TestPlanPagesFlags: the page of a family refers to the help of its command for flags, and names none that neither that command
// nor another one of plans has.
func TestPlanPagesFlags(t *testing.T) {
	known := map[string]bool{}
	for _, c := range plan.Command().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	for _, c := range plan.Command().Commands() {
		if c.Name() == "diff" || c.Name() == "help" || c.Name() == "completion" { // without a page
			continue
		}
		page := string(fileOf(t, "../../docs/plan-"+c.Name()+".md"))
		if c.Name() != "delivery" && !strings.Contains(page, "`hopscope plan "+c.Name()+" --help`") {
			t.Errorf("%s: the page does not refer to the flags", c.Name())
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^|[ `+"`"+`(])--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(page, -1) {
			if !known[m[1]] && m[1] != "help" {
				t.Errorf("%s: there is no flag --%s", c.Name(), m[1])
			}
		}
	}
}
