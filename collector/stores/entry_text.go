package stores

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference/names"
)

// WriteRefused writes a list of entries as a table.
func WriteRefused(out io.Writer, entries []RefusedEntry) error {
	if len(entries) == 0 {
		_, err := fmt.Fprintln(out, "no points are refused")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "entry\ttime\tsink\tpoints\tseries\treason")
	for i := range entries {
		e := &entries[i]
		if e.Problem != "" {
			fmt.Fprintf(t, "%s\t\t\t\t\t%s\n", e.Name, names.Printable(e.Problem))
			continue
		}
		reason := names.Printable(strings.Join(e.Reasons[:min(1, len(e.Reasons))], ""))
		if n := len(e.Reasons); n > 1 {
			reason += fmt.Sprintf(" (and %d more reasons)", n-1)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", e.Name, e.Time.Format(time.DateTime), names.Printable(e.Sink), e.Points, seriesText(e.Series), reason)
	}
	return t.Flush()
}

// Write writes an entry that was read with its points.
func (e *RefusedEntry) Write(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s: %d points (%s), refused by %s, %s, at %s\n", e.Name, e.Points, seriesText(e.Series),
		names.Printable(e.Sink), names.Printable(e.Target), e.Time.Format(time.RFC3339))
	for _, g := range e.Groups {
		if err == nil {
			_, err = fmt.Fprintf(out, "\n%d points: %s\n%s", g.Points, names.Printable(g.Reason), names.PrintableLines(g.Payload))
		}
	}
	return err
}

// seriesText lists series with the numbers of their points.
func seriesText(series map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(series)) {
		parts = append(parts, fmt.Sprintf("%s %d", names.Printable(name), series[name]))
	}
	return strings.Join(parts, ", ")
}
