package show

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hopscope/hopscope/planner"
)

// text is a page with tables, whose columns line up, and lines between them.
type text struct {
	b *bufio.Writer
	t *tabwriter.Writer
}

// write writes the page that fill makes.
func write(w io.Writer, fill func(x *text)) error {
	b := bufio.NewWriter(w)
	x := &text{b, tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)}
	fill(x)
	x.t.Flush() // into b, which keeps its first error
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// row adds a row to the table, with a tab between two cells.
func (x *text) row(format string, args ...any) { fmt.Fprintf(x.t, format+"\n", args...) }

// print adds text behind the table.
func (x *text) print(format string, args ...any) {
	x.t.Flush()
	fmt.Fprintf(x.b, format, args...)
}

// line adds a line behind the table.
func (x *text) line(format string, args ...any) { x.print(format+"\n", args...) }

// plural is the ending of a noun that is counted.
func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// shorten returns the beginning and end of a path of many nodes.
func shorten(nodes []string) string {
	const most = 8
	if len(nodes) <= most {
		return strings.Join(nodes, " > ")
	}
	return strings.Join(nodes[:most-2], " > ") + " > ... > " + nodes[len(nodes)-1]
}

// shortenList returns the beginning of a list of many names.
func shortenList(names []string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return "none"
	case len(names) <= most:
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], " "), len(names)-most+1)
}

// enumerate joins names as a sentence does.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// BitRate writes bits per second with a unit.
func BitRate(bps float64) string {
	switch {
	case bps >= 1e9:
		return fmt.Sprintf("%.4g Gbit/s", bps/1e9)
	case bps >= 1e6:
		return fmt.Sprintf("%.4g Mbit/s", bps/1e6)
	case bps >= 1e3:
		return fmt.Sprintf("%.4g kbit/s", bps/1e3)
	}
	return fmt.Sprintf("%.4g bit/s", bps)
}

// howGood rates a plan for a table. Of one that is not known to be optimal, bound is the proven bound.
func howGood(s *planner.Stats, bound string) string {
	text := bound
	switch {
	case s.Optimal && s.Proof == planner.Claimed:
		return "claimed to be the best there is, not verified"
	case s.Optimal:
		text = "the best there is"
	}
	if s.LeftOut > s.LeftOutBound {
		text += fmt.Sprintf("; it leaves out at least %g, and this one %g", s.LeftOutBound, s.LeftOut)
	}
	switch s.Proof {
	case planner.Verified:
		text += " (verified)"
	case planner.Claimed:
		text += " (claimed, not verified)"
	}
	return text
}
