package events

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// transits finds links on which packets take longer than before, by the times at which both ends report them. The
// clocks of two switches differ, and run apart. Their difference is added to the times of one direction and subtracted
// from those of the other. So the sum of both directions is judged, which is independent of the clocks, even if they
// are set. The least times of the two directions are not of the same moment. The rate at which the clocks run apart is
// learnt from the difference of the directions, and subtracted. This difference also shows the direction.
//
// The judged value is the change that the last three windows all support. A packet that waited, windows with long
// packets only, or a clock that was set within a window appear once or twice.
type transits struct {
	*subject.Table[inference.LinkKey, transit]
	cfg detect.Config // of the present window
	at  detect.Moment
}

const (
	transitMarks = 12 // windows that are remembered
	transitFirst = 5  // of them, how many there have to be before a link is judged
	transitLeast = 3  // of them, the last ones, which have to agree
	// fastestDrift is how fast clocks run apart at most; what seems faster is a clock that was set.
	fastestDrift = 1e-3
	// transitGap is the time without both directions after which nothing is known of the clocks any more.
	transitGap = int64(5 * time.Minute)
)

// transit is the state of a link, with its lesser end first.
type transit struct {
	marks   []mark  // the last windows with packets in both directions
	both    float64 // the sum of both directions, as it is judged, ns
	series  detect.Hop
	way     way
	finding *inference.Finding
}

// mark holds the values of one window.
type mark struct {
	at    int64 // between the two packets
	apart int64 // difference of the directions, ns, modulo the period around 0
	both  int64 // their sum, likewise
	later int64 // how much later the packet of the first direction was, ns
}

// way is the direction that takes longer.
type way uint8

const (
	eitherWay way = iota // it is not clear
	forward
	backward
)

func newTransits(j *subject.Journal) *transits {
	return &transits{Table: subject.NewTable(j, inference.LinkKey.Compare, codeLinkKey, codeTransit)}
}

func (x *transits) Step(w *inference.Window) {
	x.prepare(w)
	watched := 0
	for i := range w.Links {
		there := &w.Links[i]
		k := there.LinkKey
		if k.Compare(k.Reverse()) > 0 {
			continue
		}
		at, ok := slices.BinarySearchFunc(w.Links, k.Reverse(), func(l inference.LinkStats, k inference.LinkKey) int { return l.Compare(k) })
		if !ok {
			continue
		}
		l := x.Observe(k, x.Journal.Cfg.MaxHops)
		if l == nil {
			x.Unjudged++
			continue
		}
		watched++
		x.judge(l, k, there, &w.Links[at])
	}
	x.ForEachAbsent(func(k inference.LinkKey, l *transit, windows int) bool {
		if windows >= x.Journal.Cfg.ForgetAfter {
			x.End(&l.finding, linkName(k)+" is forgotten")
			return true
		}
		x.unknown(l, k)
		return false
	})
	x.Stats.Links = max(watched, x.Stats.Links*min(len(w.Missing), 1))
}

func (x *transits) prepare(w *inference.Window) {
	x.cfg = hopConfig(x.Journal, w)
	x.cfg.Floor = float64(x.Journal.Cfg.LinkFloor)
	x.cfg.Rising, x.cfg.Single, x.cfg.Steady = true, true, true
	x.cfg.MinCount = 2 // with fewer there is nothing to judge
	x.at = x.cfg.At(w.End)
}

// around returns v modulo a period, nearest to 0. Without a period that is v.
func around(v int64, period uint64) int64 {
	if period == 0 || period > math.MaxInt64 {
		return v
	}
	p := int64(period)
	if v %= p; v >= (p+1)/2 {
		v -= p
	} else if v < -p/2 {
		v += p
	}
	return v
}

// judge takes a window of a link.
func (x *transits) judge(l *transit, k inference.LinkKey, there, back *inference.LinkStats) {
	m := mark{
		at: there.At/2 + back.At/2, apart: around(there.Least-back.Least, k.Period), both: around(there.Least+back.Least, k.Period),
		later: there.At - back.At,
	}
	if n := len(l.marks); n > 0 && (m.at < l.marks[n-1].at || m.at-l.marks[n-1].at > transitGap) {
		l.marks = l.marks[:0]
	}
	if len(l.marks) == transitMarks {
		l.marks = append(l.marks[:0], l.marks[1:]...)
	}
	l.marks = append(l.marks, m)
	if len(l.marks) < transitFirst {
		x.unknown(l, k)
		return
	}
	low, high := l.bounds(k.Period)
	if high < -x.cfg.Floor || low > 1e15 { // no difference of clocks can be that
		x.unknown(l, k)
		return
	}
	l.both = min(max(l.both, low, 0), max(high, 0))
	x.feed(l, k, detect.Window{Count: 1 << 20, P50: l.both})
}

// unknown is a window in which a link is not judged.
func (x *transits) unknown(l *transit, k inference.LinkKey) { x.feed(l, k, detect.Window{Count: 1}) }

func (x *transits) feed(l *transit, k inference.LinkKey, w detect.Window) {
	before, _ := l.series.Open()
	event := l.series.Add(&x.cfg, x.at, w)
	f, open := l.series.Open()
	switch {
	case event == detect.Ended:
		x.endFinding(l, k, &before, &w)
	case open && w.Count > 1:
		if event == detect.Begun {
			l.way = l.slower(k.Period, w.P50-f.Usual(&x.cfg))
		}
		x.publishOpen(l, k, &f, &w)
	}
}

// bounds returns bounds of the sum of both directions in the last windows. The clock of the peer runs ahead of that of
// the node at half the slope of the difference of the directions. As a rule the slope is the median of the slopes from
// window to window. Around a clock that is set, or changes its rate, it is that of a window and its neighbours. The
// judged value follows only if all of them agree that it moved.
func (l *transit) bounds(period uint64) (low, high float64) {
	var slopes, sorted [transitMarks]float64
	list := sorted[:0]
	for i := 1; i < len(l.marks); i++ {
		list = l.marks[i-1].slope(list, &l.marks[i], period)
	}
	usual := median(list)
	for i := range slopes {
		slopes[i] = usual
		if i > 0 && i < len(l.marks) {
			if one := l.marks[i-1].slope(sorted[:0], &l.marks[i], period); len(one) > 0 {
				slopes[i] = one[0]
			}
		}
	}
	low, high = math.Inf(1), math.Inf(-1)
	for i := max(1, len(l.marks)-transitLeast); i < len(l.marks); i++ {
		m, after := &l.marks[i], usual
		if i+1 < len(l.marks) {
			after = slopes[i+1]
		}
		for _, slope := range [...]float64{usual, slopes[i], after} {
			both := float64(m.both) - slope/2*float64(m.later)
			low, high = min(low, both), max(high, both)
		}
	}
	return low, high
}

// slope appends how the difference of the directions changes from a to b.
func (a *mark) slope(list []float64, b *mark, period uint64) []float64 {
	t := b.at - a.at
	if t <= 0 {
		return list
	}
	return append(list, min(max(float64(around(b.apart-a.apart, period))/float64(t), -2*fastestDrift), 2*fastestDrift))
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// slower returns the direction that takes so much longer. The windows before the last ones show how the clocks ran
// until then.
func (l *transit) slower(period uint64, longer float64) way {
	n := len(l.marks) - transitLeast
	if n < 2 || !(longer > 0) {
		return eitherWay
	}
	last, past := &l.marks[len(l.marks)-1], l.marks[:n]
	var slopes [transitMarks * transitMarks / 2]float64
	list := slopes[:0]
	for i := range past {
		for k := range past[:i] {
			list = past[k].slope(list, &past[i], period)
		}
	}
	slope := median(list)
	var moved [transitMarks]float64
	list = moved[:0]
	for i := range past {
		list = append(list, float64(around(last.apart-past[i].apart, period))-slope*float64(last.at-past[i].at))
	}
	switch part := median(list) / longer; {
	case part > .5:
		return forward
	case part < -.5:
		return backward
	}
	return eitherWay
}

func linkName(k inference.LinkKey) string {
	a, b := inference.HopKey{Node: k.Node, EgressIf: k.EgressIf}, inference.HopKey{Node: k.Peer, EgressIf: k.PeerIf}
	return fmt.Sprintf("link %s–%s", a, b)
}

// publishOpen publishes a finding that began or goes on.
func (x *transits) publishOpen(l *transit, k inference.LinkKey, f *detect.Finding, w *detect.Window) {
	out := inference.Finding{
		Kind: inference.HighLatency, Severity: inference.Warning, Element: inference.ElementOfLink(k.Node, k.Peer), Statistic: "time on the link",
		Value: w.P50, Baseline: f.Usual(&x.cfg), Learning: l.series.Learning(), Resting: l.series.AsUsual(&x.cfg),
	}
	if f.Grave(&x.cfg) {
		out.Severity = inference.Critical
	}
	packets := "packets"
	switch l.way {
	case forward:
		out.Node, out.EgressIf = k.Node, k.EgressIf
		packets = fmt.Sprintf("packets from node %d to node %d", k.Node, k.Peer)
	case backward:
		k = k.Reverse()
		out.Node, out.EgressIf = k.Node, k.EgressIf
		packets = fmt.Sprintf("packets from node %d to node %d", k.Node, k.Peer)
	}
	out.Text = fmt.Sprintf("%s take %s longer on %s: there and back %s, usually %s", packets, inference.Nanoseconds(max(0, out.Value-out.Baseline)),
		linkName(k), inference.Nanoseconds(out.Value), inference.Nanoseconds(out.Baseline))
	if out.Resting { // the present window is not its evidence
		out.Value = f.Worst(&x.cfg)
		out.Text = fmt.Sprintf("%s took up to %s there and back, and takes %s now, usually %s", linkName(k), inference.Nanoseconds(out.Value), inference.Nanoseconds(w.P50),
			inference.Nanoseconds(out.Baseline))
	}
	if out.Learning {
		out.Text += "; the link is still being learnt"
	}
	x.Publish(&l.finding, out)
	x.Late[l.finding.ID] = f.Late()
}

// endFinding ends the finding of a link.
func (x *transits) endFinding(l *transit, k inference.LinkKey, f *detect.Finding, w *detect.Window) {
	if l.finding == nil {
		return
	}
	l.finding.Value, l.finding.Baseline = f.Worst(&x.cfg), f.Usual(&x.cfg)
	text := fmt.Sprintf("%s took up to %s there and back, and takes %s now, usually %s", linkName(k),
		inference.Nanoseconds(l.finding.Value), inference.Nanoseconds(w.P50), inference.Nanoseconds(l.finding.Baseline))
	if w.Count == 1 {
		text = linkName(k) + ": too few packets in both directions for a judgement"
	}
	x.End(&l.finding, text)
}

// The state of a link: marks<n> { at<n> apart<n> both<n> later<n> } both<f> way<n> series, as of hops.

func codeLinkKey(c *subject.Coder, k *inference.LinkKey) {
	subject.Number(c, &k.Node)
	subject.Number(c, &k.EgressIf)
	subject.Number(c, &k.Peer)
	subject.Number(c, &k.PeerIf)
	subject.Number(c, &k.Period)
}

func codeTransit(c *subject.Coder, l *transit) {
	subject.List(c, &l.marks, func(m *mark) {
		subject.Number(c, &m.at)
		subject.Number(c, &m.apart)
		subject.Number(c, &m.both)
		subject.Number(c, &m.later)
	})
	c.Float(&l.both)
	c.Check("windows of a link", len(l.marks) <= transitMarks)
	subject.Number(c, &l.way)
	c.Check("direction", l.way <= backward)
	codeHistory(c, &l.series)
	c.Finding(&l.finding)
}
