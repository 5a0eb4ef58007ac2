package ways

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// The finding that a packet vanished rests on its identification and its flow, which both switches have to report
// alike. Where a device on the path writes others, or reports come after it was settled, packets seem to vanish that
// arrive. The busiest flows show it: they list what last switches report, recognised or not. Losses beside as many
// packets that arrive unrecognised are no losses.

const (
	oddShare   = .3 // of lost packets that have to arrive unrecognised
	oddLeast   = .9 // of the packets of a flow that have to be lost: what writes others spares none, and the count of arrivals is seconds younger
	oddFlows   = 2  // of a last switch in a window, or
	oddPackets = 20 // that are worth a finding
	thinRate   = .2 // at which it is learnt how many packets arrive for each that is compared
)

// arrivals holds the reports of last switches in a window.
type arrivals struct {
	flows   map[decode.FlowKey]*inference.FlowStats
	changed map[changedKey]uint64   // packets of flows that no first switch reports
	paired  map[decode.FlowKey]bool // that first switches report
	bound   uint64                  // flows with more packets are listed
}

// changedKey is the part of a flow that a translator of addresses keeps, with its way: the address and port of one side.
type changedKey struct {
	addr  decode.Addr
	port  uint16
	proto uint8
	src   bool
	way   uint64
}

// wayHash is a hash of the nodes of a path.
func wayHash[T any](hops []T, node func(*T) uint32) uint64 {
	h := uint64(len(hops))
	for i := range hops {
		h = bits.RotateLeft64((h^uint64(node(&hops[i])))*0x9e3779b97f4a7c15, 29)
	}
	return h
}

func changedKeys(f *decode.FlowKey, way uint64) [2]changedKey {
	return [2]changedKey{{f.Dst, f.DstPort, f.Proto, false, way}, {f.Src, f.SrcPort, f.Proto, true, way}}
}

// read takes the busiest flows of a window.
func (a *arrivals) read(w *inference.Window) {
	clear(a.flows)
	clear(a.changed)
	clear(a.paired)
	if len(w.Losses) == 0 {
		return
	}
	if a.flows == nil {
		a.flows, a.changed, a.paired = map[decode.FlowKey]*inference.FlowStats{}, map[changedKey]uint64{}, map[decode.FlowKey]bool{}
	}
	a.bound = w.FlowBound
	for i := range w.Flows {
		a.flows[w.Flows[i].Key] = &w.Flows[i]
	}
	for i := range w.Losses {
		a.paired[w.Losses[i].Flow] = true
	}
	for i := range w.Flows {
		if f := &w.Flows[i]; !a.paired[f.Key] && len(f.Hops) > 0 {
			for _, k := range changedKeys(&f.Key, wayHash(f.Hops, func(h *inference.FlowHop) uint32 { return h.Node })) {
				a.changed[k] += leaving(f)
			}
		}
	}
}

// leaving is how many packets of a flow its last switch reported: of postcards, each switch has its own.
func leaving(f *inference.FlowStats) uint64 {
	if n := len(f.Hops); n > 0 && f.Hops[n-1].Latency.Count > 0 {
		return min(f.Packets, f.Hops[n-1].Latency.Count)
	}
	return f.Packets
}

// odd counts packets that arrive at a last switch unrecognised.
type odd struct {
	flows         int
	packets, lost uint64
	first         uint32 // node
	changed       bool   // under other addresses
}

// unrecognised reports whether the lost packets of a flow arrive as others.
func (x *Silent) unrecognised(l *inference.FlowLoss) bool {
	if float64(l.Lost) < oddLeast*float64(l.Packets) || l.Lost == 0 || len(l.Path) == 0 || l.Lost > l.Packets {
		return false
	}
	least := max(1, uint64(oddShare*float64(l.Lost)))
	changed := false
	for _, k := range changedKeys(&l.Flow, wayHash(l.Path, func(h *inference.HopKey) uint32 { return h.Node })) {
		changed = changed || x.arrivals.changed[k] >= least
	}
	f, known := x.arrivals.flows[l.Flow], x.flows.Index[l.Flow]
	if known == nil || !changed && (f == nil || known.State.thin == 0 || float64(leaving(f)) < known.State.thin*float64(l.Packets-l.Lost+least)) {
		return false
	}
	known.Last = x.flows.Windows
	if known.State.odd++; int64(known.State.odd)*x.length <= 2*loss.Settling { // as it is, too, when what vanished comes again
		return true
	}
	n := l.Path[len(l.Path)-1].Node
	if x.odd[n] == nil {
		x.odd[n] = &odd{first: l.Path[0].Node}
	}
	o := x.odd[n]
	o.flows++
	o.packets += l.Packets
	o.lost += l.Lost
	o.changed = o.changed || changed
	return true
}

// learnThin learns how many packets arrive for each one that is compared: of fast flows a share is compared.
func (x *Silent) learnThin(f *silentFlow, l *inference.FlowLoss) {
	a := x.arrivals.flows[l.Flow]
	if a == nil || 10*l.Lost > l.Packets || l.Packets == 0 {
		return
	}
	ratio := float64(leaving(a)) / float64(l.Packets)
	if f.thin == 0 {
		f.thin = ratio
	}
	f.thin += thinRate * (ratio - f.thin)
}

// publishUnrecognised publishes findings of last switches at which packets arrive unrecognised.
func (x *Silent) publishUnrecognised() {
	if len(x.odd) == 0 {
		return
	}
	for n, o := range x.odd {
		k := culprit{end: end{scope: otherEnd, node: n}}
		if x.culprits.Index[k] == nil && o.flows < oddFlows && o.lost < oddPackets {
			delete(x.odd, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(x.odd)) {
		o, k := x.odd[n], culprit{end: end{scope: otherEnd, node: n}}
		v := x.culprits.Observe(k, x.culprits.Cfg.MaxFlows)
		if v == nil {
			x.culprits.Unlisted++
			continue
		}
		v.packets, v.total, v.calm = v.packets+o.packets, v.total+o.lost, 0
		what := "something on the way writes other identifications, or reports come late"
		if o.changed {
			what = "something on the way writes other addresses"
		}
		x.culprits.Publish(&v.finding, inference.Finding{
			Kind: inference.PacketLoss, Severity: inference.Warning, Element: inference.ElementOfNode(n), Node: n,
			Value: float64(o.lost) / float64(o.packets), Baseline: x.flows.Cfg.SilentLoss, Statistic: "loss",
			Text: fmt.Sprintf("%s of %s to node %d are not recognised there: as many arrive, and %s; losses of these flows are not judged",
				subject.Plural(o.lost, "packet"), subject.Plural(uint64(o.flows), "flow"), n, what),
		})
	}
	x.withdraw()
	clear(x.odd)
}

// withdraw ends findings of links that began with findings that packets are not recognised, if all that passes them is
// to last switches with such a finding: what vanished arrived.
func (x *Silent) withdraw() {
	x.culprits.ForEachAbsent(func(k culprit, v *vanished, _ int) bool {
		if k.end.scope != noEnd || k.from == 0 && k.to == 0 || !x.beganUnrecognised(k, v.finding.Start) {
			return false
		}
		x.culprits.End(&v.finding, fmt.Sprintf("packets that seemed to vanish from node %d to node %d arrived, and were not recognised there", k.from, k.to))
		return true
	})
}

// beganUnrecognised reports whether all flows over a link are to last switches at which packets are not recognised, and
// that one of these findings began at most two settlings from a moment: one that is older explains nothing that begins.
func (x *Silent) beganUnrecognised(k culprit, since int64) bool {
	began := false
	for _, s := range x.flows.List {
		path := s.State.path
		if !k.explains(s.Key, path) {
			continue
		}
		if !x.unrecognisedAt(path) {
			return false
		}
		apart := x.culprits.Index[culprit{end: end{scope: otherEnd, node: path[len(path)-1].Node}}].State.finding.Start - since
		began = began || max(apart, -apart) <= 2*loss.Settling+x.length
	}
	return began
}

// conditional reports whether a finding of a candidate of the fit, or of a flow, is conditional. It is if most of the
// explained losses are of flows of which it is unknown whether their packets arrive as others. Those flows go to a last
// switch at which packets are not recognised, or lost nearly all packets and are not among the busiest. Where a device
// begins or ceases to write other identifications within a window, such flows lose a part of their packets only.
func (x *Silent) conditional(candidate, flow int32) bool {
	var all, untraced uint64
	for i := range x.samples {
		s := &x.samples[i]
		if int32(i) != flow && (candidate < 0 || !slices.Contains(s.Links, candidate)) {
			continue
		}
		all += s.Lost
		if x.unrecognisedAt(x.sampleFlows[i].path) || 10*s.Lost >= 9*s.Packets && x.arrivals.flows[x.keys[i]] == nil && x.arrivals.bound > 0 {
			untraced += s.Lost
		}
	}
	return 2*untraced > all
}

// unrecognisedAt reports whether the last switch of a way has an open finding that packets are not recognised there.
func (x *Silent) unrecognisedAt(path []inference.HopKey) bool {
	return len(path) > 0 && x.culprits.Index[culprit{end: end{scope: otherEnd, node: path[len(path)-1].Node}}] != nil
}
