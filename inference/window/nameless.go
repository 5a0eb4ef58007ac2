package window

import (
	"math"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// namelessPart is the hops at one such place in a partial.
type namelessPart struct {
	inference.NamelessKey
	latency, queue quantile.Histogram // dense codes of nanoseconds and of bytes
	noLatency      uint64             // records without a latency; all others are in latency
}

// maxNameless bounds the places of hops without a node id that a shard or the summary of a run keeps. Hostile packets
// can make such places up.
const maxNameless = 256

var namelessKind = kindOf[inference.NamelessKey, namelessPart]{
	one: "place of hops without a node id", many: "places of hops without a node id", least: len(decode.Addr{}) + 4,
	in:      func(p *Partial) *table[inference.NamelessKey, namelessPart] { return &p.nameless },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, x *namelessPart) int { return s.Exporter(inference.ExporterKey{Addr: x.Exporter}) },
	key:     func(x *namelessPart) inference.NamelessKey { return x.NamelessKey },
	compare: func(a, b *namelessPart) int { return a.NamelessKey.Compare(b.NamelessKey) },
	sum: func(_ *memory, to, from *namelessPart) {
		to.NamelessKey = from.NamelessKey
		to.merge(from)
	},
	empty: func(x *namelessPart) {
		x.latency.Reset()
		x.queue.Reset()
		x.noLatency = 0
	},
	leave: func(p *Partial, x *namelessPart) { // into the one of no place, which has room beside the limit
		p.otherNameless().merge(x)
	},
	code: func(c *coder, _ *memory, x *namelessPart) {
		at := c.at
		c.raw("exporter of hops without a node id", x.Exporter[:])
		c.byte("position", &x.Position)
		c.check("position", at, x.Position > 0 || x.Exporter == decode.Addr{})
		c.histogram("latency", &x.latency)
		c.histogram("queue", &x.queue)
		c.uint("records without latency", &x.noLatency)
	},
	view: func(p *Partial, w *inference.Window, _ *Limits) {
		for _, i := range sorted(&p.order, p.nameless.items, func(a, b *namelessPart) int { return a.NamelessKey.Compare(b.NamelessKey) }) {
			w.Nameless = append(w.Nameless, p.nameless.items[i].stats())
		}
	},
}

func (x *namelessPart) merge(o *namelessPart) {
	x.latency.Merge(&o.latency)
	x.queue.Merge(&o.queue)
	x.noLatency += o.noLatency
}

func (x *namelessPart) stats() inference.NamelessStats {
	return inference.NamelessStats{NamelessKey: x.NamelessKey, Count: x.latency.Count() + x.noLatency, Latency: summary(&x.latency), Queue: summary(&x.queue)}
}

// NamelessMemory is the most that the hops without a node id of a partial take, in bytes. One shard, or the summary of
// a run, adds to such a partial.
const NamelessMemory = (maxNameless + 1) * (2*(int64(unsafe.Sizeof(namelessPart{}))+64) + 2*quantile.Octaves*quantile.OctaveCodes*4)

// AddNameless counts the record h of a hop that holds no node id, at a position from 1 in the hops of its report.
func (p *Partial) AddNameless(exporter decode.Addr, position int, u *decode.Units, h *decode.Hop) {
	k, most := inference.NamelessKey{Exporter: exporter, Position: uint8(min(position, math.MaxUint8))}, maxNameless
	if p.most != nil {
		most = min(most, p.most.Hops)
	}
	if len(p.nameless.items) >= most && p.nameless.find(k) == nil {
		k = inference.NamelessKey{}
	}
	x, _ := p.nameless.at(k)
	x.NamelessKey = k
	if ns, ok := u.Latency(h); ok {
		x.latency.AddValue(ns)
	} else {
		x.noLatency++
	}
	if h.Has&decode.HopQueueOccupancy != 0 {
		x.queue.AddValue(uint64(h.QueueOccupancy) * u.QueueBytes)
	}
}

// otherNameless returns the place that stands for all that had none.
func (p *Partial) otherNameless() *namelessPart {
	x, _ := p.nameless.at(inference.NamelessKey{})
	x.NamelessKey = inference.NamelessKey{} // memory may hold another key
	return x
}

// foldNameless merges the i-th place into the one of no place, puts the last one there, and returns its number of records.
func (p *Partial) foldNameless(i int) uint64 {
	to := p.otherNameless() // which may move all items
	items := p.nameless.items
	x, last := &items[i], len(items)-1
	n := x.latency.Count() + x.noLatency
	to.merge(x)
	namelessKind.empty(x)
	delete(p.nameless.index, x.NamelessKey)
	if i != last {
		items[i], items[last] = items[last], items[i]
		p.nameless.index[items[i].NamelessKey] = int32(i)
	}
	p.nameless.items = items[:last]
	return n
}

// Nameless returns the sums of hops without a node id, ordered by exporter and position.
func (t *Totals) Nameless() (out []inference.NamelessStats) {
	for i := range t.rest.nameless.items {
		out = append(out, t.rest.nameless.items[i].stats())
	}
	slices.SortFunc(out, func(a, b inference.NamelessStats) int { return a.NamelessKey.Compare(b.NamelessKey) })
	return out
}
