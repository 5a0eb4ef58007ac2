package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
)

// arrive lists a flow whose path r holds, the first one since it came. Only whole paths of packets without a prescribed
// route are worth comparing with those of another collector.
func (s *State) arrive(f *flow, slot uint32, r *decode.Report) {
	f.flags &^= arrived
	if r.Kind == decode.KindProbe {
		return
	}
	s.path = s.hopKeys(s.path[:0], f)
	s.cut.partial.AddArrival(&window.Arrival{Time: r.Time, Flow: s.flows.At(slot).Key, PathID: f.pathID, Changes: f.changes, Path: s.path})
}
