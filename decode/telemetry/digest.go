package telemetry

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// PINTDomain is the domain specific id of report 2.0 under which hopscope's own switches report PINT digests. No
// registry assigns these ids; it is "PI" in ASCII.
const PINTDomain = 0x5049

// DSMdBits of a PINT digest. Each has one word, in this order:
//
//	digestPath  plan epoch (8 bits), switches that the packet passed (8), reserved (16)
//	digestID    packet id as the hashes take it (32)
//	digestLow   digest, bits 0 to 31
//	digestHigh  digest, bits 32 to 63
//	digestLoop  times that a switch saw the packet again (8), reserved (24): a routing loop
const (
	digestPath uint16 = 0x8000 >> iota
	digestID
	digestLow
	digestHigh
	digestLoop
	digestNeeds = digestPath | digestID | digestLow
	digestKnown = digestNeeds | digestHigh | digestLoop
)

// AddDigest reads the domain specific metadata x of a PINT digest, as ds states them, into r. Words of unknown bits
// are behind the known ones and are kept unchanged. If x is no digest it returns false and leaves r unchanged.
func AddDigest(r *decode.Report, ds uint16, x []byte) bool {
	if ds&digestNeeds != digestNeeds || len(x) < 4*bits.OnesCount16(ds&digestKnown) {
		return false
	}
	word := func() (v uint32) {
		v, x = binary.BigEndian.Uint32(x), x[4:]
		return v
	}
	d := &r.Digest
	path := word()
	d.Epoch, d.Hops = uint8(path>>24), uint8(path>>16)
	d.ID = word()
	d.Value = uint64(word())
	if ds&digestHigh != 0 {
		d.Value |= uint64(word()) << 32
	}
	if ds&digestLoop != 0 {
		word()
		r.Flags |= decode.Loop
	}
	if len(x) > 0 {
		r.Unknown = x
	}
	r.Has |= decode.HasDigest
	return true
}

// digestBits are the DSMdBits of h's digest, 0 without one.
func (h *Header) digestBits() (ds uint16) {
	if h.Digest == nil {
		return 0
	}
	ds = digestNeeds
	if h.DigestBits > 32 {
		ds |= digestHigh
	}
	if h.Looped > 0 {
		ds |= digestLoop
	}
	return ds
}

// appendDigest appends the domain specific metadata that ds states.
func appendDigest(dst []byte, ds uint16, d *decode.Digest, looped uint8) []byte {
	be := binary.BigEndian
	dst = append(dst, d.Epoch, d.Hops, 0, 0)
	dst = be.AppendUint32(dst, d.ID)
	dst = be.AppendUint32(dst, uint32(d.Value))
	if ds&digestHigh != 0 {
		dst = be.AppendUint32(dst, uint32(d.Value>>32))
	}
	if ds&digestLoop != 0 {
		dst = append(dst, looped, 0, 0, 0)
	}
	return dst
}
