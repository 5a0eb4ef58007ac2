package fleet

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hopscope/hopscope/inference"
)

// WriteTable writes the summary as text.
func (s *runSummary) WriteTable(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "%s reports in %s slices of windows, and %s whole windows\n", inference.Count(s.Reports), inference.Count(s.Slices), inference.Count(s.Windows))
	for _, l := range s.Ledger {
		name := l.Sink
		if name == "" {
			name = "(no store)"
		}
		flight, dropped := int64(0), int64(0)
		for _, n := range l.InFlight {
			flight += n
		}
		for _, n := range l.Dropped {
			dropped += n
		}
		fmt.Fprintf(t, "  %s\t%s stored\t%s on their way\t%s dropped\n", name, inference.Count(l.Stored), inference.Count(uint64(max(0, flight))), inference.Count(uint64(max(0, dropped))))
	}
	fmt.Fprintf(t, "records: %s late, %s twice, %s conflicting, %s refused, %s of later versions\n", inference.Count(s.Late), inference.Count(s.Doubles), inference.Count(s.Conflict), inference.Count(s.Refused), inference.Count(s.Unknown))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}
