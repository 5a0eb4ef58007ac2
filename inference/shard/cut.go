package shard

import (
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/window"
)

// Cut is the result of one shard for one window, in the layout that it was counted in. It belongs to the caller of
// [State.Cut] until it is recycled. To keep, send or merge it, add it to an [window.Partial].
type Cut struct {
	hops    hopCut
	partial window.Partial // everything but the hops
	timed   int            // reports whose times on links were measured
	empty   bool           // since Clear
}

func (s *State) newCut() *Cut {
	c := &Cut{hops: hopCut{set: newHopSet(s.cfg.MaxHops + 1)}}
	c.partial.Bound(s.cfg.Limits())
	return c
}

// Cut ends the open window at end, in ns since 1970, and starts the next one. It takes new memory for that unless an
// earlier cut was recycled.
func (s *State) Cut(end int64) *Cut {
	s.cutDigests()
	c := s.cut
	s.cutTop(&c.partial)
	s.cutPairs(&c.partial, end)
	s.cutWays(&c.partial, end)
	if s.cut, s.spare = s.spare, nil; s.cut == nil {
		s.cut = s.newCut()
	}
	s.hops.cut(&s.cut.hops, end, s.idle)
	s.readings.goOn(&s.cut.partial, end-s.idle)
	s.window++
	return c
}

// Clear empties c, so that [State.Recycle] has nothing to do for it. As with AddTo, no other goroutine may use c meanwhile.
func (c *Cut) Clear() {
	c.hops.reset()
	c.partial.Reset()
	c.timed, c.empty = 0, true
}

// Recycle takes a cut of this shard back, to use its memory for a later window. It clears a cut that is not.
func (s *State) Recycle(c *Cut) {
	if !c.empty {
		c.Clear()
	}
	c.empty = false
	s.spare = c
}

// AddTo adds what the shard saw to p, which shares no memory with c afterwards. The caller adds the start and end of
// the window, and what was seen of the exporters. No other goroutine may use c meanwhile.
func (c *Cut) AddTo(p *window.Partial) {
	c.hops.addTo(p)
	p.Merge(&c.partial)
}

// Limits returns the limits of a window that is made of the partials of shards with this configuration. As many flows
// with faults and arrivals are listed as path changes.
func (c *Config) Limits() window.Limits {
	return window.Limits{
		Hops: c.MaxHops, Flows: c.TopFlows, Paths: c.MaxPathChanges, Drops: c.MaxDrops, Faults: c.MaxPathChanges,
		Arrivals: c.MaxPathChanges, Deviations: digest.MaxDeviations, Losses: maxLosses,
	}
}
