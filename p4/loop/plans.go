package loop

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// Probing says how the probes of a network are sent.
type Probing struct {
	Dialect         agent.Dialect
	Basic, Detailed uint16                // instruction bitmaps; both 0 for those of the dialect
	Interval        time.Duration         // between two starts of a probe without a slot, which are spread over it
	Slots           map[string]agent.Slot // by the id of a probe
	Addresses       map[string]netip.Addr // of hosts, by agent; those that are not named are left to the sender's settings
}

// Plan is a plan of the controller as agents know it, for the whole network.
func (b *Probing) Plan(p *control.Plan) (*agent.Plan, error) {
	out := &agent.Plan{Epoch: p.Epoch, Dialect: b.Dialect, Basic: b.Basic, Detailed: b.Detailed}
	if b.Basic == 0 && b.Detailed == 0 {
		out.Basic, out.Detailed = b.Dialect.Bitmaps()
	}
	var bad planner.Errors
	for k := range p.Probes {
		x := &p.Probes[k]
		slot, ok := b.Slots[x.ID]
		if !ok {
			slot = agent.Slot{Interval: b.Interval, Phase: b.Interval / time.Duration(len(p.Probes)) * time.Duration(k)}
		}
		q, err := agent.ProbeOf(x, slot)
		if err != nil {
			bad.Add("%w", err)
			continue
		}
		q.Detailed, q.To = p.IsDetailed(x.ID), b.Addresses[q.Collector]
		out.Probes = append(out.Probes, q)
	}
	return out, bad.Join()
}

// HopBytes is what a hop adds to a probe, basic or detailed.
func (b *Probing) HopBytes() (basic, detailed int) {
	low, high := b.Basic, b.Detailed
	if low == 0 && high == 0 {
		low, high = b.Dialect.Bitmaps()
	}
	return b.Dialect.HopBytes(low), b.Dialect.HopBytes(high)
}

// split gives every agent the probes that it sends or takes back.
func split(p *agent.Plan) map[string]*agent.Plan {
	parts := map[string]*agent.Plan{}
	add := func(name string, x agent.Probe) {
		part := parts[name]
		if part == nil {
			part = &agent.Plan{Epoch: p.Epoch, Dialect: p.Dialect, Basic: p.Basic, Detailed: p.Detailed}
			parts[name] = part
		}
		part.Probes = append(part.Probes, x)
	}
	for _, x := range p.Probes {
		add(x.Agent, x)
		if x.Collector != x.Agent {
			add(x.Collector, x)
		}
	}
	return parts
}

// compiled keeps the last plans of the controller as agents get them. It belongs to the loop's goroutine.
type compiled struct {
	probing *Probing
	last    []compiledPlan // the newest one last
}

type compiledPlan struct {
	of    *control.Plan
	empty *agent.Plan // of an agent without probes
	parts map[string]*agent.Plan
	err   error
}

const mostCompiled = 4

func (c *compiled) follow(p *Probing) {
	if p != nil {
		c.probing = p
	}
}

func (c *compiled) plan(p *control.Plan) *compiledPlan {
	if k := slices.IndexFunc(c.last, func(x compiledPlan) bool { return x.of == p }); k >= 0 {
		return &c.last[k]
	}
	x := compiledPlan{of: p}
	whole, err := c.probing.Plan(p)
	x.parts, x.err = split(whole), err
	x.empty = &agent.Plan{Epoch: whole.Epoch, Dialect: whole.Dialect, Basic: whole.Basic, Detailed: whole.Detailed}
	if len(c.last) == mostCompiled {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, x)
	return &c.last[len(c.last)-1]
}

// of is the part of a plan that an agent gets.
func (c *compiled) of(p *control.Plan, name string) (*agent.Plan, error) {
	x := c.plan(p)
	if x.err != nil {
		return nil, x.err
	}
	if part := x.parts[name]; part != nil {
		return part, nil
	}
	return x.empty, nil
}

// check holds a plan against the limits of all agents that told theirs, and against those of the format for the others.
func (c *compiled) check(p *control.Plan, agents []string, limits func(string) (agent.Limits, bool)) error {
	var bad planner.Errors
	for _, name := range agents {
		part, err := c.of(p, name)
		if err != nil {
			return err
		}
		l, ok := limits(name)
		if !ok {
			d := agent.DefaultConfig()
			l = d.Limits()
			l.SendBPS, l.ReceiveBPS, l.ProbesPerSec, l.Probes = unlimited, unlimited, unlimited, unlimited
		}
		l.Name = name
		if _, err := part.Check(&l); err != nil {
			bad.Add("agent %s: %w", name, err)
		}
	}
	if err := bad.Join(); err != nil {
		return fmt.Errorf("the agents would refuse it: %w", err)
	}
	return nil
}

// unlimited stands for limits that an agent has not told yet.
const unlimited = 1 << 50

// Addresses are the hosts of the agents of a plan, as far as its probes name them.
func Addresses(p *agent.Plan) map[string]netip.Addr {
	list := map[string]netip.Addr{}
	for k := range p.Probes {
		if x := &p.Probes[k]; x.To.IsValid() && x.Collector != "" {
			list[x.Collector] = x.To
		}
	}
	return list
}
