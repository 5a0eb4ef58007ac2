package inference

import (
	"cmp"
	"math"

	"github.com/hopscope/hopscope/decode"
)

// ProbeKey is a path of probes from one agent to another. The zero value stands for all paths that had no place.
type ProbeKey struct {
	From, To decode.Addr
	Path     uint32 // number of the path among those from From to To
	Epoch    uint32 // of the plan or of the survey that the path is from; 0 where there is none
}

// Compare orders by addresses, path and epoch.
func (k ProbeKey) Compare(o ProbeKey) int {
	return cmp.Or(k.From.Compare(o.From), k.To.Compare(o.To), cmp.Compare(k.Path, o.Path), cmp.Compare(k.Epoch, o.Epoch))
}

// String returns the path as a part of a sentence, such as "path 3 from 10.0.0.1 to 10.0.0.2", or "path 3 with DSCP 46
// from 10.0.0.1 to 10.0.0.2".
func (k ProbeKey) String() string {
	if k == (ProbeKey{}) {
		return "other paths of probes"
	}
	return "path " + decode.PathText(k.Path) + " from " + k.From.String() + " to " + k.To.String()
}

// ProbeStats counts the outcomes of the probes of a path, as the agent reported them in a window. A probe counts as
// lost, received or late in the window in which the agent detects it. That is up to its timeout after the window in
// which it was sent.
type ProbeStats struct {
	ProbeKey
	Node uint32         // of the agent that reports them
	Flow decode.FlowKey // of the probes; of several the greatest key

	Sent, Received uint64 // Received has those that were late
	Missed, Late   uint64 // that did not come in time; of these the ones that came late
	Twice, Corrupt uint64 // that came again; that came and were refused, or whose contents were changed
	Reordered      uint64 // that came behind later ones
	// Forward and Back are lost probes and lost answers, as far as the numbers of a reflector show them. Like Lost they
	// are less than 0 where a window takes back losses of an earlier one.
	Forward, Back int64

	Delay Summary // of received probes, ns: there and back without the time in the reflector, or one way where nothing answers

	// Known where the detectors of the window are, and absent in bytes: whether the delay was compared with what is
	// usual.
	Judgement Judgement
}

// Lost is the number of probes that did not come, less that of earlier ones that came late.
func (s *ProbeStats) Lost() int64 { return int64(s.Missed) - int64(s.Late) }

// OfPlan reports whether the probes are source-routed ones of a plan. They go one way, and two agents report about them.
func (s *ProbeStats) OfPlan() bool { return IsProbe(&s.Flow) }

// Unheard reports whether s is of a path of a plan by which nothing came to its receiver, so that this does not know the
// address of the sender.
func (s *ProbeStats) Unheard() bool {
	return s.OfPlan() && s.From == decode.AddrFrom4([]byte{0, 0, 0, 0})
}

// Settled returns the lost probes, without those that did not come and maybe were not sent. Of a path of a plan a receiver
// reports every round that was due and did not come. Rounds after which others came are lost. Of the others only so
// many are lost as the sender reported as sent, beyond those that came: it may have no plan yet, another one, or have ended.
func (s *ProbeStats) Settled() (lost int64, unknown uint64) {
	if lost = s.Lost(); !s.OfPlan() {
		return lost, 0
	}
	behind := min(lost-s.Forward, int64(min(s.Missed, math.MaxInt64)))
	sent := max(int64(min(s.Sent, math.MaxInt64))-int64(min(s.Received, math.MaxInt64))-max(s.Forward, 0), 0)
	if behind > sent {
		return lost - (behind - sent), uint64(behind - sent)
	}
	return lost, 0
}

// InTime is the number of probes that were received in time.
func (s *ProbeStats) InTime() uint64 { return s.Received - min(s.Late, s.Received) }

// Other reports whether s stands for all paths that had no place.
func (s *ProbeStats) Other() bool { return s.ProbeKey == ProbeKey{} }
