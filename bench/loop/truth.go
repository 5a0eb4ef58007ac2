package loop

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/findings"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/planner/topo"
)

// places maps elements to the links that they touch. A link is an interface that packets leave a switch by.
type places struct {
	network *emu.Network
	graph   *topo.Graph
	first   uint32
	known   map[decode.FlowKey][]inference.HopKey // paths of flows, as windows hold them
}

func newPlaces(n *emu.Network) *places {
	return &places{network: n, graph: n.Graph(), first: n.NodeID(0), known: map[decode.FlowKey][]inference.HopKey{}}
}

func (p *places) node(id uint32) int {
	if n := int(id) - int(p.first); n >= 0 && n < p.graph.NumNodes() {
		return n
	}
	return -1
}

// hop returns the link of an interface, or -1.
func (p *places) hop(node, port uint32) int32 {
	if n := p.node(node); n >= 0 {
		return int32(p.graph.ByPort(n, int(port)))
	}
	return -1
}

// all appends the links of a switch, in both directions.
func (p *places) all(to []int32, node uint32) []int32 {
	n := p.node(node)
	if n < 0 {
		return to
	}
	lo, hi := p.graph.Interfaces(n)
	for i := lo; i < hi; i++ {
		to = append(to, int32(i))
		if back := p.graph.Peer(i); back >= 0 {
			to = append(to, int32(back))
		}
	}
	return to
}

// passed returns the links on the path of a flow, as far as windows held it.
func (p *places) passed(flow decode.FlowKey) (links []int32) {
	way := p.known[flow]
	for k, h := range way {
		l := int32(-1)
		if h.EgressIf != 0 {
			l = p.hop(h.Node, h.EgressIf)
		} else if a := p.node(h.Node); a >= 0 && k+1 < len(way) {
			if b := p.node(way[k+1].Node); b >= 0 {
				l = int32(p.graph.Between(a, b))
			}
		}
		if l >= 0 {
			links = append(links, l)
		}
	}
	return links
}

// flows remembers the ways of flows.
func (p *places) flows(w *inference.Window) {
	for i := range w.Flows {
		f := &w.Flows[i]
		if f.Partial || len(f.Hops) == 0 || len(p.known) > 10_000 {
			continue
		}
		way := p.known[f.Key][:0]
		for _, h := range f.Hops {
			way = append(way, h.HopKey)
		}
		p.known[f.Key] = way
	}
	for i := range w.Losses {
		if l := &w.Losses[i]; len(l.Path) > 0 {
			p.known[l.Flow] = append(p.known[l.Flow][:0], l.Path...)
		}
	}
}

// touched returns the links that the element of a fault touches. These are both directions of a link, all links of a
// switch, the one behind a port, and those on the way of a flow. A fault of lost reports touches none.
func (p *places) touched(h *scenario.Happening) (links []int32) {
	switch h.At {
	case scenario.OnLink:
		return []int32{p.hop(h.Node, h.Port), p.hop(h.Peer, h.PeerPort)}
	case scenario.AtSwitch:
		return p.all(nil, h.Node)
	case scenario.AtPort:
		return []int32{p.hop(h.Node, h.Port)}
	case scenario.InFlow:
		way, _ := p.network.Route(h.Flow)
		for _, i := range way {
			links = append(links, int32(i))
		}
	}
	return links
}

// truth holds the true times of packets at each link in the emulator, by cycle. They are spent in the switch before
// the link and on the line. It is independent of all measurements.
type truth struct {
	graph  *topo.Graph
	all    *times // of all packets
	probes *times // of probes alone, the part that they can have measured
	past   []bool // by link: slower than usual for all packets in the cycle before
}

// times are the means of each link in a cycle, and their usual values.
type times struct {
	errors float64
	sum    []float64
	count  []int
	usual  [][]float64 // by link: means of the latest quiet cycles
	next   []int
	slow   []bool // by link: slower than usual, in the last cycle
}

const (
	usualCycles = 60
	fewPackets  = 3
	// A link is slower than usual where the mean of a cycle is this many standard deviations of such means above theirs.
	slowErrors = 3
	// The same for a change that probes can distinguish from chance. With normal errors, chance exceeds it at one of
	// 80 links less than once in a million cycles. It is as rare as chance may be in losses.
	shownErrors = 5.6
)

func newTruth(g *topo.Graph) *truth {
	n := g.NumInterfaces()
	of := func(errors float64) *times {
		return &times{errors: errors, sum: make([]float64, n), count: make([]int, n), usual: make([][]float64, n), next: make([]int, n), slow: make([]bool, n)}
	}
	return &truth{graph: g, all: of(slowErrors), probes: of(shownErrors), past: make([]bool, n)}
}

// journey adds a packet, of a flow or a probe.
func (t *truth) journey(j *emu.Journey) {
	for k := range j.Hops {
		h := &j.Hops[k]
		l := t.graph.ByPort(h.Node, int(h.EgressPort))
		if l < 0 {
			continue
		}
		took := h.Latency()
		if k+1 < len(j.Hops) {
			took = j.Hops[k+1].Ingress - h.Ingress
		}
		t.all.add(l, took)
		if j.Probe {
			t.probes.add(l, took)
		}
	}
}

func (x *times) add(l int, took time.Duration) {
	x.sum[l] += float64(took)
	x.count[l]++
}

// cycle ends a cycle.
func (t *truth) cycle(quiet bool) {
	copy(t.past, t.all.slow)
	t.all.cycle(quiet)
	t.probes.cycle(quiet)
}

func (x *times) cycle(quiet bool) {
	for l := range x.sum {
		x.slow[l] = false
		if x.count[l] < fewPackets {
			continue
		}
		mean, list := x.sum[l]/float64(x.count[l]), x.usual[l]
		if len(list) >= usualCycles/2 {
			usual, square := 0.0, 0.0
			for _, v := range list {
				usual += v / float64(len(list))
			}
			for _, v := range list {
				square += (v - usual) * (v - usual) / float64(len(list)-1)
			}
			x.slow[l] = mean > usual+x.errors*math.Sqrt(square)
		}
		if !quiet {
			continue
		}
		if len(list) < usualCycles {
			x.usual[l] = append(list, mean)
		} else {
			list[x.next[l]%usualCycles] = mean
			x.next[l]++
		}
	}
	clear(x.sum)
	clear(x.count)
}

// troubled reports whether a link is truly slower than usual, in this cycle or the one before: its evidence may be
// reported later.
func (t *truth) troubled(l int32) bool { return t.all.slow[l] || t.past[l] }

// gradual reports whether a fault is one of time. It counts from when it truly changes the times of probes at a link
// that it touches. For a microburst it is known whether a probe was in it.
func gradual(f *fault) bool {
	return len(f.Kinds) > 0 && f.Kinds[0] == "high-latency" && f.Name != "microburst"
}

// judge determines the first cycle in which a fault could be seen.
func (d *detection) judge(f *fault, w *inference.Window, cycle int) {
	if gradual(f) && f.enough == 0 && slices.ContainsFunc(f.Links, func(l int32) bool { return d.truth.probes.slow[l] }) {
		if f.shown > 0 && f.shown == cycle-1 {
			f.enough = cycle - 1
		}
		f.shown = cycle
	}
	if f.Name == forging && f.enough == 0 && f.forged.window(f.Node) {
		f.enough = cycle
	}
	if silent(f) && time.Duration(cycle)*d.emulation.Window <= f.For {
		f.losing.window(d, f, w, cycle)
	}
}

// forging is the fault that fills digests with noise.
const forging = "forge-digests"

// forged records the flows whose digests were forged, by the packets that truly passed the switch.
type forged struct {
	flows  map[decode.FlowKey]*forgedFlow
	common []uint32 // switches that all flows passed that had enough of them forged
	some   bool
}

type forgedFlow struct {
	packets uint64 // of this cycle
	way     []uint32
}

func (x *forged) journey(node uint32, j *emu.Journey) {
	if !slices.ContainsFunc(j.Hops, func(h emu.Hop) bool { return h.NodeID == node }) {
		return
	}
	if x.flows == nil {
		x.flows = map[decode.FlowKey]*forgedFlow{}
	}
	f := x.flows[j.Key]
	if f == nil {
		f = &forgedFlow{}
		x.flows[j.Key] = f
	}
	f.packets++
	f.way = f.way[:0]
	for k := range j.Hops {
		f.way = append(f.way, j.Hops[k].NodeID)
	}
}

// window ends a cycle and reports whether all flows that had enough digests forged in any one have passed no other
// switch. Enough is the number that makes a finding if half of the digests are forged.
func (x *forged) window(node uint32) bool {
	for _, f := range x.flows {
		if f.packets >= 2*findings.EventsConfig().DigestsStrange {
			if !x.some {
				x.some, x.common = true, slices.Clone(f.way)
			}
			x.common = slices.DeleteFunc(x.common, func(n uint32) bool { return !slices.Contains(f.way, n) })
		}
	}
	clear(x.flows)
	return x.some && len(x.common) == 1 && x.common[0] == node
}

// losing counts the probes and the packets of compared flows on a link since a fault began, and those that were
// silently lost.
type losing struct {
	probes, flows rounds

	byProbe []lostOf
	byFlow  map[decode.FlowKey]*lostOf
}

type rounds struct{ sent, lost uint64 }

// lostOf is the sent and lost packets of a probe or a flow since a fault began, and the links on its path.
type lostOf struct {
	links []int32
	rounds
}

// silent reports whether a fault loses packets that no switch reports.
func silent(f *fault) bool {
	return f.Name == "gray-failure-1" || f.Name == "gray-failure-0.1" || f.Name == "black-hole"
}

// journey records the true outcome of a packet.
func (d *detection) journey(j *emu.Journey) {
	if d.network == nil || len(j.Hops) == 0 {
		return
	}
	d.truth.journey(j)
	if !j.Probe {
		if f := d.forging; f != nil && j.PINT && d.network.Now() >= f.From && d.network.Now() <= f.Until {
			f.forged.journey(f.Node, j)
		}
		return
	}
	if j.Outcome == emu.Spoilt {
		d.receiver.spoilt(j)
		return
	}
	for _, f := range d.out.faults {
		if now := d.network.Now(); now < f.From || now > f.Until {
			continue
		}
		for k := range j.Hops {
			h := &j.Hops[k]
			if f.At != scenario.OnLink || h.NodeID != f.Node || uint32(h.EgressPort) != f.Port {
				continue
			}
			f.touched = f.touched || h.QueueBytes >= 16_000
			f.losing.probes.sent++
			if j.Outcome == emu.Vanished && k == len(j.Hops)-1 {
				f.losing.probes.lost++
			}
		}
		if j.Outcome == emu.QueueFull {
			f.touched = true
		}
	}
}

// window notes the compared flows, and the cycle from which on they are enough to find the loss. Chance then causes
// as much once in three million fits, at the most unlucky of all candidates. For Enough, a touched link must explain
// the losses of probes or flows since the fault began. It must do so twenty times as likely as all other links
// together.
func (x *losing) window(d *detection, f *fault, w *inference.Window, cycle int) {
	if x.byFlow == nil {
		x.byFlow, x.byProbe = map[decode.FlowKey]*lostOf{}, make([]lostOf, len(d.routes))
		for p, r := range d.routes {
			x.byProbe[p].links = r
		}
	}
	for p := range d.routes {
		x.byProbe[p].sent += uint64(d.receiver.moved[p])
		x.byProbe[p].lost += uint64(d.receiver.lost[p])
	}
	for i := range w.Losses {
		l := &w.Losses[i]
		at := slices.IndexFunc(l.Path, func(h inference.HopKey) bool { return h.Node == f.Node && h.EgressIf == f.Port })
		if f.Name == "black-hole" {
			at = slices.IndexFunc(l.Path, func(h inference.HopKey) bool { return h.Node == f.Node })
		}
		if at >= 0 {
			x.flows.sent += l.Packets
			x.flows.lost += l.Lost
		}
		o := x.byFlow[l.Flow]
		if o == nil {
			o = &lostOf{}
			x.byFlow[l.Flow] = o
		}
		o.sent, o.lost = o.sent+l.Packets, o.lost+l.Lost
		if len(l.Path) > 0 {
			o.links = d.places.passed(l.Flow)
		}
	}
	floor := findings.EventsConfig().SilentLoss
	enough := func(r rounds, candidates int) bool {
		return r.sent > 0 && r.lost >= loss.Needed(r.sent, floor, candidates)
	}
	probes, flows := enough(x.probes, 100), enough(x.flows, 80+len(d.places.known))
	if f.plain == 0 && (probes || flows) {
		f.plain = cycle
	}
	if f.enough > 0 {
		return
	}
	if f.Name == "black-hole" { // a flow, of which losses speak for themselves
		f.enough = f.plain
		return
	}
	link := int32(d.places.hop(f.Node, f.Port))
	var of []lostOf
	for _, k := range slices.SortedFunc(maps.Keys(x.byFlow), func(a, b decode.FlowKey) int { return a.Compare(&b) }) {
		of = append(of, *x.byFlow[k])
	}
	if probes && certain(x.byProbe, link, floor) || flows && certain(of, link, floor) {
		f.enough = cycle
	}
}

// certain reports whether losses are twenty times as likely at one link as at any other, all others together. Each
// link has its best ratio beside the floor.
func certain(list []lostOf, link int32, floor float64) bool {
	of := map[int32][]rounds{}
	for i := range list {
		for _, l := range list[i].links {
			of[l] = append(of[l], list[i].rounds)
		}
	}
	gain := func(l int32) (gain float64) {
		var sum rounds
		for _, r := range of[l] {
			sum.sent += r.sent
			sum.lost += r.lost
		}
		if more := float64(sum.lost)/float64(sum.sent) - floor; sum.sent > 0 && more > 0 {
			return float64(sum.lost)*math.Log(1+more/floor) - float64(sum.sent)*more
		}
		return 0
	}
	best, others := gain(link), 0.0
	for _, l := range slices.Sorted(maps.Keys(of)) {
		if l != link {
			others += math.Exp(gain(l) - best)
		}
	}
	return others <= .05
}
