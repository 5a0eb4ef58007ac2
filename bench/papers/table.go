package papers

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hopscope/hopscope/bench/harness"
)

// table prints a title, and below it in columns the output of fill: rows of cells that all end in a tab. Rows before
// an error are printed. A table that is not requested is left out.
func (o Options) table(w io.Writer, title string, fill func(t io.Writer) error) error {
	if len(o.Tables) > 0 && !slices.ContainsFunc(o.Tables, func(part string) bool { return strings.Contains(title, part) }) {
		return nil
	}
	if o.Printed != nil {
		*o.Printed = true
	}
	if _, err := fmt.Fprintln(w, title); err != nil {
		return err
	}
	t := harness.Columns(w, 2, tabwriter.AlignRight)
	err := fill(t)
	if e := t.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w)
	return err
}
