package show

import (
	"fmt"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// transition writes the way from an older plan to a new one. Above most changed elements, which is below 0 for any
// number, it notes that these were forced.
func (x *text) transition(t *planner.Transition, elements string, most int) {
	if t == nil {
		return
	}
	x.line("\nfrom the older plan, %s: %d added, %d removed, %d changed, %d kept", elements, len(t.Add), len(t.Remove), len(t.Change), len(t.Keep))
	if n := t.Churn(); most >= 0 && n > most {
		x.line("these are %d, more than the %d of --churn: the network leaves no choice", n, most)
	}
	const line = 8
	for k := 0; k < len(t.Steps); k += line {
		words := make([]string, 0, line)
		for _, s := range t.Steps[k:min(k+line, len(t.Steps))] {
			words = append(words, fmt.Sprintf("%s %s", s.Op, s.ID))
		}
		comma := ","
		if k+line >= len(t.Steps) {
			comma = ""
		}
		x.line("%s%s%s", map[bool]string{true: "in this order: ", false: "               "}[k == 0], strings.Join(words, ", "), comma)
	}
}

// steps writes the order in which a plan replaces the one before, or why there is none.
func (x *text) steps(t *planner.Transition, deadlock string) {
	for k, s := range t.Steps {
		x.line("step %d: %s %s", k+1, s.Op, s.ID)
	}
	if deadlock != "" {
		x.line("no steps: %s", deadlock)
	}
}

// forced writes that more elements change than --churn allows, because they have to.
func (x *text) forced(c *planner.Churn) {
	if c != nil && c.Limit >= 0 && c.Forced > c.Limit {
		x.line("more than --churn %d have to change: %d do", c.Limit, c.Forced)
	}
}
