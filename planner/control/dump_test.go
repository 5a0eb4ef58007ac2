package control

import (
	"fmt"
	"strings"
)

// String is for the search of faults: what there is, and how it came about.
func (w *world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%+v\nnetwork %s", w.cfg, w.net.Name)
	for k := range w.net.Probes {
		p := &w.net.Probes[k]
		fmt.Fprintf(&b, "\n\t%s from %s: %v", p.ID, AgentOf(p), p.Nodes)
	}
	s := w.c.Status()
	fmt.Fprintf(&b, "\n%s epoch %d (in force %d, before %d) %s, %d to change", s.Phase, s.Epoch, s.InForce, s.Before, s.Why, s.Behind)
	for _, d := range s.Devices {
		fmt.Fprintf(&b, "\n\t%+v", d)
	}
	for k := range w.nodes {
		n := &w.nodes[k]
		fmt.Fprintf(&b, "\n%s, weak %v, epoch %d, entries %v", n.Device, n.weak, n.epoch(), n.entries)
		for k := 0; n.plan != nil && k < len(n.plan.Probes); k++ {
			p := &n.plan.Probes[k]
			fmt.Fprintf(&b, "\n\t%s from %s: %v, detailed %v, works %v", p.ID, AgentOf(p), p.Nodes, n.plan.IsDetailed(p.ID), w.works(n, p))
		}
	}
	return b.String() + "\nafter" + w.trail.String()
}
