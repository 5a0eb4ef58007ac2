package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/loss"
)

// drops finds nodes that report dropped packets, each reason on its own.
type drops struct {
	*subject.Table[dropKey, subject.Tally]
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

func newDrops(j *subject.Journal) drops {
	return drops{subject.NewTable(j, dropKey.compare, codeDropKey, (*subject.Coder).Tally)}
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
		d.Publish(&t.Finding, inference.Finding{
			Kind: inference.PacketDrops, Severity: severity, Node: s.Node, Reason: s.Reason, Flow: s.Flow,
			Value: float64(s.Count), Text: text,
		})
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

// dropped is the least share of a node's packets that it dropped for a reason; 0 where no hop of it was reported, so that the packets
// that passed are unknown.
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

// ofProbe is the reason of a drop that an agent reports of a probe, which did not come or was not sent; 0 for all other drops.
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
