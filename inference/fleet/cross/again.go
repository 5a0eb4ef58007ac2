package cross

import (
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Recrossing corrects a window that is made again because some of its records came late. It is used like a crossing. It
// has that one's claims for the window, and no memory of the windows in between.
//
// The claims of the crossing for a shared exporter (Lost, Provisional, Down, Restarts) stay. The rest is added up anew
// with the late records. If one run had an exporter alone then, the claims are those of the run. Late numbers and gaps
// are added to the crossing, which counts their changes with its next window: Lost below 0 takes losses back. Windows
// that count numbers as Down which came after all are made again without them. So the sums over all windows are right
// again, of Lost and of Down each. In stretches of which only the number of numbers is known, they are right together.
// This holds for the last 32 windows of a shared exporter with claims. Path changes pass as they were reported. A flow
// that moved in a late window has not changed its path.
type Recrossing struct {
	cross  *Crossing
	part   *Crossing
	owners map[inference.ExporterKey]inference.ExporterStats // reported by the runs that had the exporters alone
	taken  []int64                                           // labels of windows whose claims were others
}

// Recross corrects windows anew that c corrected. It has the same user as c, between two windows.
func (c *Crossing) Recross() *Recrossing {
	return &Recrossing{cross: c, part: New(c.limits), owners: map[inference.ExporterKey]inference.ExporterStats{}}
}

// Begin begins the window with this label.
func (a *Recrossing) Begin(end int64) {
	a.part.Begin(end)
	clear(a.owners)
}

// Add adds what a run of a collector saw of the slice in the window, late or not.
func (a *Recrossing) Add(from string, q *window.Partial) {
	a.part.Add(from, q)
	for k, x := range a.cross.exporters {
		if e := q.Exporter(k); e != nil && x.ownerAt(a.part.end) == from {
			sum := a.owners[k]
			sum.Add(e)
			a.owners[k] = sum
		}
	}
}

// AddStatement adds what a statement has of the window.
func (a *Recrossing) AddStatement(from string, q *window.Partial) { a.part.AddStatement(from, q) }

// claimOf returns what was claimed of an exporter in the window.
func (a *Recrossing) claimOf(k inference.ExporterKey, x *exporter) claim {
	if known := x.claimIn(a.part.end); known != nil {
		return *known
	}
	e := a.owners[k]
	return claim{a.part.end, e.Lost, e.Provisional, e.Down, e.Restarts}
}

// claimIn returns the claim that x keeps of a window, or nil.
func (x *exporter) claimIn(end int64) *claim {
	if i := slices.IndexFunc(x.claims, func(k claim) bool { return k.end == end }); i >= 0 {
		return &x.claims[i]
	}
	return nil
}

// Finish ends the window and corrects p, into which everything was merged that was added.
func (a *Recrossing) Finish(p *window.Partial) {
	c := a.part
	for k, x := range a.cross.exporters {
		if owner := x.ownerAt(c.end); !x.shared && c.end > x.base && slices.ContainsFunc(c.heard[k], func(from string) bool { return from != owner }) {
			x.share(a.cross.end+1, &c.limits)
		}
		if x.ownerAt(c.end) == "" {
			delete(a.owners, k)
		}
		if e := p.Exporter(k); e != nil {
			claimed := a.claimOf(k, x)
			e.Lost, e.Provisional, e.Down, e.Restarts = claimed.lost, claimed.provisional, claimed.down, claimed.restarts
		}
	}
	c.sortNumbers()
	next := 0
	for k, x := range a.cross.exporters {
		next, _ = slices.BinarySearchFunc(c.numbers, k, func(n sentNumbers, k inference.ExporterKey) int { return n.ExporterKey.Compare(k) })
		to := next
		for to < len(c.numbers) && c.numbers[to].ExporterKey == k {
			to++
		}
		numbers, gaps := c.numbers[next:to], c.gapsOf(k)
		if len(numbers)+len(gaps) == 0 {
			continue
		}
		if len(c.heard[k]) > 1 && len(numbers) > 0 {
			alone := &exporter{}
			alone.addWindow(numbers, c.end, &c.limits)
			if e := p.Exporter(k); e != nil && e.Sequenced {
				e.Duplicated += alone.copies
			}
		}
		var owner *inference.ExporterStats
		if e, ok := a.owners[k]; ok {
			owner = &e
		}
		a.taken = append(a.taken, x.addLate(numbers, gaps, owner, c.end, a.cross.end, &c.limits)...)
	}
	slices.Sort(a.taken)
	p.DropAcross()
}

// Taken returns the labels of windows whose Down counts numbers that came late: they have to be made again.
func (a *Recrossing) Taken() []int64 { return a.taken }

// AppendState appends nothing: a Recrossing has no state between windows.
func (a *Recrossing) AppendState(b []byte) []byte { return b }

// ReadState reads what AppendState wrote.
func (a *Recrossing) ReadState([]byte) error { return nil }

// addLate takes numbers and gaps of a window that is over. Most of them are known. The argument owner is the statistics
// from the run that had the exporter alone then, nil if it sent none. The argument end is the label of the window, and
// now that of the last one. It returns the labels of windows whose Down it reduced.
func (x *exporter) addLate(all []sentNumbers, gaps []sentGap, owner *inference.ExporterStats, end, now int64, l *Limits) (taken []int64) {
	alone := x.ownerAt(end)
	before := x.missing()
	for _, s := range x.streams {
		s.late = 0
	}
	for i := range all {
		found := x.insertLate(&all[i], l)
		if alone != "" && all[i].from == alone {
			x.claimed -= found
		}
	}
	x.openGaps(gaps, now, l)
	n := x.missing()
	switch others := slices.ContainsFunc(all, func(n sentNumbers) bool { return n.from != alone }) || slices.ContainsFunc(gaps, func(g sentGap) bool { return g.from != alone }); {
	case x.shared || !others && end <= x.base:
	case !others && owner == nil:
	case !others: // nothing of its owner has come behind it yet
		for _, s := range x.streams {
			s.passed = max(s.passed, s.late)
		}
		x.pass(end, owner.Provisional)
	case before.all != n.all || before.out != n.out:
		x.share(now+1, l)
	}
	if x.missed > n.out {
		left := int64(0)
		left, taken = x.correctMissed(x.missed - n.out)
		x.missed = n.out
		x.claimed += left
	}
	return taken
}

// insertLate adds numbers. It returns how many of them seemed to be missing when a window last passed as its owner
// reported it. Gaps known then do not count. No window counts them as lost.
func (x *exporter) insertLate(n *sentNumbers, l *Limits) (found int64) {
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
		before := s.seemed(x.base)
		for _, r := range n.Runs {
			r.First, r.Last = at+r.First, at+r.Last
			if full(r) && s.sharp(r) {
				s.insert(r)
			}
			s.late = max(s.late, r.Last)
		}
		return before - s.seemed(x.base)
	}
	return 0
}

// seemed counts the numbers that are missing up to the newest one that passed, but for those in gaps that were open by
// a window.
func (s *stream) seemed(end int64) int64 {
	gaps := s.gaps
	s.gaps = slices.DeleteFunc(slices.Clone(gaps), func(g gap) bool { return g.end > end })
	n := s.missing(s.passed)
	s.gaps = gaps
	return n.all - n.out
}

// sharp reports whether it is known of each number of r whether it came.
func (s *stream) sharp(r window.Run) bool {
	return !slices.ContainsFunc(s.runs, func(x window.Run) bool { return x.First <= r.Last && r.First <= x.Last && !full(x) })
}
