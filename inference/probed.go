package inference

import (
	"cmp"

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

// InTime is the number of probes that were received in time.
func (s *ProbeStats) InTime() uint64 { return s.Received - min(s.Late, s.Received) }

// Other reports whether s stands for all paths that had no place.
func (s *ProbeStats) Other() bool { return s.ProbeKey == ProbeKey{} }
