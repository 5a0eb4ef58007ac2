package window

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// packetCounts are the counts of interfaceKind, octetCounts those of octetKind, and sentCounts that of sentKind.
const (
	packetCounts = decode.CountOutDiscards<<1 - 1
	octetCounts  = decode.CountInOctets | decode.CountRxUtilization
	sentCounts   = decode.CountOutOctets

	// The counts of octetKind in bytes: [decode.CounterField] has octets sent in between.
	octetsBit, utilizationBit uint8 = 64, 128
)

var interfaceKind = kindOf[inference.HopKey, inference.InterfaceStats]{
	one: "interface", many: "interfaces", least: 4,
	in:    func(p *Partial) *table[inference.HopKey, inference.InterfaceStats] { return &p.interfaces },
	limit: func(l *Limits) int { return l.Hops },
	slice: func(s *Slicer, x *inference.InterfaceStats) int { return s.Hop(x.Key()) },
	key:   func(x *inference.InterfaceStats) inference.HopKey { return x.Key() },
	compare: func(a, b *inference.InterfaceStats) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Interface, b.Interface))
	},
	sum: func(_ *memory, to, from *inference.InterfaceStats) { to.Add(from) },
	code: func(c *coder, _ *memory, x *inference.InterfaceStats) {
		at := c.at
		c.id("interface node", &x.Node)
		c.id("interface", &x.Interface)
		c.uint("interface samples", &x.Samples)
		has := uint8(x.Has)
		c.byte("interface counts", &has)
		x.Has = decode.CounterField(has)
		c.check("interface", at, x.Samples > 0 && x.Has&^packetCounts == 0)
		for i, n := range x.All() { // the others of x.Has are not set
			if x.Has>>i&1 != 0 {
				c.uint("interface count", n)
			}
		}
	},
	rows: func(w *inference.Window) (*[]inference.InterfaceStats, *uint64) { return &w.Interfaces, nil },
}

// InterfaceMemory is the most that one interface takes in a partial, with its place in the indexes, in bytes.
const InterfaceMemory = 2 * (int64(unsafe.Sizeof(inference.InterfaceStats{})+2*unsafe.Sizeof(interfaceOctets{})) + 3*64)

// interfaceOctets is the part of InterfaceStats that was added after the rest. Earlier readers refuse its bits in the
// section of the rest, and pass over a section of its own.
type interfaceOctets struct {
	Node uint32
	decode.Counters
}

var octetKind = kindOf[inference.HopKey, interfaceOctets]{
	one: "octets of an interface", many: "octets of interfaces", least: 3,
	in:    func(p *Partial) *table[inference.HopKey, interfaceOctets] { return &p.octets },
	limit: func(l *Limits) int { return l.Hops },
	slice: func(s *Slicer, x *interfaceOctets) int { return s.Hop(x.key()) },
	key:   func(x *interfaceOctets) inference.HopKey { return x.key() },
	compare: func(a, b *interfaceOctets) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Interface, b.Interface))
	},
	sum: func(_ *memory, to, from *interfaceOctets) { to.Add(&from.Counters) },
	code: func(c *coder, _ *memory, x *interfaceOctets) {
		c.id("interface node", &x.Node)
		c.id("interface", &x.Interface)
		at, has := c.at, uint8(0)
		if x.Has&decode.CountInOctets != 0 {
			has |= octetsBit
		}
		if x.Has&decode.CountRxUtilization != 0 {
			has |= utilizationBit
		}
		c.byte("interface counts", &has)
		c.check("interface counts", at, has != 0 && has&^(octetsBit|utilizationBit) == 0)
		x.Has = decode.CounterField(has/octetsBit&1)*decode.CountInOctets | decode.CounterField(has/utilizationBit&1)*decode.CountRxUtilization
		if x.Has&decode.CountInOctets != 0 {
			c.uint("octets received", &x.InOctets)
		}
		if x.Has&decode.CountRxUtilization != 0 {
			at, v := c.at, uint64(x.RxUtilization)
			c.uint("utilization by what was received", &v)
			c.check("utilization by what was received", at, v <= decode.WholeUtilization)
			x.RxUtilization = uint16(v)
		}
	},
	view: func(p *Partial, w *inference.Window, _ *Limits) { addOctets(w, p.octets.items) },
}

// sentKind is the octets that interfaces sent, which came later than those received.
var sentKind = kindOf[inference.HopKey, interfaceOctets]{
	one: "octets that an interface sent", many: "octets that interfaces sent", least: 3,
	in:      func(p *Partial) *table[inference.HopKey, interfaceOctets] { return &p.sent },
	limit:   octetKind.limit,
	slice:   octetKind.slice,
	key:     octetKind.key,
	compare: octetKind.compare,
	sum:     octetKind.sum,
	code: func(c *coder, _ *memory, x *interfaceOctets) {
		c.id("interface node", &x.Node)
		c.id("interface", &x.Interface)
		c.uint("octets sent", &x.OutOctets)
		x.Has = sentCounts
	},
	view: func(p *Partial, w *inference.Window, _ *Limits) { addOctets(w, p.sent.items) },
}

// addOctets adds octets to the interfaces of a window that they are of.
func addOctets(w *inference.Window, items []interfaceOctets) {
	for i := range items {
		x := &items[i]
		at, ok := slices.BinarySearchFunc(w.Interfaces, x, func(s inference.InterfaceStats, x *interfaceOctets) int {
			return cmp.Or(cmp.Compare(s.Node, x.Node), cmp.Compare(s.Interface, x.Interface))
		})
		if ok {
			w.Interfaces[at].Counters.Add(&x.Counters)
		}
	}
}

func (x *interfaceOctets) key() inference.HopKey {
	return inference.HopKey{Node: x.Node, EgressIf: x.Interface}
}

// AddInterface adds what an interface counted. Samples is above 0, and a count that is not in Has is 0.
//
//go:noinline
func (p *Partial) AddInterface(s *inference.InterfaceStats) {
	packets := *s
	packets.Has &= packetCounts
	packets.InOctets, packets.OutOctets, packets.RxUtilization = 0, 0, 0
	interfaceKind.add(p, &packets)
	if s.Has&octetCounts != 0 {
		octetKind.add(p, &interfaceOctets{s.Node, decode.Counters{Has: s.Has & octetCounts, Interface: s.Interface, InOctets: s.InOctets, RxUtilization: s.RxUtilization}})
	}
	if s.Has&sentCounts != 0 {
		sentKind.add(p, &interfaceOctets{s.Node, decode.Counters{Has: sentCounts, Interface: s.Interface, OutOctets: s.OutOctets}})
	}
}
