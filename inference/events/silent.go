package events

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
)

// SilentConfig are the settings of the detector of packets that vanish.
type SilentConfig struct {
	SilentLoss float64 `yaml:"silent_loss" doc:"Share of the packets of a flow that may vanish between the first switch and the last one. A finding needs evidence that more do, such as chance gives once in a million windows." range:"0.0000001..0.1"`
}

var defaultSilentConfig = SilentConfig{SilentLoss: 2e-5}

const (
	// Losses are looked at over the last window and over the last 1 to 2, 2 to 4, ... 256 to 512: a strong loss is found soon, and a
	// weak one at all. Each of these times ends now and is looked at in every window in which something was lost, so that
	// nothing waits for the end of a block.
	silentScales = 10
	// Chance of a false culprit in a fit: of all in a window, whatever they share, less than once in a million windows.
	silentAlarm  = 1e-6 / silentScales
	silentBlocks = silentScales - 1 // that are counted: half of such a time
	// A culprit that others explain nearly as well waits for more evidence, until a block of this scale ends.
	silentSure, silentPatience = .95, 6
	// A culprit is well again when so many losses should have come and none did.
	silentCalm = 12
	// Windows without packets after which a culprit is forgotten, and flows.
	silentForget = 60
)

// silent finds links and flows whose packets vanish without a report, by what the first and the last switch report. Windows
// in which the last switch lost reports, began to count anew or said nothing are left out for its flows, and those after
// them as long as such packets are settled.
type silent struct {
	flows    *lifecycle[decode.FlowKey, silentFlow]
	troubled *lifecycle[uint32, all] // nodes whose reports are not complete, until they are again
	talkers  *lifecycle[uint32, all] // nodes that reported
	culprits *lifecycle[culprit, vanished]

	samples     []loss.Sample // of a fit, with the flows that they are of
	keys        []decode.FlowKey
	sampleFlows []*silentFlow
	index       map[link]int32
	links       []link
	memory      []int32
	length      int64 // of the window
}

// link is one direction of a link.
type link struct{ from, to inference.HopKey }

// culprit is a direction of a link, or a flow.
type culprit struct {
	from, to uint32
	flow     decode.FlowKey
}

func (k culprit) compare(o culprit) int {
	return cmp.Or(cmp.Compare(k.from, o.from), cmp.Compare(k.to, o.to), k.flow.Compare(&o.flow))
}

func (c *coder) culprit(k *culprit) {
	number(c, &k.from)
	number(c, &k.to)
	c.flow(&k.flow)
}

// silentFlow is what is remembered of a flow.
type silentFlow struct {
	path        []inference.HopKey
	now, before [silentBlocks]compared // in the present block of 1, 2, 4, ... windows, and in the one before it
}

// compared is how many packets were compared, and how many of them are lost.
type compared struct{ packets, lost uint64 }

func (c *coder) compared(v *compared) {
	number(c, &v.packets)
	number(c, &v.lost)
	c.Check("packets lost", v.lost <= v.packets)
}

// over gives what was compared in the time of a scale.
func (f *silentFlow) over(scale int) compared {
	if scale == 0 {
		return f.now[0]
	}
	a, b := f.before[scale-1], f.now[scale-1]
	return compared{a.packets + b.packets, a.lost + b.lost}
}

func (c *coder) silentFlow(f *silentFlow) {
	list(c, &f.path, c.hop)
	for k := range silentBlocks {
		c.compared(&f.now[k])
		c.compared(&f.before[k])
	}
}

// vanished is what is remembered of a culprit.
type vanished struct {
	finding *inference.Finding
	packets uint64 // that came by
	total   uint64 // of them, those that vanished
	calm    uint64 // packets since one vanished
}

func (c *coder) vanished(v *vanished) {
	c.finding(&v.finding)
	c.Check("finding of a culprit", v.finding != nil)
	number(c, &v.packets)
	number(c, &v.total)
	number(c, &v.calm)
}

func newSilent(j *journal) *silent {
	node, nothing := func(c *coder, n *uint32) { number(c, n) }, func(*coder, *all) {}
	return &silent{
		flows:    newLifecycle(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*coder).flow, (*coder).silentFlow),
		troubled: newLifecycle(j, cmp.Compare[uint32], node, nothing),
		talkers:  newLifecycle(j, cmp.Compare[uint32], node, nothing),
		culprits: newLifecycle(j, culprit.compare, (*coder).culprit, (*coder).vanished),
		index:    map[link]int32{},
	}
}

func (x *silent) step(w *inference.Window) {
	x.length = w.End - w.Start
	x.judgeReporters(w)
	lost := false
	for i := range w.Losses {
		lost = x.count(&w.Losses[i]) || lost
	}
	for scale := range silentScales {
		if ends := x.ends(scale); lost || ends { // what was not enough is none the more for packets that arrived
			x.fit(scale, ends && scale >= silentPatience)
		}
	}
	for k := range silentBlocks {
		if x.ends(k + 1) {
			x.turn(k)
		}
	}
	x.flows.forEachAbsent(func(_ decode.FlowKey, _ *silentFlow, windows int) bool { return windows > silentForget })
	x.culprits.forEachAbsent(func(k culprit, v *vanished, windows int) bool {
		if windows <= silentForget {
			return false
		}
		x.culprits.end(&v.finding, "no packets came by for a while")
		return true
	})
}

// ends reports whether a block ends with the window, of which two make the time of a scale.
func (x *silent) ends(scale int) bool {
	return scale > 0 && x.flows.journal.windows%(1<<(scale-1)) == 0
}

// judgeReporters notes whose reports of this window are not complete.
func (x *silent) judgeReporters(w *inference.Window) {
	most := x.flows.cfg.MaxHops
	for i := range w.Exporters {
		e := &w.Exporters[i]
		if e.Reports > 0 {
			x.talkers.observe(e.Node, most)
		}
		if e.Lost != 0 || e.Provisional > 0 || e.Restarts > 0 || e.Down > 0 || e.Malformed > 0 {
			x.troubled.observe(e.Node, most)
		}
	}
	for i := range w.Unheard {
		x.troubled.observe(w.Unheard[i].Node, most)
	}
	x.talkers.forEachAbsent(func(node uint32, _ *all, windows int) bool {
		x.troubled.observe(node, most)
		return windows > silentForget
	})
	// A packet whose report was lost is settled later.
	hold := 2 + int(2*loss.Settling/max(x.length, 1))
	x.troubled.forEachAbsent(func(_ uint32, _ *all, windows int) bool { return windows > min(hold, 1000) })
}

// complete reports whether the reports of a flow's last switch can be relied on.
func (x *silent) complete(path []inference.HopKey) bool {
	if len(path) == 0 {
		return len(x.troubled.list) == 0
	}
	return x.troubled.index[path[len(path)-1].Node] == nil
}

// count adds what a flow lost in the window, and reports whether it lost anything.
func (x *silent) count(l *inference.FlowLoss) (lost bool) {
	if !x.complete(l.Path) || l.Lost > l.Packets {
		return false
	}
	f := x.flows.observe(l.Flow, x.flows.cfg.MaxHops)
	if f == nil {
		return false
	}
	if !samePath(f.path, l.Path) { // what was lost meanwhile can have been on either
		*f = silentFlow{path: append([]inference.HopKey(nil), l.Path...)}
		return false
	}
	for k := range f.now {
		f.now[k].packets += l.Packets
		f.now[k].lost += l.Lost
	}
	for i := 1; i < len(l.Path); i++ {
		x.observeCulprit(culprit{from: l.Path[i-1].Node, to: l.Path[i].Node}, l)
	}
	x.observeCulprit(culprit{flow: l.Flow}, l)
	return l.Lost > 0
}

func samePath(a, b []inference.HopKey) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Node != b[i].Node {
			return false
		}
	}
	return true
}

// observeCulprit counts the packets of a flow that passed a culprit, and ends its finding once no more are lost there.
func (x *silent) observeCulprit(k culprit, l *inference.FlowLoss) {
	s := x.culprits.index[k]
	if s == nil {
		return
	}
	v := &s.state
	s.last = x.culprits.windows
	v.packets += l.Packets
	v.total += l.Lost
	if l.Lost > 0 { // here or elsewhere on the way of the flow
		v.calm /= 2
	} else {
		v.calm += l.Packets
	}
	if float64(v.calm)*float64(v.total) >= silentCalm*float64(v.packets-v.calm) {
		f := v.finding
		f.Value = 0
		x.culprits.end(&v.finding, fmt.Sprintf("%s lost none of %s more, after %s", f.Element, plural(v.calm, "packet"), plural(v.total, "lost packet")))
		x.forget(k)
		delete(x.culprits.index, k)
		for i, c := range x.culprits.list {
			if c == s {
				x.culprits.list = append(x.culprits.list[:i], x.culprits.list[i+1:]...)
				break
			}
		}
	}
}

// forget lets the evidence go that flows of a culprit have.
func (x *silent) forget(k culprit) {
	for _, s := range x.flows.list {
		if k.explains(s.key, s.state.path) {
			s.state.now, s.state.before = [silentBlocks]compared{}, [silentBlocks]compared{}
		}
	}
}

func (k culprit) explains(flow decode.FlowKey, path []inference.HopKey) bool {
	if k.from == 0 && k.to == 0 {
		return k.flow == flow
	}
	for i := 1; i < len(path); i++ {
		if path[i-1].Node == k.from && path[i].Node == k.to {
			return true
		}
	}
	return false
}

// turn begins the next block.
func (x *silent) turn(k int) {
	for _, s := range x.flows.list {
		s.state.before[k], s.state.now[k] = s.state.now[k], compared{}
	}
}

// fit looks at the time of a scale that ends now, and tells of culprits that others explain nearly as well if it is to.
func (x *silent) fit(scale int, unsure bool) {
	lost := uint64(0)
	x.flows.order()
	for _, s := range x.flows.list {
		lost += s.state.over(scale).lost
	}
	if lost == 0 {
		return
	}
	x.sample(scale)
	for _, c := range loss.FitWithin(x.samples, len(x.links), x.flows.cfg.SilentLoss, silentAlarm) {
		if c.Confidence >= silentSure || unsure {
			x.found(c, scale)
		}
	}
}

// sample lists the flows with their links.
func (x *silent) sample(scale int) {
	clear(x.index)
	x.links, x.samples, x.keys, x.sampleFlows, x.memory = x.links[:0], x.samples[:0], x.keys[:0], x.sampleFlows[:0], x.memory[:0]
	for _, s := range x.flows.list {
		f := &s.state
		sum := f.over(scale)
		if sum.packets == 0 {
			continue
		}
		from := len(x.memory)
		for i := 1; i < len(f.path); i++ {
			l := link{f.path[i-1], f.path[i]}
			l.from.EgressIf, l.to.EgressIf = 0, 0 // those who tell them and those who do not use the same link
			at, known := x.index[l]
			if !known {
				at = int32(len(x.links))
				x.index[l] = at
				x.links = append(x.links, l)
			}
			x.memory = append(x.memory, at)
		}
		x.samples = append(x.samples, loss.Sample{Links: x.memory[from:len(x.memory):len(x.memory)], Packets: sum.packets, Lost: sum.lost})
		x.keys = append(x.keys, s.key)
		x.sampleFlows = append(x.sampleFlows, f)
	}
}

// found tells of a culprit, and takes its evidence out of the larger blocks.
func (x *silent) found(c loss.Culprit, scale int) {
	var k culprit
	f := inference.Finding{Kind: inference.PacketLoss, Severity: inference.Warning, Value: c.Ratio, Baseline: x.flows.cfg.SilentLoss, Statistic: "loss"}
	over := (time.Duration(x.length) << scale).Round(100 * time.Millisecond)
	if c.Link >= 0 {
		l := x.links[c.Link]
		k = culprit{from: l.from.Node, to: l.to.Node}
		f.Element, f.Node = inference.ElementOfLink(k.from, k.to), k.from
		f.Text = fmt.Sprintf("%d of %d packets vanished from node %d to node %d within %v (%s), and no switch says so",
			c.Lost, c.Packets, k.from, k.to, over, inference.Percent(c.Ratio, 2))
		if c.Confidence < silentSure {
			f.Text += fmt.Sprintf("; another link explains it nearly as well (confidence %.2f)", c.Confidence)
		}
	} else {
		k = culprit{flow: x.keys[c.Flow]}
		f.Kind, f.Severity = inference.BlackHole, inference.Critical
		f.Element, f.Flow = inference.ElementOfFlow(k.flow), k.flow
		f.Text = fmt.Sprintf("%d of %d packets of %s vanished within %v on the way %s, which others pass, and no switch says so",
			c.Lost, c.Packets, k.flow, over, inference.HopPath(x.sampleFlows[c.Flow].path))
	}
	if c.Link >= 0 && x.culprits.index[k] == nil && x.explainedByCulprits(c.Link) {
		return
	}
	if c.Ratio >= silentSevere {
		f.Severity = inference.Critical
	}
	v := x.culprits.observe(k, x.culprits.cfg.MaxFlows)
	if v == nil {
		return
	}
	if v.finding == nil {
		v.packets, v.total = c.Packets, c.Lost
	}
	v.calm = 0
	x.culprits.publish(&v.finding, f)
	if c.Link < 0 { // where there are fewer packets now
		x.culprits.moved[v.finding.ID] = slices.Clone(x.sampleFlows[c.Flow].path)
	}
	x.forget(k)
}

// explainedByCulprits reports whether open culprits explain the losses for which a link would be blamed: at least three of four packets that
// were lost on ways by the link passed them, too. Little is known of a link and its neighbour where the same flows cross both, and
// earlier samples of a culprit are forgotten once its finding starts.
func (x *silent) explainedByCulprits(l int32) bool {
	lost, theirs := uint64(0), uint64(0)
	for i := range x.samples {
		s := &x.samples[i]
		if s.Lost == 0 || !slices.Contains(s.Links, l) {
			continue
		}
		lost += s.Lost
		if slices.ContainsFunc(x.culprits.list, func(c *subject[culprit, vanished]) bool { return c.key.explains(x.keys[i], x.sampleFlows[i].path) }) {
			theirs += s.Lost
		}
	}
	return 4*theirs >= 3*lost
}

// silentSevere is the ratio of losses from which a link is critical.
const silentSevere = .05
