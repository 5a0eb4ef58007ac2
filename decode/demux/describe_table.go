package demux

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteDescriptions writes a list of profiles as a table.
func WriteDescriptions(w io.Writer, list []Description) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "PROFILE\tREPORT PORT\tREPORTS\tINT\tUNITS\tMARKS")
	for i := range list {
		d := &list[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, d.Ports(), orNone(d.Reports), orNone(d.INT), d.Units.String(), d.Markers())
	}
	return t.Flush()
}

// orNone lists names.
func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
