package ways

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// Probed finds links that lose probes of agents, in networks whose switches report nothing. Agents count the probes that
// were lost on their way out, and trace the routers on it. A link is named because ways over it lose probes and ways
// beside it do not (package loss). Links that the same probes pass cannot be distinguished, and are named together.
//
// A router answers a trace with the address of the interface that the packet came by, so it has several. Addresses that
// come before the same one are of one router, as long as a link connects two routers and not more. Each router goes by
// the least of its addresses. Routers that answer with one address each, such as a loopback one, show by two addresses of
// which each comes before the other: then nothing is joined.
type Probed struct {
	flows    *ProbeWays
	routers  *Routers
	culprits *ProbeLinks

	unknown map[decode.FlowKey]bool // flows of the window whose way is not known
	joined  int                     // number of times that addresses were joined or parted
	length  int64                   // of the window
	keys    []decode.FlowKey        // of a fit
	samples []loss.Sample
	links   suspects[probeLink]
	alike   [][]probeLink // links by the number of their class
}

// The tables of the detector.
type (
	ProbeWays  = subject.Table[decode.FlowKey, probeWay]
	Routers    = subject.Table[uint32, router]
	ProbeLinks = subject.Table[probeLink, vanished]
)

// probeWay is the state of a flow of probes.
type probeWay struct {
	path        []inference.HopKey     // agent, addresses of routers, host; a router that did not answer is 0
	now, before [silentBlocks]compared // as of a silentFlow

	links  []probeLink // of the path, as addresses were joined then
	joined int
}

func codeProbeWay(c *subject.Coder, f *probeWay) {
	subject.List(c, &f.path, c.Hop)
	c.Check("way of probes", len(f.path) > 1) // an agent and a host
	for k := range silentBlocks {
		codeCompared(c, &f.now[k])
		codeCompared(c, &f.before[k])
	}
}

func (f *probeWay) over(scale int) compared {
	if scale == 0 {
		return f.now[0]
	}
	sum := f.before[scale-1]
	sum.add(f.now[scale-1])
	return sum
}

// router is an address of a router, or of a host.
type router struct {
	parent uint32 // an address of the same router; itself where that is the least
	before uint32 // an address of the router that packets come from, 0 where none is known
}

// probeLink is a direction of a link, by the routers at its ends.
type probeLink struct{ from, to uint32 }

func (l probeLink) compare(o probeLink) int {
	return cmp.Or(cmp.Compare(l.from, o.from), cmp.Compare(l.to, o.to))
}

// NewProbed makes the detector.
func NewProbed(j *subject.Journal) *Probed {
	return &Probed{
		flows: subject.NewTable(j, func(a, b decode.FlowKey) int { return a.Compare(&b) }, (*subject.Coder).Flow, codeProbeWay),
		routers: subject.NewTable(j, cmp.Compare[uint32], func(c *subject.Coder, k *uint32) { subject.Number(c, k) }, func(c *subject.Coder, r *router) {
			subject.Number(c, &r.parent)
			subject.Number(c, &r.before)
		}),
		culprits: subject.NewTable(j, probeLink.compare, func(c *subject.Coder, l *probeLink) {
			subject.Number(c, &l.from)
			subject.Number(c, &l.to)
		}, codeVanished),
		unknown: map[decode.FlowKey]bool{},
	}
}

// Step takes the next window.
func (x *Probed) Step(w *inference.Window) {
	x.length = w.End - w.Start
	clear(x.unknown)
	lost := false
	for i := range w.Losses {
		if l := &w.Losses[i]; l.OfProbes() {
			if len(l.Path) == 1 {
				x.unknown[l.Flow] = true
				continue
			}
			lost = x.count(l) || lost
		}
	}
	ends := func(scale int) bool { return scale > 0 && x.flows.Windows%(1<<(scale-1)) == 0 }
	for scale := range silentScales {
		if lost || ends(scale) {
			x.fit(scale, ends(scale) && scale >= silentPatience)
		}
	}
	for k := range silentBlocks {
		if ends(k + 1) {
			for _, s := range x.flows.List {
				s.State.before[k], s.State.now[k] = s.State.now[k], compared{}
			}
		}
	}
	x.flows.ForEachAbsent(func(_ decode.FlowKey, _ *probeWay, windows int) bool { return windows > silentForget })
	x.routers.ForEachAbsent(func(_ uint32, _ *router, windows int) bool {
		if windows <= x.flows.Cfg.ForgetAfter {
			return false
		}
		x.joined++
		return true
	})
	x.culprits.ForEachAbsent(func(_ probeLink, v *vanished, windows int) bool {
		if windows <= silentForget {
			return false
		}
		x.culprits.End(&v.finding, "no probes of a known way came by for a while")
		return true
	})
}

// count adds what a flow lost in the window, and reports whether it lost anything.
func (x *Probed) count(l *inference.FlowLoss) (lost bool) {
	if l.Lost > l.Packets {
		return false
	}
	f := x.flows.Observe(l.Flow, x.flows.Cfg.MaxProbes)
	if f == nil {
		x.flows.Unjudged++
		return false
	}
	x.learn(l.Path)
	if !slices.Equal(f.path, l.Path) { // what was lost meanwhile can have been on either
		*f = probeWay{path: slices.Clone(l.Path)}
		return false
	}
	for k := range f.now {
		f.now[k].add(compared{l.Packets, l.Lost})
	}
	for _, k := range x.linksOf(f) {
		x.observeCulprit(k, l)
	}
	return l.Lost > 0
}

// learn joins addresses of one router.
func (x *Probed) learn(path []inference.HopKey) {
	most := 4 * x.flows.Cfg.MaxProbes
	for k := 1; k < len(path); k++ {
		a := path[k].Node
		if a == 0 {
			continue
		}
		r := x.routers.Observe(a, most)
		if r == nil {
			continue // goes by this address
		}
		if r.parent == 0 {
			r.parent = a
		}
		from := path[k-1].Node
		if k == 1 || from == 0 {
			continue
		}
		if r.before == 0 {
			r.before = from
		}
		if s := x.routers.Index[from]; s != nil && s.State.before == a {
			x.part()
		}
		if x.routers.Index[oneAddress] != nil {
			continue
		}
		if one, other := x.router(from), x.router(r.before); one != other {
			if s := x.routers.Index[max(one, other)]; s != nil {
				s.State.parent = min(one, other)
				x.joined++
			}
		}
	}
}

// oneAddress is the key that notes that routers have one address each.
const oneAddress = 0

// part notes that routers have one address each, and takes apart what was joined.
func (x *Probed) part() {
	if x.routers.Index[oneAddress] == nil {
		for _, s := range x.routers.List {
			s.State.parent = s.Key
		}
		x.joined++
	}
	x.routers.Observe(oneAddress, len(x.routers.List)+1)
}

// router returns the address that the router of an address goes by.
func (x *Probed) router(a uint32) uint32 {
	for {
		s := x.routers.Index[a]
		if s == nil || s.State.parent >= a || s.State.parent == 0 {
			return a
		}
		a = s.State.parent
	}
}

// linksOf returns the links of a way between routers that answered, each once. Routers without an answer are part of the
// link around them.
func (x *Probed) linksOf(f *probeWay) []probeLink {
	if f.joined == x.joined && f.links != nil {
		return f.links
	}
	f.links, f.joined = f.links[:0], x.joined
	from := f.path[0].Node
	for _, h := range f.path[1:] {
		if h.Node == 0 {
			continue
		}
		l := probeLink{from, x.router(h.Node)}
		if from = l.to; !slices.Contains(f.links, l) {
			f.links = append(f.links, l)
		}
	}
	return f.links
}

// silent returns the number of routers without an answer within a link of a way.
func (x *Probed) silent(path []inference.HopKey, l probeLink) (n int) {
	from := path[0].Node
	for _, h := range path[1:] {
		switch {
		case h.Node == 0:
			n++
		case l == probeLink{from, x.router(h.Node)}:
			return n
		default:
			from, n = x.router(h.Node), 0
		}
	}
	return 0
}

// Around returns the routers that probes of a flow and their answers pass, as far as they are known: those on its way,
// and those on the ways of probes from its host to its agent. Which of these an answer takes is not known.
func (x *Probed) Around(flow decode.FlowKey) []inference.HopKey {
	return x.routersOf(func(k *decode.FlowKey, _ *probeWay) bool {
		return *k == flow || k.Src == flow.Dst && k.Dst == flow.Src
	})
}

// AroundAgent returns the routers that probes of an agent and their answers pass, in the same way.
func (x *Probed) AroundAgent(node uint32, address decode.Addr) []inference.HopKey {
	return x.routersOf(func(k *decode.FlowKey, f *probeWay) bool { return f.path[0].Node == node || k.Dst == address })
}

// mostAround is the number of routers from which on no more ways are looked at: a finding keeps no more hops.
const mostAround = 64

// routersOf returns the routers on some ways, each once.
func (x *Probed) routersOf(ways func(*decode.FlowKey, *probeWay) bool) (hops []inference.HopKey) {
	for _, s := range x.flows.List {
		if !ways(&s.Key, &s.State) {
			continue
		}
		for k, h := range s.State.path {
			if k > 0 {
				h.Node = x.router(h.Node)
			}
			if h.Node != 0 && !slices.Contains(hops, h) {
				hops = append(hops, h)
			}
		}
		if len(hops) >= mostAround {
			break
		}
	}
	return hops
}

// Unknown reports whether a flow of the window has probes whose way is not known.
func (x *Probed) Unknown(flow decode.FlowKey) bool { return x.unknown[flow] }

// observeCulprit counts the probes of a flow that passed a culprit, and ends its finding once no more are lost there.
func (x *Probed) observeCulprit(k probeLink, l *inference.FlowLoss) {
	s := x.culprits.Index[k]
	if s == nil {
		return
	}
	v := &s.State
	s.Last = x.culprits.Windows
	if !v.observe(l) {
		return
	}
	f := v.finding
	f.Value = 0
	x.culprits.End(&v.finding, fmt.Sprintf("%s lost none of %s more, after %s", f.Element, subject.Plural(v.calm, "probe"), subject.Plural(v.total, "lost probe")))
	x.forget(k)
	delete(x.culprits.Index, k)
	x.culprits.List = slices.DeleteFunc(x.culprits.List, func(s *subject.Entry[probeLink, vanished]) bool { return s.Key == k })
}

// forget lets the evidence go that flows over a link have.
func (x *Probed) forget(k probeLink) {
	for _, s := range x.flows.List {
		if slices.Contains(x.linksOf(&s.State), k) {
			s.State.now, s.State.before = [silentBlocks]compared{}, [silentBlocks]compared{}
		}
	}
}

// fit fits the time of a scale that ends now. It publishes culprits that others explain nearly as well if unsure.
func (x *Probed) fit(scale int, unsure bool) {
	floor := max(x.flows.Cfg.ProbeLoss, 1e-9)
	x.flows.Order()
	x.keys, x.samples = x.keys[:0], x.samples[:0]
	x.links.reset()
	lost := uint64(0)
	for _, s := range x.flows.List {
		sum := s.State.over(scale)
		if sum.packets == 0 {
			continue
		}
		lost += sum.lost
		for _, l := range x.linksOf(&s.State) {
			x.links.cross(l, int32(len(x.keys)))
		}
		x.keys = append(x.keys, s.Key)
		x.samples = append(x.samples, loss.Sample{Packets: sum.packets, Lost: sum.lost})
	}
	if lost == 0 || floor >= 1 {
		return
	}
	x.classify()
	for _, c := range loss.FitWithin(x.samples, len(x.alike), floor, silentAlarm) {
		if c.Link >= 0 && (c.Confidence >= silentSure || unsure) { // one flow alone has a finding of its own
			x.found(&c, scale)
		}
	}
}

// classify numbers the links, and gives the samples those that they cross. Links that the same flows cross have one
// number.
func (x *Probed) classify() {
	byFirst := map[int32][]int32{} // classes by the first flow that crosses them
	var flows [][]int32            // by class
	x.alike = x.alike[:0]
	for at, l := range x.links.list {
		of := x.links.flows[at]
		same := func(class int32) bool { return slices.Equal(flows[class], of) }
		if i := slices.IndexFunc(byFirst[of[0]], same); i >= 0 {
			class := byFirst[of[0]][i]
			x.alike[class] = append(x.alike[class], l)
			continue
		}
		class := int32(len(flows))
		byFirst[of[0]] = append(byFirst[of[0]], class)
		flows, x.alike = append(flows, of), append(x.alike, []probeLink{l})
		for _, i := range of {
			x.samples[i].Links = append(x.samples[i].Links, class)
		}
	}
	for _, links := range x.alike {
		slices.SortFunc(links, probeLink.compare)
	}
}

// found publishes a culprit, unless open ones explain it, and takes its evidence out of the larger blocks.
func (x *Probed) found(c *loss.Culprit, scale int) {
	links := x.alike[c.Link]
	k := links[0]
	if i := slices.IndexFunc(links, func(l probeLink) bool { return x.culprits.Index[l] != nil }); i >= 0 {
		k = links[i]
	} else if x.explained(c.Link) {
		return
	}
	v := x.culprits.Observe(k, x.culprits.Cfg.MaxProbes)
	if v == nil {
		x.culprits.Unlisted++
		return
	}
	if v.finding == nil {
		v.packets, v.total = c.Packets, c.Lost
	}
	v.calm = 0
	over, well, one := 0, 0, 0
	for i := range x.samples {
		switch s := &x.samples[i]; {
		case slices.Contains(s.Links, c.Link):
			over, one = over+1, i
		case s.Lost == 0:
			well++
		}
	}
	f := inference.Finding{
		Kind: inference.PacketLoss, Severity: inference.Warning, Element: inference.ElementOfLink(k.from, k.to), Node: k.from,
		Value: c.Ratio, Baseline: x.flows.Cfg.ProbeLoss, Statistic: "loss",
	}
	if loss.AtLeast(int64(c.Lost), c.Packets, probeSure) >= x.flows.Cfg.ProbeSevere {
		f.Severity = inference.Critical
	}
	f.Text = fmt.Sprintf("%d of %d probes were lost %s within %v (%s): %s over it, and %s beside it lost none", c.Lost, c.Packets, x.name(k, one),
		(time.Duration(x.length) << scale).Round(100*time.Millisecond), inference.Percent(c.Ratio, 2), subject.Plural(uint64(over), "session"), subject.Plural(uint64(well), "session"))
	if n := x.silent(x.flows.Index[x.keys[one]].State.path, k); n > 0 {
		f.Text += fmt.Sprintf("; between them %s did not answer a trace", subject.Plural(uint64(n), "router"))
	}
	if x.host(k.to) {
		f.Text += "; it can be the host as well"
	}
	if others := slices.DeleteFunc(slices.Clone(links), func(l probeLink) bool { return l == k }); len(others) > 0 {
		var names []string
		for _, l := range subject.First(others, 4) {
			names = append(names, "that "+x.name(l, one))
		}
		f.Text += fmt.Sprintf("; the same probes pass %s, which cannot be distinguished: %s", subject.Plural(uint64(len(others)), "other link"), strings.Join(names, ", "))
	}
	if c.Confidence < silentSure {
		f.Text += fmt.Sprintf("; another link explains it nearly as well (confidence %.2f)", c.Confidence)
	}
	x.culprits.Publish(&v.finding, f)
	x.forget(k)
}

// name is a direction of a link in words, by the addresses of a flow over it. For a router of IPv6 it has the number.
func (x *Probed) name(l probeLink, sample int) string {
	flow := x.keys[sample]
	path := x.flows.Index[flow].State.path
	end := func(node uint32) string {
		switch {
		case node == path[0].Node:
			return flow.Src.String()
		case node == path[len(path)-1].Node:
			return flow.Dst.String()
		case flow.IPVersion == 4:
			return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, node))).String()
		}
		return fmt.Sprintf("node %d", node)
	}
	return "from " + end(l.from) + " to " + end(l.to)
}

// probeSure is the logarithm of the chance with which the ratio of losses is overestimated, as for losses of paths.
const probeSure = 15.9

// host reports whether a node is the last one of a way.
func (x *Probed) host(node uint32) bool {
	return slices.ContainsFunc(x.flows.List, func(s *subject.Entry[decode.FlowKey, probeWay]) bool {
		return s.State.path[len(s.State.path)-1].Node == node
	})
}

// explained reports whether open culprits explain the losses for which a class would be blamed: at least three of four
// lost probes passed one of them.
func (x *Probed) explained(class int32) bool {
	var all, passed uint64
	for i := range x.samples {
		s := &x.samples[i]
		if !slices.Contains(s.Links, class) {
			continue
		}
		all += s.Lost
		if slices.ContainsFunc(x.linksOf(&x.flows.Index[x.keys[i]].State), func(l probeLink) bool { return x.culprits.Index[l] != nil }) {
			passed += s.Lost
		}
	}
	return 4*passed >= 3*all
}
