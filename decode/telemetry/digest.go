package telemetry

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// PINTDomain is the domain specific id of report 2.0 under which hopscope's own switches report PINT digests. No
// registry assigns these ids; it is "PI" in ASCII.
const PINTDomain = 0x5049

// DSMdBits of a PINT digest. Each stands for one word, in this order:
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

// digest reads the domain specific metadata x of a PINT digest, as told by ds. Words of bits that are not known stand
// behind the known ones and are kept as they are.
func digest(r *decode.Report, ds uint16, x []byte) bool {
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
