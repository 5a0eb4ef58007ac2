package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
	"github.com/hopscope/hopscope/inference/loss"
)

// drops finds nodes that report dropped packets, each reason on its own.
type drops struct {
	*subject.Table[dropKey, subject.Tally]
	way *ways.Probed
}

type dropKey struct {
	node   uint32
	reason uint8
}

func (k dropKey) compare(o dropKey) int {
	return cmp.Or(cmp.Compare(k.node, o.node), cmp.Compare(k.reason, o.reason))
}

func codeDropKey(c *subject.Coder, k *dropKey) {
	subject.Number(c, &k.node)
	subject.Number(c, &k.reason)
}

func newDrops(j *subject.Journal, w *ways.Probed) drops {
	return drops{subject.NewTable(j, dropKey.compare, codeDropKey, (*subject.Coder).Tally), w}
}

func (d drops) Step(w *inference.Window) {
	for i := range w.Drops {
		s := &w.Drops[i]
		if s.Count == 0 {
			continue
		}
		t := d.Observe(dropKey{s.Node, s.Reason}, d.Cfg.MaxDrops)
		if t == nil {
			d.Stats.DropsRefused++
			continue
		}
		t.Count += s.Count
		severity, text := inference.Warning, dropText(s, t.Count)
		if s.Count >= uint64(d.Cfg.DropsSevere) {
			severity = inference.Critical
		} else if share := dropped(w, s); share > d.Cfg.DropsShare {
			severity = inference.Critical
			text += fmt.Sprintf("; at least %s of its packets", inference.PercentAtLeast(share, 2))
		}
		f := inference.Finding{Kind: inference.PacketDrops, Severity: severity, Node: s.Node, Reason: s.Reason, Flow: s.Flow, Value: float64(s.Count)}
		switch ofProbe(s.Reason, &s.Flow) {
		case inference.ProbeMissing:
			f.Statistic = inference.MissingProbes
		case inference.ProbeUnsent:
			f.Statistic = inference.UnsentProbes
		}
		known := uint32(0)
		if t.Finding != nil && t.Finding.Element.Kind == inference.InterfaceElement {
			known = t.Finding.Element.EgressIf
		}
		port := outlet(w, s, known)
		if port != known { // otherwise it stays
			f.Element = inference.ElementOfHop(inference.HopKey{Node: s.Node, EgressIf: port})
		}
		if port != 0 {
			text += fmt.Sprintf("; nearly all of them were to leave by interface %d, which hardly a packet passes", port)
		}
		if t.Finding != nil && port != known && port != 0 {
			d.End(&t.Finding, fmt.Sprintf("%s dropped %s for reason %d, all at interface %d", t.Finding.Element, subject.Plural(t.Count-s.Count, "packet"), s.Reason, port))
		}
		f.Text = text
		d.Publish(&t.Finding, f)
		if f.Statistic == inference.MissingProbes {
			d.Moved[t.Finding.ID] = d.way.AroundAgent(s.Node, s.Flow.Src)
		}
	}
	d.ForEachAbsent(func(k dropKey, t *subject.Tally, windows int) bool {
		if windows < d.Cfg.EndAfter {
			return false
		}
		t.Finding.Value = 0
		text := fmt.Sprintf("node %d dropped nothing more for reason %d after %s", k.node, k.reason, subject.Plural(t.Count, "packet"))
		switch ofProbe(k.reason, &t.Finding.Flow) {
		case inference.ProbeMissing:
			text = fmt.Sprintf("no probe is missing any more at the agent with node id %d, after %s", k.node, subject.Plural(t.Count, "probe"))
		case inference.ProbeUnsent:
			text = fmt.Sprintf("the port of the agent with node id %d takes all probes again, after %s", k.node, subject.Plural(t.Count, "probe"))
		}
		d.End(&t.Finding, text)
		return true
	})
}

// outletDrops is the number of packets that a node has to drop in a window before its outlet is searched.
const outletDrops = 10

// outlet returns the interface by which nearly all packets that a node dropped for a reason were to leave, if it drops
// nine of ten. It returns 0 without one. So few packets pass it that their latencies show nothing. A known outlet
// remains while half of the packets were to leave there. A packet that is dropped has a hop record without a latency.
func outlet(w *inference.Window, s *inference.DropStats, known uint32) uint32 {
	if s.Count < outletDrops {
		return known
	}
	i, _ := slices.BinarySearchFunc(w.Hops, s.Node, func(h inference.HopStats, node uint32) int { return cmp.Compare(h.Node, node) })
	for ; i < len(w.Hops) && w.Hops[i].Node == s.Node && !w.Hops[i].Other; i++ {
		h := &w.Hops[i]
		gone := h.Count - min(h.Latency.Count, h.Count)
		if h.EgressIf == 0 || gone > s.Count {
			continue
		}
		if h.EgressIf == known && 2*gone >= s.Count || 10*gone >= 9*s.Count && 10*gone >= 9*h.Count {
			return h.EgressIf
		}
	}
	return 0
}

// dropped returns the least share of a node's packets that it dropped for a reason. It is 0 if no hop of the node was
// reported, so that the packets that passed are unknown.
func dropped(w *inference.Window, s *inference.DropStats) float64 {
	hops := w.Hops
	if n := len(hops); n > 0 && hops[n-1].Other {
		hops = hops[:n-1]
	}
	passed := w.OtherHops
	i, _ := slices.BinarySearchFunc(hops, s.Node, func(h inference.HopStats, node uint32) int { return cmp.Compare(h.Node, node) })
	for ; i < len(hops) && hops[i].Node == s.Node; i++ {
		passed += hops[i].Count
	}
	if passed == 0 {
		return 0
	}
	all := passed
	i, _ = slices.BinarySearchFunc(w.Drops, s.Node, func(d inference.DropStats, node uint32) int { return cmp.Compare(d.Node, node) })
	for ; i < len(w.Drops) && w.Drops[i].Node == s.Node; i++ {
		all += w.Drops[i].Count
	}
	return loss.AtLeast(int64(s.Count), all, lossLimit)
}

// ofProbe returns the reason of a drop that an agent reports of a probe, which did not come or was not sent. It is 0
// for all other drops.
func ofProbe(reason uint8, flow *decode.FlowKey) uint8 {
	if (reason == inference.ProbeMissing || reason == inference.ProbeUnsent) && (inference.IsProbe(flow) || inference.IsSTAMP(flow)) {
		return reason
	}
	return 0
}

func dropText(s *inference.DropStats, total uint64) string {
	text := fmt.Sprintf("node %d dropped %s for reason %d", s.Node, subject.Plural(s.Count, "packet"), s.Reason)
	switch ofProbe(s.Reason, &s.Flow) {
	case inference.ProbeMissing:
		text = fmt.Sprintf("%s did not come to the agent with node id %d", subject.Plural(s.Count, "probe"), s.Node)
	case inference.ProbeUnsent:
		text = fmt.Sprintf("the port of the agent with node id %d did not take %s", s.Node, subject.Plural(s.Count, "probe"))
	}
	if total != s.Count {
		text += fmt.Sprintf(", %d since it began", total)
	}
	if s.Flow != (decode.FlowKey{}) {
		text += fmt.Sprintf(", the last of %s", s.Flow)
	}
	return text
}
