package ask

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
)

// FoundList is what a search finds.
type FoundList struct {
	Query  string       `json:"query"`
	Groups []FoundGroup `json:"groups"`
}

// FoundGroup is what a search finds of one kind.
type FoundGroup struct {
	Kind  string  `json:"kind"`
	Total int     `json:"total"`
	Hits  []Found `json:"hits"`           // the best of them
	More  string  `json:"more,omitempty"` // address on the page that shows all
}

// Found is one thing that a search finds.
type Found struct {
	Name    string `json:"name"`
	Detail  string `json:"detail,omitempty"`
	Address string `json:"address"` // its address on the page
}

// Write writes what was found as text, with the addresses on a page. A user and password in the page's address are left out.
func (l *FoundList) Write(w io.Writer, page string) error {
	if len(l.Groups) == 0 {
		_, err := fmt.Fprintf(w, "Nothing that the collector keeps or has a name for fits %q.\n", l.Query)
		return err
	}
	page = Address(page) + "/"
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "kind\tname\tabout\tpage")
	for i := range l.Groups {
		g := &l.Groups[i]
		for _, h := range g.Hits {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", g.Kind, h.Name, h.Detail, page+h.Address)
		}
		if more := g.Total - len(g.Hits); more > 0 {
			all := ""
			if g.More != "" {
				all = page + g.More
			}
			fmt.Fprintf(t, "%s\tand %d more\t\t%s\n", g.Kind, more, all)
		}
	}
	return t.Flush()
}

// Address is the address of a page without its user and without a slash at its end, for print.
func Address(page string) string {
	if u, err := url.Parse(page); err == nil {
		u.User = nil
		page = u.String()
	}
	return strings.TrimSuffix(page, "/")
}
