package emu

import (
	"math"

	"github.com/hopscope/hopscope/decode"
)

// Counters of interfaces, which switches of FANT put into packets. They go on modulo 2^32, less the one value that stands for no count.

const allCounts = decode.HopCount(1<<decode.NumHopCounts - 1)

func count(to *uint32, n int) {
	if *to += uint32(n); *to == math.MaxUint32 {
		*to = 0
	}
}

// countSent counts a packet of that many bytes on the line that leaves by p.out.
func (n *Network) countSent(p *packet) {
	c := &n.counts[p.out]
	bytes := int(p.onLine)
	count(&c.TxPackets, 1)
	if p.segment || p.kind == sourceRouted {
		count(&c.SRPackets, 1)
		count(&c.SRBytes, bytes)
	}
	if p.V6 {
		count(&c.IPv6Packets, 1)
		count(&c.IPv6Bytes, bytes)
	} else {
		count(&c.IPv4Packets, 1)
		count(&c.IPv4Bytes, bytes)
	}
}

// countDropped counts a packet that was to leave by an interface.
func (n *Network) countDropped(iface int32, bytes int) {
	c := &n.counts[iface]
	count(&c.DroppedPackets, 1)
	count(&c.DroppedBytes, bytes)
}

// Counts are what a switch has counted at one of its interfaces.
func (n *Network) Counts(iface int) decode.HopCounts {
	c := n.counts[iface]
	c.Has = allCounts
	return c
}

// read returns the counters of the interface that a packet leaves by, or nil where its dialect has no place for them.
func (n *Network) read(p *packet) *decode.HopCounts {
	if p.carries != FANT || p.asked&insReserved == 0 {
		return nil
	}
	c := &n.counts[p.out]
	c.Has = allCounts
	return c
}
