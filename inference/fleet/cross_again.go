package fleet

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// recrossing corrects a window that is made again because something of it came late. It is used like a crossing and knows what
// that one told of the window; windows in between are not known to it.
//
// What the crossing claimed of a shared exporter (Lost, Provisional, Down, Restarts) stays claimed, and everything else is added
// up anew with what came late. Numbers that came late are told to the crossing, which takes back the losses that they were
// counted as with its next window; of those in stretches of which only the number of numbers is known, it does not. So the
// sums over all windows are right again. Of an exporter that was not shared then, the claims are those
// of the collector that had it. This holds for the last 32 windows in which an exporter was shared. Path changes pass as they were told: a flow that moved in a window
// that came late has not changed its path.
type recrossing struct {
	cross  *crossing
	part   *crossing
	owners map[inference.ExporterKey]inference.ExporterStats // what the collectors told that had the exporters alone
}

// again corrects windows anew that c corrected. It has the same user as c, between two windows.
func (c *crossing) again() *recrossing {
	return &recrossing{cross: c, part: newCrossing(c.limits), owners: map[inference.ExporterKey]inference.ExporterStats{}}
}

// Begin begins the window with this label.
func (a *recrossing) Begin(end int64) {
	a.part.Begin(end)
	clear(a.owners)
}

// Add tells what a collector saw of the slice in the window, late or not.
func (a *recrossing) Add(from string, q *inference.Partial) {
	a.part.Add(from, q)
	for k, x := range a.cross.exporters {
		if e := q.Exporter(k); e != nil && x.ownerAt(a.part.end) == from {
			sum := a.owners[k]
			sum.Add(e)
			a.owners[k] = sum
		}
	}
}

// ownerAt is the collector that had the exporter in a window when it was not shared.
func (x *exporter) ownerAt(end int64) string {
	if end < x.since {
		return x.former
	}
	return x.owner
}

// claimOf gives what was claimed of an exporter when the window was first told, or nil if that is not known.
func (a *recrossing) claimOf(k inference.ExporterKey, x *exporter) *claim {
	end := a.part.end
	if i := slices.IndexFunc(x.claims, func(k claim) bool { return k.end == end }); i >= 0 {
		return &x.claims[i]
	}
	if e, ok := a.owners[k]; ok {
		return &claim{end, e.Lost, e.Provisional, e.Down, e.Restarts}
	}
	return nil
}

// Finish ends the window and corrects p, into which everything was merged that was added.
func (a *recrossing) Finish(p *inference.Partial) {
	c := a.part
	for k, x := range a.cross.exporters {
		if e, claimed := p.Exporter(k), a.claimOf(k, x); e != nil && claimed != nil {
			e.Lost, e.Provisional, e.Down, e.Restarts = claimed.lost, claimed.provisional, claimed.down, claimed.restarts
		}
	}
	c.sortNumbers()
	for i, n := 0, 0; i < len(c.numbers); i = n {
		for n = i + 1; n < len(c.numbers) && c.numbers[n].ExporterKey == c.numbers[i].ExporterKey; n++ {
		}
		k := c.numbers[i].ExporterKey
		x := a.cross.exporters[k]
		if x == nil {
			continue
		}
		if len(c.heard[k]) > 1 {
			alone := &exporter{}
			alone.addWindow(c.numbers[i:n], c.end, &c.limits)
			if e := p.Exporter(k); e != nil && e.Sequenced {
				e.Duplicated += alone.copies
			}
			x.until = max(x.until, a.cross.end+int64(c.limits.Horizon))
		}
		x.addLate(c.numbers[i:n])
	}
	p.DropAcross()
}

// AppendState appends nothing: recrossing knows nothing between windows.
func (a *recrossing) AppendState(b []byte) []byte { return b }

// ReadState reads what AppendState wrote.
func (a *recrossing) ReadState([]byte) error { return nil }

// addLate takes numbers of a window that is over. Most of them are known.
func (x *exporter) addLate(all []sentNumbers) {
	for i := range all {
		n := &all[i]
		for _, s := range x.streams {
			m := s.member(n.from, n.To)
			if s.width != n.Width || n.Unknown || m != nil && m.epoch != s.epoch {
				continue
			}
			behind := (s.head() - uint64(n.First)) & s.mask()
			if behind > min(s.head()-s.runs[0].First, s.mask()>>1) {
				continue
			}
			at := s.head() - behind
			for _, r := range n.Runs {
				r.First, r.Last = at+r.First, at+r.Last
				if r.Last <= s.head() && full(r) && s.sharp(r) {
					s.insert(r)
				}
			}
			break
		}
	}
}

// sharp reports whether it is known of each number of r whether it came.
func (s *stream) sharp(r inference.Run) bool {
	return !slices.ContainsFunc(s.runs, func(x inference.Run) bool { return x.First <= r.Last && r.First <= x.Last && !full(x) })
}
