package ways

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// A last switch that samples, or a policer of its reports, holds back a share of all packets. The losses of a link
// ahead of it are few beside that. But the reports that are held back are of all flows alike, and those of the packets
// that a link lost are of the flows over it. So the flows to last switches with an open end are compared with each
// other: does a smaller share of the packets over a link arrive than of those to the same switches on other ways?
//
// In a window, N packets go to a switch and S of them are reported. Whichever share the switch reports, and however it
// changes from window to window, the number that is reported of the n packets over a link is hypergeometric given N, S
// and n, if the link loses none. If it loses some, the odds are less by a factor, and the number is Fisher's noncentral
// one. The logarithm of the likelihood ratio of both is added up from window to window, and begins anew where it would
// fall below 0 (a CUSUM, as for losses of exporters). So a score reaches its limit by chance once in 1/shareAlarm
// windows, of all links and ratios together.
//
// Switches that sample alike give more evidence together than each of them alone, since all ways to one of them can be
// over the link. So each link has the scores of both comparisons. In the second one a switch with another share is a
// candidate itself, and explains its flows better than a link to it does. At last, flows must not differ more within
// both groups than chance lets them: by as much as they do, evidence is less. A switch that samples flows in place of
// packets reports all packets of a flow or none. So a flow counts from the window on behind the first one in which it was
// reported since the end is open.

// shareLosses are the ratios of losses for which scores are added up.
var shareLosses = [...]float64{.25, .5, .75}

const (
	// shareAlarm is the chance of a false link in a window.
	shareAlarm = 1e-6
	// shareOthers is by how many nats other places have to be less likely for a link to be named at once.
	shareOthers = 3
	// shareWell is the score that shows that a link is well again.
	shareWell = 4.6
	// shareTerms bounds the numbers that are weighed for a link in a window, and so the work: beyond, all counts are
	// scaled down alike, which leaves less evidence than there is.
	shareTerms = 1 << 14
)

// The comparisons: of the ways to one switch, and of those to all such switches.
const (
	amongOne = iota
	amongAll
	shareAmong
)

// Contrasts are contrasts by place.
type Contrasts = subject.Table[culprit, contrast]

// contrast is the evidence that fewer of the packets over a place are reported than of others.
type contrast struct {
	scores           [shareAmong][len(shareLosses)]float64
	packets, arrived uint64  // since the scores began
	usual            float64 // of them, those that would have been reported as of others
	blamed           bool    // it has an open finding
	by               uint8   // the comparison that shows it
	well             float64
}

func codeContrast(c *subject.Coder, v *contrast) {
	for i := range v.scores {
		for k := range v.scores[i] {
			c.Float(&v.scores[i][k])
		}
	}
	subject.Number(c, &v.packets)
	subject.Number(c, &v.arrived)
	c.Check("packets that arrive", v.arrived <= v.packets)
	c.Float(&v.usual)
	c.Flag(&v.blamed)
	subject.Number(c, &v.by)
	c.Check("comparison", v.by < shareAmong)
	c.Float(&v.well)
}

// score returns the greatest score of a comparison.
func (v *contrast) score(among int) float64 { return slices.Max(v.scores[among][:]) }

// lost is the share of the packets that vanished.
func (v *contrast) lost() float64 { return max(0, 1-float64(v.arrived)/max(v.usual, 1)) }

// sharedFlow is a flow of the window to a last switch with an open end.
type sharedFlow struct {
	flow              decode.FlowKey
	path              []inference.HopKey
	among             int // number of the end
	packets, reported uint64
	since             arrivedCount // the end was found
	explained         bool         // it passes another culprit
}

// arrived counts packets, and those that were reported.
type arrivedCount struct{ packets, reported uint64 }

func (a *arrivedCount) add(packets, reported uint64) {
	a.packets += packets
	a.reported += reported
}

func (a arrivedCount) without(o arrivedCount) arrivedCount {
	return arrivedCount{a.packets - o.packets, a.reported - o.reported}
}

func (a arrivedCount) share() float64 { return float64(a.reported) / float64(max(a.packets, 1)) }

// openEnd returns the narrowest open end behind the last switch of a way. Where all last switches report the same share,
// what enters at first switches may have been found in their place: then it is all that leaves at the last one.
func (x *Silent) openEnd(flow decode.FlowKey, path []inference.HopKey) (last end, ok bool) {
	for _, e := range endsOf(flow, path) {
		if e.scope == lastEnd {
			last = e
		}
		if x.culprits.Index[culprit{end: e}] == nil {
			continue
		}
		if e.scope == firstEnd || e.scope == sentEnd {
			return last, true
		}
		return e, true
	}
	return end{}, false
}

// share notes a flow of the window whose last switch has an open end.
func (x *Silent) share(of *silentFlow, l *inference.FlowLoss) {
	e, open := x.openEnd(l.Flow, l.Path)
	if !open {
		of.shared = arrivedCount{}
		return
	}
	f := sharedFlow{flow: l.Flow, path: l.Path, packets: l.Packets, reported: l.Packets - l.Lost}
	known := of.shared.reported > 0
	of.shared.add(f.packets, f.reported)
	if !known { // a switch that reports some flows only does not report it, or not yet
		return
	}
	f.since = of.shared
	if f.among = slices.Index(x.sharing, e); f.among < 0 {
		f.among = len(x.sharing)
		x.sharing = append(x.sharing, e)
	}
	for _, s := range x.culprits.List {
		if k := &s.Key; k.end.scope == noEnd && k.explains(l.Flow, l.Path) {
			f.explained = true
		}
	}
	x.shared = append(x.shared, f)
}

// places returns the links and the ends that can lose packets of a flow ahead of what its last switch reports.
func (f *sharedFlow) places() (out []culprit) {
	for i := 1; i < len(f.path); i++ {
		out = append(out, culprit{from: f.path[i-1].Node, to: f.path[i].Node})
	}
	for _, e := range endsOf(f.flow, f.path) {
		out = append(out, culprit{end: e})
	}
	return out
}

// compareShares compares the flows of the window to last switches with open ends.
func (x *Silent) compareShares() {
	defer func() { x.shared, x.sharing = x.shared[:0], x.sharing[:0] }()
	x.contrasts.ForEachAbsent(func(_ culprit, _ *contrast, windows int) bool { return windows > silentForget })
	if len(x.shared) == 0 {
		return
	}
	all := make([]arrivedCount, len(x.sharing))
	var sum arrivedCount
	over := map[culprit][]arrivedCount{}
	links := 0
	for i := range x.shared {
		f := &x.shared[i]
		if !f.explained {
			all[f.among].add(f.packets, f.reported)
			sum.add(f.packets, f.reported)
		}
		for _, k := range f.places() {
			v := x.contrasts.Index[k]
			if f.explained && (v == nil || !v.State.blamed) {
				continue
			}
			if over[k] == nil {
				over[k] = make([]arrivedCount, len(x.sharing))
				if k.end.scope == noEnd {
					links++
				}
			}
			over[k][f.among].add(f.packets, f.reported)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(over), culprit.compare) {
		if v := x.contrasts.Observe(k, x.contrasts.Cfg.MaxHops); v != nil {
			v.add(over[k], all, sum)
		}
	}
	x.contrasts.Order()
	limit := math.Log(shareAmong * float64(len(shareLosses)*max(links, 1)) / shareAlarm)
	x.endContrasts()
	x.publishContrast(limit)
}

// add takes what is reported in a window of the packets over a place, of each end, beside the sums of all packets. Of a
// link with a finding, the sums are those of the others.
func (v *contrast) add(over, all []arrivedCount, sum arrivedCount) {
	var llr [shareAmong][len(shareLosses)]float64
	var of arrivedCount
	usual := 0.0
	rest := func(a, o arrivedCount) arrivedCount {
		if v.blamed {
			return a
		}
		return a.without(o)
	}
	for _, o := range over {
		of.add(o.packets, o.reported)
	}
	others := rest(sum, of)
	for i, o := range over {
		r := rest(all[i], o)
		fewer(&llr[amongOne], o, r)
		if r.packets == 0 {
			r = others
		}
		usual += float64(o.packets) * r.share()
	}
	fewer(&llr[amongAll], of, others)
	if v.blamed {
		k := 0
		for k < len(shareLosses)-1 && shareLosses[k+1] <= v.lost() {
			k++
		}
		v.well = max(0, v.well-llr[v.by][k])
		return
	}
	for i := range v.scores {
		for k := range v.scores[i] {
			v.scores[i][k] = max(0, v.scores[i][k]+llr[i][k])
		}
	}
	if v.score(amongOne) == 0 && v.score(amongAll) == 0 {
		v.packets, v.arrived, v.usual = 0, 0, 0
		return
	}
	v.packets += of.packets
	v.arrived += of.reported
	v.usual += usual
}

// fewer adds the logarithms of how much more likely the reported packets over a place are if it loses some than if it
// loses none, given the sums over it and all others.
func fewer(llr *[len(shareLosses)]float64, over, rest arrivedCount) {
	n, others := float64(over.packets), float64(rest.packets)
	arrived, restArrived := float64(over.reported), float64(rest.reported)
	if scale := shareTerms / min(n, arrived+restArrived); scale < 1 {
		n, others = math.Floor(n*scale), math.Floor(others*scale)
		arrived, restArrived = math.Floor(arrived*scale), math.Floor(restArrived*scale)
	}
	reported := arrived + restArrived
	if n == 0 || others == 0 || reported == 0 || reported == n+others {
		return
	}
	share := reported / (n + others)
	var logOdds [1 + len(shareLosses)]float64 // the first one is 0: nothing is lost
	for k, r := range shareLosses {
		logOdds[k+1] = math.Log((1 - r) * (1 - share) / (1 - share*(1-r)))
	}
	// The weights of all numbers, by their ratios, from the least number on; each with its greatest one taken out.
	least, most := max(0, reported-others), min(n, reported)
	var weight, top [1 + len(shareLosses)]float64
	sums := [1 + len(shareLosses)]float64{}
	for k := range sums {
		sums[k] = 1
	}
	for i := least; i < most; i++ {
		ratio := math.Log((n - i) * (reported - i) / ((i + 1) * (others - reported + i + 1)))
		for k := range weight {
			weight[k] += ratio + logOdds[k]
			if weight[k] > top[k] {
				sums[k] = sums[k]*math.Exp(top[k]-weight[k]) + 1
				top[k] = weight[k]
			} else {
				sums[k] += math.Exp(weight[k] - top[k])
			}
		}
	}
	for k := range llr {
		llr[k] += (arrived-least)*logOdds[k+1] - top[k+1] - math.Log(sums[k+1]) + top[0] + math.Log(sums[0])
	}
}

// endContrasts ends findings of links of which as many packets are reported again as of others.
func (x *Silent) endContrasts() {
	for _, s := range x.contrasts.List {
		v := &s.State
		c := x.culprits.Index[s.Key]
		switch {
		case v.blamed && c == nil:
			*v = contrast{}
		case v.blamed && v.well >= shareWell:
			x.culprits.End(&c.State.finding, fmt.Sprintf("as many packets from node %d to node %d are reported as of others", s.Key.from, s.Key.to))
			x.drop(s.Key)
			*v = contrast{}
		}
	}
}

// publishContrast blames the link of the greatest score beyond the limit. Where another place that flows over the link
// pass is nearly as likely, it waits for more evidence.
func (x *Silent) publishContrast(limit float64) {
	var best *subject.Entry[culprit, contrast]
	most, by := 0.0, uint8(0)
	for a := range shareAmong {
		for _, s := range x.contrasts.List {
			score := s.State.score(a)
			if s.State.blamed || s.Key.end.scope != noEnd || x.culprits.Index[s.Key] != nil || score <= max(most, limit) {
				continue
			}
			if score > limit*x.scatter(s.Key, a) && !x.rivalled(s.Key, a, score) {
				best, most, by = s, score, uint8(a)
			}
		}
	}
	if best == nil {
		return
	}
	v, k := &best.State, best.Key
	state := x.culprits.Observe(k, x.culprits.Cfg.MaxFlows)
	if state == nil {
		x.culprits.Unlisted++
		return
	}
	state.packets, state.total = v.packets, v.packets-v.arrived
	lost := v.lost()
	x.culprits.Publish(&state.finding, inference.Finding{
		Kind: inference.PacketLoss, Severity: inference.Warning, Element: inference.ElementOfLink(k.from, k.to), Node: k.from,
		Value: lost, Baseline: x.flows.Cfg.SilentLoss, Statistic: "loss",
		Text: fmt.Sprintf("the last switches report %d of %d packets from node %d to node %d, and %.0f if it were the share of others to them: "+
			"some %s vanished there, beside what these switches do not report", v.arrived, v.packets, k.from, k.to, v.usual, inference.Percent(lost, 2)),
	})
	for _, s := range x.contrasts.List { // what the link explains is no evidence of others
		if !s.State.blamed {
			s.State.scores = [shareAmong][len(shareLosses)]float64{}
		}
	}
	v.blamed, v.by = true, by
}

// rivalled reports whether another place that flows over a link pass is nearly as likely, by the same comparison.
func (x *Silent) rivalled(k culprit, among int, score float64) bool {
	for i := range x.shared {
		f := &x.shared[i]
		if !k.explains(f.flow, f.path) {
			continue
		}
		for _, o := range f.places() {
			if v := x.contrasts.Index[o]; o != k && v != nil && !v.State.blamed && v.State.score(among) > score-shareOthers {
				return true
			}
		}
	}
	return false
}

// scatter is by how much more than chance lets them the flows of a window differ since their ends were found: those over
// a link among each other, and the others to the same end, or to all ends. It is 1 where they do not.
func (x *Silent) scatter(k culprit, among int) float64 {
	type group struct {
		end  int
		over bool
	}
	groupOf := func(f *sharedFlow) group {
		if among == amongAll {
			return group{0, k.explains(f.flow, f.path)}
		}
		return group{f.among, k.explains(f.flow, f.path)}
	}
	sums := map[group]arrivedCount{}
	for i := range x.shared {
		if f := &x.shared[i]; !f.explained {
			a := sums[groupOf(f)]
			a.add(f.since.packets, f.since.reported)
			sums[groupOf(f)] = a
		}
	}
	square, free := 0.0, -float64(len(sums))
	for i := range x.shared {
		f := &x.shared[i]
		if f.explained {
			continue
		}
		p := sums[groupOf(f)].share()
		if variance := float64(f.since.packets) * p * (1 - p); variance > 0 {
			d := float64(f.since.reported) - float64(f.since.packets)*p
			square += d * d / variance
			free++
		}
	}
	if free < 1 {
		return 1
	}
	return max(1, square/free)
}
