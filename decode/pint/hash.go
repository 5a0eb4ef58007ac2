package pint

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

// The functions of a packet id choose the writers, the written values, the layer, the fragment of a value, and a
// plan's set of queries. The last one rounds for the first query, and functions for further queries follow.
const (
	ofHops = 1 + iota
	ofValues
	ofLayer
	ofFragment
	ofSet
	ofRounding
)

// salt is what a function adds to packet ids before they become keys.
func (h Hash) salt(seed, function uint32) uint64 {
	if h == HashCRC {
		return uint64(crc(seed + function*0x85ebca6b))
	}
	return uint64(seed)<<32 ^ uint64(function)*0xd6e8feb86659fd93
}

// key makes the key of one function for one packet. Keys alone are not uniform enough for HashCRC to be used as hashes.
func (h Hash) key(salt uint64, id uint32) uint64 {
	if h == HashCRC {
		return uint64(crc(uint32(salt) + id))
	}
	return finish(salt ^ uint64(id))
}

// hash maps x to 32 uniform bits with a key.
func (h Hash) hash(key uint64, x uint32) uint32 {
	if h == HashCRC {
		return crcHash(uint32(key), crc(x))
	}
	return mix(uint32(key), uint32(key>>32), x)
}

// global is a hash of the packet id alone.
func (h Hash) global(salt uint64, id uint32) uint32 {
	if h == HashCRC {
		return crcHash(crc(uint32(salt)+id), hopCRC[0])
	}
	return uint32(finish(salt^uint64(id)) >> 32)
}

// below is the set of the first k hops, up to MaxHops, whose hashes are not above their limits.
func (h Hash) below(key uint64, limits *[MaxHops]uint32, k int) uint64 {
	if h == HashCRC {
		return crcBelow(uint32(key), limits, k)
	}
	return mixBelow(uint32(key), uint32(key>>32), limits, k)
}

// notAbove is 1 if a ≤ b, else 0, without a branch that processors guess wrong.
func notAbove(a, b uint32) uint64 { return (uint64(a) - uint64(b) - 1) >> 63 }

// vector is the j-th pseudo-random vector with a key, or its first k bits and some more.
func (h Hash) vector(key uint64, j, k int) uint64 {
	if h == HashMix {
		return mixVector(key, j)
	}
	return crcVector(uint32(key), j, k)
}
