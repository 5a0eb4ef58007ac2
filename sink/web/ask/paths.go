package ask

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// severalPaths is the digests' view of a flow whose one path is incomplete.
type severalPaths struct {
	Hops       []struct{ Node inference.HopName }
	Share      float64
	OtherPaths []struct {
		Nodes []inference.HopName
		Share float64
	} `json:"other_paths"`
	Inseparable []struct {
		Paths [][]inference.HopName
		Share float64
	} `json:"inseparable_paths"`
	Unexplained float64 `json:"unexplained_share"`
	Unsettled   bool
}

// note notes in brackets that a path is incomplete. A flow with one path has no note.
func (p *severalPaths) note() string {
	switch {
	case p == nil:
		return ""
	case p.Unsettled:
		return " (digests contradict it)"
	case p.Share > 0:
		return " (one of several at once)"
	}
	return " (several at once)"
}

// print prints the paths of a flow, with the share of the packets that take each.
func (p *severalPaths) print(w io.Writer, called *names.Names) {
	if p == nil || p.Unsettled {
		return
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "share\tpath, by digests")
	row := func(share, note string, path []inference.HopName) {
		var nodes []inference.HopKey
		for _, n := range path {
			nodes = append(nodes, n.HopKey)
		}
		fmt.Fprintf(t, "%s\t%s%s\n", share, called.Path(nodes), note)
	}
	var first []inference.HopName
	for _, h := range p.Hops {
		first = append(first, h.Node)
	}
	if len(first) > 0 {
		row(shareCell(p.Share), "", first)
	}
	for _, o := range p.OtherPaths {
		row(shareCell(o.Share), "", o.Nodes)
	}
	for _, set := range p.Inseparable {
		for i, path := range set.Paths {
			share := ""
			if i == 0 {
				share = shareCell(set.Share)
			}
			row(share, " (digests do not show whether it is used)", path)
		}
	}
	if p.Unexplained >= .001 {
		fmt.Fprintf(t, "%s\tno path of the topology, or digests are wrong\n", shareCell(p.Unexplained))
	}
	_ = t.Flush() // a writer that failed shows it with the next line
	fmt.Fprintln(w)
}

// shareCell writes a share of the packets of a flow. It rests on some hundreds of digests, which give two digits at
// most.
func shareCell(v float64) string { return inference.Percent(v, 2) }
