package inference

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// Spread is what digests say of a flow beside its one path: that it uses others too, at once or in turn, or that it is not settled
// whether it does. The lists in it are never changed, so that whoever has it may keep it.
type Spread struct {
	Flow        decode.FlowKey
	Last        int64   // time of the flow's last report
	Share       float64 // of packets that take the path of the flow; 0 where paths are taken in turn, or none is singled out
	Confidence  float64 // probability that this path is used
	Unexplained float64
	Digests     uint64
	Unsettled   bool
	Others      []FlowPath
	Inseparable []FlowPaths
}

// MaxSpread is how many paths a Spread lists at most.
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

// AddSpread adds what somebody knows of a flow. Of several the one counts that saw the flow last.
func (p *Partial) AddSpread(x *Spread) {
	if to, known := p.spreads.at(x.Flow); !known || compareSpreads(to, x) < 0 {
		*to = *x
	}
}

// compareSpreads is a total order, by flow first.
func compareSpreads(a, b *Spread) int {
	if c := cmp.Or(a.Flow.Compare(&b.Flow), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Digests, b.Digests), cmp.Compare(a.Share, b.Share),
		cmp.Compare(a.Confidence, b.Confidence), cmp.Compare(a.Unexplained, b.Unexplained)); c != 0 {
		return c
	}
	if a.Unsettled != b.Unsettled {
		if b.Unsettled {
			return -1
		}
		return 1
	}
	return cmp.Or(slices.CompareFunc(a.Others, b.Others, func(a, b FlowPath) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), cmp.Compare(a.Confidence, b.Confidence), slices.Compare(a.Nodes, b.Nodes))
	}), slices.CompareFunc(a.Inseparable, b.Inseparable, func(a, b FlowPaths) int {
		return cmp.Or(cmp.Compare(a.Share, b.Share), slices.CompareFunc(a.Paths, b.Paths, slices.Compare))
	}))
}

// spread tells of a flow of the window what digests say beside its path, if that is as new as what else is known of it.
func (p *Partial) spread(f *FlowStats) {
	i, ok := p.spreads.index[f.Key]
	if !ok {
		return
	}
	x := &p.spreads.items[i]
	if x.Last != f.Last { // another owner has seen the flow since, with one path
		return
	}
	f.Share, f.Confidence, f.Unexplained, f.Digests, f.Unsettled = x.Share, x.Confidence, x.Unexplained, x.Digests, x.Unsettled
	f.Others, f.Inseparable = x.Others, x.Inseparable
}

// spreadSection is that of [Spread]. Readers that do not know it pass over it.
const spreadSection = 11

const isUnsettled = 1 << 0

func (p *Partial) writeSpreads(w *writer) {
	at := w.open(spreadSection, len(p.spreads.items))
	for _, i := range sorted(&p.order, p.spreads.items, compareSpreads) {
		x := &p.spreads.items[i]
		w.flow(&x.Flow)
		flags := byte(0)
		if x.Unsettled {
			flags |= isUnsettled
		}
		w.b = append(w.b, flags)
		w.time(x.Last)
		w.uint(x.Digests)
		w.share(x.Share)
		w.share(x.Confidence)
		w.share(x.Unexplained)
		w.uint(uint64(len(x.Others)))
		for i := range x.Others {
			w.share(x.Others[i].Share)
			w.share(x.Others[i].Confidence)
			w.nodes(x.Others[i].Nodes)
		}
		w.uint(uint64(len(x.Inseparable)))
		for i := range x.Inseparable {
			w.share(x.Inseparable[i].Share)
			w.uint(uint64(len(x.Inseparable[i].Paths)))
			for _, nodes := range x.Inseparable[i].Paths {
				w.nodes(nodes)
			}
		}
	}
	w.close(at)
}

// share writes a part of the whole. What is none, which nobody computes, becomes the nearest one.
func (w *writer) share(v float64) {
	if !(v > 0) {
		v = 0
	}
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(min(v, 1)))
}

func (w *writer) nodes(nodes []uint32) {
	w.uint(uint64(len(nodes)))
	for _, n := range nodes {
		w.uint(uint64(n))
	}
}

func (p *Partial) readSpreads(r *reader, limits *Limits) {
	n := r.items("spreads", limits.Flows, flowBytes+29)
	p.spreads.grow(n)
	for before := (*Spread)(nil); n > 0 && r.err == nil; n-- {
		at := r.at
		x := Spread{Flow: r.flow("spread flow")}
		x.Unsettled = r.flags("spread flags", isUnsettled)&isUnsettled != 0
		x.Last, x.Digests = r.time("spread time"), r.uint("spread digests")
		x.Share, x.Confidence, x.Unexplained = r.share("spread share"), r.share("spread confidence"), r.share("spread rest")
		n := r.count("spread paths", MaxSpread, 17)
		for k := n; k > 0 && r.err == nil; k-- {
			x.Others = append(x.Others, FlowPath{Share: r.share("spread share"), Confidence: r.share("spread confidence"), Nodes: r.nodes("spread path")})
		}
		for k := r.count("spread sets", MaxSpread, 9); k > 0 && r.err == nil; k-- {
			set := FlowPaths{Share: r.share("spread share")}
			m := r.count("spread set", MaxSpread-n, 1)
			for n += m; m > 0 && r.err == nil; m-- {
				set.Paths = append(set.Paths, r.nodes("spread path"))
			}
			x.Inseparable = append(x.Inseparable, set)
		}
		if r.ordered("spread", at, before == nil || before.Flow.Compare(&x.Flow) < 0) {
			before, _ = p.spreads.at(x.Flow)
			*before = x
		}
	}
}

// share reads a number from 0 to 1.
func (r *reader) share(field string) float64 {
	at := r.at
	v := math.Float64frombits(r.uint64(field))
	if !(v >= 0 && v <= 1) || math.Signbit(v) {
		r.at = at
		r.fail(field, ErrCorrupt)
		return 0
	}
	return v
}

func (r *reader) nodes(field string) []uint32 {
	n := r.count(field, math.MaxInt, 1)
	if n == 0 {
		return nil
	}
	list := make([]uint32, 0, n)
	for ; n > 0 && r.err == nil; n-- {
		list = append(list, r.id(field))
	}
	return list
}
