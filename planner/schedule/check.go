package schedule

import (
	"math"

	"github.com/hopscope/hopscope/planner"
)

// Check returns where a plan does not answer its problem, or makes false claims about itself. It sends the probes of
// one hyperperiod one after the other.
func Check(p *Problem, plan *Plan) error {
	r, err := p.Resolve()
	if err != nil {
		return err
	}
	var bad planner.Errors
	if !planner.Near(plan.Slot, r.Slot) || !planner.Near(plan.Hyperperiod, r.Millis(r.Hyper)) {
		bad.Add("the plan has slots of %v ms and repeats after %v ms, the problem has %v ms and %v ms",
			plan.Slot, plan.Hyperperiod, r.Slot, r.Millis(r.Hyper))
	}
	t := readTimes(r, plan, &bad)
	if err := bad.Join(); err != nil {
		return err
	}
	e := run(r, t)
	checkLinks(r, plan, e, &bad)
	checkLimits(r, e, &bad)
	checkStats(r, plan, e, &bad)
	plan.CheckClaims(&bad, "probes")
	return bad.Join()
}

// readTimes reads intervals and phases.
func readTimes(r *Resolved, plan *Plan, bad *planner.Errors) Times {
	t := Times{make([]int, len(r.Probes)), make([]int, len(r.Probes))}
	index, listed := r.byID(), make([]bool, len(r.Probes))
	list := func(id string) int {
		k, ok := index[id]
		if !ok || listed[k] {
			bad.Add("probe %q is listed, but is not there, or a second time", id)
			return -1
		}
		listed[k] = true
		return k
	}
	for i := range plan.Probes {
		x := &plan.Probes[i]
		k := list(x.ID)
		if k < 0 {
			continue
		}
		interval, ok := r.slots(x.Interval)
		if !ok || interval < 1 || interval%r.Base != 0 || r.Hyper%interval != 0 {
			bad.Add("probe %q has an interval of %v ms: it is a multiple of %v ms that divides %v ms", x.ID, x.Interval, r.Millis(r.Base), r.Millis(r.Hyper))
			continue
		}
		phase, ok := r.slots(x.Phase)
		if !ok || phase >= interval {
			bad.Add("probe %q has a phase of %v ms: it is a multiple of the slot, from 0 and below the interval", x.ID, x.Phase)
			continue
		}
		t.Interval[k], t.Phase[k] = interval, phase
		if a, c := r.agent(r.Probes[k].Agent), r.agent(r.Probes[k].Collector); x.Agent != a || x.Collector != c {
			bad.Add("probe %q leads from agent %q to collector %q, the plan says %q and %q", x.ID, a, c, x.Agent, x.Collector)
		}
		if want := float64(r.Probes[k].Total) / r.Seconds(interval); !planner.Near(x.BytesPerSecond, want) {
			bad.Add("probe %q takes %v bytes a second, the plan says %v", x.ID, want, x.BytesPerSecond)
		}
	}
	for _, id := range plan.NotSent {
		list(id)
	}
	for k := range listed {
		if !listed[k] {
			bad.Add("probe %q is listed neither as sent nor as not sent", r.Probes[k].ID)
		}
	}
	return t
}

// checkLinks looks whether links are seen in time.
func checkLinks(r *Resolved, plan *Plan, e *events, bad *planner.Errors) {
	stated := make(map[string]float64, len(plan.NotSeen))
	for _, u := range plan.NotSeen {
		if _, twice := stated[u.Link]; twice {
			bad.Add("link %s is listed twice as not seen", u.Link)
		}
		stated[u.Link] = u.Weight
	}
	missing := 0
	for l := range r.Links {
		link := &r.Links[l]
		if e.gap[l] <= link.Period || link.Period == 0 {
			continue
		}
		missing++
		weight, ok := stated[link.Name]
		switch {
		case (!ok || !plan.Partial) && e.gap[l] == math.MaxInt:
			bad.Add("link %s is never seen", link.Name)
		case !ok || !plan.Partial:
			bad.Add("link %s is not seen for %v ms, and should be every %v ms", link.Name, r.Millis(e.gap[l]), r.Millis(link.Period))
		case !planner.Near(weight, link.Weight):
			bad.Add("link %s has weight %v, the plan says %v", link.Name, link.Weight, weight)
		}
	}
	if missing != len(stated) || plan.Partial != (missing > 0) {
		bad.Add("%d links are not seen in time, the plan lists %d and says partial %v", missing, len(stated), plan.Partial)
	}
}

// checkLimits checks the loads of links and agents.
func checkLimits(r *Resolved, e *events, bad *planner.Errors) {
	over := func(bytes int64, limit float64) bool {
		return r.bps(bytes) > limit && !planner.Near(r.bps(bytes), limit)
	}
	for l := range r.Links {
		if link := &r.Links[l]; over(e.load[l], link.Limit) {
			bad.Add("link %s carries %v bit/s, at most %v are allowed", link.Name, r.bps(e.load[l]), link.Limit)
		}
	}
	for k := range r.Agents {
		a := &r.Agents[k]
		if over(e.send[k], a.Send) {
			bad.Add("agent %s sends %v bit/s, at most %v are allowed", a.Name, r.bps(e.send[k]), a.Send)
		}
		if over(e.receive[k], a.Receive) {
			bad.Add("agent %s receives %v bit/s, at most %v are allowed", a.Name, r.bps(e.receive[k]), a.Receive)
		}
	}
}

// checkStats checks the figures of the plan.
func checkStats(r *Resolved, plan *Plan, e *events, bad *planner.Errors) {
	s, want := &plan.Stats, e.stats(r)
	for _, c := range [...]struct {
		what      string
		got, want float64
	}{
		{"bytes a second", s.Objective, want.Objective},
		{"weight left out", s.LeftOut, want.LeftOut},
		{"bit/s on the busiest link", s.BusiestLink, want.BusiestLink},
		{"bit/s of the agent that sends most", s.BusiestSend, want.BusiestSend},
		{"bit/s of the agent that receives most", s.BusiestReceive, want.BusiestReceive},
		{"ms between two starts of an agent", s.ShortestWait, want.ShortestWait},
		{"probes", float64(s.Probes), float64(want.Probes)},
		{"probes that are sent", float64(s.Sent), float64(want.Sent)},
		{"links", float64(s.Links), float64(want.Links)},
		{"links seen in time", float64(s.Seen), float64(want.Seen)},
		{"starts in a hyperperiod", float64(s.Starts), float64(want.Starts)},
		{"starts of an agent in a slot", float64(s.Peak), float64(want.Peak)},
		{"starts too near to another", float64(s.TooClose), float64(want.TooClose)},
	} {
		if !planner.Near(c.got, c.want) {
			bad.Add("%v %s, the plan says %v", c.want, c.what, c.got)
		}
	}
	if s.PeakBound > s.Peak {
		bad.Add("the peak %d is below its bound %d", s.Peak, s.PeakBound)
	}
	s.CheckBound(bad)
}
