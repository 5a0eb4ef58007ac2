package pint

import "hash/crc32"

// crcHash is the keyed hash of the CRC family of a value whose CRC is c.
//
// A CRC alone is linear: crc(key‖x) ⊕ crc(key‖y) would be the same for every packet, and two nodes whose hashes
// collide once would collide always. The carries of additions prevent that. One addition is not enough. The
// difference of two nodes then takes few values, and some pairs of neighbouring ids met twice as often as they
// should.
func crcHash(key, c uint32) uint32 { return crc(key + crc(key+c)) }

// crcTables[n] is the CRC of a byte that n zero bytes follow.
var crcTables = func() (t [6][256]uint32) {
	t[0] = *crc32.IEEETable
	for n := 1; n < len(t); n++ {
		for i, c := range t[n-1] {
			t[n][i] = c>>8 ^ t[0][c&0xff]
		}
	}
	return t
}()

// crc is CRC-32 as in Ethernet over the four bytes of x in network order.
func crc(x uint32) uint32 {
	x ^= 0xffffffff
	return ^(crcTables[3][x>>24] ^ crcTables[2][x>>16&0xff] ^ crcTables[1][x>>8&0xff] ^ crcTables[0][x&0xff])
}

// crc16 is CRC-32 over the two bytes of a.
func crc16(a uint16) uint32 {
	return ^(crcTables[1][a>>8^0xff] ^ crcTables[0][a&0xff^0xff] ^ 0xffff)
}

// crc48 is CRC-32 over the four bytes of x and the two of a.
func crc48(x uint32, a uint16) uint32 {
	x ^= 0xffffffff
	return ^(crcTables[5][x>>24] ^ crcTables[4][x>>16&0xff] ^ crcTables[3][x>>8&0xff] ^ crcTables[2][x&0xff] ^
		crcTables[1][a>>8] ^ crcTables[0][a&0xff])
}

// hopCRC[i] is the CRC of hop number i.
var hopCRC = func() (t [MaxHops + 1]uint32) {
	for i := range t {
		t[i] = crc(uint32(i))
	}
	return t
}()

// crcVector is the first k bits, and some more, of the j-th of a sequence of pseudo-random vectors.
func crcVector(key uint32, j, k int) uint64 {
	r := uint64(crcHash(key, hopCRC[2*j]))
	if k > 32 {
		r |= uint64(crcHash(key, hopCRC[2*j+1])) << 32
	}
	return r
}

// crcBelowGo is crcBelow without assembly.
func crcBelowGo(key uint32, limits *[MaxHops]uint32, k int) (set uint64) {
	for i, limit := range limits[:k] {
		set |= notAbove(crcHash(key, hopCRC[i+1]), limit) << i
	}
	return set
}

// crcValuesGo is crcValues without assembly.
func crcValuesGo(dst []uint32, key uint32, values []uint32, shift int) {
	dst = dst[:len(values)]
	for n, v := range values {
		dst[n] = crcHash(key, crc(v)) >> (shift & 31)
	}
}
