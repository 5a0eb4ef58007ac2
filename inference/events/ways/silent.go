package ways

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

const (
	// Losses are summed over the last window and over the last 1 to 2, 2 to 4, ... 256 to 512 windows. A strong loss is
	// found soon, and a weak one at all. Each of these periods ends now and is judged in every window with a loss, so
	// nothing waits for the end of a block.
	silentScales = 10
	// Chance of a false culprit in a fit: of all in a window, whatever they share, less than once in a million windows.
	silentAlarm  = 1e-6 / silentScales
	silentBlocks = silentScales - 1 // that are counted: half of such a time
	// A culprit that others explain nearly as well waits for more evidence, until a block of this scale ends.
	silentSure, silentPatience = .95, 6
	// A culprit is well again when so many losses should have come and none did.
	silentCalm = 12
	// Ports lose packets, and reports come late, by bursts: windows without any such that an end is well again.
	silentBursts = 12
	// Windows without packets after which a culprit is forgotten, and flows.
	silentForget = 60
)

// Silent finds links and flows whose packets vanish without a report, by comparing reports of the first and the last
// switch. For the flows of a last switch, windows are left out in which it lost reports, restarted its count or was
// silent. So are those after them, as long as such packets are settled.
type Silent struct {
	flows    *subject.Table[decode.FlowKey, silentFlow]
	troubled *subject.Table[uint64, subject.All] // nodes whose reports are not complete, until they are again, by NodeNumber; 0 is exporters whose reports name none
	talkers  *subject.Table[uint64, subject.All] // nodes that reported, in the same way
	culprits *subject.Table[culprit, vanished]

	contrasts *Contrasts
	shared    []sharedFlow // of the window
	sharing   []end        // their open ends

	samples     []loss.Sample // of a fit, with the flows that they are of
	keys        []decode.FlowKey
	sampleFlows []*silentFlow
	ends        suspects[end]  // candidates of a fit, by number
	links       suspects[link] // behind the ends
	bundles     map[link]uint32
	memory      []int32
	arrivals    arrivals
	odd         map[uint32]*odd // of the window, by last node
	length      int64           // of the window
}

// link is one direction of a link.
type link struct{ from, to inference.HopKey }

// culprit is a direction of a link, an end of ways, or a flow.
type culprit struct {
	from, to uint32
	end      end
	flow     decode.FlowKey
}

func (k culprit) compare(o culprit) int {
	return cmp.Or(cmp.Compare(k.from, o.from), cmp.Compare(k.to, o.to), k.end.compare(o.end), k.flow.Compare(&o.flow))
}

func codeCulprit(c *subject.Coder, k *culprit) {
	subject.Number(c, &k.from)
	subject.Number(c, &k.to)
	if c.Version >= 4 {
		codeEnd(c, &k.end)
	}
	c.Flow(&k.flow)
}

// silentFlow is the state of a flow.
type silentFlow struct {
	path        []inference.HopKey
	odd         uint64                 // windows in a row in which its packets were not recognised
	thin        float64                // packets that arrive for each that is compared; 0 while it is not known
	shared      arrivedCount           // since its last switch has an open end
	window      compared               // the last one with packets
	now, before [silentBlocks]compared // in the present block of 1, 2, 4, ... windows, and in the one before it
}

// compared is how many packets were compared, and how many of them are lost.
type compared struct{ packets, lost uint64 }

func codeCompared(c *subject.Coder, v *compared) {
	subject.Number(c, &v.packets)
	subject.Number(c, &v.lost)
	c.Check("packets lost", v.lost <= v.packets)
}

func (v *compared) add(o compared) {
	v.packets += o.packets
	v.lost += o.lost
}

// over returns the counts of compared packets in the time of a scale.
func (f *silentFlow) over(scale int) compared {
	if scale == 0 {
		return f.now[0]
	}
	a, b := f.before[scale-1], f.now[scale-1]
	return compared{a.packets + b.packets, a.lost + b.lost}
}

func codeSilentFlow(c *subject.Coder, f *silentFlow) {
	subject.List(c, &f.path, c.Hop)
	if c.Version >= 6 {
		c.Float(&f.thin)
		subject.Number(c, &f.odd)
		c.Check("packets that are compared", f.thin >= 0)
	}
	if c.Version >= 15 {
		subject.Number(c, &f.shared.packets)
		subject.Number(c, &f.shared.reported)
		c.Check("packets that arrive", f.shared.reported <= f.shared.packets)
	}
	for k := range silentBlocks {
		codeCompared(c, &f.now[k])
		codeCompared(c, &f.before[k])
	}
}

// vanished is the state of a culprit.
type vanished struct {
	finding *inference.Finding
	packets uint64 // that came by
	total   uint64 // of them, those that vanished
	calm    uint64 // packets since one vanished
}

// observe counts the packets of a flow that passed the culprit, and reports whether it is well: none was lost while
// silentCalm losses should have come.
func (v *vanished) observe(l *inference.FlowLoss) (well bool) {
	v.packets += l.Packets
	v.total += l.Lost
	if l.Lost > 0 { // here or elsewhere on the way of the flow
		v.calm /= 2
	} else {
		v.calm += l.Packets
	}
	return float64(v.calm)*float64(v.total) >= silentCalm*float64(v.packets-v.calm)
}

func codeVanished(c *subject.Coder, v *vanished) {
	c.Finding(&v.finding)
	c.Check("finding of a culprit", v.finding != nil)
	subject.Number(c, &v.packets)
	subject.Number(c, &v.total)
	subject.Number(c, &v.calm)
}

func codeNodeNumber(c *subject.Coder, n *uint64) {
	subject.Number(c, n)
	c.Check("node", *n <= inference.NodeNumber(0))
}

// NewSilent makes the detector.
func NewSilent(j *subject.Journal) *Silent {
	node, nothing := codeNodeNumber, func(*subject.Coder, *subject.All) {}
	return &Silent{
		flows:    subject.NewTable(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*subject.Coder).Flow, codeSilentFlow),
		troubled: subject.NewTable(j, cmp.Compare[uint64], node, nothing),
		talkers:  subject.NewTable(j, cmp.Compare[uint64], node, nothing),
		culprits: subject.NewTable(j, culprit.compare, codeCulprit, codeVanished),

		contrasts: subject.NewTable(j, culprit.compare, codeCulprit, codeContrast),

		odd: map[uint32]*odd{},
	}
}

// Step takes the next window.
func (x *Silent) Step(w *inference.Window) {
	x.length = w.End - w.Start
	x.judgeReporters(w)
	x.arrivals.read(w)
	lost := false
	for i := range w.Losses {
		l := &w.Losses[i]
		if l.OfProbes() { // are those of another detector
			continue
		}
		if !x.complete(l.Path) { // what its last switch did not report was lost on the way, or its report was
			x.suspend(l.Path)
			continue
		}
		if x.unrecognised(l) {
			continue
		}
		lost = x.count(l) || lost
	}
	x.publishUnrecognised()
	x.compareShares()
	for scale := range silentScales {
		if ends := x.blockEnds(scale); lost || ends { // what was not enough is none the more for packets that arrived
			x.fit(scale, ends && scale >= silentPatience)
		}
	}
	for k := range silentBlocks {
		if x.blockEnds(k + 1) {
			x.turn(k)
		}
	}
	x.flows.ForEachAbsent(func(_ decode.FlowKey, _ *silentFlow, windows int) bool { return windows > silentForget })
	x.culprits.ForEachAbsent(func(k culprit, v *vanished, windows int) bool {
		if k.end.scope == otherEnd && windows > silentBursts {
			x.culprits.End(&v.finding, fmt.Sprintf("packets to node %d are recognised again", k.end.node))
			return true
		}
		if windows <= silentForget {
			return false
		}
		x.culprits.End(&v.finding, "no packets came by for a while")
		return true
	})
}

// blockEnds reports whether a block ends with the window, of which two make the time of a scale.
func (x *Silent) blockEnds(scale int) bool {
	return scale > 0 && x.flows.Journal.Windows%(1<<(scale-1)) == 0
}

// judgeReporters notes whose reports of this window are not complete.
func (x *Silent) judgeReporters(w *inference.Window) {
	most := x.flows.Cfg.MaxHops
	for i := range w.Exporters {
		e := &w.Exporters[i]
		if e.Reports > 0 {
			x.talkers.Observe(e.NodeNumber(), most)
		}
		if e.Lost != 0 || e.Provisional > 0 || e.Restarts > 0 || e.Down > 0 || e.Malformed > 0 {
			x.troubled.Observe(e.NodeNumber(), most)
		}
	}
	for i := range w.Unheard {
		x.troubled.Observe(w.Unheard[i].NodeNumber(), most)
	}
	x.talkers.ForEachAbsent(func(node uint64, _ *subject.All, windows int) bool {
		x.troubled.Observe(node, most)
		return windows > silentForget
	})
	// A packet whose report was lost is settled later.
	hold := 2 + int(2*loss.Settling/max(x.length, 1))
	x.troubled.ForEachAbsent(func(_ uint64, _ *subject.All, windows int) bool { return windows > min(hold, 1000) })
}

// complete reports whether the reports of a flow's last switch can be relied on.
func (x *Silent) complete(path []inference.HopKey) bool {
	if len(path) == 0 {
		return len(x.troubled.List) == 0
	}
	return x.troubled.Index[inference.NodeNumber(path[len(path)-1].Node)] == nil
}

// suspend keeps the finding that packets to a last switch are not recognised while that switch's reports are incomplete.
func (x *Silent) suspend(path []inference.HopKey) {
	if x.unrecognisedAt(path) {
		x.culprits.Index[culprit{end: end{scope: otherEnd, node: path[len(path)-1].Node}}].Last = x.culprits.Windows
	}
}

// count adds what a flow lost in the window, and reports whether it lost anything.
func (x *Silent) count(l *inference.FlowLoss) (lost bool) {
	if l.Lost > l.Packets {
		return false
	}
	f := x.flows.Observe(l.Flow, x.flows.Cfg.MaxHops)
	if f == nil {
		x.flows.Unjudged++
		return false
	}
	if !samePath(f.path, l.Path) { // what was lost meanwhile can have been on either
		*f = silentFlow{path: append([]inference.HopKey(nil), l.Path...)}
		return false
	}
	for i := range f.path {
		if f.path[i] != l.Path[i] { // by which of them what was lost went is not known
			f.path[i].EgressIf = 0
		}
	}
	x.learnThin(f, l)
	f.odd = 0
	f.window = compared{l.Packets, l.Lost}
	for k := range f.now {
		f.now[k].packets += l.Packets
		f.now[k].lost += l.Lost
	}
	for i := 1; i < len(l.Path); i++ {
		x.observeCulprit(culprit{from: l.Path[i-1].Node, to: l.Path[i].Node}, l)
	}
	for _, e := range endsOf(l.Flow, l.Path) {
		x.observeCulprit(culprit{end: e}, l)
	}
	x.observeCulprit(culprit{flow: l.Flow}, l)
	x.share(f, l)
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
func (x *Silent) observeCulprit(k culprit, l *inference.FlowLoss) {
	s := x.culprits.Index[k]
	if s == nil {
		return
	}
	v := &s.State
	s.Last = x.culprits.Windows
	if x.ofPart(k.end, l.Flow, l.Path) { // it loses these, and the end is well if nothing else is lost
		return
	}
	bursts := k.end.scope != noEnd && x.culprits.Now-v.finding.Updated < silentBursts*x.length
	if v.observe(l) && !bursts {
		f := v.finding
		f.Value = 0
		text := fmt.Sprintf("%s lost none of %s more, after %s", f.Element, subject.Plural(v.calm, "packet"), subject.Plural(v.total, "lost packet"))
		if k.end.scope != noEnd {
			text = fmt.Sprintf("none of %s more is missing, after %s%s", subject.Plural(v.calm, "packet"), subject.Plural(v.total, "missing packet"), placesIn(f.Text))
		}
		x.culprits.End(&v.finding, text)
		x.forget(k)
		x.drop(k)
	}
}

// forget lets the evidence go that flows of a culprit have.
func (x *Silent) forget(k culprit) {
	for _, s := range x.flows.List {
		if k.explains(s.Key, s.State.path) {
			s.State.now, s.State.before = [silentBlocks]compared{}, [silentBlocks]compared{}
		}
	}
}

func (k culprit) explains(flow decode.FlowKey, path []inference.HopKey) bool {
	switch {
	case k.end.scope != noEnd:
		return slices.Contains(endsOf(flow, path), k.end)
	case k.from == 0 && k.to == 0:
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
func (x *Silent) turn(k int) {
	for _, s := range x.flows.List {
		s.State.before[k], s.State.now[k] = s.State.now[k], compared{}
	}
}

// fit fits the time of a scale that ends now. It publishes culprits that others explain nearly as well if unsure.
func (x *Silent) fit(scale int, unsure bool) {
	lost := uint64(0)
	x.flows.Order()
	for _, s := range x.flows.List {
		lost += s.State.over(scale).lost
	}
	if lost == 0 {
		return
	}
	x.sample(scale)
	all := loss.FitWithin(x.samples, x.ends.len()+x.links.len(), x.flows.Cfg.SilentLoss, silentAlarm)
	if len(all) == 0 {
		return
	}
	window := x.witnesses(all)
	for _, c := range all {
		x.found(c, all, window, scale, unsure)
	}
}

// sample lists the flows with the ends and the links of their ways. Ends come first, so that of an end and a link that
// the same flows pass it is the end that is found.
func (x *Silent) sample(scale int) {
	x.ends.reset()
	x.links.reset()
	x.samples, x.keys, x.sampleFlows, x.memory = x.samples[:0], x.keys[:0], x.sampleFlows[:0], x.memory[:0]
	for _, s := range x.flows.List {
		if f := &s.State; f.over(scale).packets > 0 {
			for _, e := range endsOf(s.Key, f.path) {
				x.ends.cross(e, int32(len(x.keys)))
			}
			x.keys = append(x.keys, s.Key)
			x.sampleFlows = append(x.sampleFlows, f)
		}
	}
	x.ends.keep(func(at int) bool { return x.ends.list[at].scope != sentEnd || x.leaveByLinks(x.ends.flows[at]) })
	mergeEnds(&x.ends)
	x.findBundles()
	for i, f := range x.sampleFlows {
		from, sum := len(x.memory), f.over(scale)
		for _, e := range endsOf(x.keys[i], f.path) {
			if at, ok := x.ends.place(e); ok {
				x.memory = append(x.memory, at)
			}
		}
		for k := 1; k < len(f.path); k++ {
			l := link{f.path[k-1], f.path[k]}
			egress := l.from.EgressIf
			l.from.EgressIf, l.to.EgressIf = 0, 0 // flows with these and flows without them use the same link
			x.memory = append(x.memory, int32(x.ends.len())+x.links.cross(l, int32(i)))
			if egress != 0 && x.bundles[l] == severalMembers {
				l.from.EgressIf = egress
				x.memory = append(x.memory, int32(x.ends.len())+x.links.cross(l, int32(i)))
			}
		}
		x.samples = append(x.samples, loss.Sample{Links: x.memory[from:len(x.memory):len(x.memory)], Packets: sum.packets, Lost: sum.lost})
	}
}

// leaveByLinks reports whether flows leave their first node by more than one link. Otherwise that link explains all
// their losses, and a sender is seldom the cause.
func (x *Silent) leaveByLinks(flows []int32) bool {
	first := x.sampleFlows[flows[0]].path
	return slices.ContainsFunc(flows, func(i int32) bool {
		p := x.sampleFlows[i].path
		return len(p) > 1 && len(first) > 1 && (p[1].Node != first[1].Node || p[0].EgressIf != first[0].EgressIf)
	})
}

// severalMembers stands for the interfaces of a link of which flows use more than one.
const severalMembers = math.MaxUint32

// findBundles notes the one interface by which the flows of a fit leave for a neighbour, or that there are several.
// Each of several is then a candidate, since one member of a bundle can lose packets alone.
func (x *Silent) findBundles() {
	if x.bundles == nil {
		x.bundles = map[link]uint32{}
	}
	clear(x.bundles)
	for _, f := range x.sampleFlows {
		for k := 1; k < len(f.path); k++ {
			l := link{inference.HopKey{Node: f.path[k-1].Node}, inference.HopKey{Node: f.path[k].Node}}
			switch egress := f.path[k-1].EgressIf; {
			case egress == 0 || x.bundles[l] == egress:
			case x.bundles[l] == 0:
				x.bundles[l] = egress
			default:
				x.bundles[l] = severalMembers
			}
		}
	}
}

// found publishes a culprit, and takes its evidence out of the larger blocks. One that others explain nearly as well is
// published if unsure. No link is accused of losses that an end of the ways over it explains nearly as well.
func (x *Silent) found(c loss.Culprit, all []loss.Culprit, window []witness, scale int, unsure bool) {
	at, confidence := c.Link, c.Confidence
	e := x.end(at)
	if e.scope != noEnd {
		confidence = 1 / (1 + x.beside(e, c.Rivals))
	} else if at >= 0 {
		confidence = 1 / (1/confidence - x.sameLink(x.link(at), c.Rivals) - x.senders(c.Rivals))
		if k := x.culpritOf(at); x.culprits.Index[k] == nil && x.contradicted(k) {
			confidence = min(confidence, .5)
		}
	}
	if confidence < silentSure {
		if !unsure || e.scope == sentEnd {
			return
		}
		if o, ok := x.likeliestEnd(c.Rivals); ok && at >= 0 && e.scope == noEnd {
			at, e = o, x.end(o)
		}
	}
	if c.Link >= 0 && (x.explainedByCulprits(at) && x.culprits.Index[x.culpritOf(at)] == nil || x.lostByParts(at)) {
		return
	}
	var by basis
	if e.scope == noEnd {
		if by = x.basisOf(&c, all, window); by == nothing {
			return
		}
	}
	var k culprit
	var f inference.Finding
	over := (time.Duration(x.length) << scale).Round(100 * time.Millisecond)
	switch {
	case c.Link < 0:
		k = culprit{flow: x.keys[c.Flow]}
		f.Kind, f.Severity = inference.BlackHole, inference.Critical
		f.Element, f.Flow, f.Path = inference.ElementOfFlow(k.flow), k.flow, slices.Clone(x.sampleFlows[c.Flow].path)
		f.Text = fmt.Sprintf("%d of %d packets of %s vanished within %v on the way %s, which others pass, and no switch reports a drop",
			c.Lost, c.Packets, k.flow, over, inference.HopPath(x.sampleFlows[c.Flow].path))
	case e.scope != noEnd:
		k = x.culpritOf(at)
		f = x.findingOfEnd(at, &c, over)
	default:
		k = x.culpritOf(at)
		f.Kind, f.Severity = inference.PacketLoss, inference.Warning
		f.Element, f.Node = x.member(k, x.link(at), c.Rivals), k.from
		f.Text = fmt.Sprintf("%d of %d packets vanished from node %d to node %d within %v (%s), and no switch reports a drop",
			c.Lost, c.Packets, k.from, k.to, over, inference.Percent(c.Ratio, 2))
		if confidence < silentSure {
			f.Text += fmt.Sprintf("; another link explains it nearly as well (confidence %.2f)", confidence)
		}
		if c.Ratio >= silentSevere && (x.culprits.Index[k] != nil || len(x.arrivals.flows) == 0) {
			f.Severity = inference.Critical
		}
	}
	switch by {
	case greater:
		f.Severity = inference.Warning
		f.Text += "; their last switches do not report all that arrives, and of others there less is missing"
	case several:
		f.Severity = inference.Warning
		f.Text += "; several flows to the same switch vanish at once, so that it can be one that reports some flows only"
	}
	if e.scope == noEnd && x.conditional(at, c.Flow) {
		f.Severity = inference.Warning
		f.Text += "; whether the packets arrive as others is not known"
	}
	f.Value, f.Baseline, f.Statistic = c.Ratio, x.flows.Cfg.SilentLoss, "loss"
	v := x.culprits.Observe(k, x.culprits.Cfg.MaxFlows)
	if v == nil {
		x.culprits.Unlisted++
		return
	}
	if v.finding == nil {
		v.packets, v.total = c.Packets, c.Lost
	}
	v.calm = 0
	x.culprits.Publish(&v.finding, f)
	if c.Link < 0 { // where there are fewer packets now
		x.culprits.Moved[v.finding.ID] = f.Path
	}
	x.forget(k)
}

// ofPart reports whether packets of a flow pass an open part of an end.
func (x *Silent) ofPart(e end, flow decode.FlowKey, path []inference.HopKey) bool {
	return (e.scope == lastEnd || e.scope == firstEnd) && slices.ContainsFunc(x.culprits.List, func(s *subject.Entry[culprit, vanished]) bool {
		return e.holds(s.Key.end) && s.Key.explains(flow, path)
	})
}

// lostByParts reports whether open parts of an end lose what it would be accused of.
func (x *Silent) lostByParts(candidate int32) bool {
	e, parts, rest := x.end(candidate), false, compared{}
	for i := range x.samples {
		s := &x.samples[i]
		switch {
		case !slices.Contains(s.Links, candidate):
		case x.ofPart(e, x.keys[i], x.sampleFlows[i].path):
			parts = true
		default:
			rest.add(compared{s.Packets, s.Lost})
		}
	}
	return parts && rest.lost < loss.Needed(rest.packets, x.flows.Cfg.SilentLoss, x.ends.len()+x.links.len()+len(x.samples))
}

// drop removes a culprit whose finding has ended.
func (x *Silent) drop(k culprit) {
	delete(x.culprits.Index, k)
	x.culprits.List = slices.DeleteFunc(x.culprits.List, func(s *subject.Entry[culprit, vanished]) bool { return s.Key == k })
}

// memberOdds is how much less likely all members of a bundle have to be than the one of them that is named.
const memberOdds = 3

// member is the link of a culprit, or that one of several between its nodes which alone loses packets. A named member
// stays so, unless another member loses packets as well.
func (x *Silent) member(k culprit, l link, rivals []loss.Rival) inference.Element {
	all := inference.ElementOfLink(k.from, k.to)
	named := all
	if s := x.culprits.Index[k]; s != nil && s.State.finding != nil {
		named = s.State.finding.Element
	}
	whole := link{inference.HopKey{Node: k.from}, inference.HopKey{Node: k.to}}
	if l == whole || slices.ContainsFunc(rivals, func(r loss.Rival) bool {
		return r.Weight*memberOdds > 1 && r.Link >= 0 && x.end(r.Link).scope == noEnd && x.link(r.Link) == whole
	}) {
		return named
	}
	switch one := inference.ElementOfLinkAt(l.from, l.to); named {
	case all, one:
		return one
	}
	return all
}

// sameLink weighs the rivals of a link that are the same link, or other members of it: they are one place.
func (x *Silent) sameLink(l link, rivals []loss.Rival) (sum float64) {
	for _, r := range rivals {
		if r.Link >= 0 && x.end(r.Link).scope == noEnd && x.link(r.Link).from.Node == l.from.Node && x.link(r.Link).to.Node == l.to.Node {
			sum += r.Weight
		}
	}
	return sum
}

// contradicted reports whether another link on the ways of flows that lost packets over a link explains all compared
// packets that are remembered better than it. Of the many periods that are judged, one can make a healthy link likely by
// chance: what came before counts as much. Flows over other culprits count nothing.
func (x *Silent) contradicted(k culprit) bool {
	floor := x.flows.Cfg.SilentLoss
	var own compared
	all := map[link]*compared{}
	var rivals []link
	for _, s := range x.flows.List {
		f := &s.State
		sum := f.over(silentScales - 1)
		if sum.packets == 0 || slices.ContainsFunc(x.culprits.List, func(o *subject.Entry[culprit, vanished]) bool { return o.Key.explains(s.Key, f.path) }) {
			continue
		}
		passes := k.explains(s.Key, f.path)
		if passes {
			own.add(sum)
		}
		for i := 1; i < len(f.path); i++ {
			l := link{inference.HopKey{Node: f.path[i-1].Node}, inference.HopKey{Node: f.path[i].Node}}
			if l.from.Node == k.from && l.to.Node == k.to {
				continue
			}
			if all[l] == nil {
				all[l] = &compared{}
			}
			if all[l].add(sum); passes && sum.lost > 0 && !slices.Contains(rivals, l) {
				rivals = append(rivals, l)
			}
		}
	}
	return slices.ContainsFunc(rivals, func(l link) bool { return all[l].gain(floor) > own.gain(floor)+1e-9 })
}

// gain is by how much the logarithm of the likelihood rises if packets are lost at their own ratio instead of the floor.
func (v compared) gain(floor float64) float64 {
	lost, packets := float64(v.lost), float64(v.packets)
	if lost <= packets*floor {
		return 0
	}
	return lost*math.Log(lost/packets/floor) - (lost - packets*floor)
}

// senders weighs the rivals that are senders. Losses of only one sender on a link seldom come from more than that link.
// So a sender is blamed only where no link explains its losses nearly as well.
func (x *Silent) senders(rivals []loss.Rival) (sum float64) {
	for _, r := range rivals {
		if x.end(r.Link).scope == sentEnd {
			sum += r.Weight
		}
	}
	return sum
}

// explainedByCulprits reports whether open culprits explain the losses for which a link or an end would be blamed. They
// do if at least three of four packets lost on ways over it passed them, too. Little is known of a link and its
// neighbour where the same flows cross both. Earlier samples of a culprit are forgotten once its finding starts. An end
// can lose packets for days: losses of others beside it are judged alone where there are enough of them. An open end
// explains no part of them.
func (x *Silent) explainedByCulprits(candidate int32) bool {
	var all, ends, links compared
	own := x.end(candidate)
	for i := range x.samples {
		s := &x.samples[i]
		if !slices.Contains(s.Links, candidate) {
			continue
		}
		one, end, link := compared{s.Packets, s.Lost}, false, false
		for _, c := range x.culprits.List {
			if c.Key.end.holds(own) {
				continue
			}
			if c.Key.explains(x.keys[i], x.sampleFlows[i].path) {
				end, link = end || c.Key.end.scope != noEnd, link || c.Key.end.scope == noEnd
			}
		}
		all.add(one)
		if end {
			ends.add(one)
		} else if link {
			links.add(one)
		}
	}
	rest := compared{all.packets - ends.packets, all.lost - ends.lost}
	if rest.lost >= loss.Needed(rest.packets, x.flows.Cfg.SilentLoss, x.ends.len()+x.links.len()+len(x.samples)) {
		return 4*links.lost >= 3*rest.lost
	}
	return 4*(ends.lost+links.lost) >= 3*all.lost
}

// silentSevere is the ratio of losses from which a link is critical, once it is found again. In the window in which a
// device begins to write other identifications, as many packets seem to vanish. Those of the next window show that they
// arrive.
const silentSevere = .05
