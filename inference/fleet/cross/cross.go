// Package cross reconciles the partial windows that several collectors of a fleet made of the same exporters and flows.
// Numbers may be missing at one collector and arrive at another, and flows may move between collectors. It is pure.
// Windows of one slice go in, in the order of their labels, and the merged partial of each is corrected.
//
// A run of a collector is named by its collector, and by "/" and a number where a collector has several runs.
package cross

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Limits bounds the memory of a Crossing, and the distance of numbers that belong together.
type Limits struct {
	Exporters int           // of the slice that are known at a time; further ones pass as their collectors report them
	Runs      int           // of numbers of an exporter; of older ones it is only known how many came
	Flows     int           // of the slice that are known at a time; those without a report for longest leave
	Window    int           // as sequence.Config.Window: a number farther behind is late, and stays what it was counted as
	MaxGap    int           // as sequence.Config.MaxGap: a larger jump ahead is a restart
	Horizon   time.Duration // how long an exporter counts as shared after it was heard by another collector; at least 4 windows
	Idle      time.Duration // an entry without a report for so long is forgotten
}

// DefaultLimits returns the limits for one slice.
func DefaultLimits() Limits {
	return Limits{
		Exporters: 4096, Runs: 256, Flows: 65536, Window: 1 << 18, MaxGap: 1 << 20, Horizon: 2 * time.Minute, Idle: time.Hour,
	}
}

// Crossing corrects the merged partials of one slice for exporters and flows that reach several collectors.
//
// # Exporters
//
// Collectors are runs here. The run that follows a kill is another one, since its checkpoint may be older than what the
// run before had sent. An exporter is shared from the window in which another collector hears it than the last one, or
// several do. It stays shared until one of them alone has heard it for the horizon and one window more. The statistics
// of an exporter that is not shared pass as its collector reported them, bit for bit. Of one that is shared:
//
//   - Reports, Events, Malformed and Last are those of all collectors together. So are Reordered and Late, in which
//     each collector counts only the disorder among the numbers that reached it.
//   - Duplicated counts what the collectors counted, and each number that reached another collector too, once for each.
//   - Provisional are the numbers that reached no collector and lie behind the newest one at a recent window. That is
//     one that ended less than two seconds before this one, or this one. They are counted as Lost with the next window
//     that ends later. Lost takes numbers back that were counted and then reached another collector, so that it can be
//     negative.
//   - Restarts counts those of the exporter. A collector that sees a jump because another one had the numbers in between
//     saw none.
//   - Down are missing numbers in gaps ([window.Gap]), which runs report with their first numbers: none of them is waited for. If some
//     come after all, the windows that have them as Down are made again without them. A gap over numbers that were counted as lost
//     counts them as Down with the next window, whose Lost takes them back.
//
// Three sums are exact between the first and the newest number of all collectors. The sum of Lost over all windows,
// with the Provisional of the last one, is the number of those missing outside of gaps. The sum of Down is the number
// of those missing in gaps, and the sum of Duplicated is that of the copies. This needs that no number comes later than
// Window numbers. At most MaxGap numbers (or a sixteenth of their range) may be missing in a row. The runs of numbers
// must fit in the room that partials and crossing have for them. Beyond their room, only the count of numbers in a
// stretch is known. Then Lost less Duplicated is exact, and each is too small by the copies in those stretches. Nothing
// is claimed across a restart. An exporter may number its reports for each collector separately. It has a sequence for
// each as long as these are not within MaxGap of each other.
//
// # Flows
//
// If a collector reports a flow as new, and another collector had it on another path before, the flow has changed its
// path. A flow may come back to a collector which still has an old path of it. It has changed the path if it differs
// from the path at the other collector, not from the old one. Changes counts on; Packets of a change between collectors
// is 0. A flow with the same path as before has merely moved. A collector reports a flow that comes back as new after a
// window without it. For one that is back sooner, one change is missed: back to the path on which the flow was when it
// left that collector. Flows that shards had no room to list are missed, too. FlowCount counts a flow once for each
// collector that saw it in the window.
//
// # What comes late
//
// A window is added once. If parts of it come when later windows are done, [Crossing.Again] makes it again.
//
// The result depends on what is added to a window and not on the order. A Crossing has one user at a time.
type Crossing struct {
	limits    Limits
	end       int64
	exporters map[inference.ExporterKey]*exporter
	flows     map[decode.FlowKey]*flow
	swept     int64 // when idle flows were last looked for
	stats     counts

	// Of the open window.
	heard   map[inference.ExporterKey][]string
	present map[inference.ExporterKey]bool // the statistics have those of the owner
	numbers []sentNumbers
	gaps    []sentGap
	silent  []silent
	events  []event

	taken []int64 // labels of windows before it that have as missed what came in it
}

// counts holds the sizes of a crossing's state, and its counts since New.
type counts struct {
	Exporters, Flows int    // known now
	Shared           int    // of the exporters
	refused          uint64 // exporters for which there was no place, in each window
}

// silent holds the statistics that a collector still reports of an exporter that it did not hear. If another collector
// has the exporter alone, they have no meaning.
type silent struct {
	from string
	inference.ExporterStats
}

type sentNumbers struct {
	from string
	window.Numbers
}

type sentGap struct {
	from string
	window.Gap
}

// New returns a crossing without exporters and flows.
func New(limits Limits) *Crossing {
	c := &Crossing{limits: limits}
	c.clear()
	return c
}

func (c *Crossing) clear() {
	*c = Crossing{
		limits: c.limits, exporters: map[inference.ExporterKey]*exporter{}, flows: map[decode.FlowKey]*flow{},
		heard: map[inference.ExporterKey][]string{}, present: map[inference.ExporterKey]bool{},
	}
}

// Begin begins the window with this label. Windows come in the order of their labels.
func (c *Crossing) Begin(end int64) {
	c.end = end
	clear(c.heard)
	clear(c.present)
	clear(c.numbers)
	clear(c.gaps)
	clear(c.events)
	clear(c.silent)
	c.numbers, c.gaps, c.silent, c.events, c.taken = c.numbers[:0], c.gaps[:0], c.silent[:0], c.events[:0], c.taken[:0]
}

// Add adds what a run of a collector saw of the slice in the window. A run may be added more than once; the order does
// not matter. It keeps nothing of q.
func (c *Crossing) Add(from string, q *window.Partial) {
	for i := range q.Exporters() {
		k := q.Exporters()[i].ExporterKey
		if x := c.exporters[k]; q.Exporters()[i].Reports+q.Exporters()[i].Malformed > 0 || x != nil && x.owner == from {
			c.present[k] = true
		}
	}
	c.AddStatement(from, q)
}

// AddStatement adds the statistics of exporters that a worker of reports gives for a run. They do not cover missing
// numbers.
func (c *Crossing) AddStatement(from string, q *window.Partial) {
	hear := func(k inference.ExporterKey) {
		if k != (inference.ExporterKey{}) && !slices.Contains(c.heard[k], from) { // else it stands for many
			c.heard[k] = append(c.heard[k], from)
		}
	}
	for k := range q.Heard {
		hear(k)
	}
	for e := range q.Silent {
		if e.Lost != 0 || e.Provisional|e.Down|e.Restarts != 0 {
			c.silent = append(c.silent, silent{from, *e})
		}
	}
	for i := range q.Numbers() {
		n := q.Numbers()[i]
		n.Runs = slices.Clone(n.Runs)
		hear(n.ExporterKey)
		c.numbers = append(c.numbers, sentNumbers{from, n})
	}
	for _, g := range q.Gaps() {
		hear(g.ExporterKey)
		c.gaps = append(c.gaps, sentGap{from, g})
	}
	if len(q.Gaps()) == 0 {
		c.formerGaps(from, q)
	}
	c.addEvents(collectorOf(from), q)
}

// formerGaps finds the gaps of a run of a program that counts missed numbers without listing them. The gap is as many
// numbers before its first one.
func (c *Crossing) formerGaps(from string, q *window.Partial) {
	for i := range q.Exporters() {
		e := &q.Exporters()[i]
		if e.Down == 0 || e.Down > 1<<31 {
			continue
		}
		for k := range q.Numbers() {
			if n := &q.Numbers()[k]; n.ExporterKey == e.ExporterKey && n.Part == 0 && !n.Unknown && !n.Anew && e.Down>>n.Width == 0 {
				first := (n.First - uint32(e.Down)) & (^uint32(0) >> (32 - n.Width))
				c.gaps = append(c.gaps, sentGap{from, window.Gap{ExporterKey: n.ExporterKey, To: n.To, Width: n.Width, First: first, Count: uint32(e.Down)}})
				break
			}
		}
	}
}

// gapsOf are the gaps of an exporter, which are sorted.
func (c *Crossing) gapsOf(k inference.ExporterKey) []sentGap {
	from, _ := slices.BinarySearchFunc(c.gaps, k, func(g sentGap, k inference.ExporterKey) int { return g.ExporterKey.Compare(k) })
	to := from
	for to < len(c.gaps) && c.gaps[to].ExporterKey == k {
		to++
	}
	return c.gaps[from:to]
}

// Finish ends the window and corrects p, into which everything was merged that was added. It takes numbers and arrivals
// out of p.
func (c *Crossing) Finish(p *window.Partial) {
	c.sortNumbers()
	for i := 0; i < len(c.numbers); {
		n := i + 1
		for n < len(c.numbers) && c.numbers[n].ExporterKey == c.numbers[i].ExporterKey {
			n++
		}
		if x := c.exporter(c.numbers[i].ExporterKey); x != nil {
			x.addWindow(c.numbers[i:n], c.end, &c.limits)
		}
		i = n
	}
	for k, x := range c.exporters {
		slices.Sort(c.heard[k])
		x.openGaps(c.gapsOf(k), c.end, &c.limits)
		x.noteHeard(c.heard[k], c.end, &c.limits)
	}
	for i := range c.silent {
		s := &c.silent[i]
		if x, e := c.exporters[s.ExporterKey], p.Exporter(s.ExporterKey); x != nil && e != nil && c.end > x.until() && s.from != x.owner {
			e.Lost, e.Provisional, e.Down, e.Restarts = e.Lost-s.Lost, e.Provisional-s.Provisional, e.Down-s.Down, e.Restarts-s.Restarts
		}
	}
	for k, x := range c.exporters { // each for itself
		c.taken = append(c.taken, x.correct(p.Exporter(k), c.present[k], c.end, &c.limits)...)
		if c.end-x.last > int64(c.limits.Idle) {
			delete(c.exporters, k)
		}
	}
	c.finishFlows(p)
	p.DropAcross()
}

// sortNumbers orders the numbers that were reported, so that the order of collectors does not matter.
func (c *Crossing) sortNumbers() {
	slices.SortFunc(c.numbers, func(a, b sentNumbers) int {
		return cmp.Or(a.ExporterKey.Compare(b.ExporterKey), cmp.Compare(a.Width, b.Width), cmp.Compare(a.Part, b.Part), cmp.Compare(a.from, b.from), cmp.Compare(a.To, b.To), a.Numbers.Compare(&b.Numbers))
	})
	slices.SortFunc(c.gaps, func(a, b sentGap) int { return cmp.Or(a.Gap.Compare(&b.Gap), cmp.Compare(a.from, b.from)) })
}

// collectorOf is the collector of a run.
func collectorOf(run string) string {
	name, _, _ := strings.Cut(run, "/")
	return name
}

// exporter returns the state of an exporter, or nil if there is no place for it.
func (c *Crossing) exporter(k inference.ExporterKey) *exporter {
	x := c.exporters[k]
	if x == nil {
		if len(c.exporters) >= c.limits.Exporters || k == (inference.ExporterKey{}) {
			c.stats.refused++
			return nil
		}
		x = &exporter{last: c.end}
		c.exporters[k] = x
	}
	return x
}

// Taken returns the labels of windows before the last one whose Down counts numbers that came in it: they have to be
// made again. The list is valid until the next window begins.
func (c *Crossing) Taken() []int64 { return c.taken }

// Stats may be called between windows.
func (c *Crossing) Stats() counts {
	s := c.stats
	s.Exporters, s.Flows = len(c.exporters), len(c.flows)
	for _, x := range c.exporters {
		if x.shared {
			s.Shared++
		}
	}
	return s
}
