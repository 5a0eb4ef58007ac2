package program

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4"
)

// interfaces are the counters of p4/include/fant.p4, by port. A switch has one queue a port.
type interfaces struct {
	list []interfaceCounts
	show *p4.Rows
}

// interfaceCounts are the registers of a port, modulo 2^32.
type interfaceCounts struct {
	offered, passed pair // by the ingress, and of these by the egress
	sent            uint32
	segment, v4, v6 pair
	shown           decode.HopCounts // of the last packet
}

// pair is a number of packets, and of the bytes of their frames.
type pair struct{ packets, bytes uint32 }

func (p *pair) add(n uint32) {
	p.packets++
	p.bytes += n
}

const countsName = "egress.counts"

func (c *interfaces) bind(t *p4.Store) { c.show = t.Rows(countsName) }

// at is the port's counters.
func (c *interfaces) at(port uint16) *interfaceCounts {
	if int(port) >= len(c.list) {
		c.list = append(c.list, make([]interfaceCounts, int(port)+1-len(c.list))...)
	}
	return &c.list[port]
}

// offer counts what the ingress hands to a port. The packet keeps the sums.
func (c *interfaces) offer(p *Packet) {
	at := c.at(p.Port)
	at.offered.add(uint32(p.length))
	p.offered = at.offered
}

// leave counts a packet that leaves, and returns what its port shows, nil for nothing. Packets that were offered before it and
// did not leave were dropped.
func (c *interfaces) leave(p *Packet) *decode.HopCounts {
	at, length := c.at(p.Port), uint32(p.length)
	ip := !p.plain || p.form == 0 || p.form == formPath // what is in other frames is their own
	at.sent++
	if p.followed || p.segment && ip {
		at.segment.add(length)
	}
	switch {
	case !ip:
	case p.v4 != nil:
		at.v4.add(length)
	case p.v6 != nil:
		at.v6.add(length)
	}
	at.passed.add(length)
	if c.show.At(uint64(p.Port)).Action != "show_counts" {
		return nil
	}
	at.shown = decode.HopCounts{
		Has: 1<<decode.NumHopCounts - 1, TxPackets: at.sent, DroppedPackets: p.offered.packets - at.passed.packets, DroppedBytes: p.offered.bytes - at.passed.bytes,
		SRPackets: at.segment.packets, SRBytes: at.segment.bytes, IPv4Packets: at.v4.packets, IPv4Bytes: at.v4.bytes, IPv6Packets: at.v6.packets, IPv6Bytes: at.v6.bytes,
	}
	for _, n := range at.shown.All() {
		if *n == math.MaxUint32 { // which stands for no count
			*n = 0
		}
	}
	return &at.shown
}

// leaveReport counts a report, by the length in its header. The ingress did not offer it.
func (c *interfaces) leaveReport(p *Packet) {
	at := c.at(p.Port)
	at.sent++
	at.v4.add(uint32(get(p.Head, ethLen+2)) + ethLen)
}

// discards reports whether the sink node drops a packet by its D bit.
func (p *Packet) discards(sink bool) bool {
	return sink && !p.plain && p.stack != nil && p.head != nil && p.head[0]&discard != 0
}

// segmentRouted reports whether IPv6 has a routing header of segment routing behind it, of which it reads the first bytes.
func (p *Packet) segmentRouted() bool {
	if p.v6 == nil || p.proto != 43 || p.failed {
		return false
	}
	p.routing = p.read(3)
	return p.routing != nil && p.routing[2] == 4
}
