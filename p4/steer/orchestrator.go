package steer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/orchestrate/solve"
)

// orchestrator plans which flows carry which interfaces, from the flows of a collector, and compares the plan with what
// is reported.
type orchestrator struct {
	cfg    OrchestrateConfig
	links  *Links
	serves map[string]bool // switches that carry out assignments

	plan   *orchestrate.Plan // that was carried out last; nil for none
	logged string
	unkept bool // the file does not have the plan, which may wait for approval

	mu       sync.Mutex
	networks []*control.Network // with its entries
	entries  map[string][]control.Entry
	status   loop.Orchestration
}

// searchTime bounds the search for a plan.
const searchTime = 2 * time.Second

// mostSilent is the number of interfaces without a report that are named.
const mostSilent = 20

// describe returns what was decided, and whether it is in force.
func (o *orchestrator) describe(held *loop.Held) *loop.Orchestration {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.status
	s.InForce = held.Has(o.networks, o.entries)
	return &s
}

// adopt makes a plan the present one, with its network.
func (o *orchestrator) adopt(p *orchestrate.Plan, x *Network) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.plan, o.networks, o.entries = p, []*control.Network{x.Control}, x.assigned
	o.count(p)
}

// count describes a plan in the status.
func (o *orchestrator) count(p *orchestrate.Plan) {
	s := &o.status
	s.FlowsUsed, s.Assigned, s.Entries, s.LoadMax, s.Freshness, s.FreshnessMax = 0, 0, 0, 0, 0, 0
	if p == nil {
		return
	}
	load := map[string]int64{}
	for _, t := range p.Tables {
		s.Entries += len(t.Entries)
		for _, e := range t.Entries {
			load[e.Flow] += e.Items
			s.LoadMax = max(s.LoadMax, load[e.Flow])
		}
	}
	s.FlowsUsed, s.Assigned = len(load), len(p.Tables)
	s.Freshness, s.FreshnessMax = p.Stats.Freshness.Mean, p.Stats.Freshness.Max
}

// fail notes why there is no plan, and logs a new reason once.
func (o *orchestrator) fail(err error, log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status.Failed++
	o.status.Why = err.Error()
	if o.logged != o.status.Why {
		o.logged = o.status.Why
		log.Error("no new assignment of flows to interfaces; the one before stays", "error", o.logged)
	}
}

// listedFlow is a flow of the list of flows, with the time of its last report.
type listedFlow struct {
	FlowAnswer
	LastMS int64 `json:"last_ms"`
}

// listedHop is a hop of the list of hops, with the time of its last report.
type listedHop struct {
	HopAnswer
	LastMS int64 `json:"last_ms"`
}

// stillWindows is the number of windows without a report after which a flow has ended, and a hop is not reported.
const stillWindows = 3

// problem asks a collector for its flows. The interfaces with reports are those of the newest windows, by their names.
func (o *orchestrator) problem(ctx context.Context, page *Page) (p *orchestrate.Problem, reported map[string]bool, outside int, err error) {
	m, err := OpenMeasured(ctx, page.URL, page.Get)
	if err != nil {
		return nil, nil, 0, err
	}
	if m.span < stillWindows*m.window {
		return nil, nil, 0, fmt.Errorf("%s has collected for %v, which is too short to know its flows", page.URL, m.span)
	}
	var flows []listedFlow
	var hops []listedHop
	newest := int64(0)
	if err = List(ctx, m, "/api/flows", "flows", func(f listedFlow) { flows, newest = append(flows, f), max(newest, f.LastMS) }); err != nil {
		return nil, nil, 0, err
	}
	if err = List(ctx, m, "/api/hops", "hops", func(h listedHop) { hops, newest = append(hops, h), max(newest, h.LastMS) }); err != nil {
		return nil, nil, 0, err
	}
	var state struct {
		EndMS int64 `json:"end_ms"`
	}
	if m.Get(ctx, "/api/map/state", &state) == nil { // windows go on where all reports have ended
		newest = max(newest, state.EndMS)
	}
	since := newest - stillWindows*m.window.Milliseconds()
	name := func(k inference.HopKey) (id string, ours bool) {
		n, ok := o.links.nodes[k.Node]
		if k.Other || k.EgressIf == 0 || !ok {
			return "", false
		}
		node := o.links.graph.NodeName(n)
		return node + ":" + strconv.FormatUint(uint64(k.EgressIf), 10), o.serves[node] && k.EgressIf <= mostPort
	}
	p = &orchestrate.Problem{Objective: o.cfg.Objective, Redundancy: o.cfg.Redundancy}
	others, index, reported := map[string]bool{}, map[string]int32{}, map[string]bool{}
	slices.SortFunc(flows, func(a, b listedFlow) int { return cmp.Compare(a.Key, b.Key) })
	for _, f := range slices.CompactFunc(flows, func(a, b listedFlow) bool { return a.Key == b.Key }) {
		if _, err := assignable(f.Key); err != nil || f.LastMS <= since {
			continue
		}
		flow := orchestrate.Flow{ID: f.Key, Capacity: o.cfg.capacity(), Rate: f.Packets / m.span.Seconds()}
		for _, h := range f.Path {
			k, err := inference.ParseHop(h.Node.String() + ":" + h.EgressIf)
			if err != nil || h.EgressIf == "" {
				continue
			}
			id, ours := name(k)
			if !ours {
				others[id] = true
				continue
			}
			i, known := index[id]
			if !known {
				i = int32(len(p.Interfaces))
				index[id] = i
				p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: id, Demand: o.cfg.words()})
			}
			if !slices.Contains(flow.Interfaces, i) { // else it goes round in circles
				flow.Interfaces = append(flow.Interfaces, i)
			}
		}
		if len(flow.Interfaces) > 0 {
			p.Flows = append(p.Flows, flow)
		}
	}
	for _, h := range hops {
		if k, ok := h.Hop(); ok && h.LastMS > since {
			id, ours := name(k)
			if _, known := index[id]; !known {
				others[id] = true
			}
			reported[id] = reported[id] || ours
		}
	}
	delete(others, "")
	return p, reported, len(others), nil
}

// next returns a plan for the flows of a collector, nil if the present one stays.
func (o *orchestrator) next(ctx context.Context, page *Page) (*orchestrate.Plan, error) {
	p, reported, outside, err := o.problem(ctx, page)
	if err != nil {
		return nil, err
	}
	o.compare(p, reported, outside)
	if len(p.Flows) == 0 {
		return nil, fmt.Errorf("%s lists no flow with the interfaces that it passes, on switches with the program %s", page.URL, assigning)
	}
	began := time.Now()
	options := solve.Options{Partial: true, Stop: func() bool { return ctx.Err() != nil || time.Since(began) > searchTime }}
	if o.plan != nil && len(o.plan.Assignment)+len(o.plan.Shares) > 0 {
		options.Previous, options.Churn = o.plan, o.cfg.Churn
	}
	plan, err := solve.Plan(p, options)
	if err != nil {
		return nil, err
	}
	if err := orchestrate.Check(p, plan); err != nil {
		return nil, fmt.Errorf("the assignment fails its check: %w", err)
	}
	plan.Stats.Gap = plan.Stats.Objective - plan.Stats.LowerBound
	plan.Tables, plan.Rates = p.Tables(plan), p.Rates(plan)
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.status
	s.Unserved, s.Why, o.logged = len(plan.Unserved), "", ""
	s.Objective, s.LowerBound = plan.Stats.Objective, plan.Stats.LowerBound
	if o.plan != nil && slices.EqualFunc(o.plan.Tables, plan.Tables, func(a, b orchestrate.Table) bool {
		return a.Interface == b.Interface && slices.Equal(a.Entries, b.Entries)
	}) {
		return nil, nil
	}
	return plan, nil
}

// compare notes which assigned interfaces are reported.
func (o *orchestrator) compare(p *orchestrate.Problem, reported map[string]bool, outside int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.status
	s.Flows, s.Interfaces, s.Outside, s.Reported, s.Silent = len(p.Flows), len(p.Interfaces), outside, 0, nil
	if o.plan == nil {
		return
	}
	for _, t := range o.plan.Tables {
		switch {
		case reported[t.Interface]:
			s.Reported++
		case len(s.Silent) < mostSilent:
			s.Silent = append(s.Silent, t.Interface)
		}
	}
}

// tables are the entries of a plan that concern one interface, by its name.
func tables(p *orchestrate.Plan) map[string][]orchestrate.Entry {
	list := map[string][]orchestrate.Entry{}
	if p != nil {
		for _, t := range p.Tables {
			list[t.Interface] = t.Entries
		}
	}
	return list
}

// changed is the number of interfaces whose entries differ between two plans.
func changed(before, after *orchestrate.Plan) (n int) {
	a, b := tables(before), tables(after)
	for i := range b {
		if !slices.Equal(a[i], b[i]) {
			n++
		}
		delete(a, i)
	}
	return n + len(a)
}

// carrying is the same network with another assignment.
func (x *Network) carrying(p *orchestrate.Plan) (*Network, error) {
	lists, err := x.orchestrator.cfg.Entries(p, x.Config.Links, x.orchestrator.serves)
	if err != nil {
		return nil, err
	}
	assigned := make(map[string][]control.Entry, len(lists))
	for sw, list := range lists {
		for k := range list {
			assigned[sw] = append(assigned[sw], loop.EntryOf(&list[k], 0))
		}
	}
	return x.withEntries(func(y *Network) { y.assigned = assigned }), nil
}

// orchestrate makes a plan for the flows of the collector, keeps it, and gives it to the loop.
func (s *Steering) orchestrate(ctx context.Context) {
	o := s.Network.orchestrator
	plan, err := o.next(ctx, s.Page)
	if err == nil && plan != nil {
		err = s.carry(ctx, o, plan)
	}
	if err != nil && ctx.Err() == nil {
		o.fail(err, s.Log)
	}
}

// carry gives a plan to the loop. The file has it before any switch, except for one that may wait for approval: the next
// start would carry it out.
func (s *Steering) carry(ctx context.Context, o *orchestrator, plan *orchestrate.Plan) error {
	x, err := s.Network.carrying(plan)
	if err != nil {
		return err
	}
	if !s.Approve {
		if err := writePlan("orchestrate.file", o.cfg.File, plan); err != nil {
			return err
		}
	}
	if err := s.Loop.Replace(ctx, loop.Replacement{Network: x.Control, Probing: x.Config.Sent}); err != nil {
		return err
	}
	o.unkept = s.Approve
	n := changed(o.plan, plan)
	o.adopt(plan, x)
	x.deliverer.remain(x.Control)
	o.mu.Lock()
	o.status.Plans++
	o.status.Changed, o.status.Planned = n, time.Now().UnixNano()
	o.mu.Unlock()
	s.Network = x
	s.Log.Info("flows are assigned to interfaces anew", "interfaces", len(plan.Tables), "changed", n, "flows", plan.Stats.FlowsUsed, "freshness_hops", plan.Stats.Freshness.Mean)
	return nil
}

// remain notes that another network has the same assignment.
func (o *orchestrator) remain(n *control.Network) {
	if o != nil {
		o.mu.Lock()
		o.networks = append(o.networks[max(0, len(o.networks)-mostNetworks):], n)
		o.mu.Unlock()
	}
}

// keep writes a plan into the file as soon as it is in force, if it was not written before.
func (s *Steering) keep(ctx context.Context) {
	o := s.Network.orchestrator
	if o == nil || !o.unkept {
		return
	}
	status, err := s.ask(ctx)
	if err != nil || status.Orchestration == nil || !status.Orchestration.InForce {
		return // the next time
	}
	if err := writePlan("orchestrate.file", o.cfg.File, o.plan); err != nil {
		o.fail(err, s.Log)
		return
	}
	o.unkept = false
}

// readOrchestrator reads the assignment of the settings, if they name one.
func (x *Network) readOrchestrator(cfg *Files) error {
	if cfg.Orchestrate.File == "" {
		return nil
	}
	o := &orchestrator{cfg: cfg.Orchestrate, links: x.Config.Links, serves: map[string]bool{}}
	for i := range cfg.Switches {
		if s := &cfg.Switches[i]; p4.Assigns(s.Program) {
			o.serves[s.Name] = true
		}
	}
	if len(o.serves) == 0 {
		return fmt.Errorf("orchestrate.file: no switch of the settings has the program %s", assigning)
	}
	x.orchestrator = o
	p, err := o.cfg.readAssignment()
	if err != nil || p == nil {
		return err
	}
	y, err := x.carrying(p)
	if err != nil && o.cfg.Every > 0 { // the settings have changed since; the next plan is of the present ones
		o.status.Why = fmt.Sprintf("the plan in %s does not fit the settings, and is left out: %v", o.cfg.File, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("orchestrate.file: %s: %w", o.cfg.File, err)
	}
	*x = *y
	o.adopt(p, x)
	return nil
}

// resume continues the counts of an orchestrator before.
func (o *orchestrator) resume(before *orchestrator) {
	if o == nil || before == nil {
		return
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	plan := o.status
	o.status = before.status
	if plan.Why != "" {
		o.status.Why = plan.Why
	}
	o.status.FlowsUsed, o.status.Assigned, o.status.Entries, o.status.LoadMax = plan.FlowsUsed, plan.Assigned, plan.Entries, plan.LoadMax
	o.status.Freshness, o.status.FreshnessMax = plan.Freshness, plan.FreshnessMax
}

// Assignment is what a network that may be replaced assigns: flows to interfaces, and reports to paths.
type Assignment struct{ now atomic.Pointer[Network] }

// Assignment returns that of a network.
func (x *Network) Assignment() *Assignment {
	a := &Assignment{}
	a.now.Store(x)
	return a
}

// Status implements [loop.Options.Orchestration]. It is nil if nothing is to be assigned, or no network is known yet.
func (a *Assignment) Status(held *loop.Held) *loop.Orchestration {
	x := a.now.Load()
	if x == nil || x.orchestrator == nil {
		return nil
	}
	return x.orchestrator.describe(held)
}

// Delivery implements [loop.Options.Delivery]. It is nil if no reports are to be delivered, or no network is known yet.
func (a *Assignment) Delivery(held *loop.Held) *p4.DeliveryStatus {
	x := a.now.Load()
	if x == nil || x.deliverer == nil {
		return nil
	}
	return x.deliverer.describe(held)
}
