package events

import (
	"fmt"
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

const (
	// A flow has a place as long as it is judged in more than two thirds of the windows. A flow that is known for long
	// keeps it for stayMost windows. One that is busy in a window now and then loses its place with the next one, and
	// those at the edge keep theirs.
	stayMost, stayLess = 180, 2
	// A finding ends after so many windows that are left out.
	blankFor = 12
	// Windows of which what a hop usually adds to the latency of a flow is a mean.
	usualWindows = 81
)

// flows finds flows whose latency changed: the sum that the hops on their way add. A flow that is a small part of the
// packets of a hop can be slow there. Neither the median nor the 99th percentile of the hop shows it.
type flows struct {
	*subject.Table[decode.FlowKey, busy]
	hops   *hops
	limits detect.Config // of the present window
}

// busy is the state of one flow.
type busy struct {
	series
	way     uint64 // hash of its hops, and of which of them report latencies
	changes uint32 // of its path, as of its last window
	astray  int    // windows in a row on another way
	blank   int    // windows in a row that are left out for the open finding
	stays   int    // windows with enough reports, less those without, within bounds
	learnt  int    // windows that usual is of, up to usualWindows
	usual   []share
}

// share is the usual part of one hop in the latency of a flow, in ns.
type share struct{ p50, p99 float64 }

func newFlows(j *subject.Journal, h *hops) *flows {
	x := &flows{hops: h}
	x.Table = subject.NewTable(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*subject.Coder).Flow, codeBusy)
	j.Judged = x.judged
	return x
}

// judged is the number of flows that are known well enough.
func (x *flows) judged() (n int) {
	limits := detect.Config{Warmup: x.Cfg.Warmup}
	for _, s := range x.List {
		if !s.State.Warming(&limits) {
			n++
		}
	}
	return n
}

// Step runs behind the detector of hops. A window without some members of a fleet has less of flows than there is.
func (x *flows) Step(w *inference.Window) {
	if len(w.Missing) > 0 {
		return
	}
	x.limits = x.hops.cfgs[latency]
	x.limits.MinCount = x.Cfg.BusyReports
	for i := range w.Flows {
		f := &w.Flows[i]
		sum, way := x.sum(f)
		if sum.Count < x.Cfg.BusyReports {
			continue
		}
		if b := x.Observe(f.Key, x.Cfg.BusyFlows); b != nil {
			b.stays = min(b.stays+1, stayMost)
			x.addWindow(b, f, sum, way)
		}
	}
	x.ForEachAbsent(func(k decode.FlowKey, b *busy, _ int) bool {
		b.stays -= stayLess
		if b.stays <= 0 || x.Cfg.BusyFlows == 0 {
			x.End(&b.finding, fmt.Sprintf("flow %s is not among the busiest any more", k))
			return true
		}
		x.skip(k, b)
		return false
	})
}

// sum adds up the latencies of a flow's hops: quantiles of a sum are not sums of quantiles, but they move together. It
// has no values where the path of the flow is not known, or more than one. way distinguishes paths.
func (x *flows) sum(f *inference.FlowStats) (sum detect.Window, way uint64) {
	if f.Partial || f.Unsettled || f.Sprayed() || len(f.Hops) > subject.MostHops {
		return sum, 0
	}
	const prime = 1099511628211
	way = 14695981039346656037
	for i := range f.Hops {
		h := &f.Hops[i]
		if h.Unknown || h.Inferred || h.Other {
			return detect.Window{}, 0
		}
		way = ((way^uint64(h.Node))*prime ^ uint64(h.EgressIf)) * prime
		if !reportsLatency(f, h) {
			continue
		}
		way = (way ^ 1<<63) * prime
		if sum.Count == 0 || h.Latency.Count < sum.Count {
			sum.Count = h.Latency.Count
		}
		sum.P50 += float64(h.Latency.P50)
		sum.P90 += float64(h.Latency.P90)
		sum.P99 += float64(h.Latency.P99)
	}
	return sum, way
}

// reportsLatency reports whether a hop has the latencies of at least half of a flow's packets.
func reportsLatency(f *inference.FlowStats, h *inference.FlowHop) bool {
	return h.Latency.Count > 0 && h.Latency.Count >= f.Packets/2
}

// addWindow judges a window of a flow. A window in which its path changed, or that is of another path, is not learnt;
// when the flow stays there it is learnt anew.
func (x *flows) addWindow(b *busy, f *inference.FlowStats, sum detect.Window, way uint64) {
	if !b.used {
		b.used, b.way, b.changes = true, way, f.Changes
	}
	changed := f.Changes != b.changes
	b.changes = f.Changes
	if b.astray++; way == b.way {
		b.astray = 0
	}
	switch {
	case b.astray >= x.Cfg.EndAfter:
		x.End(&b.finding, fmt.Sprintf("flow %s takes another path, and its latency there is learnt anew", f.Key))
		*b = busy{way: way, changes: f.Changes, stays: b.stays, series: series{used: true}}
	case b.astray > 0 || changed, b.Warming(&x.limits) && x.slowHop(f):
		x.skip(f.Key, b)
		return
	}
	x.judge(b, f, &sum)
}

// slowHop reports whether a hop of a flow is slow by its own history. A flow that is not known yet would learn the
// fault as usual, and its end as a finding.
func (x *flows) slowHop(f *inference.FlowStats) bool {
	for i := range f.Hops {
		h := x.hops.Index[f.Hops[i].HopKey]
		if h == nil || !reportsLatency(f, &f.Hops[i]) {
			continue
		}
		s := &h.State.series[latency]
		if o, open := s.Open(); open && o.Cause == detect.Rise && !o.Adopted && !s.AsUsual(&x.hops.cfgs[latency]) {
			return true
		}
	}
	return false
}

// skip takes a window that is left out for a flow.
func (x *flows) skip(k decode.FlowKey, b *busy) {
	times := 1
	if _, open := b.Open(); open {
		if b.blank++; b.blank < blankFor {
			return // those before and after it are in a row all the same
		}
		times = blankFor
	}
	for range times {
		if b.Add(&x.limits, x.hops.at, detect.Window{Count: 1}) == detect.Ended {
			x.End(&b.finding, fmt.Sprintf("latency of flow %s: too few packets for a judgement", k))
		}
	}
}

func (x *flows) judge(b *busy, f *inference.FlowStats, sum *detect.Window) {
	if to := x.floor(f); to != b.Floor() {
		b.SetFloor(&x.limits, to)
	}
	b.blank = 0
	before, _ := b.Open()
	event := b.Add(&x.limits, x.hops.at, *sum)
	now, open := b.Open()
	switch {
	case event == detect.Ended:
		x.endFinding(b, f, &before, sum)
	case open && now.Cause != detect.Stuck: // constant values are findings of hops
		x.publishOpen(b, f, &now, sum)
	case !open:
		b.learn(f)
		x.End(&b.finding, fmt.Sprintf("latency of flow %s: what is usual is learnt anew from here on", f.Key)) // of a version that judged otherwise
	}
}

// floor is that of the hops of a flow, whose packets wait at each of them.
func (x *flows) floor(f *inference.FlowStats) (sum float64) {
	for i := range f.Hops {
		if h := x.hops.Index[f.Hops[i].HopKey]; h != nil && reportsLatency(f, &f.Hops[i]) {
			sum += h.State.series[latency].Floor()
		}
	}
	return sum
}

// learn brings what hops usually add up to date.
func (b *busy) learn(f *inference.FlowStats) {
	if len(b.usual) != len(f.Hops) {
		b.usual, b.learnt = make([]share, len(f.Hops)), 0
	}
	b.learnt = min(b.learnt+1, usualWindows)
	rate := 1 / float64(b.learnt)
	for i := range f.Hops {
		u, l := &b.usual[i], &f.Hops[i].Latency
		u.p50 += rate * (float64(l.P50) - u.p50)
		u.p99 += rate * (float64(l.P99) - u.p99)
	}
}

// blame returns the hops that a change comes from: those with at least a quarter of it, in path order. The result most
// is the place of the hop with the largest part, -1 if none has half.
func (b *busy) blame(f *inference.FlowStats, found *detect.Finding) (hops []inference.HopKey, most int) {
	most = -1
	if len(b.usual) != len(f.Hops) {
		return nil, most
	}
	by := func(i int) float64 {
		d := float64(f.Hops[i].Latency.P50) - b.usual[i].p50
		if found.Statistic == detect.P99 || found.Statistic == detect.Tail {
			d = float64(f.Hops[i].Latency.P99) - b.usual[i].p99
		}
		if found.Cause == detect.Fall {
			d = -d
		}
		return max(d, 0)
	}
	all := 0.
	for i := range f.Hops {
		all += by(i)
	}
	for i := range f.Hops {
		switch d := by(i); {
		case d <= 0 || 4*d < all:
			continue
		case 2*d > all:
			most = i
		}
		hops = append(hops, f.Hops[i].HopKey)
	}
	return hops, most
}

// sumError is the relative error of the sum of a quantile over the hops of a flow.
func sumError(f *inference.FlowStats, p99 bool) float64 {
	sum, squares := 0., 0.
	for i := range f.Hops {
		if l := &f.Hops[i].Latency; reportsLatency(f, &f.Hops[i]) {
			v, e := float64(l.P50), l.P50Error()
			if p99 {
				v, e = float64(l.P99), l.P99Error()
			}
			sum += v
			squares += v * e * v * e
		}
	}
	if sum == 0 {
		return 0
	}
	return math.Sqrt(squares) / sum
}

// publishOpen publishes a finding that began or goes on.
func (x *flows) publishOpen(b *busy, f *inference.FlowStats, found *detect.Finding, sum *detect.Window) {
	name, v := valueOf(&x.limits, found, sum)
	out := inference.Finding{
		Kind: hopStatistics[latency].kinds[found.Cause], Severity: inference.Warning, Flow: f.Key, Element: inference.ElementOfFlow(f.Key),
		Statistic: name + " latency", Value: v, Baseline: found.Usual(&x.limits), Learning: b.Learning(), Resting: b.AsUsual(&x.limits),
	}
	if found.Grave(&x.limits) && found.Cause == detect.Rise {
		out.Severity = inference.Critical
	}
	out.Text = fmt.Sprintf("latency of flow %s: %s %s over %d packets and %s, usually %s", f.Key, name, inference.NanosecondsWithin(v, sumError(f, found.Statistic == detect.P99)), sum.Count,
		subject.Plural(uint64(len(f.Hops)), "hop"), inference.Nanoseconds(out.Baseline))
	if out.Resting { // the present window is not its evidence
		out.Value = found.Worst(&x.limits)
		out.Text = fmt.Sprintf("latency of flow %s: %s reached %s, usually %s; it is %s over %d packets now", f.Key, name, inference.Nanoseconds(out.Value),
			inference.Nanoseconds(out.Baseline), inference.NanosecondsWithin(v, sumError(f, found.Statistic == detect.P99)), sum.Count)
	}
	hops, most := b.blame(f, found)
	if most >= 0 && !out.Resting {
		out.Text += "; most of the difference is at " + f.Hops[most].Place()
	}
	for k := range f.Hops {
		out.Path = append(out.Path, f.Hops[k].HopKey)
	}
	out.Text += recurrences(&b.Hop)
	if out.Learning {
		out.Text += "; the flow is still being learnt"
	}
	x.Publish(&b.finding, out)
	x.Late[b.finding.ID], x.Moved[b.finding.ID] = found.Late(), hops
}

// endFinding ends the finding of a flow.
func (x *flows) endFinding(b *busy, f *inference.FlowStats, found *detect.Finding, sum *detect.Window) {
	if b.finding == nil {
		return
	}
	name, v := valueOf(&x.limits, found, sum)
	b.finding.Value, b.finding.Baseline = found.Worst(&x.limits), found.Usual(&x.limits)
	x.End(&b.finding, fmt.Sprintf("latency of flow %s reached %s %s and is %s now, usually %s", f.Key, name,
		inference.Nanoseconds(b.finding.Value), inference.Nanoseconds(v), inference.Nanoseconds(b.finding.Baseline)))
}
