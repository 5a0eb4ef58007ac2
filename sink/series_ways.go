package sink

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/inference"
)

// maxWays bounds the paths of one flow that have series.
const maxWays = 64

// way is one of several paths of a flow.
type way struct {
	flow       string
	rank       int
	nodes      string
	share      float64
	confidence float64
	set        int // of paths that digests do not distinguish, from 1 on; 0 for none
	paths      int // paths of the set
}

// countWays returns the number of known paths of a flow, also those that digests do not distinguish.
func countWays(f *inference.FlowStats) int {
	if !f.Sprayed() && len(f.Others) == 0 {
		return 1
	}
	n := len(f.Others)
	if f.PathID != 0 {
		n++
	}
	for i := range f.Inseparable {
		n += len(f.Inseparable[i].Paths)
	}
	return n
}

// appendWays adds the points of a flow that has several paths.
func appendWays(b []Point, w *Window, f *inference.FlowStats, name string) []Point {
	if countWays(f) < 2 {
		return b
	}
	var list []way
	if f.PathID != 0 {
		var hops []inference.HopKey
		for i := range f.Hops {
			hops = append(hops, f.Hops[i].HopKey)
		}
		list = append(list, way{nodes: inference.NodePath(hops), share: f.Share, confidence: f.Confidence})
	}
	for i := range f.Others {
		o := &f.Others[i]
		list = append(list, way{nodes: nodesText(o.Nodes), share: o.Share, confidence: o.Confidence})
	}
	// The one that the series flow has is the first, whatever its share.
	slices.SortStableFunc(list[min(1, len(list)):], func(a, b way) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.nodes, b.nodes))
	})
	for i := range f.Inseparable {
		set := &f.Inseparable[i]
		for _, nodes := range set.Paths {
			list = append(list, way{nodes: nodesText(nodes), share: set.Share, set: i + 1, paths: len(set.Paths)})
		}
	}
	for i := range list[:min(len(list), maxWays)] {
		list[i].flow, list[i].rank = name, i
		b = ways.append(b, w, w.End, &list[i])
	}
	return b
}

func nodesText(nodes []uint32) string {
	hops := make([]inference.HopKey, len(nodes))
	for i, n := range nodes {
		hops[i].Node = n
	}
	return inference.NodePath(hops)
}

var ways = series("flow_path", "Path of a busy flow with several paths in one window, from its [digests](pint.md#several-paths): "+
	"up to 64 of each flow, and none of flows with one path.",
	[]tag[way]{
		{"flow", "key of the flow", func(x *way) string { return x.flow }},
		{"rank", "0 for the path of the series `flow`, if any; the others by descending share", func(x *way) string { return strconv.Itoa(x.rank) }},
	},
	[]field[way]{
		text("nodes", "node IDs of the path, first hop first", func(x *way) string { return x.nodes }),
		{FieldSpec{"share", Float, "ratio", "share of the flow's packets on the path, or on its set; absent if paths take turns"},
			func(x *way) (Field, bool) { return Field{Float: x.share}, x.share > 0 }},
		{FieldSpec{"confidence", Float, "ratio", "probability that the path is used; absent in a set, and if unknown"},
			func(x *way) (Field, bool) { return Field{Float: x.confidence}, x.confidence > 0 }},
		{FieldSpec{"set", Int, "", "number, from 1, of a set of paths that digests do not distinguish; absent for known paths"},
			func(x *way) (Field, bool) { return Field{Int: int64(x.set)}, x.set > 0 }},
		{FieldSpec{"set_paths", Int, "", "paths of this set; a single one may be unused"},
			func(x *way) (Field, bool) { return Field{Int: int64(x.paths)}, x.set > 0 }},
	}).revised()
