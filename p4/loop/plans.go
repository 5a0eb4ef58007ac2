package loop

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// Probing holds the way in which the probes of a network are sent.
type Probing struct {
	Dialect         probe.Dialect
	Basic, Detailed uint16                // instruction bitmaps; both 0 for those of the dialect
	Interval        time.Duration         // between two starts of a probe without a slot, which are spread over it
	Slots           map[string]probe.Slot // by the id of a probe
	Addresses       map[string]netip.Addr // of hosts, by agent; those that are not named are left to the sender's settings
}

// HopBytes returns the bytes that a hop adds to a probe, basic or detailed.
func (b *Probing) HopBytes() (basic, detailed int) {
	low, high := b.Basic, b.Detailed
	if low == 0 && high == 0 {
		low, high = b.Dialect.Bitmaps()
	}
	return b.Dialect.HopBytes(low), b.Dialect.HopBytes(high)
}

// head is a plan without probes.
func (b *Probing) head(epoch uint32) probe.Plan {
	p := probe.Plan{Epoch: epoch, Dialect: b.Dialect, Basic: b.Basic, Detailed: b.Detailed}
	if b.Basic == 0 && b.Detailed == 0 {
		p.Basic, p.Detailed = b.Dialect.Bitmaps()
	}
	return p
}

// slot is that of a probe of a list.
func (b *Probing) slot(list []planner.Probe, k int) probe.Slot {
	if slot, ok := b.Slots[list[k].ID]; ok {
		return slot
	}
	return probe.Slot{Interval: b.Interval, Phase: b.Interval / time.Duration(len(list)) * time.Duration(k)}
}

// basis is the common part of all plans of one list of probes, whichever of these measure in detail.
type basis struct {
	probing *Probing
	list    []planner.Probe
	probes  []probe.Probe      // of all agents
	byAgent map[string][]int32 // by agent, the probes that it sends or takes back
	err     error
}

func newBasis(b *Probing, list []planner.Probe) *basis {
	x := &basis{probing: b, list: list, byAgent: map[string][]int32{}}
	var bad planner.Errors
	for k := range list {
		q, err := probe.New(&list[k], b.slot(list, k))
		if err != nil {
			bad.Add("%w", err)
			continue
		}
		q.To = b.Addresses[q.Collector]
		n := int32(len(x.probes))
		x.probes = append(x.probes, q)
		x.byAgent[q.Agent] = append(x.byAgent[q.Agent], n)
		if q.Collector != q.Agent {
			x.byAgent[q.Collector] = append(x.byAgent[q.Collector], n)
		}
	}
	x.err = bad.Join()
	return x
}

// compiled keeps the last plans of the controller as agents get them. It belongs to the loop's goroutine.
type compiled struct {
	probing  *Probing         // of the last network, as it was given
	networks []probingNetwork // the newest one last
	last     []*compiledPlan  // the newest one last
}

// probingNetwork holds the way in which the probes of a network's plans are sent. A plan on its way from earlier
// networks has probes of these, which are sent as before.
type probingNetwork struct {
	network *control.Network
	probing *Probing
}

// mostNetworks is how many are kept: plans of the last ones may be in force, or brought back.
const mostNetworks = 4

// compiledPlan is a compiled plan. Parts in common with the plan before are shared, and never written to again.
type compiledPlan struct {
	plan     *control.Plan
	basis    *basis
	detailed []bool      // by probe of the basis
	empty    *probe.Plan // of an agent without probes
	parts    map[string]*part
}

// part is that of an agent.
type part struct {
	plan   probe.Plan
	limits *probe.Limits // that it was found to keep; nil before it was checked
}

const mostCompiled = 4

// adopt takes another network, behind a plan whose probes may stay for some cycles; nil for none.
func (c *compiled) adopt(n *control.Network, p *Probing, from *control.Plan) {
	both := p
	if from != nil {
		x := *p
		x.Slots, x.Addresses = c.kept(from, n)
		maps.Copy(x.Slots, p.Slots)
		maps.Copy(x.Addresses, p.Addresses)
		both = &x
	}
	if c.probing = p; len(c.networks) == mostNetworks {
		c.networks = slices.Delete(c.networks, 0, 1)
	}
	c.networks = append(c.networks, probingNetwork{n, both})
}

// kept returns slots and addresses for the probes of a plan that another network lacks.
func (c *compiled) kept(p *control.Plan, n *control.Network) (slots map[string]probe.Slot, addresses map[string]netip.Addr) {
	now := make(map[string]bool, len(n.Probes))
	for k := range n.Probes {
		now[n.Probes[k].ID] = true
	}
	b := c.plan(p).basis
	slots, addresses = make(map[string]probe.Slot, len(b.probes)), map[string]netip.Addr{}
	for k := range b.probes {
		q := &b.probes[k]
		if !now[q.ID] {
			slots[q.ID] = probe.Slot{Interval: q.Interval, Phase: q.Phase}
		}
		if q.To.IsValid() && !slices.Contains(n.Agents, q.Collector) {
			addresses[q.Collector] = q.To
		}
	}
	return slots, addresses
}

// probingOf is that of a network, or of the last one where it is long gone.
func (c *compiled) probingOf(n *control.Network) *Probing {
	for _, x := range c.networks {
		if x.network == n {
			return x.probing
		}
	}
	return c.probing
}

func (c *compiled) plan(p *control.Plan) *compiledPlan {
	if k := slices.IndexFunc(c.last, func(x *compiledPlan) bool { return x.plan == p }); k >= 0 {
		return c.last[k]
	}
	x := c.compile(p)
	if len(c.last) == mostCompiled {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, x)
	return x
}

// compile makes the parts of a plan. Agents whose probes look as closely as before keep theirs.
func (c *compiled) compile(p *control.Plan) *compiledPlan {
	x := &compiledPlan{plan: p}
	probing := c.probingOf(p.Network)
	var before *compiledPlan
	if n := len(c.last); n > 0 && c.last[n-1].basis.suits(probing, p.Probes) {
		before = c.last[n-1]
		x.basis = before.basis
	} else {
		x.basis = newBasis(probing, p.Probes)
	}
	b := x.basis
	head := probing.head(p.Epoch)
	x.empty = &head
	x.detailed = make([]bool, len(b.probes))
	for k := range b.probes {
		x.detailed[k] = p.IsDetailed(b.probes[k].ID)
	}
	differs := func(n int32) bool { return before == nil || before.detailed[n] != x.detailed[n] }
	x.parts = make(map[string]*part, len(b.byAgent))
	parts := make([]part, len(b.byAgent))
	for name, list := range b.byAgent {
		y := &parts[len(x.parts)]
		x.parts[name] = y
		y.plan = head
		if !slices.ContainsFunc(list, differs) {
			old := before.parts[name]
			y.plan.Probes, y.limits = old.plan.Probes, old.limits
			continue
		}
		y.plan.Probes = make([]probe.Probe, len(list))
		for k, n := range list {
			y.plan.Probes[k] = b.probes[n]
			y.plan.Probes[k].Detailed = x.detailed[n]
		}
	}
	return x
}

// suits reports whether a basis is that of a list of probes.
func (b *basis) suits(p *Probing, list []planner.Probe) bool {
	return b.probing == p && len(b.list) == len(list) && len(list) > 0 && &b.list[0] == &list[0]
}

// partOf is the part of a plan that an agent gets.
func (c *compiled) partOf(p *control.Plan, name string) (*probe.Plan, error) {
	x := c.plan(p)
	if x.basis.err != nil {
		return nil, x.basis.err
	}
	if y := x.parts[name]; y != nil {
		return &y.plan, nil
	}
	return x.empty, nil
}

// check compares a plan with the limits of all agents that reported theirs, and against those of the format for the others.
func (c *compiled) check(p *control.Plan, agents []string, limits func(string) (probe.Limits, bool)) error {
	var bad planner.Errors
	x := c.plan(p)
	for _, name := range agents {
		q, err := c.partOf(p, name)
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
		y := x.parts[name]
		if y != nil && y.limits != nil && *y.limits == l {
			continue // the same probes, under the same limits
		}
		if _, err := q.Check(&l); err != nil {
			bad.Add("agent %s: %w", name, err)
		} else if y != nil {
			y.limits = &l
		}
	}
	if err := bad.Join(); err != nil {
		return fmt.Errorf("the agents would refuse it: %w", err)
	}
	return nil
}

// unlimited stands for limits that an agent has not reported yet.
const unlimited = 1 << 50

// Addresses are the hosts of the agents of a plan, as far as its probes name them.
func Addresses(p *probe.Plan) map[string]netip.Addr {
	list := map[string]netip.Addr{}
	for k := range p.Probes {
		if x := &p.Probes[k]; x.To.IsValid() && x.Collector != "" {
			list[x.Collector] = x.To
		}
	}
	return list
}
