package events

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// PolicyConfig are the settings of the detector of flows that leave the way which the policy allows.
type PolicyConfig struct {
	PolicyWindows int `yaml:"policy_windows" doc:"Windows one after the other in which a rule of the policy is broken in the same way that make a finding: while routes change, packets may take any way." range:"1..1000"`
}

var defaultPolicyConfig = PolicyConfig{PolicyWindows: 2}

// offPolicy finds rules of the policy that flows break, each way of breaking one on its own.
type offPolicy struct {
	*lifecycle[inference.StrayKey, astray]
}

// astray is what is remembered of a way in which a rule is broken.
type astray struct {
	flows   uint64 // the most of a window
	row     int    // windows one after the other
	finding *inference.Finding
}

func (c *coder) strayKey(k *inference.StrayKey) {
	c.text(&k.Rule)
	number(c, &k.Reason)
	number(c, &k.Node)
}

func (c *coder) astray(a *astray) {
	number(c, &a.flows)
	number(c, &a.row)
	c.finding(&a.finding)
}

func newOffPolicy(j *journal) offPolicy {
	return offPolicy{newLifecycle(j, inference.StrayKey.Compare, (*coder).strayKey, (*coder).astray)}
}

func (d offPolicy) step(w *inference.Window) {
	for i := range w.Strays {
		s := &w.Strays[i]
		t := d.observe(s.StrayKey, d.cfg.MaxFlows)
		if t == nil {
			d.unlisted++
			continue
		}
		t.flows, t.row = max(t.flows, s.Flows), t.row+1
		if t.row < d.cfg.PolicyWindows {
			continue
		}
		f := inference.Finding{
			Kind: inference.OffPolicy, Severity: inference.Warning, Node: s.Node, Value: float64(s.Flows), Statistic: "flows",
			Element: inference.ElementOfNode(s.Node),
			Text:    fmt.Sprintf("%s by %s, such as %s on %s", s.StrayKey, plural(s.Flows, "flow"), s.Flow, inference.HopPath(s.Path)),
		}
		if s.Flows == 1 {
			f.Flow = s.Flow
		}
		if s.Reason == inference.Missed { // what is wrong is where the packets are, and not where they should be
			f.Element = inference.ElementOfFlow(s.Flow)
		}
		d.publish(&t.finding, f)
	}
	d.forEachAbsent(func(k inference.StrayKey, t *astray, windows int) bool {
		if t.finding == nil {
			return true // it was not often enough
		}
		if windows < d.cfg.EndAfter {
			return false
		}
		t.finding.Value = 0
		d.end(&t.finding, fmt.Sprintf("no more: %s by up to %s", k, plural(t.flows, "flow")))
		return true
	})
}
