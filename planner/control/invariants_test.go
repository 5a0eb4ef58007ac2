package control

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// works reports whether a probe of an agent's plan comes through.
func (w *world) works(n *node, p *planner.Probe) bool {
	if n.plan == nil {
		return false
	}
	for _, name := range p.Nodes {
		s := w.node(Device{Switch, name})
		if s == nil {
			return false
		}
		for _, e := range n.plan.entriesOf(name) {
			k, ok := slices.BinarySearchFunc(s.entries, e, Entry.compare)
			if !ok || s.entries[k].Value != e.Value {
				return false
			}
		}
	}
	return true
}

// sight is which links are covered now.
func (w *world) sight() []bool {
	seen := make([]bool, len(w.links))
	for k := range w.nodes {
		n := &w.nodes[k]
		if n.Kind != Agent || n.plan == nil {
			continue
		}
		for i := range n.plan.Probes {
			if p := &n.plan.Probes[i]; AgentOf(p) == n.Name && w.works(n, p) {
				for _, l := range p.Links {
					if j, ok := slices.BinarySearch(w.links, l); ok {
						seen[j] = true
					}
				}
			}
		}
	}
	return seen
}

// check looks at the invariants that hold in every state: a link that was in sight stays in sight while its devices are
// up, and no agent's reports of two epochs are used in one cycle.
func (w *world) check() string {
	for k := range w.nodes {
		n := &w.nodes[k]
		switch d := w.c.find(n.Device); {
		case d == nil || !d.live():
			n.weak = true
		case w.c.settled:
			n.weak = false
		}
	}
	for k := range w.nodes {
		if n := &w.nodes[k]; n.forgot {
			d := w.c.find(n.Device)
			n.forgot = d != nil && (!w.c.settled || !d.known || d.waits != nothing || !slices.Equal(d.have, n.entries))
			w.shock = true // what goes out of sight until it was read, and a plan is in force again, is the switch's doing
		}
	}
	if w.moved || w.shock {
		if bad := w.lost(); bad != "" {
			return bad
		}
	}
	if bad := w.attention(); bad != "" {
		return bad
	}
	for k := range w.nodes {
		n := &w.nodes[k]
		if n.Kind != Agent {
			continue
		}
		d := w.c.find(n.Device)
		if d == nil {
			continue
		}
		for _, e := range n.had {
			if e != d.expect {
				continue
			}
			if n.accepted != 0 && n.accepted != e {
				return fmt.Sprintf("%s: reports of epochs %d and %d are used in one cycle", n.Device, n.accepted, e)
			}
			n.accepted = e
		}
	}
	return ""
}

// attention says which link is suspicious, was in detail, and is so no longer.
func (w *world) attention() string {
	if w.ticked < 2 || !w.alike { // elsewhere suspects, networks and plans change
		return ""
	}
	for _, s := range w.bad {
		detailed := slices.ContainsFunc(w.nodes, func(n node) bool {
			return n.plan != nil && slices.ContainsFunc(n.plan.Probes, func(p planner.Probe) bool {
				return AgentOf(&p) == n.Name && n.plan.IsDetailed(p.ID) && slices.Contains(p.Links, s.Link)
			})
		})
		if w.attends && !detailed {
			return fmt.Sprintf("suspicious link %s is no longer in detail", s.Link)
		}
		w.attends = detailed
	}
	return ""
}

// lost says which link went out of sight.
func (w *world) lost() string {
	seen := w.sight()
	for k := range seen {
		if w.covered[k] && !seen[k] && !w.shock && (w.alike || w.owed(w.links[k])) {
			return fmt.Sprintf("link %s is out of sight", w.links[k])
		}
		w.covered[k] = seen[k]
	}
	w.shock, w.moved = false, false
	return ""
}

// owed reports whether a link has a probe in the base plan whose devices all can be worked with. While the base plan
// changes, and a link goes from the probe of one agent to that of another, it may be that the one has moved first.
func (w *world) owed(link string) bool {
	on := func(p planner.Probe) bool { return slices.Contains(p.Links, link) }
	if t := w.c.target; t != nil && t.Network != w.net && !slices.ContainsFunc(t.Probes, on) {
		return false // the network has changed since that plan was begun
	}
	for k := range w.nodes {
		n, t := &w.nodes[k], w.c.target
		if n.Kind != Agent || t == nil || n.plan != nil && (n.plan.Epoch == t.Epoch || &n.plan.Probes[0] == &t.Probes[0]) {
			continue
		}
		for i := range t.Probes {
			if p := &t.Probes[i]; AgentOf(p) == n.Name && slices.Contains(p.Links, link) {
				return false
			}
		}
	}
	healthy := func(x Device) bool {
		n := w.node(x)
		return n != nil && !n.weak
	}
	return slices.ContainsFunc(w.net.Probes, func(p planner.Probe) bool {
		return slices.Contains(p.Links, link) && healthy(Device{Agent, AgentOf(&p)}) &&
			!slices.ContainsFunc(p.Nodes, func(s string) bool { return !healthy(Device{Switch, s}) })
	})
}

// orphans says what is at a switch that the target does not want, or not there that it does.
func (w *world) orphans() string {
	for k := range w.nodes {
		n := &w.nodes[k]
		if n.Kind != Switch || n.excused {
			continue
		}
		var want []Entry
		if t := w.c.target; t != nil {
			want = t.entriesOf(n.Name)
		}
		if !slices.Equal(n.entries, want) {
			return fmt.Sprintf("%s has %v, want %v", n.Device, n.entries, want)
		}
	}
	return ""
}

// idle reports whether nothing is on its way.
func (w *world) idle() bool {
	for k := range w.nodes {
		if n := &w.nodes[k]; !n.connected && w.c.find(n.Device) != nil || len(n.requests)+len(n.answers) > 0 {
			return false
		}
	}
	return true
}

// good says what is not as it should be in the end, or nothing.
func (w *world) good() string {
	if !w.idle() {
		return "something is on its way"
	}
	if w.c.Phase() != Steady {
		return "the controller is " + string(w.c.Phase())
	}
	for k, ok := range w.sight() {
		if !ok {
			return "no probe comes over " + w.links[k]
		}
	}
	for k := range w.nodes {
		if n := &w.nodes[k]; n.Kind == Agent && slices.Contains(w.net.Agents, n.Name) && n.epoch() != w.c.target.Epoch {
			return fmt.Sprintf("%s has epoch %d, not %d", n.Device, n.epoch(), w.c.target.Epoch)
		}
	}
	return w.orphans()
}
