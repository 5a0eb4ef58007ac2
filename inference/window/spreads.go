package window

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Spread is the evidence of digests about a flow's further paths. It uses others too, at once or in turn, or that is
// not settled. The lists in it are never changed, so that its holder may keep it.
type Spread struct {
	Flow        decode.FlowKey
	Last        int64   // time of the flow's last report
	Share       float64 // of packets that take the path of the flow; 0 where paths are taken in turn, or none is singled out
	Confidence  float64 // probability that this path is used
	Unexplained float64
	Digests     uint64
	Unsettled   bool
	Others      []inference.FlowPath
	Inseparable []inference.FlowPaths
}

// MaxSpread is the greatest number of paths that a Spread lists.
const MaxSpread = 256

// Trim leaves out the last sets of paths, where there are too many.
func (x *Spread) Trim() {
	n := min(len(x.Others), MaxSpread)
	x.Others = x.Others[:n]
	for i := range x.Inseparable {
		if n += len(x.Inseparable[i].Paths); n > MaxSpread {
			x.Inseparable = x.Inseparable[:i]
			return
		}
	}
}

// Of several spreads of a flow the latest one counts.
var spreadKind = kindOf[decode.FlowKey, Spread]{
	one: "spread", many: "spreads", least: flowBytes + 29,
	in:      func(p *Partial) *table[decode.FlowKey, Spread] { return &p.spreads },
	limit:   func(l *Limits) int { return l.Flows },
	slice:   func(s *Slicer, x *Spread) int { return s.Flow(&x.Flow) },
	key:     func(x *Spread) decode.FlowKey { return x.Flow },
	compare: compareSpreads,
	sum: func(_ *memory, to, from *Spread) {
		if compareSpreads(to, from) < 0 {
			*to = *from
		}
	},
	fits: func(p *Partial, x *Spread, most int) bool { // if flows are left out, those of their spreads are
		return len(p.flows.items) < most || p.flows.find(x.Flow) != nil
	},
	code: func(c *coder, _ *memory, x *Spread) {
		c.flow("spread flow", &x.Flow)
		c.flags("spread flags", &x.Unsettled)
		c.time("spread time", &x.Last)
		c.uint("spread digests", &x.Digests)
		c.share("spread share", &x.Share)
		c.share("spread confidence", &x.Confidence)
		c.share("spread rest", &x.Unexplained)
		var others []inference.FlowPath
		var sets []inference.FlowPaths
		n := c.count("spread paths", MaxSpread, 17, len(x.Others))
		codeList(c, n, &others, &x.Others, codeFlowPath)
		c.left = MaxSpread - n
		codeList(c, c.count("spread sets", MaxSpread, 9, len(x.Inseparable)), &sets, &x.Inseparable, codeFlowPaths)
	},
}

func codeFlowPath(c *coder, p *inference.FlowPath) {
	c.share("spread share", &p.Share)
	c.share("spread confidence", &p.Confidence)
	codeNodes(c, &p.Nodes)
}

func codeFlowPaths(c *coder, set *inference.FlowPaths) {
	c.share("spread share", &set.Share)
	var paths [][]uint32
	n := c.count("spread set", c.left, 1, len(set.Paths))
	c.left -= n
	codeList(c, n, &paths, &set.Paths, codeNodes)
}

func codeNodes(c *coder, nodes *[]uint32) {
	var list []uint32
	codeList(c, c.count("spread path", math.MaxInt, 1, len(*nodes)), &list, nodes, func(c *coder, n *uint32) { c.id("spread path", n) })
}

// compareSpreads is a total order, by flow first.
func compareSpreads(a, b *Spread) int {
	return cmp.Or(a.Flow.Compare(&b.Flow), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Digests, b.Digests), cmp.Compare(a.Share, b.Share),
		cmp.Compare(a.Confidence, b.Confidence), cmp.Compare(a.Unexplained, b.Unexplained), compareBools(a.Unsettled, b.Unsettled),
		slices.CompareFunc(a.Others, b.Others, func(a, b inference.FlowPath) int {
			return cmp.Or(cmp.Compare(a.Share, b.Share), cmp.Compare(a.Confidence, b.Confidence), slices.Compare(a.Nodes, b.Nodes))
		}), slices.CompareFunc(a.Inseparable, b.Inseparable, func(a, b inference.FlowPaths) int {
			return cmp.Or(cmp.Compare(a.Share, b.Share), slices.CompareFunc(a.Paths, b.Paths, slices.Compare))
		}))
}

// AddSpread adds a flow, whose lists p keeps.
func (p *Partial) AddSpread(x *Spread) { spreadKind.add(p, x) }

// spread adds the other paths that digests show to a flow of the window, if they are as new as the rest of its
// statistics.
func (p *Partial) spread(f *inference.FlowStats) {
	x := p.spreads.find(f.Key)
	if x == nil || x.Last != f.Last { // another owner has seen the flow since, with one path
		return
	}
	f.Share, f.Confidence, f.Unexplained, f.Digests, f.Unsettled = x.Share, x.Confidence, x.Unexplained, x.Digests, x.Unsettled
	f.Others, f.Inseparable = x.Others, x.Inseparable
}
