package papers

import (
	"io"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/bench/harness"
)

// table prints a table as [harness.PrintTable]. One that is not requested is left out.
func (o Options) table(w io.Writer, title string, fill func(t io.Writer) error) error {
	if len(o.Tables) > 0 && !slices.ContainsFunc(o.Tables, func(part string) bool { return strings.Contains(title, part) }) {
		return nil
	}
	if o.Printed != nil {
		*o.Printed = true
	}
	return harness.PrintTable(w, title, fill)
}
