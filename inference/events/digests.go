package events

import (
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type digestKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

// digests is a flow whose PINT digests have a fault.
type digests struct {
	total   uint64
	last    uint64 // window of the last one
	finding *inference.Finding
}

func (d *Detector) stepDigests(w *inference.Window) {
	for _, s := range w.Digests {
		if s.Fault == inference.Inconsistent && s.Count < d.cfg.DigestsStrange {
			continue
		}
		key := digestKey{s.Fault, s.Flow}
		e := d.digests[key]
		if e == nil {
			if len(d.digests) >= d.cfg.MaxFlows {
				d.stats.FaultsRefused += s.Count
				continue
			}
			e = &digests{}
			d.digests[key] = e
		}
		e.total += s.Count
		e.last = d.windows
		f := inference.Finding{Kind: inference.StrangeDigests, Severity: inference.Warning, Flow: s.Flow, Node: s.Node, Value: float64(s.Count)}
		if s.Fault == inference.Looping {
			f.Kind, f.Severity = inference.RoutingLoop, inference.Critical
			f.Text = fmt.Sprintf("%s of %s came back to a switch that it had passed, reported by node %d", packets(s.Count), s.Flow, s.Node)
		} else {
			f.Text = fmt.Sprintf("%s of %s fit no path through the known nodes: a node is unknown, the topology is out of date, or they are forged",
				plural(s.Count, "digest"), s.Flow)
		}
		if e.finding == nil {
			e.finding = d.start(f)
			continue
		}
		d.update(e.finding, f.Severity, f.Value, 0, f.Text)
	}
	for _, key := range ordered(d.digests, func(a, b digestKey) int {
		return cmp.Or(cmp.Compare(a.fault, b.fault), compareFlows(a.flow, b.flow))
	}) {
		if e := d.digests[key]; d.windows-e.last >= uint64(d.cfg.EndAfter) {
			e.finding.Value = 0
			text := fmt.Sprintf("no more strange digests of %s after %d", key.flow, e.total)
			if key.fault == inference.Looping {
				text = fmt.Sprintf("packets of %s loop no more, after %d", key.flow, e.total)
			}
			d.end(e.finding, text)
			delete(d.digests, key)
		}
	}
}
