package kafka

import (
	"fmt"
	"io"
	"text/tabwriter"

	nodenames "github.com/hopscope/hopscope/inference/names"
)

// WriteDeviations writes a list of deviations as a table.
func WriteDeviations(out io.Writer, list []Deviation) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no deviations")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "\ttopic\twhat\tis\tshould be\twhat to do")
	for _, d := range list {
		kind := "warning"
		if d.Problem {
			kind = "problem"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", kind, nodenames.Printable(d.Topic), d.What, nodenames.Printable(d.Have), d.Want, d.Advice)
	}
	return t.Flush()
}
