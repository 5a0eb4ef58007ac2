package pint

import "hash/crc32"

// Hash is a family of hash functions that switches and decoders share.
type Hash uint8

// The families of hashes.
const (
	HashMix Hash = iota // multiplications: hosts, NICs, emulators
	HashCRC             // CRC-32 and additions: what P4 targets compute natively
)

func (h Hash) String() string { return [...]string{"mix", "crc"}[h] }

// key makes the key of one of the hash functions of one packet.
func (s *Scheme) key(seed, id, function uint32) uint64 {
	if s.config.Hash == HashCRC {
		return uint64(crc(crc(seed+function*0x85ebca6b) + id))
	}
	return finish(uint64(seed)<<32 ^ uint64(id) ^ uint64(function)*0xd6e8feb86659fd93)
}

// hash maps x to 32 uniform bits with a key.
//
// A CRC alone is linear: crc(key‖x) ⊕ crc(key‖y) would be the same for every packet, and two nodes whose hashes collide
// once would collide always. The carries of the addition prevent that; x is hashed before it, so that neighbouring ids
// do not differ in a few bits only.
func (s *Scheme) hash(key uint64, x uint32) uint32 {
	if s.config.Hash == HashCRC {
		return crc(uint32(key) + crc(x))
	}
	return uint32(finish(key+uint64(x)*0x9e3779b97f4a7c15) >> 32)
}

// finish is the finaliser of SplitMix64.
func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

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
