package pint

// The dialect of Mininet-PINT, a P4 program for the software switch. Three variants share one digest: lanes of 8, 4 and
// 1 bits, here put together to 13 bits with the widest lane on top.
//
// What the program does is what counts: the moduli are 255, 7 and 1, XOR folds raw node ids in, and the high and the
// low lane change places at every XOR.
const (
	mininetBits = 13
	highShift   = 5
	midShift    = 1

	mininetLayers = 100     // modulus of the hash that chooses the layer
	mininetTau    = 50      // below: Baseline
	mininetRange  = 1000000 // modulus of the hash that decides for a hop
	mininetFolds  = 100000  // at most: XOR
)

// Mininet is the scheme of Mininet-PINT. Packet ids are IPv4 identifications.
func Mininet() *Scheme {
	return &Scheme{dialect: mininet, config: Config{Hash: HashCRC, Bits: mininetBits, Instances: 1, Tau: .5, P: []float64{.1}}}
}

func mininetPacket(id uint32) Packet {
	id &= 0xffff
	return Packet{id: id, Baseline: crc16(uint16(id))%mininetLayers < mininetTau}
}

func mininetWrites(p *Packet, i int) bool {
	g := crc48(p.id<<16|uint32(i)>>16, uint16(i)) % mininetRange
	if p.Baseline {
		return g < mininetRange/uint32(i)
	}
	return g <= mininetFolds
}

// mininetValue gives contributions whose XOR is what the lanes hold in the end. The value of the last writer is whole in
// the high lane; that of an earlier one went through the low lane, one bit wide, so that its last bit is left.
func mininetValue(p *Packet, role Role, id uint32) uint32 {
	mid, low := id&0xf<<midShift, id&1
	switch role {
	case Replaced:
		h := crc48(id, uint16(p.id))
		return h%255<<highShift | h%7<<midShift
	case FoldedLast:
		return id&0xff<<highShift | mid | low
	default:
		return low<<highShift | mid | low
	}
}

// mininetFold is what an XOR write does to the lanes.
func mininetFold(old, id uint32) uint32 {
	high, mid, low := old>>highShift, old>>midShift&0xf, old&1
	return (low^id)&0xff<<highShift | (mid^id)&0xf<<midShift | (high^id)&1
}

// MininetLanes packs the destination MAC address that holds the digest. It is not ok when bits outside of the lanes
// are set.
func MininetLanes(mac uint64) (digest uint32, ok bool) {
	high, mid, low := uint32(mac>>32)&0xff, uint32(mac>>16)&0xf, uint32(mac)&1
	return high<<highShift | mid<<midShift | low, mac&^0x00ff000f0001 == 0
}

// MininetMAC is the inverse of MininetLanes.
func MininetMAC(digest uint32) uint64 {
	return uint64(digest>>highShift)<<32 | uint64(digest>>midShift&0xf)<<16 | uint64(digest&1)
}
