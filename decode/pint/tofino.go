package pint

import (
	"crypto/md5"
	"encoding/binary"
)

// The dialect of Tofino-PINT. Hashes come from tables that a script filled with parts of MD5 sums. Packet ids and hops
// beyond the tables are not known: ask [Scheme.Known] first.
const (
	tofinoIDs   = 1000
	tofinoHops  = 10
	tofinoTau   = 32768
	tofinoFolds = 8192
)

// tofinoLimits are the largest hashes of a writer, by hop: 65536/i - 1, but for the last.
var tofinoLimits = [tofinoHops + 1]uint32{0, 65535, 32767, 21844, 16383, 13106, 10921, 9361, 8191, 7280, 6562}

// Tofino is the scheme of Tofino-PINT. Packet ids are IPv4 identifications. It is not established which half of the CRC
// of the packet id the hardware keeps to choose the layer: high says that it is the upper one.
func Tofino(high bool) *Scheme {
	c := Config{Hash: HashCRC, Bits: 32, Instances: 1, Tau: .5, P: []float64{.125}}
	if high {
		c.Seed = 16
	}
	return &Scheme{dialect: tofino, config: c}
}

func (s *Scheme) tofinoPacket(id uint32) Packet {
	return Packet{id: id, Baseline: crc16(uint16(id))>>s.config.Seed&0xffff < tofinoTau}
}

func tofinoWrites(p *Packet, i int) bool {
	if i > tofinoHops {
		return false
	}
	sum := md5.Sum([]byte{byte(i), 0, byte(p.id), byte(p.id >> 8)})
	g := uint32(binary.BigEndian.Uint16(sum[14:]))
	if p.Baseline {
		return g <= tofinoLimits[i]
	}
	return g < tofinoFolds
}

func tofinoValue(p *Packet, id uint32) uint32 {
	var b [6]byte
	binary.LittleEndian.PutUint32(b[:], id)
	binary.LittleEndian.PutUint16(b[4:], uint16(p.id))
	sum := md5.Sum(b[:])
	return binary.BigEndian.Uint32(sum[12:])
}
