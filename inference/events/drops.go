package events

import (
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// DropConfig are the settings of the detector of drops.
type DropConfig struct {
	DropsSevere int `yaml:"drops_severe" doc:"Drop reports of one node and reason in one window that are critical." range:"1..1000000000"`
}

var defaultDropConfig = DropConfig{DropsSevere: 1000}

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
		severity := inference.Warning
		if s.Count >= uint64(d.cfg.DropsSevere) {
			severity = inference.Critical
		}
		d.publish(&t.finding, inference.Finding{
			Kind: inference.PacketDrops, Severity: severity, Node: s.Node, Reason: s.Reason, Flow: s.Flow,
			Value: float64(s.Count), Text: dropText(s, t.count),
		})
	}
	d.forEachAbsent(func(k dropKey, t *tally, windows int) bool {
		if windows < d.cfg.EndAfter {
			return false
		}
		t.finding.Value = 0
		d.end(&t.finding, fmt.Sprintf("node %d dropped nothing more for reason %d after %s", k.node, k.reason, plural(t.count, "packet")))
		return true
	})
}

func dropText(s *inference.DropStats, total uint64) string {
	text := fmt.Sprintf("node %d dropped %s for reason %d", s.Node, plural(s.Count, "packet"), s.Reason)
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
