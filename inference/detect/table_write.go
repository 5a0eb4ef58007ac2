package detect

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/hopscope/hopscope/inference/names"
)

// Write writes the findings as a table, json or csv.
func (d *Table) Write(out io.Writer, format string) (err error) {
	b := bufio.NewWriter(out)
	end := func(f tableFinding, open string) string {
		if f.End == nil {
			return open
		}
		return strconv.Itoa(*f.End)
	}
	switch format {
	case "json":
		err = json.NewEncoder(b).Encode(struct {
			Hops     int            `json:"hops"`
			Windows  int            `json:"windows"`
			Learning int            `json:"learning"`  // hops that are too young to be judged
			Judged   int            `json:"judged"`    // windows that were compared with what was usual before
			TooYoung int            `json:"too_young"` // windows of hops that were too young
			TooFew   int            `json:"too_few"`   // windows without values
			Findings []tableFinding `json:"findings"`
		}{d.Hops(), d.Windows, d.Learning(), d.judged(), d.tooYoung, d.tooFew, d.Findings})
	case "csv":
		w := csv.NewWriter(b)
		w.Write([]string{"hop", "start", "end", "kind", "statistic", "severity"})
		for _, f := range d.Findings {
			w.Write([]string{f.Hop, strconv.Itoa(f.Start), end(f, ""), f.Kind, f.Statistic, f.Severity})
		}
		w.Flush()
		err = w.Error()
	default:
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		if len(d.Findings) > 0 {
			fmt.Fprintln(w, "HOP\tSTART\tEND\tKIND\tSTATISTIC\tSEVERITY")
		}
		for _, f := range d.Findings {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", names.Clean(f.Hop), f.Start, end(f, "-"), f.Kind, cmp.Or(f.Statistic, "-"), f.Severity)
		}
		w.Flush()
		_, err = fmt.Fprintf(b, "%d finding%s in %d windows of %d hop%s%s\n",
			len(d.Findings), plural(len(d.Findings)), d.Windows, d.Hops(), plural(d.Hops()), young(d.Learning()))
		if not := d.tooYoung + d.tooFew; err == nil && not > 0 {
			_, err = fmt.Fprintf(b, "%d windows judged; %d not: %d among the first %d of their hops, %d without values\n",
				d.judged(), not, d.tooYoung, d.cfg.Warmup, d.tooFew)
		}
	}
	if e := b.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("write the findings: %w", err)
	}
	return nil
}

// young returns how many hops are too young to be judged, behind the other counts.
func young(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d hop%s had too few windows to be judged", n, plural(n))
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
