package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
)

// These are the limits of a problem.
const (
	maxSlots  = 1 << 20 // of a hyperperiod
	maxUnits  = 4096    // bases of a hyperperiod
	maxBytes  = 1 << 16 // of a header, a hop, an overhead
	maxTotal  = 1e12    // bytes of all probes on all links
	maxWeight = 1e12
	minLimit  = 1e-3 // bits per second
	maxLimit  = 1e18
)

// Resolved is a problem in numbers: names are indices, times are slots.
type Resolved struct {
	Slot    float64 // milliseconds
	Base    int     // common divisor of all periods and intervals
	Hyper   int     // after which everything repeats
	Spacing int
	Grid    []int // the intervals, ascending: from the shortest period on; faster would show no more
	Links   []ResolvedLink
	Probes  []ResolvedProbe
	Agents  []ResolvedAgent
}

// ResolvedLink is a link in numbers.
type ResolvedLink struct {
	Name   string
	Class  string
	Period int // 0 if it need not be seen
	Weight float64
	Limit  float64 // bits per second, of both directions together; infinite for none
}

// ResolvedProbe is a probe in numbers.
type ResolvedProbe struct {
	ID               string
	Links            []int32 // each once, in the order of the first pass
	Bytes            []int64 // on each of these links
	Total            int64   // on all links
	Sent, Received   int64   // by the agents
	Agent, Collector int32   // -1 for none
}

// ResolvedAgent is an agent in numbers.
type ResolvedAgent struct {
	Name          string
	Send, Receive float64 // bits per second; infinite for no limit
}

// byID numbers the probes.
func (r *Resolved) byID() map[string]int {
	return opt.Index[ResolvedProbe, int](r.Probes, func(p *ResolvedProbe) string { return p.ID })
}

// Seconds turns slots into seconds.
func (r *Resolved) Seconds(slots int) float64 { return float64(slots) * r.Slot / 1000 }

// Millis turns slots into milliseconds.
func (r *Resolved) Millis(slots int) float64 { return float64(slots) * r.Slot }

// slots turns milliseconds into slots, which must be whole.
func (r *Resolved) slots(ms float64) (int, bool) {
	n := ms / r.Slot
	k := math.Round(n)
	return int(k), k >= 0 && k <= maxSlots && math.Abs(n-k) <= 1e-6
}

// resolver turns a problem into numbers.
type resolver struct {
	p     *Problem
	r     *Resolved
	bad   planner.Errors
	links map[string]int32
	agent map[string]int32

	link, send, receive float64 // default limits
}

// Resolve validates p and turns it into numbers.
func (p *Problem) Resolve() (*Resolved, error) {
	if len(p.Probes) == 0 {
		return nil, errors.New("schedule: there are no probes")
	}
	if !(p.Slot >= 0.001 && p.Slot <= 1e9) {
		return nil, fmt.Errorf("schedule: a slot of %v ms: it is 0.001 to 1e9 ms", p.Slot)
	}
	x := &resolver{p: p, r: &Resolved{Slot: p.Slot}, links: make(map[string]int32, len(p.Links)), agent: make(map[string]int32, len(p.Agents))}
	x.numbers()
	x.linksAndAgents()
	x.probes()
	if err := x.bad.Join(); err != nil {
		return nil, err
	}
	x.classes()
	if err := x.bad.Join(); err != nil {
		return nil, err
	}
	if err := x.r.grid(p.Longest); err != nil {
		return nil, err
	}
	return x.r, nil
}

// numbers checks the figures that hold for all.
func (x *resolver) numbers() {
	p := x.p
	for _, b := range [...]struct {
		what  string
		bytes int
	}{{"header_bytes", p.HeaderBytes}, {"bytes_per_hop", p.HopBytes}, {"overhead_bytes", p.OverheadBytes}} {
		if b.bytes < 0 || b.bytes > maxBytes {
			x.bad.Add("schedule: %s %d: it is 0 to %d", b.what, b.bytes, maxBytes)
		}
	}
	if p.HeaderBytes+p.HopBytes+p.OverheadBytes == 0 {
		x.bad.Add("schedule: probes have no bytes at all")
	}
	x.link, x.send, x.receive = x.limit("links", p.LinkLimit), x.limit("what agents send", p.SendLimit), x.limit("what agents receive", p.ReceiveLimit)
	x.r.Spacing = 1
	if p.Spacing != 0 {
		x.r.Spacing = x.period("the spacing of probes", p.Spacing)
	}
}

// limit returns a limit in which 0 is none.
func (x *resolver) limit(what string, bps float64) float64 {
	if bps != 0 && !(bps >= minLimit && bps <= maxLimit) {
		x.bad.Add("schedule: the limit %v of %s: it is 0 for none, or %g to %g bit/s", bps, what, minLimit, float64(maxLimit))
	}
	if bps == 0 {
		return math.Inf(1)
	}
	return bps
}

// own returns a limit that may be left out.
func (x *resolver) own(what string, bps *float64, all float64) float64 {
	if bps == nil {
		return all
	}
	return x.limit(what, *bps)
}

// period returns a time in slots.
func (x *resolver) period(what string, ms float64) int {
	n, ok := x.r.slots(ms)
	if !ok || n < 1 {
		x.bad.Add("schedule: %s, %v ms, is not a whole number of slots of %v ms, from 1 to %d", what, ms, x.p.Slot, maxSlots)
		return 1
	}
	return n
}

func (x *resolver) linksAndAgents() {
	x.r.Links = make([]ResolvedLink, 0, len(x.p.Links))
	for k := range x.p.Links {
		l := &x.p.Links[k]
		if _, twice := x.links[l.Name]; l.Name == "" || twice {
			x.bad.Add("schedule: link %d of the list has no name, or that of another one: %q", k+1, l.Name)
			continue
		}
		x.links[l.Name] = int32(len(x.r.Links))
		out := ResolvedLink{Name: l.Name, Weight: 1, Limit: x.link}
		if l.Limit != nil {
			out.Limit = x.limit("link "+l.Name, *l.Limit)
		}
		if l.Weight != nil {
			out.Weight = *l.Weight
		}
		if !(out.Weight > 0 && out.Weight <= maxWeight) {
			x.bad.Add("schedule: link %s has weight %v: it is above 0 and at most %g", l.Name, out.Weight, float64(maxWeight))
		}
		if l.Period != 0 {
			out.Period = x.period("the period of link "+l.Name, l.Period)
		}
		x.r.Links = append(x.r.Links, out)
	}
	for k := range x.p.Agents {
		a := &x.p.Agents[k]
		if _, twice := x.agent[a.Name]; a.Name == "" || twice {
			x.bad.Add("schedule: agent %d of the list has no name, or that of another one: %q", k+1, a.Name)
			continue
		}
		x.agent[a.Name] = int32(len(x.r.Agents))
		x.r.Agents = append(x.r.Agents, ResolvedAgent{a.Name,
			x.own("what agent "+a.Name+" sends", a.Send, x.send), x.own("what agent "+a.Name+" receives", a.Receive, x.receive)})
	}
}

// agentOf finds an agent, or makes it.
func (x *resolver) agentOf(name string) int32 {
	if name == "" {
		return -1
	}
	k, ok := x.agent[name]
	if !ok {
		k = int32(len(x.r.Agents))
		x.agent[name] = k
		x.r.Agents = append(x.r.Agents, ResolvedAgent{name, x.send, x.receive})
	}
	return k
}

func (x *resolver) probes() {
	p := x.p
	ids := make(map[string]bool, len(p.Probes))
	var last []int32 // by link: the probe that passed it last, from 1
	var place []int32
	sum := 0.0
	x.r.Probes = make([]ResolvedProbe, len(p.Probes))
	for k := range p.Probes {
		in, out := &p.Probes[k], &x.r.Probes[k]
		switch {
		case in.ID == "":
			x.bad.Add("schedule: probe %d has no id", k+1)
		case ids[in.ID]:
			x.bad.Add("schedule: probe %q is there twice", in.ID)
		case len(in.Links) == 0:
			x.bad.Add("schedule: probe %q passes no link", in.ID)
		}
		ids[in.ID] = true
		*out = ResolvedProbe{ID: in.ID, Agent: x.agentOf(in.Agent), Collector: x.agentOf(in.Collector)}
		size := int64(p.HeaderBytes + p.OverheadBytes)
		out.Sent = size
		out.Links, out.Bytes = make([]int32, 0, len(in.Links)), make([]int64, 0, len(in.Links))
		for _, name := range in.Links {
			if name == "" {
				x.bad.Add("schedule: probe %q passes a link without a name", in.ID)
				continue
			}
			l, ok := x.links[name]
			if !ok {
				l = int32(len(x.r.Links))
				x.links[name] = l
				x.r.Links = append(x.r.Links, ResolvedLink{Name: name, Weight: 1, Limit: x.link})
			}
			for int(l) >= len(last) {
				last, place = append(last, 0), append(place, 0)
			}
			size += int64(p.HopBytes)
			out.Total += size
			if int(last[l]) == k+1 {
				out.Bytes[place[l]] += size
				continue
			}
			last[l], place[l] = int32(k+1), int32(len(out.Links))
			out.Links, out.Bytes = append(out.Links, l), append(out.Bytes, size)
		}
		out.Received = size + int64(p.HopBytes)
		sum += float64(out.Total)
	}
	if sum > maxTotal {
		x.bad.Add("schedule: all probes together are %g bytes on all links, more than %g", sum, float64(maxTotal))
	}
}

// classes sets the period of every link.
func (x *resolver) classes() {
	general := x.period("the period", x.p.Period)
	var of matcher
	periods := make([]int, len(x.p.Classes))
	names := map[string]bool{DefaultClass: true}
	for k, c := range x.p.Classes {
		if c.Name == "" || names[c.Name] {
			x.bad.Add("schedule: class %d has no name, or that of another one: %q", k+1, c.Name)
		}
		names[c.Name] = true
		periods[k] = x.period("the period of class "+c.Name, c.Period)
		of.add(x, "class "+c.Name, k, c.Links)
	}
	var unwatched matcher
	unwatched.add(x, "unwatched", 0, x.p.Unwatched)
	watched := 0
	for k := range x.r.Links {
		l := &x.r.Links[k]
		if _, ok := unwatched.find(l.Name); ok {
			l.Period = 0
			continue
		}
		watched++
		class, ok := of.find(l.Name)
		period := general
		if l.Class = DefaultClass; ok {
			l.Class, period = x.p.Classes[class].Name, periods[class]
		}
		if l.Period == 0 {
			l.Period = period
		}
	}
	if watched == 0 {
		x.bad.Add("schedule: no link is to be seen")
	}
}

// matcher finds the first class that lists a name, exactly or by a pattern.
type matcher struct {
	exact map[string]int
	globs []glob
}

type glob struct {
	pattern string
	class   int
}

// add adds a class after those that are there.
func (m *matcher) add(x *resolver, what string, class int, patterns []string) {
	if m.exact == nil {
		m.exact = map[string]int{}
	}
	for _, pattern := range patterns {
		if strings.ContainsAny(pattern, "*?") {
			m.globs = append(m.globs, glob{pattern, class})
		} else if _, ok := x.links[pattern]; !ok {
			x.bad.Add("schedule: %s lists link %q, which is not there", what, pattern)
		} else if _, ok := m.exact[pattern]; !ok {
			m.exact[pattern] = class
		}
	}
}

// find returns the first class that matches a name.
func (m *matcher) find(name string) (class int, ok bool) {
	class, ok = m.exact[name]
	for _, g := range m.globs {
		if ok && g.class >= class {
			break // classes ascend
		}
		if match(g.pattern, name) {
			return g.class, true
		}
	}
	return class, ok
}

// grid finds base, hyperperiod and intervals.
func (r *Resolved) grid(longest float64) error {
	base, hyper, shortest := 0, 1, maxSlots
	for k := range r.Links {
		t := r.Links[k].Period
		if t == 0 {
			continue
		}
		base, shortest = opt.GCD(base, t), min(shortest, t)
		if hyper = hyper / opt.GCD(hyper, t) * t; hyper > maxSlots {
			return fmt.Errorf("schedule: the periods of the links, among them %v ms, have no common multiple of at most %d slots: "+
				"choose periods that divide each other, or longer slots", r.Millis(t), maxSlots)
		}
	}
	if longest != 0 {
		n, ok := r.slots(longest)
		if !ok || n < 1 || n%hyper != 0 {
			return fmt.Errorf("schedule: longest_ms %v is not a multiple of %v ms, the common multiple of the periods, of at most %d slots",
				longest, r.Millis(hyper), maxSlots)
		}
		hyper = n
	}
	if hyper/base > maxUnits {
		return fmt.Errorf("schedule: the schedule would repeat after %v ms only, %d times the common divisor %v ms of the periods, where at most %d can be: "+
			"choose periods that divide each other", r.Millis(hyper), hyper/base, r.Millis(base), maxUnits)
	}
	r.Base, r.Hyper = base, hyper
	for i := base; i <= hyper; i += base {
		if i >= shortest && hyper%i == 0 {
			r.Grid = append(r.Grid, i)
		}
	}
	if !slices.Contains(r.Grid, shortest) {
		return errors.New("schedule: the shortest period is no interval") // cannot be: it divides the hyperperiod
	}
	return nil
}
