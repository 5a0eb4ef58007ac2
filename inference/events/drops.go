package events

import (
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type dropKey struct {
	node   uint32
	reason uint8
}

// drops is a node that drops packets for one reason.
type drops struct {
	total   uint64
	last    uint64 // window of the last drop
	finding *inference.Finding
}

func (d *Detector) stepDrops(w *inference.Window) {
	for _, s := range w.Drops {
		if s.Count == 0 {
			continue
		}
		key := dropKey{s.Node, s.Reason}
		e := d.drops[key]
		if e == nil {
			if len(d.drops) >= d.cfg.MaxDrops {
				d.stats.DropsRefused++
				continue
			}
			e = &drops{}
			d.drops[key] = e
		}
		e.total += s.Count
		e.last = d.windows
		severity := inference.Warning
		if s.Count >= uint64(d.cfg.DropsSevere) {
			severity = inference.Critical
		}
		text := fmt.Sprintf("node %d dropped %s for reason %d", s.Node, packets(s.Count), s.Reason)
		if e.total != s.Count {
			text += fmt.Sprintf(", %d since it began", e.total)
		}
		if s.Flow != (decode.FlowKey{}) {
			text += fmt.Sprintf(", the last of %s", s.Flow)
		}
		if e.finding == nil {
			e.finding = d.start(inference.Finding{Kind: inference.PacketDrops, Severity: severity,
				Node: s.Node, Reason: s.Reason, Flow: s.Flow, Value: float64(s.Count), Text: text})
			continue
		}
		e.finding.Flow = s.Flow
		d.update(e.finding, severity, float64(s.Count), 0, text)
	}
	for _, key := range ordered(d.drops, func(a, b dropKey) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.reason, b.reason))
	}) {
		if e := d.drops[key]; d.windows-e.last >= uint64(d.cfg.EndAfter) {
			e.finding.Value = 0
			d.end(e.finding, fmt.Sprintf("node %d dropped nothing more for reason %d after %s", key.node, key.reason, packets(e.total)))
			delete(d.drops, key)
		}
	}
}

func packets(n uint64) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}
