package control

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

// plan decides what is measured from this cycle on.
func (c *Controller) plan(e Tick) {
	switch {
	case len(c.net.Probes) == 0 || c.paused || c.held != "" || !slices.ContainsFunc(c.devices, func(d device) bool { return d.Kind == Agent && d.live() && d.known }):
		return
	case !c.settled:
		c.counts.Skipped++
		return
	}
	if c.first == 0 {
		c.bound()
	}
	p, err := c.choose(e)
	if err != nil {
		c.planFailed(p, err.Error())
		return
	}
	switch {
	case c.target != nil && same(c.target, p) && !c.ahead(c.target.Epoch):
		c.pending, c.would = nil, nil
		c.latest.plan, c.latest.stats = c.target, p.Stats
		c.latest.stats.Changes = c.target.Stats.Changes
		return
	case c.refusal.plan != nil && same(c.refusal.plan, p) && c.counts.Cycles < c.refusal.until:
		return
	case c.dry:
		if c.would == nil || !same(c.would, p) {
			c.would = p
			c.announce(WouldPlan, p)
		}
		return
	}
	if err := p.check(); err != nil {
		c.planFailed(p, err.Error())
		return
	}
	if c.cfg.Approve && c.target != nil {
		if c.pending == nil || !same(c.pending, p) {
			c.last = p.Epoch
			c.pending = p
			c.announce(Waiting, p)
		}
		return
	}
	c.begin(p)
}

// announce records a plan that is not begun.
func (c *Controller) announce(what What, p *Plan) {
	on, off, _ := c.difference(c.target, p)
	c.record(Record{What: what, Epoch: p.Epoch, Count: len(p.Probes), On: on, Off: off, Left: p.Stats.LeftOut, Why: p.Why})
}

// newPlan numbers a plan.
func (c *Controller) newPlan(why string, net *Network, probes []planner.Probe, detailed []string) *Plan {
	p := &Plan{Epoch: c.last + 1, Why: why, Network: net, Probes: probes, Detailed: detailed, entries: map[string][]Entry{}, members: c.members}
	p.detail = make(map[string]bool, len(detailed))
	for _, id := range detailed {
		p.detail[id] = true
	}
	return p
}

// renumber makes a plan that measures the same under a new epoch.
func (c *Controller) renumber(p *Plan, why string) *Plan {
	q := c.newPlan(why, p.Network, p.Probes, p.Detailed)
	q.Stats = p.Stats
	return q
}

// same reports whether two plans measure the same.
func same(a, b *Plan) bool {
	if a.Network != b.Network || !slices.Equal(a.Detailed, b.Detailed) || len(a.Probes) != len(b.Probes) {
		return false
	}
	if sameList(a.Probes, b.Probes) {
		return true
	}
	d, err := planner.Diff(a.Probes, b.Probes)
	return err == nil && d.Empty()
}

// choose makes a plan for the network as it is and the links that are suspicious.
func (c *Controller) choose(e Tick) (*Plan, error) {
	probes, staged := c.stage()
	problem, suspects := c.problem(probes, e.Suspects)
	most := -1
	if c.cfg.MaxChanges > 0 {
		most = max(0, c.cfg.MaxChanges-staged)
	}
	a, n, err := c.attend(problem, suspects, most, e.Stop)
	if err != nil {
		return nil, err
	}
	problem = problem.with(suspects[:n])
	if err := attention.Check(&problem.Problem, a); err != nil {
		return nil, fmt.Errorf("the choice of probes fails its check: %w", err)
	}
	detailed := make([]string, len(a.Probes))
	for k := range a.Probes {
		detailed[k] = a.Probes[k].ID
	}
	slices.Sort(detailed)
	why := "the first plan"
	if c.target != nil {
		why = fmt.Sprintf("%d links are suspicious", len(suspects))
		if staged > 0 {
			why = fmt.Sprintf("%d probes of the base plan change, and %s", staged, why)
		}
	}
	p := c.newPlan(why, c.net, probes, detailed)
	p.Stats = c.stats(problem, a, suspects, n, staged)
	return p, nil
}

// asked is an attention problem.
type asked struct{ attention.Problem }

// with returns the problem for some links alone.
func (a *asked) with(suspects []Suspect) *asked {
	b := *a
	b.Suspicious, b.Weights = make([]string, len(suspects)), make(map[string]float64, len(suspects))
	for k := range suspects {
		b.Suspicious[k], b.Weights[suspects[k].Link] = suspects[k].Link, suspects[k].Weight
	}
	return &b
}

// problem is to choose among probes, and the suspicious links by what they weigh, the heaviest first.
func (c *Controller) problem(probes []planner.Probe, list []Suspect) (*asked, []Suspect) {
	x := c.indexOf(probes)
	a := &asked{attention.Problem{SwitchCost: c.cfg.SwitchCost, Probes: x.traces}}
	now := c.seed.Detailed
	if c.target != nil {
		now = c.target.Detailed
	}
	there := make([]bool, len(probes))
	for _, id := range now {
		if k, ok := x.at[id]; ok && !there[k] {
			there[k] = true
			a.Detailed = append(a.Detailed, id)
		}
	}
	return a, ranked(list)
}

// ranked sorts suspicious links, the heaviest first, then the longest suspicious. A link that is there twice counts once.
func ranked(list []Suspect) []Suspect {
	heaviest := make(map[string]Suspect, len(list))
	for _, s := range list {
		if s.Link == "" {
			continue
		}
		if !(s.Weight > 0) {
			s.Weight = math.SmallestNonzeroFloat32
		}
		s.Weight = min(s.Weight, 1e9)
		if old, ok := heaviest[s.Link]; !ok || s.Weight > old.Weight || s.Weight == old.Weight && s.Since < old.Since {
			heaviest[s.Link] = s
		}
	}
	return slices.SortedFunc(maps.Values(heaviest), func(a, b Suspect) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Link, b.Link))
	})
}

// attend chooses the probes that measure in detail for as many of the suspicious links as budget and cap allow,
// heaviest first. It returns their number.
func (c *Controller) attend(a *asked, suspects []Suspect, most int, stop func() bool) (*attention.Plan, int, error) {
	now := &attention.Plan{}
	for _, id := range a.Detailed {
		now.Probes = append(now.Probes, attention.DetailProbe{ID: id})
	}
	try := func(n int) (*attention.Plan, bool, error) {
		fits := func(p *attention.Plan) bool {
			return p.Stats.Cost <= c.cfg.Budget && (most < 0 || p.Stats.Changes <= most)
		}
		b := a.with(suspects[:n])
		p, err := solve.Plan(&b.Problem, solve.Options{Partial: true, Stop: stop})
		if err != nil || most < 0 || p.Stats.Changes <= most {
			return p, err == nil && fits(p), err
		}
		if p, err = solve.Plan(&b.Problem, solve.Options{Partial: true, Stop: stop, Previous: now, Churn: most}); err != nil {
			return nil, false, err
		}
		return p, fits(p), nil
	}
	plan, ok, err := try(len(suspects))
	if err != nil || ok {
		return plan, len(suspects), err
	}
	best, n := (*attention.Plan)(nil), 0
	sort.Search(len(suspects), func(k int) bool { // the fewest that are too many
		if err != nil {
			return true
		}
		p, ok, e := try(k)
		if err = e; ok {
			best, n = p, k
		}
		return !ok
	})
	if best == nil && err == nil { // even nothing is too much: less detail than now, as far as the cap lets it
		best, _, err = try(0)
	}
	return best, n, err
}

// stats computes what a plan measures and costs.
func (c *Controller) stats(a *asked, p *attention.Plan, suspects []Suspect, n, staged int) Stats {
	s := Stats{
		Suspicious: len(suspects), Detailed: len(p.Probes), NoProbe: p.OnNoProbe,
		Hops: p.Stats.AllCost, DetailedHops: p.Stats.Cost, Changes: p.Stats.Changes + staged,
		Objective: p.Stats.Objective, Bound: p.Stats.LowerBound, Optimal: p.Stats.Optimal,
	}
	basic, detailed := float64(c.cfg.BasicBytes), float64(c.cfg.DetailedBytes)
	s.Bytes = basic*(s.Hops-s.DetailedHops) + detailed*s.DetailedHops
	if s.AllDetailed = detailed * s.Hops; s.Hops > 0 {
		s.HopRatio, s.ByteRatio = s.DetailedHops/s.Hops, s.Bytes/s.AllDetailed
	}
	if n == len(suspects) {
		return s
	}
	seen, on := map[string]bool{}, map[string]bool{}
	chosen := map[string]bool{}
	for k := range p.Probes {
		chosen[p.Probes[k].ID] = true
	}
	for k := range a.Probes {
		for _, l := range a.Probes[k].Links {
			seen[l] = true
			on[l] = on[l] || chosen[a.Probes[k].ID]
		}
	}
	for _, x := range slices.Backward(suspects[n:]) {
		switch {
		case !seen[x.Link]:
			s.NoProbe = append(s.NoProbe, x.Link)
		case !on[x.Link]:
			s.LeftOut = append(s.LeftOut, x.Link)
		}
	}
	return s
}

// check returns why no device may get a plan.
func (p *Plan) check() error {
	if !sameList(p.Probes, p.Network.Probes) {
		if err := p.covers(); err != nil {
			return err
		}
	}
	if p.Network.Check != nil {
		return p.Network.Check(p)
	}
	return nil
}

// covers returns the links of the base plan that are on no probe, for a plan on the way to it.
func (p *Plan) covers() error {
	covered, named := map[string]bool{}, map[string]bool{}
	for k := range p.Probes {
		for _, l := range p.Probes[k].Links {
			covered[l] = true
		}
	}
	var bad planner.Errors
	for k := range p.Network.Probes {
		for _, l := range p.Network.Probes[k].Links {
			if !covered[l] && !named[l] {
				named[l] = true
				bad.Add("link %s is on no probe of the plan, but on probe %s of the base plan", l, p.Network.Probes[k].ID)
			}
		}
	}
	return bad.Join()
}
