package shard

import "github.com/hopscope/hopscope/inference"

// Cut is what one shard saw in one window, in the layout that it was counted in. It belongs to the caller of
// [State.Cut] until it is recycled; who wants to keep, send or merge what it saw adds it to a [inference.Partial].
type Cut struct {
	reports, flows uint64
	hops           hopCut
	busiest        topCut
	changes        changes
	drops          drops
	faults         faults
	arrivals       arrivals
	deviations     deviations
	losses         losses
	spreads        []inference.Spread
	links          links
	strays         strays
}

func (s *State) newCut() *Cut {
	return &Cut{
		hops:    hopCut{set: newHopSet(s.cfg.MaxHops + 1)},
		changes: newChanges(s.cfg.MaxPathChanges),
		drops:   newDrops(s.cfg.MaxDrops),
		// As many flows are listed as path changes.
		faults:   newFaults(s.cfg.MaxPathChanges),
		arrivals: newArrivals(s.cfg.MaxPathChanges),
		links:    newLinks(s.cfg.MaxHops),
		strays:   newStrays(s.cfg.MaxPathChanges),
	}
}

// Cut ends the open window at end, in ns since 1970, and starts the next one. It takes new memory for that unless an
// earlier cut was recycled.
func (s *State) Cut(end int64) *Cut {
	s.settleForeign()
	s.settleSprays()
	c := s.cut
	s.cutTop(&c.busiest, &c.spreads)
	if s.digests != nil {
		s.digests.cutSurvey(&c.deviations)
	}
	s.cutPairs(&c.losses, end)
	if s.cut, s.spare = s.spare, nil; s.cut == nil {
		s.cut = s.newCut()
	}
	s.hops.cut(&s.cut.hops, end, s.idle)
	s.window++
	return c
}

// Recycle takes a cut of this shard back, to use its memory for a later window.
func (s *State) Recycle(c *Cut) {
	c.reports, c.flows = 0, 0
	c.hops.reset()
	c.busiest.reset()
	c.changes.reset()
	c.drops.reset()
	c.faults.reset()
	c.arrivals.reset()
	c.deviations.reset()
	c.losses.reset()
	c.links.reset()
	c.strays.reset()
	clear(c.spreads)
	c.spreads = c.spreads[:0]
	s.spare = c
}

// AddTo adds what the shard saw to p, which shares no memory with c afterwards. When the window began and ended and what
// was seen of the exporters is the caller's to add. Nobody else may use c meanwhile.
func (c *Cut) AddTo(p *inference.Partial) {
	p.Reports += c.reports
	p.FlowCount += c.flows
	c.hops.addTo(p)
	c.busiest.addTo(p)
	c.changes.addTo(p)
	c.drops.addTo(p)
	c.faults.addTo(p)
	c.arrivals.addTo(p)
	c.deviations.addTo(p)
	c.losses.addTo(p)
	c.links.addTo(p)
	c.strays.addTo(p)
	for i := range c.spreads {
		p.AddSpread(&c.spreads[i])
	}
}

// Limits gives the limits of a window that is made of the partials of shards with this configuration.
func (c *Config) Limits() inference.Limits {
	return inference.Limits{Hops: c.MaxHops, Flows: c.TopFlows, Paths: c.MaxPathChanges, Drops: c.MaxDrops, Faults: c.MaxPathChanges, Deviations: maxDeviations, Losses: maxLosses}
}
