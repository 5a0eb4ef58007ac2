package decode

import (
	"math/bits"
	"strconv"
)

// ProbeCounts holds the outcomes of the probes of one path between two agents since the agent's previous report. The
// flow of the report has the addresses of the agents: the source is the one whose probes these are. A probe whose
// answer is awaited is sent, and nothing else.
type ProbeCounts struct {
	Path  uint32 // number of the path among those between the two agents, see [PathText]
	Epoch uint32 // of the plan or of the survey that the path is from; 0 where there is none

	Sent      uint32
	Received  uint32 // each counted once, with those that were late
	Missed    uint32 // that did not come in time; those that came late are among them
	Late      uint32
	Twice     uint32 // that came again
	Corrupt   uint32 // that came and were refused, or whose contents were changed
	Reordered uint32 // that came behind later ones

	// Forward and Back are lost probes and lost answers, by the sequence numbers of the reflector. They are negative
	// if later numbers showed that counted losses were none, or were of the other direction.
	Forward, Back int32

	Delays []DelayCount // of received probes, in ascending order of the codes

	// Way holds the routers that probes pass on their way out, by the addresses with which they answered a trace; the zero
	// address is one without an answer. A report has either counts, or a way, or rounds, of which it is the whole. It is
	// empty in other reports.
	Way []Addr

	Rounds ProbeRounds // of a path of a plan, in a report of their own
}

// ProbeRounds are the rounds that one end of a path of a plan has counted so far. They are totals, so that the next report
// makes up for a lost one, and both ends number rounds alike. The difference between the rounds that were sent and those that
// came is what was lost.
type ProbeRounds struct {
	End      ProbeEnd
	Count    uint32 // number of the count: one that begins anew, with other totals, has another number
	Turn     uint32 // number of the report in its count; a report with a lower one is older
	First    uint32 // round that came first; 0 at the sender
	Next     uint32 // round behind the latest one that was sent; of a receiver, that came by its report before
	Received uint32 // rounds from First on and before Next that came, each counted once; 0 at the sender
}

// ProbeEnd is an end of a path.
type ProbeEnd uint8

const (
	NoEnd    ProbeEnd = iota // no rounds are known
	Sender                   // the agent that sends the probes
	Receiver                 // the agent that they come to
)

// String returns the role, as in JSON.
func (e ProbeEnd) String() string { return [...]string{"none", "sender", "receiver"}[min(e, Receiver)] }

// ClassPath returns the path number of one of several sessions of STAMP that differ in their DSCP. Its lower 16 bits are
// the identifier of the session, and above them is the DSCP plus 1.
func ClassPath(ssid uint16, dscp uint8) uint32 { return uint32(dscp&0x3f+1)<<16 | uint32(ssid) }

// PathText returns a path number for display: "5", and "5 with DSCP 46" for one of [ClassPath].
func PathText(path uint32) string {
	class := path >> 16
	if class == 0 || class > 64 {
		return strconv.FormatUint(uint64(path), 10)
	}
	return strconv.FormatUint(uint64(path&0xffff), 10) + " with DSCP " + strconv.FormatUint(uint64(class-1), 10)
}

// MostWay is the largest number of routers of a reported way. With IPv6 such a report just fits into a datagram of the
// least size that agents can be set to.
const MostWay = 28

// KeptDelays is the number of codes for which a report keeps memory, as of hops.
const KeptDelays = 64

// DelayCount is the number of delays with a code.
type DelayCount struct{ Code, Count uint16 }

// Codes of delays: an octave has 16 codes, and the last code is for all delays from 137 s on.
const (
	delayParts = 16
	DelayCodes = 34 * delayParts
)

// DelayCode is the code of a delay in nanoseconds. The delays of a code differ by at most a part in 16.
func DelayCode(ns uint64) uint16 {
	octave := max(bits.Len64(ns)-5, 0)
	return uint16(min(octave*delayParts+int(ns>>octave), DelayCodes-1))
}

// LongestDelay is the greatest delay of a code, in nanoseconds; of the last code it is the least one.
func LongestDelay(code uint16) uint64 {
	octave := max(int(code)/delayParts-1, 0)
	low := uint64(int(code)-octave*delayParts) << octave
	if code >= DelayCodes-1 {
		return low
	}
	return low + 1<<octave - 1
}

// AddProbes returns the counts of probes of r, to be filled in. A report that is used again keeps their memory.
func (r *Report) AddProbes() *ProbeCounts {
	x := r.AddRare()
	if x.Probes == nil {
		x.Probes = new(ProbeCounts)
	}
	return x.Probes
}
