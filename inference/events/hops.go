package events

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// hops finds hops whose latency, queue or utilisation is not what it was, and those that fall silent.
type hops struct {
	*subject.Table[inference.HopKey, hop]
	cfgs [statistics]detect.Config // of the present window
	at   detect.Moment

	uses   uses
	floors map[uint32]float64 // of latencies, by node: the greatest one of its hops, in the window before

	covered inference.Coverage // of the present window
	few     []uint64           // records of the hops that had too few
}

// hop is the state of one hop.
type hop struct {
	series  [statistics]series
	silence *inference.Finding // that a version before 6 published
	waiting waiting
	buckets [statistics]*inference.Bounds // that the values of the present window came in, nil where they came one by one

	judgement inference.Judgement // in the last window that had it
}

// series is one statistic of one hop over the windows.
type series struct {
	detect.Hop
	used    bool // the hop reported it
	finding *inference.Finding
}

// The statistics of a hop.
const (
	latency = iota
	queue
	utilization
	statistics
)

// statistic is the part that distinguishes them.
type statistic struct {
	name  string
	kinds map[detect.Cause]inference.Kind
	text  func(float64) string
}

var hopStatistics = [statistics]statistic{
	{"latency", map[detect.Cause]inference.Kind{
		detect.Rise: inference.HighLatency, detect.Fall: inference.LowLatency, detect.Stuck: inference.StuckValues,
	}, inference.Nanoseconds},
	{"queue", map[detect.Cause]inference.Kind{
		detect.Rise: inference.HighQueue, detect.Stuck: inference.StuckValues,
	}, func(v float64) string { return fmt.Sprintf("%.0f B", inference.Round(v)) }},
	{"utilisation", map[detect.Cause]inference.Kind{
		detect.Rise: inference.HighUtilization, detect.Fall: inference.LowUtilization, detect.Stuck: inference.StuckValues,
	}, func(v float64) string { return inference.Percent(v, 3) }},
}

func newHops(j *subject.Journal) *hops {
	return &hops{Table: subject.NewTable(j, inference.HopKey.Compare, (*subject.Coder).Hop, codeHopState), uses: newUses(j), floors: map[uint32]float64{}}
}

// prepare makes the configurations of a window. Limits follow from how many statistics there are, in powers of two, so
// that a hop more or less does not move them.
func (x *hops) prepare(w *inference.Window) {
	base := hopConfig(x.Journal, w)
	for k, floor := range [statistics]float64{float64(x.Cfg.LatencyFloor), float64(x.Cfg.QueueFloor), x.Cfg.UtilizationFloor} {
		x.cfgs[k] = base
		x.cfgs[k].Floor = floor
	}
	x.cfgs[queue].Rising, x.cfgs[queue].Idle = true, true
	x.cfgs[utilization].Single, x.cfgs[utilization].Idle = true, true
	x.at = base.At(w.End)
	clear(x.floors)
	for _, s := range x.List {
		if h := &s.State; h.series[queue].used && h.series[latency].Floor() > 0 {
			x.floors[s.Key.Node] = max(x.floors[s.Key.Node], h.series[latency].Floor())
		}
	}
}

// hopConfig is how values of hops, flows, links and paths of probes are compared in a window. How strictly depends on
// how many of them there are.
func hopConfig(j *subject.Journal, w *inference.Window) detect.Config {
	length := time.Duration(w.End - w.Start)
	if length < time.Millisecond || length > time.Hour {
		length = 10 * time.Second
	}
	watched := 1 << bits.Len(uint(max(j.Stats.Watched+j.Stats.Links+j.Stats.Paths+j.Judged()-1, 0))) // the next power of two
	return detect.Config{
		Window: length, MinCount: j.Cfg.MinRecords, Grave: j.Cfg.Critical, Warmup: j.Cfg.Warmup, Adopt: j.Cfg.LearnAfter, EndAfter: j.Cfg.EndAfter,
		Share: j.Cfg.FalseShare(watched, length),
	}
}

func (x *hops) Step(w *inference.Window) {
	x.prepare(w)
	watched := 0
	x.covered = inference.Coverage{MinRecords: x.Cfg.MinRecords, Warmup: x.Cfg.Warmup, Window: time.Duration(w.End - w.Start)}
	x.few = x.few[:0]
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.Other {
			continue // many hops, and not the same ones in every window
		}
		h := x.Observe(s.HopKey, x.Cfg.MaxHops)
		if h == nil {
			x.Stats.HopsRefused++
			continue
		}
		windows := [statistics]detect.Window{summary(&s.Latency), summary(&s.Queue)}
		windows[latency].Low, windows[latency].HasLow = float64(s.Latency.Min), s.Latency.Min > 0
		if s.HasUtilization {
			windows[utilization] = detect.Window{Count: max(s.Count, x.Cfg.MinRecords), P50: s.Utilization}
		}
		h.buckets = [statistics]*inference.Bounds{s.Latency.Bounds, s.Queue.Bounds}
		later := h.waiting.learn(s)
		if later == 0 {
			x.adapt(h, s.Node)
		}
		x.coarsen(h, s)
		watched += x.judge(h, s.HopKey, &windows)
		x.cover(h, s, &windows)
		if h.waiting.settle(later, h.series[latency].Pending()) {
			x.adapt(h, s.Node)
		}
	}
	unheard := allSilent(w)
	x.ForEachAbsent(func(k inference.HopKey, h *hop, windows int) bool {
		if windows >= x.Cfg.ForgetAfter {
			x.forget(h, k.Place()+" is forgotten")
			return true
		}
		if len(w.Missing) == 0 && !unheard { // otherwise its silence is unknown
			watched += x.judge(h, k, new([statistics]detect.Window))
		}
		return false
	})
	x.uses.step(w, &x.cfgs[latency], len(w.Missing) > 0 || unheard)
	x.covered.Times = x.times()
	x.Stats.Hops, x.Stats.Watched = len(x.List), max(watched, x.Stats.Watched*min(len(w.Missing), 1))
}

// cover counts a hop in what was judged: one of which each statistic with values was compared. The utilisation of a hop
// is one value a window, however few records there are.
func (x *hops) cover(h *hop, s *inference.HopStats, windows *[statistics]detect.Window) {
	x.covered.Seen++
	h.judgement = inference.NotKnown
	for i := range h.series {
		switch n := windows[i].Count; {
		case n == 0:
		case n < x.Cfg.MinRecords:
			h.judgement = inference.TooFew
		case h.series[i].Warming(&x.cfgs[i]):
			h.judgement = max(h.judgement, inference.TooYoung)
		default:
			h.judgement = max(h.judgement, inference.Judged)
		}
	}
	if h.judgement == inference.NotKnown { // records without a value
		h.judgement = inference.TooFew
	}
	switch h.judgement {
	case inference.Judged:
		x.covered.Judged++
		if windows[latency].Count == 0 {
			x.covered.NoLatency++
		}
	case inference.TooYoung:
		x.covered.Young++
	default:
		x.covered.Few++
		x.few = append(x.few, s.Count)
	}
}

// times returns a factor for the length of windows. It would give half of the hops with too few records twice as many
// as are enough.
func (x *hops) times() uint64 {
	if len(x.few) == 0 {
		return 0
	}
	slices.Sort(x.few)
	median := max(x.few[len(x.few)/2], 1)
	return (2*x.Cfg.MinRecords + median - 1) / median
}

// adapt sets the floor of a hop's latencies to that of packets that wait for each other. A hop that reports no queue
// has that of its node.
func (x *hops) adapt(h *hop, node uint32) {
	s := &h.series[latency]
	to := h.waiting.floor(s.Floor())
	if !h.series[queue].used {
		to = x.floors[node]
	}
	if h.buckets[latency] != nil {
		to = max(to, s.Floor())
	}
	if to != s.Floor() {
		s.SetFloor(&x.cfgs[latency], to)
	}
}

// coarsen sets the floor of values in buckets to the width of these. A value in the next bucket may have moved by
// nothing.
func (x *hops) coarsen(h *hop, s *inference.HopStats) {
	for i, v := range []*inference.Summary{latency: &s.Latency, queue: &s.Queue} {
		if v.Bounds == nil {
			continue
		}
		width := max(v.P50-v.Bounds.P50, v.P99-v.Bounds.P99)
		if of := &h.series[i]; float64(width) > of.Floor() {
			of.SetFloor(&x.cfgs[i], math.Exp2(math.Ceil(math.Log2(float64(width)))))
		}
	}
}

func summary(s *inference.Summary) detect.Window {
	return detect.Window{Count: s.Count, P50: float64(s.P50), P90: float64(s.P90), P99: float64(s.P99)}
}

// learning reports whether one of the statistics of a hop is younger than it needs to be.
func (h *hop) learning() bool {
	for i := range h.series {
		if s := &h.series[i]; s.used && s.Learning() {
			return true
		}
	}
	return false
}

func (x *hops) forget(h *hop, text string) {
	for i := range h.series {
		x.End(&h.series[i].finding, text)
	}
	x.End(&h.silence, text)
}

// judge takes a window of a hop, and returns the number of its statistics.
func (x *hops) judge(h *hop, k inference.HopKey, windows *[statistics]detect.Window) (watched int) {
	if h.silence != nil { // of an earlier version, which nothing is known of any more
		x.End(&h.silence, k.Place()+": its silence is watched by a new detector from here on")
	}
	for i := range h.series {
		s, w := &h.series[i], &windows[i]
		if !s.used && w.Count == 0 {
			continue
		}
		s.used = true
		watched++
		before, _ := s.Open()
		cfg := &x.cfgs[i]
		cfg.Steady = h.buckets[i] != nil // all values of a bucket are the same
		cfg.Stopped = h.stopped(i, w)
		event := s.Add(cfg, x.at, *w)
		cfg.Steady, cfg.Stopped = false, false
		f, open := s.Open()
		switch {
		case event == detect.Stopped:
			x.End(&s.finding, fmt.Sprintf("%s of %s stands still from here on: it shows nothing of packets", hopStatistics[i].name, k.Place()))
		case event == detect.Ended && before.Cause != detect.Silent:
			x.endFinding(s, i, k, &before, w)
		case open && f.Cause != detect.Silent && w.Count >= x.Cfg.MinRecords:
			x.publishOpen(h, i, k, &f, w)
		case !open && s.finding != nil: // of a version that judged otherwise
			x.End(&s.finding, hopStatistics[i].name+" of "+k.Place()+": what is usual is learnt anew from here on")
		}
	}
	return watched
}

// stopped reports whether values of a hop that stand still come from telemetry that has stopped. All packets of a window
// have the same latency then. A full queue and a full link stand still as well, but the latencies there vary.
func (h *hop) stopped(i int, w *detect.Window) bool {
	if i == latency {
		return w.P50 == w.P99
	}
	f, open := h.series[latency].Open()
	return open && f.Cause == detect.Stuck
}

// publishOpen publishes a finding that began or goes on.
func (x *hops) publishOpen(h *hop, i int, k inference.HopKey, f *detect.Finding, w *detect.Window) {
	s, st, cfg := &h.series[i], &hopStatistics[i], &x.cfgs[i]
	name, v := valueOf(cfg, f, w)
	out := inference.Finding{
		Kind: st.kinds[f.Cause], Severity: inference.Warning, Node: k.Node, EgressIf: k.EgressIf, Element: inference.ElementOfHop(k),
		Statistic: name + " " + st.name, Value: v, Baseline: f.Usual(cfg), Learning: s.Learning(), Resting: s.AsUsual(cfg),
	}
	if s.Grave(cfg, w) && f.Cause == detect.Rise {
		out.Severity = inference.Critical
	}
	switch f.Cause {
	case detect.Stuck:
		out.Statistic, out.Baseline = st.name, v
		out.Text = fmt.Sprintf("%s of %s stands still: p50 %s and p99 %s in every window", st.name, k.Place(), st.text(w.P50), st.text(w.P99))
		if cfg.Single {
			out.Text = fmt.Sprintf("%s of %s stands still: %s in every window", st.name, k.Place(), st.text(v))
		}
	default:
		out.Text = fmt.Sprintf("%s of %s: %s %s over %d packets, usually %s", st.name, k.Place(), name, st.text(v), w.Count, st.text(out.Baseline))
		if out.Resting || f.Cause == detect.Rise && v <= out.Baseline || f.Cause == detect.Fall && v >= out.Baseline { // the present window is not its evidence
			out.Value = f.Worst(cfg)
			out.Text = fmt.Sprintf("%s of %s: %s reached %s, usually %s; it is %s over %d packets now", st.name, k.Place(), name, st.text(out.Value), st.text(out.Baseline), st.text(v), w.Count)
		}
		if f.Statistic == detect.Tail {
			out.Text += " beside a p90 of " + st.text(w.P90)
		}
		out.Text += ofBuckets(h.buckets[i], name, w, st.text) + recurrences(&s.Hop)
	}
	if out.Learning {
		out.Text += learningText
	}
	x.Publish(&s.finding, out)
	x.Late[s.finding.ID] = f.Late()
	s.finding.Learning = out.Learning
}

// valueOf returns the value of a window that a finding is about, and its name.
func valueOf(cfg *detect.Config, f *detect.Finding, w *detect.Window) (string, float64) {
	switch {
	case cfg.Single:
		return "highest", w.P50
	case f.Statistic == detect.P99, f.Statistic == detect.Tail:
		return "p99", w.P99
	case f.Statistic == detect.Low:
		return "lowest", w.Low
	}
	return "p50", w.P50
}

// ofBuckets returns a text about the uncertainty of a value that came in buckets, "" where it came in none.
func ofBuckets(b *inference.Bounds, name string, w *detect.Window, text func(float64) string) string {
	if b == nil {
		return ""
	}
	q, low := .5, b.P50
	if name == "p99" {
		q, low = .99, b.P99
	}
	if s := (inference.Summary{Count: w.Count, Bounds: b}); s.Beyond(q) {
		return "; that is where the last bucket of its histogram begins, and it can be any higher"
	}
	return "; its histogram has it in a bucket from " + text(float64(low))
}

// recurrences returns a text about how often a recurring open finding was active.
func recurrences(h *detect.Hop) string {
	switch {
	case h.Times() < 2:
		return ""
	case h.Resting():
		return fmt.Sprintf("; seen %d times, and expected to come back", h.Times())
	}
	return fmt.Sprintf("; for the %s time", ordinal(h.Times()))
}

// ordinal writes the number of one of several.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

const learningText = "; the hop is still being learnt"

// endFinding ends the finding of a statistic.
func (x *hops) endFinding(s *series, i int, k inference.HopKey, f *detect.Finding, w *detect.Window) {
	if s.finding == nil {
		return
	}
	st, cfg := &hopStatistics[i], &x.cfgs[i]
	text := fmt.Sprintf("%s of %s varies again", st.name, k.Place())
	if f.Cause != detect.Stuck {
		name, v := valueOf(cfg, f, w)
		s.finding.Value, s.finding.Baseline = f.Worst(cfg), f.Usual(cfg)
		text = fmt.Sprintf("%s of %s reached %s %s and is %s now, usually %s", st.name, k.Place(), name,
			st.text(s.finding.Value), st.text(v), st.text(s.finding.Baseline))
		if f.Adopted {
			text = fmt.Sprintf("%s of %s: %s has been above or below its usual %s for %d windows, and its level is the usual one from now on; it is %s now",
				st.name, k.Place(), name, st.text(s.finding.Baseline), x.Cfg.LearnAfter, st.text(v))
		}
	}
	if w.Count < x.Cfg.MinRecords {
		text = fmt.Sprintf("%s of %s: too few packets for a judgement", st.name, k.Place())
	}
	x.End(&s.finding, text)
}
