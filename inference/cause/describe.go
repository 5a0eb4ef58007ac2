package cause

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// byEvidence orders kinds by how well they describe the cause when several are its evidence. Full queues explain
// latencies and drops, and changed paths explain full queues. Missing traffic or reports explain nothing and come last.
// Kinds that are not in it come after these.
var byEvidence = []inference.Kind{
	inference.InventoryError, inference.RoutingLoop, inference.PathChanged, inference.ExporterSilence, inference.ExporterLoss,
	inference.InterfaceErrors, inference.BlackHole, inference.StrangeDigests, inference.HighQueue, inference.InterfaceDiscards, inference.PacketLoss, inference.ProbeCorruption, inference.ProbeLoss, inference.HighLatency, inference.ProbeDelay,
	inference.PacketDrops, inference.HighUtilization, inference.HopSilence, inference.LowUtilization, inference.LowLatency,
	inference.StuckValues,
}

func rank(k inference.Kind) int {
	if i := slices.Index(byEvidence, k); i >= 0 {
		return i
	}
	return len(byEvidence) + int(k)
}

// describe brings the finding of a cause up to date: element, kind, severity and text.
func (c *Cause) describe(g *Grouper, w *Window) {
	f := c.Finding
	slices.SortFunc(c.Kinds, func(a, b Tally) int { return rank(a.Kind) - rank(b.Kind) })
	if g.scene == nil {
		g.look(w, g.Alone)
	}
	c.outlet(g.scene, w.Map)
	f.Element, _ = g.scene.best(c.Fits)
	f.Element = c.member(c.narrowest(g.scene, f.Element), w.Map)
	f.Updated = w.Now
	lead := c.lead()
	f.Kind = lead.Kind
	var counts []string
	total := 0
	for i := range c.Kinds {
		k := &c.Kinds[i]
		total += k.Count
		f.Severity = max(f.Severity, k.Severity)
		counts = append(counts, fmt.Sprintf("%d %s", k.Count, k.Kind))
	}
	l := &lead.Lead
	f.SeenAt, f.Statistic, f.Value, f.Baseline, f.Reason = l.Element, l.Statistic, l.Value, l.Baseline, l.Reason
	explained := fmt.Sprintf("%d findings: %s", total, strings.Join(counts, ", "))
	if len(counts) == 1 {
		explained = counts[0]
	}
	f.Text = fmt.Sprintf("%s explains %s; %s", f.Element, explained, l.Text)
	if p, next, second := g.scene.rival(c.Fits, f.Element, w.Map); second > 0 && p < closeOdds*second {
		f.Text += fmt.Sprintf("; it cannot be distinguished from %s (%.2f to %.2f)", next, p, second)
	}
	f.Node, f.EgressIf, f.Flow, f.Exporter, f.HWID, f.Nameless = 0, 0, decode.FlowKey{}, decode.Addr{}, 0, false
	switch e := f.Element; e.Kind {
	case inference.NodeElement, inference.InterfaceElement:
		f.Node, f.EgressIf = e.Node, e.EgressIf
	case inference.LinkElement:
		f.Node, f.EgressIf = e.Node, e.EgressIf
	case inference.ExporterElement:
		f.Exporter, f.Node, f.HWID, f.Nameless = e.Addr, e.Node, e.HWID, e.Nameless
	case inference.FlowElement:
		f.Flow = e.Flow
	}
}

// lead returns the tally that describes the cause: the first of Kinds, which describe has sorted. An informational
// finding explains nothing that is worse, so that a more severe tally takes its place.
func (c *Cause) lead() *Tally {
	lead := &c.Kinds[0]
	if lead.Severity == inference.Info {
		for i := range c.Kinds {
			if c.Kinds[i].Severity > lead.Severity {
				lead = &c.Kinds[i]
			}
		}
	}
	return lead
}

// Restore sets what follows from Kinds and is no part of the state of the cause's finding.
func (c *Cause) Restore() { c.Finding.SeenAt = c.lead().Lead.Element }

// outlet makes the interface of a node that alone has a long queue an explanation, if all that waits besides waits for
// that node. It may be seen after the queues before it, and was no explanation of them then, since hosts are behind it.
func (c *Cause) outlet(s *Scene, m Map) {
	const waits = Slow | Queues | More | Drops
	e, _ := s.best(c.Fits)
	out := e
	for _, x := range c.Shown {
		switch h := x.Element; {
		case e.Kind != inference.NodeElement || x.Signs&^(waits|Fewer|Silent) != 0:
			return // something else is wrong
		case x.Signs&waits == 0 || h == e: // fewer packets may be anywhere behind it
		case h.Kind == inference.InterfaceElement && h.Node == e.Node && x.Signs&Queues != 0 && out == e:
			out = h
		case h.Kind != inference.InterfaceElement || !slices.Contains(m.Peers(h.Hop()), e.Node):
			return
		}
	}
	i, _ := slices.BinarySearchFunc(c.Fits, e, Fit.compare)
	if k, known := slices.BinarySearchFunc(c.Fits, out, Fit.compare); !known {
		c.Fits = slices.Insert(c.Fits, k, Fit{out, c.Fits[i].Misfit})
	}
}

// narrowest returns the interface in the place of its node that explains the evidence nearly as well, if evidence is at
// that interface.
func (c *Cause) narrowest(s *Scene, e inference.Element) inference.Element {
	_, least := s.best(c.Fits)
	most := least + math.Log(closeOdds)/nats
	out := e
	for _, f := range c.Fits {
		named := func(x Showing) bool { return x.Element == f.Element }
		if x := f.Element; e.Kind != inference.NodeElement || x.Kind != inference.InterfaceElement || x.Node != e.Node || !slices.ContainsFunc(c.Shown, named) {
			continue
		}
		if cost := s.price(f.Element) + f.Misfit; cost < most {
			out, most = f.Element, cost
		}
	}
	return out
}

// member returns the one of several links between two nodes that the evidence names, if it names one alone: by itself,
// or by its interfaces.
func (c *Cause) member(e inference.Element, m Map) inference.Element {
	if e.Kind != inference.LinkElement || e.EgressIf != 0 || e.PeerIf != 0 {
		return e
	}
	all := hops(e, m)
	ends := [2]inference.HopKey{{Node: e.Node}, {Node: e.Peer}}
	named := slices.ContainsFunc(c.Shown, func(x Showing) bool { return ofLink(x.Element, e) }) // rather than by what came to an interface
	for _, x := range c.Shown {
		interfaces := []inference.HopKey{x.Element.Hop()}
		if ofLink(x.Element, e) {
			interfaces = append(interfaces, inference.HopKey{Node: e.Peer, EgressIf: x.Element.PeerIf})
		} else if named || x.Element.Kind != inference.InterfaceElement || !slices.Contains(all, interfaces[0]) {
			continue
		}
		for _, h := range interfaces {
			for i := range ends {
				if ends[i].Node != h.Node || h.EgressIf == 0 {
					continue
				}
				if ends[i].EgressIf != 0 && ends[i] != h {
					return e // the evidence is at several of them
				}
				ends[i] = h
			}
		}
	}
	several := func(node uint32) bool {
		n := 0
		for _, h := range all {
			if h.Node == node {
				n++
			}
		}
		return n > 1
	}
	if !several(e.Node) && !several(e.Peer) {
		return e
	}
	return inference.ElementOfLinkAt(ends[0], ends[1])
}

// ofLink reports whether an element is one of the links between the nodes of another one.
func ofLink(e, link inference.Element) bool {
	return e.Kind == inference.LinkElement && e.Node == link.Node && e.Peer == link.Peer && e != link
}

// closeOdds is the odds from which on an explanation is published without the next best. At 3 to 1, one of four would be
// wrong. Odds of 1.5 and of 6 leave the results on the emulated network as they are.
const closeOdds = 3

// rival returns the probability that an element is the one that explains the evidence. It also returns the most
// probable element at another place, with its probability. Probabilities are shares among all elements that explain it,
// by their cost in nats. A link and its interfaces are one place.
func (s *Scene) rival(fits []Fit, e inference.Element, m Map) (p float64, next inference.Element, second float64) {
	_, least := s.best(fits)
	sum := 0.0
	for _, f := range fits {
		x := math.Exp(nats * (least - s.price(f.Element) - f.Misfit))
		sum += x
		switch {
		case f.Element == e || samePlace(f.Element, e, m):
			p += x
		case x > second:
			next, second = f.Element, x
		}
	}
	return p / sum, next, second / sum
}

// samePlace reports whether one of two elements is a link and the other one of its interfaces, or part of the same
// exporter.
func samePlace(a, b inference.Element, m Map) bool {
	if a.Kind > b.Kind {
		a, b = b, a
	}
	return a.Kind == inference.InterfaceElement && b.Kind == inference.LinkElement && slices.Contains(hops(b, m), a.Hop()) ||
		a.Kind == inference.LinkElement && b.Kind == inference.LinkElement && a.Node == b.Node && a.Peer == b.Peer ||
		a.Kind == inference.ExporterElement && b.Kind == inference.ExporterElement && a.Addr == b.Addr
}

// around holds events in the network at the same time, by which findings at other places come to a cause.
type around struct {
	flows         map[decode.FlowKey][]inference.Element // of causes
	moved         map[inference.HopKey][]change          // where flows came to
	changes       map[uint64][]inference.Element         // of paths, by the window in which they began
	ports         map[uint32][]queue                     // interfaces of a node where findings see that traffic queues
	now           uint64                                 // window
	digestWriters []inference.Element                    // nodes that may have written digests which fit no path
	roots         []root                                 // what other things follow from
}

// queue is an interface where a finding sees that traffic queues, or saw it before this window.
type queue struct {
	at    inference.Element
	rests bool // all that is found there has ended, or is as usual in this window
}

// queues returns the interfaces of a node where traffic queued when a finding began. What begins in this window, and is
// found at once, meets no queue that is gone.
func (r *around) queues(node uint32, a *Alone) iter.Seq[inference.Element] {
	return func(yield func(inference.Element) bool) {
		for _, q := range r.ports[node] {
			if !(q.rests && a.Born == r.now && a.Late == 0) && !yield(q.at) {
				return
			}
		}
	}
}

// root is a cause, or a finding that stands alone, from which others follow in a way that no place shows.
type root struct {
	id    uint64
	kinds []inference.Kind
	fits  []Fit
	born  uint64
	last  uint64
	lasts bool               // it has not ended
	at    []inference.HopKey // where packets queue, or get lost
}

func (r *root) hasKind(kinds ...inference.Kind) bool {
	for _, k := range kinds {
		if slices.Contains(r.kinds, k) {
			return true
		}
	}
	return false
}

// mostRoots bounds them.
const mostRoots = 64

// consequence returns the way in which a root explains a finding that may be a consequence of it, wherever it is.
func (r *root) consequence(a *Alone) (w Way, ok bool) {
	f := &a.Finding
	if f.ID == r.id || a.Born+2 < r.born || a.Born > r.last+moving {
		return 0, false
	}
	rerouted := r.hasKind(inference.PathChanged, inference.RoutingLoop)
	switch {
	case lessens(f.Kind) && r.hasKind(inference.ExporterSilence):
		return Unheard, true
	case lessens(f.Kind):
		return Follows, rerouted || f.Element.Kind == inference.NodeElement && r.hasKind(inference.StrangeDigests) || r.hasKind(inference.PacketDrops, inference.BlackHole, inference.PacketLoss, inference.ExporterLoss, inference.HighQueue)
	case f.Kind == inference.PathChanged && f.Severity == inference.Info:
		return Follows, (a.Born > r.born || f.Element.Kind != inference.FlowElement || a.glimpsed() || r.hasKind(inference.RoutingLoop)) && (rerouted || r.hasKind(inference.StrangeDigests, inference.InventoryError))
	case f.Kind == inference.StrangeDigests:
		return Follows, r.hasKind(inference.RoutingLoop)
	case f.Kind == inference.PacketLoss || f.Kind == inference.BlackHole: // packets that go round are late, or end as they may
		return Follows, r.hasKind(inference.RoutingLoop)
	case f.Element.Kind == inference.NodeElement && rises(f.Kind) && f.Kind != inference.PacketDrops:
		return Follows, r.hasKind(inference.StrangeDigests) // which carry wrong latencies, too
	case f.Kind == inference.HighUtilization:
		return Follows, rerouted
	}
	return 0, false
}

// glimpsed reports whether a flow that changed its path is seen at one node alone, so that no link shows where it went.
func (a *Alone) glimpsed() bool {
	return len(a.Moved) > 0 && !slices.ContainsFunc(a.Moved, func(h inference.HopKey) bool { return h.Node != a.Moved[0].Node })
}

// downstream reports whether a finding is about packets that come from a root. There are fewer of them while they queue
// or get lost before, or many at once, when the waiting ones go on together.
func (r *root) downstream(a *Alone, m Map) bool {
	f := &a.Finding
	if !r.lasts || f.ID == r.id || f.Element.Kind != inference.InterfaceElement {
		return false
	}
	switch {
	case lessens(f.Kind) && r.hasKind(inference.PacketDrops, inference.PacketLoss, inference.HighQueue, inference.HighLatency):
	case (f.Kind == inference.HighUtilization || f.Kind == inference.HighLatency) && r.hasKind(inference.HighQueue):
	default:
		return false
	}
	return slices.ContainsFunc(r.at, func(h inference.HopKey) bool {
		return h != f.Element.Hop() && slices.Contains(m.Ahead(h), f.Element.Hop())
	})
}

// hops returns the interfaces of an element: both of a link. Of a node it returns the node.
func hops(e inference.Element, m Map) (out []inference.HopKey) {
	switch e.Kind {
	case inference.NodeElement, inference.InterfaceElement:
		return []inference.HopKey{e.Hop()}
	case inference.LinkElement:
		for _, n := range [2][2]uint32{{e.Node, e.Peer}, {e.Peer, e.Node}} {
			for _, h := range first(m.Interfaces(n[0]), 1024) {
				if slices.Contains(m.Peers(h), n[1]) {
					out = append(out, h)
				}
			}
		}
	}
	return out
}

// moving is within how many windows flows that moved raise latencies and queues where they came to.
const moving = 10

type change struct {
	element inference.Element
	fits    []Fit // other elements that explain it
	born    uint64
	lasts   bool
}

// same reports whether two are one change.
func (c change) same(o change) bool {
	return c.element == o.element && c.born == o.born && c.lasts == o.lasts
}

func (r *around) fill(now uint64, m Map, causes []*Cause, alone []*Alone, open func(id uint64) *inference.Finding) {
	*r = around{
		now:   now,
		flows: map[decode.FlowKey][]inference.Element{}, moved: map[inference.HopKey][]change{}, changes: map[uint64][]inference.Element{},
		ports: map[uint32][]queue{},
	}
	port := func(e inference.Element, k inference.Kind, rests bool) {
		list := r.ports[e.Node]
		if e.Kind != inference.InterfaceElement || !rises(k) {
			return
		}
		if i := slices.IndexFunc(list, func(q queue) bool { return q.at == e }); i >= 0 {
			list[i].rests = list[i].rests && rests
		} else if len(list) < maxFits/2 {
			r.ports[e.Node] = append(list, queue{e, rests})
		}
	}
	add := func(x root, e inference.Element) {
		if e.Kind == inference.FlowElement && !x.hasKind(inference.BlackHole) {
			return // what happens to a flow brings forth nothing elsewhere
		}
		if len(r.roots) < mostRoots && (x.hasKind(inference.PathChanged, inference.RoutingLoop, inference.PacketDrops, inference.BlackHole, inference.PacketLoss) ||
			x.hasKind(inference.ExporterSilence, inference.ExporterLoss, inference.StrangeDigests, inference.InventoryError, inference.HighQueue)) {
			r.roots = append(r.roots, x)
		}
	}
	for _, c := range causes {
		port(c.Finding.Element, c.Finding.Kind, c.rests(open))
		x := root{id: c.Finding.ID, fits: c.Fits, born: c.Born, last: c.Last, lasts: true, at: hops(c.Finding.Element, m)}
		for _, id := range first(c.Open, 2*maxFits) {
			if f := open(id); f != nil {
				port(f.Element, f.Kind, f.Resting)
				if f.Kind == inference.HighQueue && f.Element.Kind == inference.InterfaceElement {
					x.at = append(x.at, f.Element.Hop())
				}
			}
		}
		for i := range c.Kinds {
			x.kinds = append(x.kinds, c.Kinds[i].Kind)
		}
		add(x, c.Finding.Element)
		for _, f := range c.Flows {
			r.flows[f] = append(r.flows[f], c.Finding.Element)
		}
		if len(c.Moved) > 0 {
			r.move(c.Moved, change{c.Finding.Element, c.Fits, c.Last, len(c.Open) > 0})
			r.changes[c.Born] = append(r.changes[c.Born], c.Finding.Element)
		}
	}
	lasting := slices.DeleteFunc(slices.Clone(alone), func(a *Alone) bool { return a.past })
	past := slices.DeleteFunc(slices.Clone(alone), func(a *Alone) bool { return !a.past })
	for _, a := range slices.Concat(lasting, past) {
		f := open(a.Finding.ID)
		port(a.Finding.Element, a.Finding.Kind, f == nil || f.Resting)
		if a.Finding.Kind == inference.StrangeDigests {
			for _, h := range a.Moved {
				r.digestWriters = append(r.digestWriters, inference.ElementOfNode(h.Node))
			}
		}
		if !a.past && a.Finding.Severity > inference.Info && a.Finding.Element.Kind != inference.NoElement {
			add(root{
				id: a.Finding.ID, kinds: []inference.Kind{a.Finding.Kind}, fits: []Fit{{a.Finding.Element, 0}}, born: a.Born, last: a.Born,
				lasts: a.Finding.End == 0, at: hops(a.Finding.Element, m),
			}, a.Finding.Element)
		}
		if len(a.Moved) > 0 && !passes(&a.Finding) && a.Finding.Element.Kind != inference.NoElement {
			r.move(a.Moved, change{a.Finding.Element, a.fits, a.Born, a.Finding.End == 0})
			r.changes[a.Born] = append(r.changes[a.Born], a.Finding.Element)
		}
	}
	r.settle()
}

// settle brings the suspects into order. Where packets go round, their digests fit no path, and no node is suspected.
func (r *around) settle() {
	if slices.ContainsFunc(r.roots, func(x root) bool { return x.hasKind(inference.RoutingLoop) }) {
		r.digestWriters = nil
	}
	slices.SortFunc(r.digestWriters, inference.Element.Compare)
	r.digestWriters = slices.Compact(r.digestWriters)
}

func (r *around) move(hops []inference.HopKey, c change) {
	for _, h := range hops {
		if list := r.moved[h]; len(list) < maxFits {
			r.moved[h] = append(list, c)
		}
	}
}

// changesAt returns the changes of paths by which flows joined or left the place of a finding.
func (r *around) changesAt(f *inference.Finding, m Map) (out []change) {
	switch f.Element.Kind {
	case inference.InterfaceElement:
		out = r.moved[f.Element.Hop()]
		if lessens(f.Kind) { // those whose ways name no interfaces
			out = append(slices.Clone(out), r.moved[inference.HopKey{Node: f.Element.Node}]...)
		}
	case inference.LinkElement: // where fewer packets pass, the shortest of them takes longer
		if f.Kind != inference.HighLatency {
			return nil
		}
		for _, h := range hops(f.Element, m) {
			out = append(out, r.moved[h]...)
		}
		for _, c := range r.moved[inference.HopKey{Node: f.Element.Node}] {
			if slices.ContainsFunc(r.moved[inference.HopKey{Node: f.Element.Peer}], c.same) {
				out = append(out, c)
			}
		}
	}
	return out
}

// explanation adds the elements that bring a finding forth from elsewhere in one way.
type explanation func(r *around, a *Alone, m Map, add adder)

// adder takes an element and the way in which it explains the finding.
type adder = func(inference.Element, Way)

// explanations are all of them, in the order in which their elements are added; only the first 2 maxFits elements
// count. The weights of the ways are in faults.go.
var explanations = []explanation{
	(*around).sameFlow,
	(*around).interfaceOfNode,
	(*around).movedHere,
	(*around).whereFlowMoved,
	(*around).writerOfDigests,
	(*around).hopOfFlow,
	(*around).linkOfProbes,
	(*around).queueAhead,
	(*around).queueOfDrops,
	(*around).missingReports,
	(*around).forgedDigests,
	(*around).followsRoot,
	(*around).sameMoment,
}

// more adds the elements that explain a finding by what happens around it. A latency of a node counts as another sort
// of finding where nodes may have written forged digests, which carry wrong latencies, too.
func (r *around) more(a *Alone, s *Scene) []Fit {
	f := &a.Finding
	of := sortOf(f)
	if a.unexplained = f.Element.Kind == inference.NodeElement && f.Kind == inference.HighLatency && len(r.digestWriters) > 0; a.unexplained {
		of = forged
		a.fits = fits(f, s, of)
	}
	a.behind = nil
	out := a.fits
	add := func(e inference.Element, w Way) {
		if len(out) < 2*maxFits {
			out = append(out, Fit{e, w.misfit(of)})
			s.offer(f, e, w, of)
		}
	}
	for _, explain := range explanations {
		explain(r, a, s.Map, add)
	}
	if len(out) == len(a.fits) {
		return out
	}
	return tidy(out)
}

func (r *around) sameFlow(a *Alone, _ Map, add adder) {
	if f := &a.Finding; f.FlowText() != "" && f.Kind != inference.PacketDrops { // a drop names any flow
		for _, e := range r.flows[f.Flow] {
			add(e, SameFlow)
		}
	}
}

// interfaceOfNode adds interfaces towards hosts, which have no neighbour by which they were known.
func (r *around) interfaceOfNode(a *Alone, _ Map, add adder) {
	if f := &a.Finding; f.Element.Kind == inference.NodeElement && f.Kind != inference.PathChanged {
		for e := range r.queues(f.Element.Node, a) {
			add(e, QueueOfNode)
		}
	}
}

func (r *around) movedHere(a *Alone, m Map, add adder) {
	for _, c := range r.changesAt(&a.Finding, m) {
		if a.Born >= c.born && (a.Born-a.Late <= c.born+moving || c.lasts && lessens(a.Finding.Kind)) {
			add(c.element, MovedHere)
			for _, x := range c.fits {
				if x.Element.Kind == inference.NodeElement || x.Element.Kind == inference.LinkElement {
					add(x.Element, MovedHere) // what sets them apart is counted once, where flows moved
				}
			}
		}
	}
}

// whereFlowMoved adds what a few flows have in common: a node or a link on the old path or the new one.
func (r *around) whereFlowMoved(a *Alone, m Map, add adder) {
	if a.Finding.Kind != inference.PathChanged || a.Finding.Severity != inference.Info {
		return
	}
	for _, h := range a.Moved {
		add(inference.ElementOfNode(h.Node), NodeOnWay)
		for _, p := range m.Peers(h) {
			if h.EgressIf != 0 || slices.ContainsFunc(a.Moved, func(x inference.HopKey) bool { return x.Node == p }) {
				add(inference.ElementOfLink(h.Node, p), LinkOnWay)
			}
		}
	}
}

func (r *around) writerOfDigests(a *Alone, _ Map, add adder) {
	if a.Finding.Kind == inference.StrangeDigests {
		for _, h := range a.Moved {
			add(inference.ElementOfNode(h.Node), NodeOnWay)
		}
	}
}

// linkOfProbes adds the links on the ways of lost probes and of their answers that lose packets.
func (r *around) linkOfProbes(a *Alone, _ Map, add adder) {
	if f := &a.Finding; f.Kind != inference.ProbeLoss && f.Statistic != inference.MissingProbes {
		return
	}
	passes := func(node uint32) bool {
		return slices.ContainsFunc(a.Moved, func(h inference.HopKey) bool { return h.Node == node })
	}
	for i := range r.roots {
		if !r.roots[i].hasKind(inference.PacketLoss) {
			continue
		}
		for _, fit := range r.roots[i].fits {
			if e := fit.Element; e.Kind == inference.LinkElement && passes(e.Node) && passes(e.Peer) {
				add(e, LinkOnWay)
			}
		}
	}
}

// hopOfFlow adds the hops on the path of a flow with another latency.
func (r *around) hopOfFlow(a *Alone, m Map, add adder) {
	if !ofFlow(&a.Finding) {
		return
	}
	for _, h := range a.Moved {
		add(inference.ElementOfHop(h), HopOnWay)
		add(inference.ElementOfNode(h.Node), NodeOnWay)
		for _, p := range first(m.Peers(h), 8) {
			add(inference.ElementOfLink(h.Node, p), LinkOnWay)
		}
		r.passes(a, h, m, add, QueueOnWay)
	}
}

func (r *around) queueAhead(a *Alone, m Map, add adder) {
	f := &a.Finding
	hop := f.Element.Kind == inference.InterfaceElement
	if !rises(f.Kind) || !hop && (f.Element.Kind != inference.NodeElement || f.Kind == inference.PacketDrops) {
		return
	}
	if any := r.passes(a, f.Element.Hop(), m, add, QueueAhead); hop {
		r.ahead(a, m, add)
		if !any {
			r.passes(a, inference.HopKey{Node: f.Element.Node}, m, add, QueueOfOthers)
		}
	}
}

func (r *around) queueOfDrops(a *Alone, m Map, add adder) {
	if f := &a.Finding; f.Kind == inference.PacketDrops && f.Element.Kind == inference.NodeElement {
		for p := range r.queues(f.Element.Node, a) {
			r.passes(a, p.Hop(), m, add, QueueAhead)
		}
	}
}

// missingReports adds the exporter of a switch that is silent or loses reports, where packets are in no report of that
// switch.
func (r *around) missingReports(a *Alone, _ Map, add adder) {
	f := &a.Finding
	if f.Kind != inference.PacketLoss || f.Element.Kind != inference.NodeElement && f.Element.Kind != inference.InterfaceElement {
		return
	}
	for i := range r.roots {
		x := &r.roots[i]
		if !x.hasKind(inference.ExporterLoss, inference.ExporterSilence) || a.Born+2 < x.born || !x.lasts && a.Born > x.last+moving {
			continue
		}
		for _, fit := range x.fits {
			if e := fit.Element; e.Kind == inference.ExporterElement && !e.Nameless && e.Node == f.Element.Node {
				add(e, Unheard)
			}
		}
	}
}

func (r *around) forgedDigests(a *Alone, _ Map, add adder) {
	if a.unexplained {
		for _, e := range first(r.digestWriters, maxFits) {
			add(e, WroteDigests)
		}
	}
}

// followsRoot adds the elements of causes from which a finding follows: those that its packets come from, or those
// elsewhere if there are none.
func (r *around) followsRoot(a *Alone, m Map, add adder) {
	for i := range r.roots {
		if x := &r.roots[i]; x.downstream(a, m) {
			a.behind = append(a.behind, x.id)
			for _, f := range x.fits {
				add(f.Element, Behind)
			}
		}
	}
	if len(a.behind) > 0 {
		return
	}
	for i := range r.roots {
		if w, ok := r.roots[i].consequence(a); ok {
			for _, f := range r.roots[i].fits {
				add(f.Element, w)
			}
		}
	}
}

func (r *around) sameMoment(a *Alone, _ Map, add adder) {
	if f := &a.Finding; f.Kind == inference.ExporterSilence && f.Nameless {
		for at := max(a.Born, 1) - 1; at <= a.Born+1; at++ {
			for _, e := range r.changes[at] {
				add(e, SameMoment)
			}
		}
	}
}

// passes adds the interfaces with queues that packets of this window come to behind a hop.
func (r *around) passes(a *Alone, from inference.HopKey, m Map, add adder, w Way) (any bool) {
	for _, h := range m.Ahead(from) {
		for q := range r.queues(h.Node, a) {
			if q == inference.ElementOfHop(h) {
				add(q, w)
				any = true
			}
		}
	}
	return any
}

// ahead adds the interfaces further on at which the packets of an interface queue. Where many senders send to one host
// at once, their packets queue wherever they come together. The last of these places is where they are too many.
func (r *around) ahead(a *Alone, m Map, add adder) {
	farther := [...]Way{QueueNext, QueueSecond, QueueThird, QueueFourth}
	seen := []inference.Element{a.Finding.Element}
	for at, distance := seen, 0; distance < len(farther) && len(at) > 0; distance++ {
		var next []inference.Element
		for _, x := range at {
			for _, p := range first(m.Peers(x.Hop()), 8) {
				for q := range r.queues(p, a) {
					if !slices.Contains(seen, q) && len(seen) < maxFits/2 && !slices.Contains(m.Peers(q.Hop()), x.Node) {
						seen = append(seen, q)
						next = append(next, q)
						add(q, farther[distance])
					}
				}
			}
		}
		at = next
	}
}
