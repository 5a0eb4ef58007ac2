package events

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// offPolicy finds rules of the policy that flows break, each way of breaking one on its own.
type offPolicy struct {
	*subject.Table[inference.StrayKey, astray]
}

// astray is the state of one way in which a rule is broken.
type astray struct {
	flows   uint64 // the most of a window
	row     int    // windows one after the other
	finding *inference.Finding
}

func codeStrayKey(c *subject.Coder, k *inference.StrayKey) {
	c.Text(&k.Rule)
	subject.Number(c, &k.Reason)
	subject.Number(c, &k.Node)
}

func codeAstray(c *subject.Coder, a *astray) {
	subject.Number(c, &a.flows)
	subject.Number(c, &a.row)
	c.Finding(&a.finding)
}

func newOffPolicy(j *subject.Journal) offPolicy {
	return offPolicy{subject.NewTable(j, inference.StrayKey.Compare, codeStrayKey, codeAstray)}
}

func (d offPolicy) Step(w *inference.Window) {
	for i := range w.Strays {
		s := &w.Strays[i]
		t := d.Observe(s.StrayKey, d.Cfg.MaxFlows)
		if t == nil {
			d.Unlisted++
			continue
		}
		t.flows, t.row = max(t.flows, s.Flows), t.row+1
		if t.row < d.Cfg.PolicyWindows {
			continue
		}
		f := inference.Finding{
			Kind: inference.OffPolicy, Severity: inference.Warning, Node: s.Node, Value: float64(s.Flows), Statistic: "flows",
			Element: inference.ElementOfNode(s.Node),
			Text:    fmt.Sprintf("%s by %s, such as %s on %s", s.StrayKey, subject.Plural(s.Flows, "flow"), s.Flow, inference.HopPath(s.Path)),
		}
		if s.Flows == 1 {
			f.Flow = s.Flow
		}
		if s.Reason == inference.Missed { // the fault is where the packets are, and not where they should be
			f.Element = inference.ElementOfFlow(s.Flow)
		}
		d.Publish(&t.finding, f)
	}
	d.ForEachAbsent(func(k inference.StrayKey, t *astray, windows int) bool {
		if t.finding == nil {
			return true // it was not often enough
		}
		if windows < d.Cfg.EndAfter {
			return false
		}
		t.finding.Value = 0
		d.End(&t.finding, fmt.Sprintf("no more: %s by up to %s", k, subject.Plural(t.flows, "flow")))
		return true
	})
}
