package pint

import "hash/crc32"

// Hash is a family of hash functions that switches and decoders share.
type Hash uint8

// The families of hashes.
const (
	HashMix Hash = iota // multiplications: hosts, NICs, emulators
	HashCRC             // CRC-32 and additions: what P4 targets compute natively
)

func (h Hash) String() string {
	switch h {
	case HashMix:
		return "mix"
	case HashCRC:
		return "crc"
	}
	return "unknown"
}

// The functions of a packet id: who writes, what becomes of values, which layer, which fragment of a value, which set of
// queries of a plan, and how the first query rounds; those after it follow.
const (
	ofHops = 1 + iota
	ofValues
	ofLayer
	ofFragment
	ofSet
	ofRounding
)

// key makes the key of one function for one packet. Keys alone are not uniform enough for HashCRC to be used as hashes.
func (h Hash) key(seed, id, function uint32) uint64 {
	if h == HashCRC {
		return uint64(crc(crc(seed+function*0x85ebca6b) + id))
	}
	return mixKey(seed, id, function)
}

func mixKey(seed, id, function uint32) uint64 {
	return finish(uint64(seed)<<32 ^ uint64(id) ^ uint64(function)*0xd6e8feb86659fd93)
}

// hash maps x to 32 uniform bits with a key.
func (h Hash) hash(key uint64, x uint32) uint32 {
	if h == HashCRC {
		return crcHash(uint32(key), crc(x))
	}
	return mix(uint32(key), uint32(key>>32), x)
}

// global is a hash of the packet id alone.
func (h Hash) global(seed, id, function uint32) uint32 {
	if h == HashMix {
		return uint32(mixKey(seed, id, function) >> 32)
	}
	return crcHash(uint32(h.key(seed, id, function)), hopCRC[0])
}

// mix is a keyed finaliser of 32 bits, so that processors and NICs do many at once: the three rounds of C. Wellons'
// triple32. The second key enters behind the first round: two nodes differ by the same amount in every packet, and one key
// alone gives pairs of nodes only 2³² ways to meet. Two rounds are too few, see [TestNodesCollideIndependently]: ids that
// differ in their highest bits alone had the same 8 bits too often.
func mix(k1, k2, x uint32) uint32 {
	x += k1
	x ^= x >> 17
	x *= 0xed5ad4bb
	x += k2
	x ^= x >> 11
	x *= 0xac4c1b51
	x ^= x >> 15
	x *= 0x31848bab
	return x ^ x>>14
}

// finish is the finaliser of SplitMix64.
func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// crcHash is the keyed hash of the CRC family of a value whose CRC is c.
//
// A CRC alone is linear: crc(key‖x) ⊕ crc(key‖y) would be the same for every packet, and two nodes whose hashes collide
// once would collide always. The carries of additions prevent that. One addition is not enough: the difference of two
// nodes then takes few values, and some pairs of neighbouring ids met twice as often as they should.
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
