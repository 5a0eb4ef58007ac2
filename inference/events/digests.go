package events

import (
	"cmp"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// DigestConfig are the settings of the detector of faults in digests.
type DigestConfig struct {
	DigestsStrange uint64 `yaml:"digests_strange" doc:"PINT digests of a flow that no path can have written, in one window, that are worth a finding." range:"1..1000000000"`
}

var defaultDigestConfig = DigestConfig{DigestsStrange: 10}

// digests finds flows whose PINT digests have a fault, each fault on its own.
type digests struct{ *lifecycle[digestKey, tally] }

type digestKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

func (k digestKey) compare(o digestKey) int {
	return cmp.Or(cmp.Compare(k.fault, o.fault), k.flow.Compare(&o.flow))
}

func (c *coder) digestKey(k *digestKey) {
	number(c, &k.fault)
	c.flow(&k.flow)
}

func newDigests(j *journal) digests {
	return digests{follow(j, digestKey.compare, (*coder).digestKey, (*coder).tally)}
}

func (d digests) step(w *inference.Window) {
	for i := range w.Digests {
		s := &w.Digests[i]
		if s.Fault == inference.Inconsistent && s.Count < d.cfg.DigestsStrange {
			continue
		}
		t := d.see(digestKey{s.Fault, s.Flow}, d.cfg.MaxFlows)
		if t == nil {
			d.stats.FaultsRefused += s.Count
			continue
		}
		t.count += s.Count
		f := inference.Finding{Kind: inference.StrangeDigests, Severity: inference.Warning, Flow: s.Flow, Node: s.Node, Value: float64(s.Count)}
		if s.Fault == inference.Looping {
			f.Kind, f.Severity = inference.RoutingLoop, inference.Critical
			f.Text = fmt.Sprintf("%s of %s came back to a switch that it had passed, reported by node %d", plural(s.Count, "packet"), s.Flow, s.Node)
		} else {
			f.Text = fmt.Sprintf("%s of %s fit no path through the known nodes: a node is unknown, the topology is out of date, or they are forged",
				plural(s.Count, "digest"), s.Flow)
		}
		d.tell(&t.finding, f)
	}
	d.absent(func(k digestKey, t *tally, windows int) bool {
		if windows < d.cfg.EndAfter {
			return false
		}
		text := fmt.Sprintf("no more strange digests of %s after %d", k.flow, t.count)
		if k.fault == inference.Looping {
			text = fmt.Sprintf("packets of %s loop no more, after %d", k.flow, t.count)
		}
		t.finding.Value = 0
		d.end(&t.finding, text)
		return true
	})
}
