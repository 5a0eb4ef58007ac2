package emu

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// Counters of interfaces, which switches of FANT put into packets. They go on modulo 2^32, less the one value that stands for no count.

const allCounts = decode.HopCount(1<<decode.NumHopCounts - 1)

// countSent counts a packet of that many bytes on the line that leaves by p.out.
func (n *Network) countSent(p *packet) {
	c := &n.counts[p.out]
	bytes := int(p.onLine)
	sim.Count(&c.TxPackets, 1)
	if p.segment || p.kind == sourceRouted {
		sim.Count(&c.SRPackets, 1)
		sim.Count(&c.SRBytes, bytes)
	}
	if p.V6 {
		sim.Count(&c.IPv6Packets, 1)
		sim.Count(&c.IPv6Bytes, bytes)
	} else {
		sim.Count(&c.IPv4Packets, 1)
		sim.Count(&c.IPv4Bytes, bytes)
	}
}

// countDropped counts a packet that was to leave by an interface.
func (n *Network) countDropped(iface int32, bytes int) {
	c := &n.counts[iface]
	sim.Count(&c.DroppedPackets, 1)
	sim.Count(&c.DroppedBytes, bytes)
}

// Counts are what a switch has counted at one of its interfaces.
func (n *Network) Counts(iface int) decode.HopCounts {
	c := n.counts[iface]
	c.Has = allCounts
	return c
}

// read returns the counters of the interface that a packet leaves by, or nil where its instructions have no place for them.
func (n *Network) read(p *packet, d Dialect, asked uint16) *decode.HopCounts {
	if d != FANT || asked&insReserved == 0 {
		return nil
	}
	c := &n.counts[p.out]
	c.Has = allCounts
	return c
}
