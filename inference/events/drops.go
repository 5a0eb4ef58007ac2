package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// DropConfig are the settings of the detector of drops.
type DropConfig struct {
	DropsSevere int     `yaml:"drops_severe" doc:"Drop reports of one node and reason in one window that are critical." range:"1..1000000000"`
	DropsShare  float64 `yaml:"drops_share" doc:"Share of a node's packets in one window whose drops for one reason are critical, by the same evidence as losses; 1 for none. Packets are drop reports and hop records of the node, so that a node that samples hops, and not drops, needs another share." range:"0..1"`
}

var defaultDropConfig = DropConfig{DropsSevere: 1000, DropsShare: .05}

// drops finds nodes that report dropped packets, each reason on its own.
type drops struct{ *lifecycle[dropKey, tally] }

type dropKey struct {
	node   uint32
	reason uint8
}

func (k dropKey) compare(o dropKey) int {
	return cmp.Or(cmp.Compare(k.node, o.node), cmp.Compare(k.reason, o.reason))
}

func (c *coder) dropKey(k *dropKey) {
	number(c, &k.node)
	number(c, &k.reason)
}

func newDrops(j *journal) drops {
	return drops{newLifecycle(j, dropKey.compare, (*coder).dropKey, (*coder).tally)}
}

func (d drops) step(w *inference.Window) {
	for i := range w.Drops {
		s := &w.Drops[i]
		if s.Count == 0 {
			continue
		}
		t := d.observe(dropKey{s.Node, s.Reason}, d.cfg.MaxDrops)
		if t == nil {
			d.stats.DropsRefused++
			continue
		}
		t.count += s.Count
		severity, text := inference.Warning, dropText(s, t.count)
		if s.Count >= uint64(d.cfg.DropsSevere) {
			severity = inference.Critical
		} else if share := dropped(w, s); share > d.cfg.DropsShare {
			severity = inference.Critical
			text += fmt.Sprintf("; at least %s of its packets", inference.PercentAtLeast(share, 2))
		}
		d.publish(&t.finding, inference.Finding{
			Kind: inference.PacketDrops, Severity: severity, Node: s.Node, Reason: s.Reason, Flow: s.Flow,
			Value: float64(s.Count), Text: text,
		})
	}
	d.forEachAbsent(func(k dropKey, t *tally, windows int) bool {
		if windows < d.cfg.EndAfter {
			return false
		}
		t.finding.Value = 0
		text := fmt.Sprintf("node %d dropped nothing more for reason %d after %s", k.node, k.reason, plural(t.count, "packet"))
		switch ofProbe(k.reason, &t.finding.Flow) {
		case inference.ProbeMissing:
			text = fmt.Sprintf("no probe is missing any more at the agent with node id %d, after %s", k.node, plural(t.count, "probe"))
		case inference.ProbeUnsent:
			text = fmt.Sprintf("the port of the agent with node id %d takes all probes again, after %s", k.node, plural(t.count, "probe"))
		}
		d.end(&t.finding, text)
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
	return atLeast(int64(s.Count), all, lossLimit)
}

// ofProbe is the reason of a drop that an agent reports of a probe, which did not come or was not sent; 0 for all other drops.
func ofProbe(reason uint8, flow *decode.FlowKey) uint8 {
	if (reason == inference.ProbeMissing || reason == inference.ProbeUnsent) && inference.IsProbe(flow) {
		return reason
	}
	return 0
}

func dropText(s *inference.DropStats, total uint64) string {
	text := fmt.Sprintf("node %d dropped %s for reason %d", s.Node, plural(s.Count, "packet"), s.Reason)
	switch ofProbe(s.Reason, &s.Flow) {
	case inference.ProbeMissing:
		text = fmt.Sprintf("%s did not come to the agent with node id %d", plural(s.Count, "probe"), s.Node)
	case inference.ProbeUnsent:
		text = fmt.Sprintf("the port of the agent with node id %d did not take %s", s.Node, plural(s.Count, "probe"))
	}
	if total != s.Count {
		text += fmt.Sprintf(", %d since it began", total)
	}
	if s.Flow != (decode.FlowKey{}) {
		text += fmt.Sprintf(", the last of %s", s.Flow)
	}
	return text
}

// plural gives "1 packet" or "3 packets".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
