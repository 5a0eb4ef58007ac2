package telemetry

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// ProbeDomain is the domain specific id of report 2.0 under which hopscope's agents report the outcomes of their
// probes. No registry assigns these ids; it is "PR" in ASCII.
const ProbeDomain = 0x5052

// DSMdBits of counts of probes: one bit is for all of them.
//
//	path, epoch, sent, received, missed, late, twice, corrupt, reordered   one word each
//	lost forward, lost back                                                one word each, two's complement
//	delays                                                                 to the end, a word each: code (16 bits), count (16)
const probeCounts uint16 = 0x8000

// probeWords are the words before the delays.
const probeWords = 11

// MostDelays are the delays of one report.
const MostDelays = 0xff - probeWords

// words are those of one word each, in their order.
func words(p *decode.ProbeCounts) [probeWords - 2]*uint32 {
	return [...]*uint32{&p.Path, &p.Epoch, &p.Sent, &p.Received, &p.Missed, &p.Late, &p.Twice, &p.Corrupt, &p.Reordered}
}

// probes reads the domain specific metadata x of counts of probes, as ds states them. Other bytes are left to other
// readers.
func probes(r *decode.Report, ds uint16, x []byte) bool {
	if ds != probeCounts || len(x) < 4*probeWords {
		return false
	}
	before := -1
	for at := 4 * probeWords; at < len(x); at += 4 {
		code := int(binary.BigEndian.Uint16(x[at:]))
		if code <= before || code >= decode.DelayCodes {
			return false
		}
		before = code
	}
	p := r.AddProbes()
	for _, w := range words(p) {
		*w, x = binary.BigEndian.Uint32(x), x[4:]
	}
	p.Forward, p.Back = int32(binary.BigEndian.Uint32(x)), int32(binary.BigEndian.Uint32(x[4:]))
	for x = x[8:]; len(x) > 0; x = x[4:] {
		p.Delays = append(p.Delays, decode.DelayCount{Code: binary.BigEndian.Uint16(x), Count: binary.BigEndian.Uint16(x[2:])})
	}
	r.Kind = decode.KindProbes
	return true
}

// appendProbes appends the domain specific metadata of counts of probes.
func appendProbes(dst []byte, p *decode.ProbeCounts) []byte {
	for _, w := range words(p) {
		dst = binary.BigEndian.AppendUint32(dst, *w)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Forward))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Back))
	for _, d := range p.Delays {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Code)<<16|uint32(d.Count))
	}
	return dst
}
