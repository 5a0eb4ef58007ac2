package fleet

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// recrossing corrects a window that is made again because something of it came late. It is used like a crossing and knows what that
// one published of the window; windows in between are not known to it.
//
// What the crossing claimed of a shared exporter (Lost, Provisional, Down, Restarts) stays claimed, and everything else is added up
// anew with what came late. Numbers that came late are added to the crossing. Those that a window has as Down are taken out of it, so
// that it is made again, too; the crossing takes back losses with its next window; of those in stretches of which only the number of numbers is known, it does not. So the sums over all windows
// are right again. Of an exporter that was not shared then, the claims are those of the collector that had it. This holds for the
// last 32 windows in which an exporter was shared. Path changes pass as they were reported: a flow that moved in a window that came
// late has not changed its path.
type recrossing struct {
	cross  *crossing
	part   *crossing
	owners map[inference.ExporterKey]inference.ExporterStats // reported by the collectors that had the exporters alone
	late   bool                                              // what is added next came behind the close of the window
	unsaid map[inference.ExporterKey]uint64                  // Down of those that came late, of exporters that are shared
	taken  []int64                                           // labels of windows whose claims were others
}

// again corrects windows anew that c corrected. It has the same user as c, between two windows.
func (c *crossing) again() *recrossing {
	return &recrossing{cross: c, part: newCrossing(c.limits), owners: map[inference.ExporterKey]inference.ExporterStats{}, unsaid: map[inference.ExporterKey]uint64{}}
}

// Begin begins the window with this label.
func (a *recrossing) Begin(end int64) {
	a.part.Begin(end)
	clear(a.owners)
	clear(a.unsaid)
}

// Add adds what a collector saw of the slice in the window, late or not.
func (a *recrossing) Add(from string, q *inference.Partial) {
	a.part.Add(from, q)
	for k, x := range a.cross.exporters {
		e, end := q.Exporter(k), a.part.end
		switch alone := x.ownerAt(end) == from && (end < x.since || end > x.until); {
		case e == nil:
		case a.late && !alone:
			a.unsaid[k] += min(e.Down, 1<<40)
		case x.ownerAt(end) == from:
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

// claimOf returns what was claimed of an exporter when the window was first published, or nil if that is not known.
func (a *recrossing) claimOf(k inference.ExporterKey, x *exporter) *claim {
	end := a.part.end
	if known := x.claimIn(end); known != nil {
		return known
	}
	if e, ok := a.owners[k]; ok {
		return &claim{end, e.Lost, e.Provisional, e.Down, e.Restarts}
	}
	return nil
}

// claimIn is what x keeps as claimed in a window, or nil.
func (x *exporter) claimIn(end int64) *claim {
	if i := slices.IndexFunc(x.claims, func(k claim) bool { return k.end == end }); i >= 0 {
		return &x.claims[i]
	}
	return nil
}

// Finish ends the window and corrects p, into which everything was merged that was added.
func (a *recrossing) Finish(p *inference.Partial) {
	c := a.part
	for k, x := range a.cross.exporters {
		e, claimed := p.Exporter(k), a.claimOf(k, x)
		if _, unsaid := a.unsaid[k]; unsaid && x.claimIn(c.end) == nil {
			if claimed == nil {
				claimed = &claim{end: c.end}
			}
			x.claim(*claimed)
		} else {
			delete(a.unsaid, k) // it was made again before
		}
		if e != nil && claimed != nil {
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
		a.taken = append(a.taken, x.addLate(c.numbers[i:n], &c.limits)...)
	}
	for k, down := range a.unsaid {
		a.taken = append(a.taken, a.cross.exporters[k].claimDown(int64(down))...)
	}
	p.DropAcross()
}

// claimDown takes n numbers that a collector reports late as missed, as far as they are missing: of those that windows have as lost, the
// latest first, and else of those that are not published yet.
func (x *exporter) claimDown(n int64) (taken []int64) {
	missing := x.settled()
	for i := range x.claims {
		missing -= int64(x.claims[i].down)
	}
	late := n - max(0, min(n, missing))
	n -= late
	for i := len(x.claims) - 1; i >= 0 && n > 0; i-- {
		k := &x.claims[i]
		if part := min(n, k.lost); part > 0 {
			k.lost -= part
			k.down += uint64(part)
			n -= part
			taken = append(taken, k.end)
		}
	}
	x.due += n + late
	return taken
}

// AppendState appends nothing: recrossing knows nothing between windows.
func (a *recrossing) AppendState(b []byte) []byte { return b }

// ReadState reads what AppendState wrote.
func (a *recrossing) ReadState([]byte) error { return nil }

// addLate takes numbers of a window that is over. Most of them are known. It returns the labels of windows of whose Down it took some:
// what a run that is over had sent, the one behind it may have as missed.
func (x *exporter) addLate(all []sentNumbers, l *CrossLimits) (taken []int64) {
	for i := range all {
		before := x.settled()
		x.insertLate(&all[i], l)
		if n := before - x.settled(); n > 0 && all[i].from != x.owner {
			taken = append(taken, x.takeBack(n, before)...)
		}
	}
	return taken
}

func (x *exporter) insertLate(n *sentNumbers, l *CrossLimits) {
	for _, s := range x.streams {
		m := s.member(n.from, n.To)
		if s.width != n.Width || n.Unknown || m != nil && m.epoch != s.epoch {
			continue
		}
		behind, ahead := (s.head()-uint64(n.First))&s.mask(), (uint64(n.First)-s.head())&s.mask()
		at := s.head() - behind
		switch {
		case behind <= min(s.head()-s.runs[0].First, s.mask()>>1):
		case ahead <= min(uint64(l.MaxGap), s.mask()>>4): // nothing of the windows behind it has come yet
			at = s.head() + ahead
		default:
			continue
		}
		for _, r := range n.Runs {
			r.First, r.Last = at+r.First, at+r.Last
			if full(r) && s.sharp(r) {
				s.insert(r)
			}
		}
		return
	}
}

// settled counts the missing numbers that are not waited for any more.
func (x *exporter) settled() int64 {
	n := x.gone
	for _, s := range x.streams {
		all, waiting := s.missing()
		n += all - waiting
	}
	return n
}

// takeBack takes n numbers that came after all out of what windows have as Down, the latest first. Before that so many were missing. What
// windows have as Lost since the exporter is shared comes first; the next window takes that back.
func (x *exporter) takeBack(n, before int64) (taken []int64) {
	lost := min(before-x.claimed, 0) // of these, what the next window takes back already
	for i := range x.claims {
		if k := &x.claims[i]; k.end >= x.since {
			lost += k.lost
		}
	}
	n -= max(lost, 0)
	for i := len(x.claims) - 1; i >= 0 && n > 0; i-- {
		k := &x.claims[i]
		if part := min(n, int64(k.down)); part > 0 {
			k.down -= uint64(part)
			x.claimed -= part
			n -= part
			taken = append(taken, k.end)
		}
	}
	return taken
}

// sharp reports whether it is known of each number of r whether it came.
func (s *stream) sharp(r inference.Run) bool {
	return !slices.ContainsFunc(s.runs, func(x inference.Run) bool { return x.First <= r.Last && r.First <= x.Last && !full(x) })
}
