package pint

// The dialect of Mininet-PINT, a P4 program for the software switch BMv2. Three variants share one digest: lanes of
// 8, 4 and 1 bits, here put together to 13 bits with the widest lane on top. Packet ids are IPv4 identifications, hop
// i receives TTL 256 - i, and the hash is the CRC-32 of the fields one behind the other.
//
// The behaviour of the program counts:
//   - Half of the packets are Baseline. Hop i replaces the lanes when its hash modulo 1000000 is below 1000000/i. The
//     lanes then hold the CRC of node and packet modulo 255, 7 and 1. So 255 never is in the high lane, and the low
//     one is always 0.
//   - In the others a hop writes when that hash is at most 100000, one in ten. It XORs its raw node id in, not a hash.
//   - High and low lane change places at every XOR. The value of the last writer is whole in the high lane. Of an
//     earlier one only the last bit is left, in either lane. Only the middle lane holds the intended XOR.
//
// The decoder script published with it starts one hop beyond the last. So it attributes about one Baseline packet in
// k+1 to a hop that does not exist. It also expects remainders of 8 in the middle lane. The decoder here does
// neither.
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
	return Packet{
		id: id, Baseline: crc16(uint16(id))%mininetLayers < mininetTau,
		hops: uint64(crc48(id<<16, 0)), values: uint64(crcTables[1][id>>8] ^ crcTables[0][id&0xff]),
	}
}

func mininetWrites(p *Packet, i int) bool {
	g := (uint32(p.hops) ^ crcTables[0][i&0xff]) % mininetRange // the CRC of id and hop: a hop is at most 64
	if p.Baseline {
		return g < mininetRange/uint32(i)
	}
	return g <= mininetFolds
}

// mininetValue returns contributions whose XOR is the final content of the lanes. The value of the last writer is
// whole in the high lane. An earlier value went through the low lane, which is one bit wide, so that only its last
// bit is left.
func mininetValue(p *Packet, role Role, id uint32) uint32 {
	mid, low := id&0xf<<midShift, id&1
	switch role {
	case Replaced:
		h := crc48(id, 0) ^ uint32(p.values) // the CRC of node and packet
		return h%255<<highShift | h%7<<midShift
	case FoldedLast:
		return id&0xff<<highShift | mid | low
	default:
		return low<<highShift | mid | low
	}
}

// mininetFold returns the lanes after an XOR write.
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
