package decode

import "slices"

// HopCount is a set of the counts that a [HopCounts] can hold.
type HopCount uint16

// One bit for each count of a HopCounts, in the order of the wire (FANT, table 2).
const (
	HopTxPackets HopCount = 1 << iota
	HopDroppedPackets
	HopDroppedBytes
	HopSRPackets
	HopSRBytes
	HopIPv4Packets
	HopIPv4Bytes
	HopIPv6Packets
	HopIPv6Bytes
)

// NumHopCounts is how many counts a HopCounts can hold.
const NumHopCounts = 9

// HopCountNames are the counts as output spells them, in the order of their bits.
var HopCountNames = [NumHopCounts]string{
	"tx_packets", "dropped_packets", "dropped_bytes", "sr_packets", "sr_bytes", "ipv4_packets", "ipv4_bytes", "ipv6_packets", "ipv6_bytes",
}

// HopCounts holds a device's counts at the egress interface of a [Hop] since it began, modulo 2^32. A count whose bit
// in Has is not set is zero and has no meaning. SR is segment routing; a packet of it counts under its version of IP,
// too.
type HopCounts struct {
	Has                          HopCount
	TxPackets                    uint32
	DroppedPackets, DroppedBytes uint32 // that were to leave by the interface
	SRPackets, SRBytes           uint32
	IPv4Packets, IPv4Bytes       uint32
	IPv6Packets, IPv6Bytes       uint32
}

// All returns the counts in the order of their bits.
func (c *HopCounts) All() [NumHopCounts]*uint32 {
	return [...]*uint32{
		&c.TxPackets, &c.DroppedPackets, &c.DroppedBytes, &c.SRPackets, &c.SRBytes, &c.IPv4Packets, &c.IPv4Bytes, &c.IPv6Packets, &c.IPv6Bytes,
	}
}

// HopCounts returns the counts of a hop, or nil.
func (r *Report) HopCounts(hop int) *HopCounts {
	if r.Rare == nil || hop >= len(r.Rare.Counts) {
		return nil
	}
	return &r.Rare.Counts[hop]
}

// GrowCounts lengthens the Counts of Rare to n and returns them. They are zero.
func (r *Report) GrowCounts(n int) []HopCounts {
	x := r.AddRare()
	x.Counts = slices.Grow(x.Counts[:0], n)[:n]
	clear(x.Counts)
	return x.Counts
}
