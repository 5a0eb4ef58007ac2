package papers

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/hopscope/hopscope/bench/harness"
)

// table prints a title, and below it in columns what fill writes: rows of cells that all end in a tab. Rows before an error are printed.
func table(w io.Writer, title string, fill func(t io.Writer) error) error {
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
