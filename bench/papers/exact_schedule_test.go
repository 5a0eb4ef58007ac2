package papers_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// TestSchedule sends probes so that links are seen in time, of which some cannot be.
func TestSchedule(t *testing.T) {
	s := start(t)
	for k := range instances {
		p := scheduleInstance(random(5, k))
		plan, err := solve.Plan(p, solve.Options{Partial: true, Seed: 1, Stop: stopAfter(1 << 14)})
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(p, plan); err != nil {
			t.Errorf("instance %d: %v", k, err)
		}
		hold(t, fmt.Sprint("instance ", k), p, &plan.Stats.Stats, scheduleTruth(t, s, p))
	}
}

// scheduleInstance draws links of several periods and weights, half of the time with limits that hurt.
func scheduleInstance(r *rand.Rand) *schedule.Problem {
	p := schedule.Defaults()
	sets := [][]float64{{20}, {10, 20}, {10, 40}, {10, 20, 40}, {20, 30}, {10, 30}, {20, 60}}
	periods := sets[r.IntN(len(sets))]
	p.Period = periods[r.IntN(len(periods))]
	p.HeaderBytes, p.HopBytes, p.OverheadBytes = r.IntN(4)*10, 5+r.IntN(10), 0
	limits, links := r.IntN(2) == 0, 5+r.IntN(10)
	for l := range links {
		weight := float64(1 + r.IntN(3))
		link := schedule.Link{Name: fmt.Sprint("l", l), Period: periods[r.IntN(len(periods))], Weight: &weight}
		if limits && r.IntN(3) == 0 {
			link.Limit = num(float64(1000 + r.IntN(30)*1000))
		}
		p.Links = append(p.Links, link)
	}
	if limits && r.IntN(2) == 0 {
		p.SendLimit = float64(2000 + r.IntN(20)*1000)
	}
	if limits && r.IntN(2) == 0 {
		p.ReceiveLimit = float64(2000 + r.IntN(30)*1000)
	}
	for k := range 4 + r.IntN(6) {
		probe := schedule.Probe{ID: fmt.Sprint("p", k), Agent: fmt.Sprint("a", r.IntN(2)), Collector: fmt.Sprint("a", r.IntN(3))}
		for range 1 + r.IntN(4) {
			probe.Links = append(probe.Links, fmt.Sprint("l", r.IntN(links)))
		}
		p.Probes = append(p.Probes, probe)
	}
	return p
}

// scheduleTruth has a choice for every interval and phase of a probe, and one for every link that is not seen in
// time. It has a row for every window as long as a link's period, in which a probe must start.
func scheduleTruth(t *testing.T, s *solver, p *schedule.Problem) truth {
	r, err := p.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	m := new(model)
	slots := r.Hyper / r.Base
	var missed, bytes []term
	windows := make([][][]term, len(r.Links))
	for l := range r.Links {
		unseen := m.choice(0)
		missed = append(missed, term{unseen, r.Links[l].Weight})
		windows[l] = make([][]term, slots)
		for w := range slots {
			windows[l][w] = []term{{unseen, 1}}
		}
	}
	load, sent, received := make([][]term, len(r.Links)), make([][]term, len(r.Agents)), make([][]term, len(r.Agents))
	for k := range r.Probes {
		x := &r.Probes[k]
		var once []term
		for _, interval := range r.Grid {
			every := interval / r.Base
			for phase := range every {
				choice := m.choice(0)
				once = append(once, term{choice, 1})
				rate := func(bytes int64) term { return term{choice, float64(bytes) / r.Seconds(interval)} }
				bytes = append(bytes, rate(x.Total))
				for at, l := range x.Links {
					for w := range slots {
						if wait := ((phase-w)%every + every) % every; wait < r.Links[l].Period/r.Base {
							windows[l][w] = append(windows[l][w], term{choice, 1})
						}
					}
					load[l] = append(load[l], rate(x.Bytes[at]))
				}
				sent[x.Agent] = append(sent[x.Agent], rate(x.Sent))
				received[x.Collector] = append(received[x.Collector], rate(x.Received))
			}
		}
		m.most(1, once...)
	}
	limit := func(bits float64, terms []term) {
		if !math.IsInf(bits, 1) {
			m.most(bits/8, merged(terms)...)
		}
	}
	for l := range r.Links {
		for _, w := range windows[l] {
			m.least(1, w...)
		}
		limit(r.Links[l].Limit, load[l])
	}
	for a := range r.Agents {
		limit(r.Agents[a].Send, sent[a])
		limit(r.Agents[a].Receive, received[a])
	}
	least, fewest := s.lexicographic(t, m, missed, bytes)
	return truth{least, fewest}
}
