package solve

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the categories as a table.
func (c *Categories) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "METRIC\tMEASURED\tWHY")
	for _, m := range c.Basic {
		why := ""
		if by := c.NeededBy[m]; by != "" {
			why = by + " depends on it"
		}
		fmt.Fprintf(t, "%s\talways\t%s\n", m, why)
	}
	for _, m := range c.Detailed {
		fmt.Fprintf(t, "%s\tin detail\t%s shows it\n", m, c.ShownBy[m])
	}
	t.Flush()
	i := c.Instructions
	fmt.Fprintf(b, "\nbasic    %s, %d bytes a hop\ndetailed %s, %d bytes a hop\n", i.Basic, i.BasicBytes, i.Detailed, i.DetailedBytes)
	if p := c.Published; p != nil {
		fmt.Fprintf(b, "\nFANT's algorithm 1 has %s, %d bytes a hop, as basic: %s\n", p.Bitmap, p.Bytes, strings.Join(p.Basic, ", "))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}
	return nil
}
