package window

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// InterfaceCounts holds the counters of an interface that packets leaving by it read in a window. Counters go on over
// windows, and many packets read the same one, in shards and collectors of their own. So the partial has the first and
// the last reading, and the rise of a counter is known when all are there.
type InterfaceCounts struct {
	Node, Interface uint32
	Sights          uint64 // packets that read them in the window; 0 where the last reading before it alone is there
	Sent, Dropped   CountSpan
}

// CountSpan is two readings of a counter modulo 2^32.
type CountSpan struct {
	Has bool
	// Before: the first reading is the last one before the window, and not the first in it.
	Before          bool
	FirstAt, LastAt int64 // ns since 1970
	First, Last     uint32
}

// add takes the later of two last readings. Of two first ones it takes the later of those before the window, else the
// earlier. So the readings of any shards are those of one shard that had them all, and each window continues where the
// one before has ended.
func (s *CountSpan) add(o *CountSpan) {
	switch {
	case !o.Has:
		return
	case !s.Has:
		*s = *o
		return
	}
	if later(o.LastAt, s.LastAt, o.Last, s.Last) {
		s.LastAt, s.Last = o.LastAt, o.Last
	}
	if o.Before && (!s.Before || later(o.FirstAt, s.FirstAt, o.First, s.First)) || !o.Before && !s.Before && later(s.FirstAt, o.FirstAt, s.First, o.First) {
		s.Before, s.FirstAt, s.First = o.Before, o.FirstAt, o.First
	}
}

// Follow makes s the last reading of o, if it is the later one, as it is the first one of the next window.
func (s *CountSpan) Follow(o *CountSpan) {
	if o.Has && (!s.Has || later(o.LastAt, s.LastAt, o.Last, s.Last)) {
		*s = CountSpan{Has: true, Before: true, FirstAt: o.LastAt, LastAt: o.LastAt, First: o.Last, Last: o.Last}
	}
}

func later(at, than int64, v, w uint32) bool {
	return cmp.Or(cmp.Compare(at, than), cmp.Compare(v, w)) > 0
}

// rise returns the rise of the counter in the window. The result ok is false if the counter was not read since the
// reading before. It is also false if it fell and nothing shows that it goes on modulo 2^32. A device that restarts
// sets all of its counters to zero.
func (s *CountSpan) rise(on *goingOn) (n uint64, ok bool) {
	n = uint64(s.Last - s.First)
	return n, s.read() && n < 1<<31 && (s.Last >= s.First || on.until > 0 && on.from < s.FirstAt+anewAfter && on.until > s.LastAt-anewAfter)
}

// anewAfter is the least time in ns that a device needs to begin anew.
const anewAfter = 1e9

// goingOn is the time between two readings of a counter, the latest one of a node, that was above zero and did not
// fall. The device did not restart in it.
type goingOn struct{ from, until int64 }

func (g *goingOn) add(s *CountSpan) {
	if s.read() && s.First > 0 && s.Last >= s.First && s.LastAt > g.until {
		g.from, g.until = s.FirstAt, s.LastAt
	}
}

// read reports whether the last reading is another one than that before the window.
func (s *CountSpan) read() bool {
	return s.Has && !(s.Before && s.LastAt == s.FirstAt && s.Last == s.First)
}

func (s *CountSpan) code(c *coder) {
	c.time("first reading", &s.FirstAt)
	c.time("last reading", &s.LastAt)
	c.fixed32("first count", &s.First)
	c.fixed32("last count", &s.Last)
}

func (x *InterfaceCounts) key() inference.HopKey {
	return inference.HopKey{Node: x.Node, EgressIf: x.Interface}
}

var countsKind = kindOf[inference.HopKey, InterfaceCounts]{
	one: "counts of an interface", many: "counts of interfaces", least: 14,
	in:    func(p *Partial) *table[inference.HopKey, InterfaceCounts] { return &p.counts },
	limit: func(l *Limits) int { return l.Hops },
	slice: func(s *Slicer, x *InterfaceCounts) int { return s.Hop(x.key()) },
	key:   func(x *InterfaceCounts) inference.HopKey { return x.key() },
	compare: func(a, b *InterfaceCounts) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Interface, b.Interface))
	},
	sum: func(_ *memory, to, from *InterfaceCounts) {
		to.Sights += from.Sights
		to.Sent.add(&from.Sent)
		to.Dropped.add(&from.Dropped)
	},
	code: func(c *coder, _ *memory, x *InterfaceCounts) {
		c.id("interface node", &x.Node)
		c.id("interface", &x.Interface)
		c.uint("sights", &x.Sights)
		at := c.at
		c.flags("counts", &x.Sent.Has, &x.Sent.Before, &x.Dropped.Has, &x.Dropped.Before)
		c.check("counts", at, (x.Sent.Has || x.Dropped.Has) && (x.Sent.Has || !x.Sent.Before) && (x.Dropped.Has || !x.Dropped.Before))
		for _, s := range []*CountSpan{&x.Sent, &x.Dropped} {
			if s.Has {
				s.code(c)
			}
		}
	},
	view: func(p *Partial, w *inference.Window, _ *Limits) { addCounts(w, p.counts.items) },
}

// addCounts adds interfaces whose counters packets read to a window. Those that send their counters themselves have
// these alone.
func addCounts(w *inference.Window, items []InterfaceCounts) {
	const own = decode.CountOutPackets | decode.CountOutDiscards
	n := len(w.Interfaces)
	going := map[uint32]*goingOn{} // by node
	for i := range items {
		x := &items[i]
		on := going[x.Node]
		if on == nil {
			on = new(goingOn)
			going[x.Node] = on
		}
		on.add(&x.Sent)
		on.add(&x.Dropped)
	}
	for i := range items {
		x := &items[i]
		sent, ok := x.Sent.rise(going[x.Node])
		dropped, known := x.Dropped.rise(going[x.Node])
		switch {
		case !ok && x.Sent.read(), !known && x.Dropped.read():
			continue // the device began to count anew
		case !ok && !known:
			continue // the readings before the window alone
		}
		s := inference.InterfaceStats{Node: x.Node, Samples: x.Sights, Counters: decode.Counters{Interface: x.Interface}}
		if ok {
			s.Has, s.OutPackets = decode.CountOutPackets, sent
		}
		if known {
			s.Has |= decode.CountOutDiscards
			s.OutDiscards = dropped
			if ok {
				s.OutPackets += dropped // packets to be sent are counted, as by interfaces themselves
			}
		}
		at, there := slices.BinarySearchFunc(w.Interfaces[:n], s, compareInterfaces)
		switch {
		case !there:
			w.Interfaces = append(w.Interfaces, s)
		case w.Interfaces[at].Has&own == 0:
			w.Interfaces[at].Add(&s)
		}
	}
	if len(w.Interfaces) > n { // put in order once: there are as many as places for hops
		slices.SortFunc(w.Interfaces, compareInterfaces)
	}
}

func compareInterfaces(a, b inference.InterfaceStats) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Interface, b.Interface))
}

// CountsMemory is the most that the counts of one interface take in a partial, with their place in the index, in bytes.
const CountsMemory = 2 * (int64(unsafe.Sizeof(InterfaceCounts{})) + 64)

// AddCounts adds what packets read of an interface's counters, of which one is there.
//
//go:noinline
func (p *Partial) AddCounts(x *InterfaceCounts) { countsKind.add(p, x) }
