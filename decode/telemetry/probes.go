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

// DSMdBits of the way of probes: one bit is for all of it.
//
//	path, epoch   one word each
//	routers       to the end, four words each: IPv6 addresses, those of IPv4 as ::ffff:a.b.c.d, :: for one without an answer
const probeWay uint16 = 0x4000

// DSMdBits of rounds of probes: one bit is for all of them.
//
//	path, epoch, end, count, turn, first, next, received   one word each; end is 1 for the sender and 2 for the receiver
const probeRounds uint16 = 0x2000

// roundWords are the words of rounds.
const roundWords = 8

// Words of a way before the routers, and of a router.
const wayWords, routerWords = 2, 4

// wordsOf is the number of words that a report of probes has.
func wordsOf(p *decode.ProbeCounts) int {
	if len(p.Way) > 0 {
		return wayWords + routerWords*len(p.Way)
	}
	if p.Rounds.End != decode.NoEnd {
		return roundWords
	}
	return probeWords + len(p.Delays)
}

// bitsOf are the DSMdBits that a report of probes has.
func bitsOf(p *decode.ProbeCounts) uint16 {
	if len(p.Way) > 0 {
		return probeWay
	}
	if p.Rounds.End != decode.NoEnd {
		return probeRounds
	}
	return probeCounts
}

// MostDelays are the delays of one report.
const MostDelays = 0xff - probeWords

// words are those of one word each, in their order.
func words(p *decode.ProbeCounts) [probeWords - 2]*uint32 {
	return [...]*uint32{&p.Path, &p.Epoch, &p.Sent, &p.Received, &p.Missed, &p.Late, &p.Twice, &p.Corrupt, &p.Reordered}
}

// probes reads the domain specific metadata x of counts of probes, as ds states them. Other bytes are left to other
// readers.
func probes(r *decode.Report, ds uint16, x []byte) bool {
	switch ds {
	case probeWay:
		return way(r, x)
	case probeRounds:
		return rounds(r, x)
	}
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

// way reads the domain specific metadata x of the way of probes. A way has a router that answered.
func way(r *decode.Report, x []byte) bool {
	routers := (len(x) - 4*wayWords) / (4 * routerWords)
	if len(x) < 4*wayWords || len(x) != 4*(wayWords+routerWords*routers) || routers == 0 || routers > decode.MostWay {
		return false
	}
	answers := false
	for _, b := range x[4*wayWords:] {
		answers = answers || b != 0
	}
	if !answers {
		return false
	}
	p := r.AddProbes()
	p.Path, p.Epoch = binary.BigEndian.Uint32(x), binary.BigEndian.Uint32(x[4:])
	for x = x[8:]; len(x) > 0; x = x[16:] {
		p.Way = append(p.Way, decode.Addr(x[:16]))
	}
	r.Kind = decode.KindProbes
	return true
}

// rounds reads the domain specific metadata x of rounds of probes. Totals that no count has are left to other readers.
func rounds(r *decode.Report, x []byte) bool {
	if len(x) != 4*roundWords {
		return false
	}
	var w [roundWords]uint32
	for k := range w {
		w[k] = binary.BigEndian.Uint32(x[4*k:])
	}
	n := decode.ProbeRounds{End: decode.ProbeEnd(min(w[2], 255)), Count: w[3], Turn: w[4], First: w[5], Next: w[6], Received: w[7]}
	switch {
	case n.End == decode.Sender && n.First == 0 && n.Received == 0:
	case n.End == decode.Receiver && n.Received <= n.Next-n.First: // which wrap around
	default:
		return false
	}
	p := r.AddProbes()
	p.Path, p.Epoch, p.Rounds = w[0], w[1], n
	r.Kind = decode.KindProbes
	return true
}

// appendProbes appends the domain specific metadata of counts of probes, of their way, or of their rounds.
func appendProbes(dst []byte, p *decode.ProbeCounts) []byte {
	if len(p.Way) > 0 {
		dst = binary.BigEndian.AppendUint32(dst, p.Path)
		dst = binary.BigEndian.AppendUint32(dst, p.Epoch)
		for i := range p.Way {
			dst = append(dst, p.Way[i][:]...)
		}
		return dst
	}
	if n := &p.Rounds; n.End != decode.NoEnd {
		for _, w := range [roundWords]uint32{p.Path, p.Epoch, uint32(n.End), n.Count, n.Turn, n.First, n.Next, n.Received} {
			dst = binary.BigEndian.AppendUint32(dst, w)
		}
		return dst
	}
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
