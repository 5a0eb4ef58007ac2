package pint

import (
	"crypto/md5"
	"encoding/binary"
	"sync"
)

// The dialect of Tofino-PINT, a P4 program for the Tofino switch with a digest of 32 bits in a header of its own.
// Packet ids are IPv4 identifications, the hop number is 255 less the TTL that leaves the switch.
//
// The behaviour of the program counts:
//   - Half of the packets are Baseline, by 16 bits of the hardware's CRC-32 of the id; which 16 is not established.
//   - All other hashes are from tables that a script filled with parts of MD5 sums, for ids 0 to 999, hops 0 to 9 and
//     node ids 0 to 63. A hash without an entry stays 0. As far as observed the switch then writes a 0, and such
//     packets carry nothing about the path.
//   - Baseline compares with 65536/i - 1, but with 6562 instead of 6552 at hop 10. Switches above hop 10 do not
//     compare, and do not write. Comparisons include equality, so that hop 1 always writes, and the others in 1/i of
//     the packets.
//   - XOR folds the hashed value in when the hash of the hop is below 8192, one in eight.
const (
	tofinoIDs    = 1000
	tofinoHops   = 9
	tofinoValues = 64
	tofinoTau    = 32768
	tofinoFolds  = 8192
)

// tofinoLimits are the largest hashes of a Baseline writer, by hop.
var tofinoLimits = [...]uint32{1: 65535, 32767, 21844, 16383, 13106, 10921, 9361, 8191, 7280, 6562}

// tofinoTables holds the results of the script.
type tofinoTables struct {
	hops   [tofinoIDs][tofinoHops + 1]uint16
	values [tofinoIDs][tofinoValues]uint32
}

// tofinoHashes takes some milliseconds, on the first of such packets.
var tofinoHashes = sync.OnceValue(func() *tofinoTables {
	t := new(tofinoTables)
	var hop [4]byte
	var value [6]byte
	for id := range tofinoIDs {
		binary.LittleEndian.PutUint16(hop[2:], uint16(id))
		for i := range t.hops[id] {
			hop[0] = byte(i)
			sum := md5.Sum(hop[:])
			t.hops[id][i] = binary.BigEndian.Uint16(sum[14:])
		}
		binary.LittleEndian.PutUint16(value[4:], uint16(id))
		for v := range t.values[id] {
			binary.LittleEndian.PutUint32(value[:], uint32(v))
			sum := md5.Sum(value[:])
			t.values[id][v] = binary.BigEndian.Uint32(sum[12:])
		}
	}
	return t
})

// Tofino is the scheme of Tofino-PINT. With high, the hardware chooses the layer by the upper half of the CRC of the
// packet id. Whether the tables have the hashes of a packet is reported by [Scheme.Known].
func Tofino(high bool) *Scheme {
	c := Config{Hash: HashCRC, Bits: 32, Instances: 1, Tau: .5, P: []float64{.125}}
	if high {
		c.Seed = 16
	}
	return &Scheme{dialect: tofino, config: c}
}

func (s *Scheme) tofinoPacket(id uint32) Packet {
	id &= 0xffff
	return Packet{id: id, Baseline: crc16(uint16(id))>>s.config.Seed&0xffff < tofinoTau}
}

func tofinoWrites(p *Packet, i int) bool {
	g := uint32(0)
	if p.id < tofinoIDs && i <= tofinoHops {
		g = uint32(tofinoHashes().hops[p.id][i])
	}
	if p.Baseline {
		return i < len(tofinoLimits) && g <= tofinoLimits[i]
	}
	return g < tofinoFolds
}

func tofinoValue(p *Packet, node uint32) uint32 {
	if p.id < tofinoIDs && node < tofinoValues {
		return tofinoHashes().values[p.id][node]
	}
	return 0
}
