package digest

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Spread adds to seen the other paths that digests show of the flow in a slot, one of the busiest. If the flow uses
// several paths at once, its path becomes the one with the greatest share, not the one that it had before. If digests
// single none out, it becomes the common part of all remaining ones. No path is longer than most hops.
func (d *Reader) Spread(slot uint32, to *window.FlowPart, seen *window.Partial, most int) {
	if !d.Has(slot) {
		return
	}
	x := d.shown(slot)
	if x.tracer == nil {
		return
	}
	stats := inference.FlowStats{Last: to.Last}
	switch {
	case x.spray != 0 && d.sprays.flows[x.spray].describe(&stats, d.base):
		d.leadOver(to, &stats, most)
	case x.spray == 0:
		if _, several := x.tracer.Path(&x.trace, 1, d.nodes[:0]); !several {
			return
		}
		fallthrough
	default:
		for _, k := range to.Path {
			stats.Hops = append(stats.Hops, inference.FlowHop{HopKey: k})
		}
		d.Describe(slot, &stats)
		stats.Confidence = 0
	}
	out := window.Spread{
		Flow: to.Key, Last: to.Last, Share: stats.Share, Confidence: stats.Confidence, Unexplained: stats.Unexplained, Digests: stats.Digests,
		Unsettled: stats.Unsettled, Others: stats.Others, Inseparable: stats.Inseparable,
	}
	out.Trim()
	seen.AddSpread(&out)
}

// leadOver makes the path of a flow that which most of its packets take.
func (d *Reader) leadOver(to *window.FlowPart, stats *inference.FlowStats, most int) {
	var way []uint32
	for i := range stats.Hops {
		way = append(way, stats.Hops[i].Node)
	}
	if whole := len(way) > 0; !whole {
		way = inCommon(stats.Inseparable)
		to.PathID, to.Partial = 0, true
	} else {
		d.hops = d.hops[:0]
		for _, n := range way {
			d.hops = append(d.hops, decode.Hop{Has: decode.HopNodeID, NodeID: n})
		}
		to.PathID, to.Partial = inference.PathID(d.hops), false
	}
	to.Path = to.Path[:0]
	for _, n := range way[:min(len(way), most)] {
		to.Path = append(to.Path, inference.HopKey{Node: n})
	}
}

// inCommon returns the first hops that all paths have.
func inCommon(sets []inference.FlowPaths) (way []uint32) {
	first := true
	for i := range sets {
		for _, path := range sets[i].Paths {
			if first {
				way, first = slices.Clone(path), false
				continue
			}
			n := 0
			for n < len(way) && n < len(path) && way[n] == path[n] {
				n++
			}
			way = way[:n]
		}
	}
	return way
}
