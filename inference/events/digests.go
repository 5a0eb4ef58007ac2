package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// digests finds flows whose PINT digests have a fault, each fault on its own.
type digests struct {
	*subject.Table[digestKey, subject.Tally]
	wires *ways.Wires
}

type digestKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

func (k digestKey) compare(o digestKey) int {
	return cmp.Or(cmp.Compare(k.fault, o.fault), k.flow.Compare(&o.flow))
}

func codeDigestKey(c *subject.Coder, k *digestKey) {
	subject.Number(c, &k.fault)
	c.Flow(&k.flow)
}

func newDigests(j *subject.Journal, l *ways.Wires) digests {
	return digests{subject.NewTable(j, digestKey.compare, codeDigestKey, (*subject.Coder).Tally), l}
}

func (d digests) Step(w *inference.Window) {
	suspects := d.suspects(w)
	for i := range w.Digests {
		s := &w.Digests[i]
		if s.Fault == inference.Inconsistent && (s.Count < d.Cfg.DigestsStrange || d.Explained[s.Flow]) {
			continue
		}
		t := d.Observe(digestKey{s.Fault, s.Flow}, d.Cfg.MaxFlows)
		if t == nil {
			d.Stats.FaultsRefused += s.Count
			continue
		}
		t.Count += s.Count
		f := inference.Finding{Kind: inference.StrangeDigests, Severity: inference.Warning, Flow: s.Flow, Value: float64(s.Count)}
		if s.Fault == inference.Looping {
			f.Kind, f.Severity, f.Node = inference.RoutingLoop, inference.Critical, s.Node
			f.Text = fmt.Sprintf("%s of %s came back to a switch that it had passed, reported by node %d", subject.Plural(s.Count, "packet"), s.Flow, s.Node)
		} else {
			f.Text = fmt.Sprintf("%s of %s fit no path through the known nodes: a node is unknown, the topology is out of date, or they are forged",
				subject.Plural(s.Count, "digest"), s.Flow)
		}
		d.Publish(&t.Finding, f)
		if t.Finding != nil && len(suspects[s.Flow]) > 0 {
			d.Moved[t.Finding.ID] = suspects[s.Flow]
		}
	}
	d.ForEachAbsent(func(k digestKey, t *subject.Tally, windows int) bool {
		if windows < d.Cfg.EndAfter {
			return false
		}
		text := fmt.Sprintf("no more strange digests of %s after %d", k.flow, t.Count)
		if k.fault == inference.Looping {
			text = fmt.Sprintf("packets of %s loop no more, after %d", k.flow, t.Count)
		}
		t.Finding.Value = 0
		d.End(&t.Finding, text)
		return true
	})
}

// suspects returns, for each flow with digests that fit no path, the nodes on its way. One of them may write them.
// Flows that are not among those of the window have none.
func (d digests) suspects(w *inference.Window) map[decode.FlowKey][]inference.HopKey {
	if len(w.Digests) == 0 {
		return nil
	}
	out, located := map[decode.FlowKey][]inference.HopKey{}, map[decode.FlowKey]uint32{}
	for i := range w.Digests {
		if s := &w.Digests[i]; s.Fault == inference.Inconsistent {
			if out[s.Flow] = nil; s.Node != 0 {
				located[s.Flow] = s.Node
			}
		}
	}
	for i := range w.Flows {
		f := &w.Flows[i]
		way, unexplained := out[f.Key]
		if !unexplained {
			continue
		}
		for k := range f.Hops {
			nodes := []uint32{f.Hops[k].Node}
			if f.Hops[k].Unknown {
				nodes = d.between(f.Hops, k)
			}
			for _, n := range nodes {
				if h := (inference.HopKey{Node: n}); !f.Hops[k].Other && n != 0 && len(way) < subject.MostHops && !slices.Contains(way, h) {
					way = append(way, h)
				}
			}
		}
		out[f.Key] = way
	}
	for k, node := range located { // their digests locate it
		out[k] = []inference.HopKey{{Node: node}}
	}
	return out
}

// between returns the nodes that can be at a hop that the digests leave open: neighbours of both of those beside it.
func (d digests) between(hops []inference.FlowHop, k int) []uint32 {
	var out []uint32
	for i, at := range [2]int{k - 1, k + 1} {
		if at < 0 || at >= len(hops) || hops[at].Unknown || hops[at].Other {
			continue
		}
		peers := d.wires.Peers(inference.HopKey{Node: hops[at].Node})
		if i == 0 || out == nil {
			out = slices.Clone(peers)
		} else {
			out = slices.DeleteFunc(out, func(n uint32) bool { return !slices.Contains(peers, n) })
		}
	}
	return subject.First(out, 8)
}
