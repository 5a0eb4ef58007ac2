package control

import (
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// stage returns the probes of the base plan as far as they may change in this cycle, and the number of changes. The cap
// does not delay steps that restore the sight of a link.
func (c *Controller) stage() ([]planner.Probe, int) {
	if c.target == nil || c.target.Network == c.net && c.whole(c.target) {
		return c.net.Probes, 0
	}
	old, now := c.target.Probes, c.net.Probes
	d, err := planner.Diff(old, now)
	all := len(d.Added) + len(d.Removed) + len(d.Changed)
	if err != nil || c.cfg.MaxChanges == 0 || all <= c.cfg.MaxChanges {
		return now, all
	}
	changed, differs := map[string]bool{}, map[string]bool{}
	for k := range d.Changed {
		changed[d.Changed[k].New.ID], differs[d.Changed[k].New.ID] = true, true
	}
	for k := range d.Removed {
		differs[d.Removed[k].ID] = true
	}
	broken := make(map[string]bool, len(c.broken))
	for _, id := range c.broken {
		broken[id] = differs[id] // else it has its new way already
	}
	before, after := elements(old, broken, nil), elements(now, nil, changed)
	steps, err := planner.Order(before, after, nil)
	if err != nil {
		return now, all // no order: all at once, which an epoch can
	}
	steps = urgent(steps, before, after, broken)
	n := max(c.cfg.MaxChanges, needed(steps, before, after))
	if n >= len(steps) {
		return now, all
	}
	return afterSteps(old, now, steps[:n]), n
}

// whole reports whether a plan has the probes of the base plan, and is not on its way to them.
func (c *Controller) whole(p *Plan) bool { return sameList(p.Probes, c.net.Probes) }

func elements(probes []planner.Probe, broken, changed map[string]bool) []planner.Element {
	list := make([]planner.Element, len(probes))
	for k := range probes {
		p := &probes[k]
		list[k] = planner.Element{ID: p.ID}
		if !broken[p.ID] {
			list[k].Covers = p.Links
		}
		if changed[p.ID] {
			list[k].Form = "changed"
		}
	}
	return list
}

// urgent moves to the front the steps that restore the sight of a link and take no other away. The cap does not delay
// these, and they must not bring other steps along. The order of the rest stays valid, since more is in sight.
func urgent(steps []planner.Step, before, after []planner.Element, broken map[string]bool) []planner.Step {
	seen := map[string]bool{}
	for k := range before {
		for _, l := range before[k].Covers {
			seen[l] = true
		}
	}
	brings := map[string]bool{}
	for k := range after {
		brings[after[k].ID] = slices.ContainsFunc(after[k].Covers, func(l string) bool { return !seen[l] })
	}
	first, rest := make([]planner.Step, 0, len(steps)), []planner.Step(nil)
	for _, s := range steps {
		if brings[s.ID] && (s.Op == planner.OpAdd || s.Op == planner.OpChange && broken[s.ID]) {
			first = append(first, s)
		} else {
			rest = append(rest, s)
		}
	}
	return append(first, rest...)
}

// needed is how many steps it takes until all that the plan covers after them is covered. None of them takes away what both plans cover.
func needed(steps []planner.Step, before, after []planner.Element) (n int) {
	missing, brings := map[string]bool{}, map[string][]string{}
	for k := range after {
		brings[after[k].ID] = after[k].Covers
		for _, l := range after[k].Covers {
			missing[l] = true
		}
	}
	seen := func(links []string) {
		for _, l := range links {
			delete(missing, l)
		}
	}
	for k := range before {
		seen(before[k].Covers)
	}
	for ; n < len(steps) && len(missing) > 0; n++ {
		seen(brings[steps[n].ID])
	}
	return n
}

// afterSteps gives the probes after some steps: those of the new list first.
func afterSteps(old, now []planner.Probe, steps []planner.Step) []planner.Probe {
	done := make(map[string]planner.Op, len(steps))
	for _, s := range steps {
		done[s.ID] = s.Op
	}
	was := make(map[string]*planner.Probe, len(old))
	for k := range old {
		was[old[k].ID] = &old[k]
	}
	probes := make([]planner.Probe, 0, len(now))
	for k := range now {
		id := now[k].ID
		switch o := was[id]; {
		case done[id] == planner.OpAdd || done[id] == planner.OpChange:
			probes = append(probes, now[k])
		case o != nil:
			probes = append(probes, *o)
		}
	}
	for k := range old {
		if id := old[k].ID; done[id] != planner.OpRemove && !slices.ContainsFunc(now, func(p planner.Probe) bool { return p.ID == id }) {
			probes = append(probes, old[k])
		}
	}
	return probes
}

// difference returns the probes that one plan measures in detail and the other does not, and the links of changed
// probes. The plan before may be nil.
func (c *Controller) difference(before, after *Plan) (on, off, links []string) {
	var old []planner.Probe
	if before != nil {
		old = before.Probes
		for _, id := range before.Detailed {
			if !after.detail[id] {
				off = append(off, id)
			}
		}
	}
	for _, id := range after.Detailed {
		if before == nil || !before.detail[id] {
			on = append(on, id)
		}
	}
	if before != nil && sameList(old, after.Probes) {
		if len(on)+len(off) == 0 {
			return on, off, nil
		}
		return on, off, c.indexOf(old).linksOf(on, off)
	}
	touched := map[string]bool{}
	for _, list := range [...][]string{on, off} {
		for _, id := range list {
			touched[id] = true
		}
	}
	d, _ := planner.Diff(old, after.Probes)
	for k := range d.Added {
		touched[d.Added[k].ID] = true
	}
	for k := range d.Removed {
		touched[d.Removed[k].ID] = true
	}
	for k := range d.Changed {
		touched[d.Changed[k].New.ID] = true
	}
	for _, list := range [...][]planner.Probe{old, after.Probes} {
		for k := range list {
			if touched[list[k].ID] {
				links = append(links, list[k].Links...)
			}
		}
	}
	return on, off, union(links, nil)
}

// union sorts names and takes out what is there twice.
func union(a, b []string) []string {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}
