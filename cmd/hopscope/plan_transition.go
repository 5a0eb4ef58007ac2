package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner"
)

// writeTransition writes for people what leads from an older plan to a new one. Above most elements that change, which is
// below 0 for any number, it says that these had to.
func writeTransition(w io.Writer, t *planner.Transition, elements string, most int) {
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\nfrom the older plan, %s: %d added, %d removed, %d changed, %d kept\n", elements, len(t.Add), len(t.Remove), len(t.Change), len(t.Keep))
	if n := t.Churn(); most >= 0 && n > most {
		fmt.Fprintf(w, "these are %d, more than the %d of --churn: the network leaves no choice\n", n, most)
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
		fmt.Fprintf(w, "%s%s%s\n", map[bool]string{true: "in this order: ", false: "               "}[k == 0], strings.Join(words, ", "), comma)
	}
}
