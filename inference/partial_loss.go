package inference

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// FlowLoss compares what the first and the last switch on a flow's way reported of its packets, as far as it was settled
// in a window. A packet that a switch dropped and reported is not lost in this sense.
type FlowLoss struct {
	Flow    decode.FlowKey
	Packets uint64   // that the first switch reported
	Lost    uint64   // of these, the ones that the last switch did not report
	Path    []HopKey // at the end of the window; empty while it is not known
}

// AddLoss adds what somebody compared of a flow. Of several paths the one with more hops stays, and then the greater one.
func (p *Partial) AddLoss(l *FlowLoss) {
	to, known := p.losses.at(l.Flow)
	if !known {
		*to = *l
		to.Path = share(&p.pathHops, l.Path)
		return
	}
	to.Packets += l.Packets
	to.Lost += l.Lost
	if len(l.Path) > len(to.Path) || len(l.Path) == len(to.Path) && slices.CompareFunc(l.Path, to.Path, HopKey.Compare) > 0 {
		to.Path = share(&p.pathHops, l.Path)
	}
}

func compareLosses(a, b *FlowLoss) int { return a.Flow.Compare(&b.Flow) }

// lost lists what flows lost, as many flows as fit: those with the least keys.
func (p *Partial) lost(w *Window, n int) {
	order := sorted(&p.order, p.losses.items, compareLosses)
	if n = max(n, 0); len(order) > n {
		for _, i := range order[n:] {
			w.OtherLosses += p.losses.items[i].Packets
		}
		order = order[:n]
	}
	hops := 0
	for _, i := range order {
		hops += len(p.losses.items[i].Path)
	}
	memory := make([]HopKey, 0, hops)
	w.Losses = slices.Grow(w.Losses, len(order))
	for _, i := range order {
		l := p.losses.items[i]
		l.Path = share(&memory, l.Path)
		w.Losses = append(w.Losses, l)
	}
}

// lossSection is that of [FlowLoss]. Readers that do not know it pass over it.
const lossSection = 10

func (p *Partial) writeLosses(w *writer) {
	at := w.open(lossSection, len(p.losses.items))
	for _, i := range sorted(&p.order, p.losses.items, compareLosses) {
		l := &p.losses.items[i]
		w.flow(&l.Flow)
		w.uint(l.Packets)
		w.uint(l.Lost)
		w.path(l.Path)
	}
	w.close(at)
}

func (p *Partial) readLosses(r *reader, limits *Limits) {
	n := r.items("losses", limits.Losses, flowBytes+3)
	p.losses.grow(n)
	for before := (*FlowLoss)(nil); n > 0 && r.err == nil; n-- {
		at := r.at
		l := FlowLoss{Flow: r.flow("loss flow"), Packets: r.uint("loss packets"), Lost: r.uint("losses")}
		from := len(p.pathHops)
		p.pathHops = r.path("loss path", p.pathHops)
		l.Path = p.pathHops[from:len(p.pathHops):len(p.pathHops)]
		if r.ordered("loss", at, before == nil || compareLosses(before, &l) < 0) {
			before, _ = p.losses.at(l.Flow)
			*before = l
		}
	}
}
