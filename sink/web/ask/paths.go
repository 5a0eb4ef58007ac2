package ask

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/atlas"
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

// PathHop is a hop of a path that digests give.
type PathHop struct {
	Node       string  `json:"node,omitempty"` // absent where it is not known yet
	Marked     bool    `json:"marked,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // that the node is right; absent where that is not known by hop

	Frequent []FrequentValue `json:"frequent,omitempty"` // values that come most often, where a query asks for them
}

// WholePath holds quantiles of a value of a flow's whole path.
type WholePath struct {
	Of      string `json:"of"` // "sum of latency" in ns, "max of queue" in bytes, "min of utilization" in parts of 65536
	Digests uint64 `json:"digests"`
	P50     uint64 `json:"p50"`
	P99     uint64 `json:"p99"`
}

// FrequentValue is a value that comes often at a hop.
type FrequentValue struct {
	Value float64 `json:"value"`
	Least float64 `json:"least_share"` // of the digests of the hop
	Most  float64 `json:"most_share"`
}

// PathShare is a path with the share of the packets that take it.
type PathShare struct {
	Nodes      []string `json:"nodes"`
	Share      float64  `json:"share,omitempty"`
	Confidence float64  `json:"confidence"`
}

// PathChoice holds paths that digests do not distinguish.
type PathChoice struct {
	Paths [][]string `json:"paths"`
	Share float64    `json:"share"`
}

// PathRow is a flow with digests.
type PathRow struct {
	Key        string     `json:"key"`
	Complete   bool       `json:"complete"`
	Confidence float64    `json:"confidence"` // that the whole path is right; 0 while it is not known
	Digests    uint64     `json:"digests"`    // that it was inferred from, or that were seen while it is not known
	Needed     int        `json:"needed"`     // further digests, about
	Others     int        `json:"others"`     // other paths that were seen
	Hops       []PathHop  `json:"hops"`
	Whole      *WholePath `json:"path_value,omitempty"` // values of whole paths, where a query asks for them
	Frequent   string     `json:"frequent,omitempty"`   // the quantity of the hops' frequent values: latency, in ns, or queue, in bytes

	// Of a flow that uses several paths at once.
	Sprayed     bool         `json:"sprayed,omitempty"`
	Share       float64      `json:"share,omitempty"`             // of its packets that take the path of hops
	OtherPaths  []PathShare  `json:"other_paths,omitempty"`       // without a share if used in turn
	Inseparable []PathChoice `json:"inseparable_paths,omitempty"` // paths that digests do not distinguish
	Unexplained float64      `json:"unexplained_share,omitempty"` // of packets that take none of them

	Unsettled bool `json:"unsettled,omitempty"` // digests contradict the path
}

// PathList holds some of the flows with digests.
type PathList struct {
	Known     int       `json:"known"`
	Marked    int       `json:"marked"`
	Undecided int       `json:"undecided"`
	Sprayed   int       `json:"sprayed"` // flows that use several paths at once; they are none of the others
	Flows     []PathRow `json:"flows"`
}

// NewPathRow returns the path of a flow in the form of the API. needed is the number of digests that it still takes.
func NewPathRow(f *inference.FlowStats, needed int) PathRow {
	row := PathRow{
		Key: f.Key.String(), Complete: !f.Partial, Confidence: atlas.Finite(f.Confidence), Digests: f.Digests, Needed: needed,
		Others: len(f.Others), Hops: []PathHop{},
		Sprayed: f.Sprayed(), Share: atlas.Finite(f.Share), Unexplained: atlas.Finite(f.Unexplained), Unsettled: f.Unsettled,
		Frequent: f.Frequent,
	}
	if v := &f.Path; v.Count > 0 {
		row.Whole = &WholePath{v.Of, v.Count, v.P50, v.P99}
	}
	for _, h := range f.Hops {
		hop := PathHop{Marked: h.Inferred, Confidence: atlas.Finite(h.Confidence)}
		if !h.Unknown {
			hop.Node = strconv.FormatUint(uint64(h.Node), 10)
		}
		for _, v := range h.Frequent {
			hop.Frequent = append(hop.Frequent, FrequentValue{atlas.Finite(v.Value), atlas.Finite(v.Least), atlas.Finite(v.Most)})
		}
		row.Hops = append(row.Hops, hop)
	}
	for _, o := range f.Others {
		row.OtherPaths = append(row.OtherPaths, PathShare{NodeNames(o.Nodes), atlas.Finite(o.Share), atlas.Finite(o.Confidence)})
	}
	for _, set := range f.Inseparable {
		c := PathChoice{Share: atlas.Finite(set.Share)}
		for _, nodes := range set.Paths {
			c.Paths = append(c.Paths, NodeNames(nodes))
		}
		row.Inseparable = append(row.Inseparable, c)
	}
	return row
}
