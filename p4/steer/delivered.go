package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/delivery"
)

// readDeliverer reads the plan of delivery of the settings, if they name one.
func (x *Network) readDeliverer(cfg *Files) error {
	c := cfg.Delivery
	if c.File == "" {
		return nil
	}
	o := &deliverer{cfg: c, links: x.Config.Links, tables: c.Tables(), switches: map[string]bool{}, missed: map[string]int{}, counts: map[string]*p4.Counts{}, silent: map[string]int64{}, lost: time.Now()}
	for i := range cfg.Switches {
		if s := &cfg.Switches[i]; s.Program == rftProgram {
			o.switches[s.Name] = true
		}
	}
	var plan *delivery.Plan
	var err error
	if o.problem, plan, err = c.Read(); err != nil {
		return err
	}
	if err := c.Fits(o.problem, o.switches); err != nil {
		return err
	}
	x.deliverer = o
	if plan != nil {
		d, err := o.tables.Entries(plan, o.switches)
		switch {
		case err == nil:
			o.plan = plan
			*x = *x.delivering(d)
			o.present(d, x)
		case c.Every > 0: // the settings have changed since; the next plan is of the present ones
			o.status.Why = fmt.Sprintf("the plan in %s does not fit the settings, and is left out: %v", c.File, err)
		default:
			return fmt.Errorf("delivery.file: %s: %w", c.File, err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status.Describe(&o.cfg, o.plan)
	return nil
}

// delivering is the same network whose switches hold the entries of a step.
func (x *Network) delivering(d *p4.Delivered) *Network {
	list := map[string][]control.Entry{}
	for _, of := range []map[string][]p4.Entry{d.Rules, d.Shares} {
		for sw, entries := range of {
			for k := range entries {
				list[sw] = append(list[sw], loop.EntryOf(&entries[k], 0))
			}
		}
	}
	return x.withEntries(func(y *Network) { y.delivered = list })
}

// present notes what switches are to hold now.
func (o *deliverer) present(d *p4.Delivered, x *Network) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.have, o.networks, o.entries = d, []*control.Network{x.Control}, x.delivered
	s := &o.status
	s.Left, s.Entries = len(o.steps), 0
	for _, list := range o.entries {
		s.Entries += len(list)
	}
}

// remain notes that another network has the same entries.
func (o *deliverer) remain(n *control.Network) {
	if o != nil {
		o.mu.Lock()
		o.networks = append(o.networks[max(0, len(o.networks)-mostNetworks):], n)
		o.mu.Unlock()
	}
}

// resume continues the counts of a deliverer before.
func (o *deliverer) resume(before *deliverer) {
	if o == nil || before == nil {
		return
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	o.missed, o.counts, o.lost, o.silent = before.missed, before.counts, before.lost, before.silent
	o.status.Plans, o.status.Failed, o.status.Refused = before.status.Plans, before.status.Failed, before.status.Refused
}

// deliver makes a plan for what servers measure, keeps it, and begins to carry it out.
func (s *Steering) deliver(ctx context.Context) {
	o := s.Network.deliverer
	status, err := s.ask(ctx)
	var plan *delivery.Plan
	if err == nil {
		plan, err = o.next(ctx, s.Open, status.Suspects)
	}
	if err == nil && plan != nil {
		err = s.begin(ctx, o, plan)
	}
	o.readCounters(ctx, s.Switches)
	if err != nil && ctx.Err() == nil {
		o.fail(err, s.Log)
	}
}

// begin takes a plan over, and installs its first step. The file has the plan before any switch, except for one that may wait
// for approval: the next start would carry it out. Such a plan changes in one step, since each step would wait.
func (s *Steering) begin(ctx context.Context, o *deliverer, plan *delivery.Plan) error {
	d, err := o.tables.Entries(plan, o.switches)
	if err != nil {
		return err
	}
	transition := plan.Transition
	if len(o.steps) > 0 {
		transition = nil // it begins at a plan that was not reached
	}
	steps := d.Steps(o.have, transition)
	if s.Approve {
		steps = steps[len(steps)-1:]
	} else if err := writePlan("delivery.file", o.cfg.File, plan); err != nil {
		return err
	}
	changed := len(plan.Outline())
	if plan.Transition != nil {
		changed = plan.Transition.Churn()
	}
	o.plan, o.steps, o.unkept = plan, steps, s.Approve
	o.mu.Lock()
	o.status.Plans++
	o.status.Changed, o.status.Planned = changed, time.Now().UnixNano()
	o.status.Describe(&o.cfg, o.plan)
	o.mu.Unlock()
	s.Log.Info("reports are delivered anew", "paths", len(plan.Assignment), "points_changed", changed, "servers", plan.Stats.Servers, "points_unserved", len(plan.Unserved))
	return s.install(ctx, o)
}

// install gives the next step to the loop.
func (s *Steering) install(ctx context.Context, o *deliverer) error {
	x := s.Network.delivering(o.steps[0])
	if err := s.Loop.Replace(ctx, loop.Replacement{Network: x.Control, Probing: x.Config.Sent}); err != nil {
		return err
	}
	d := o.steps[0]
	o.steps = o.steps[1:]
	o.present(d, x)
	x.orchestrator.remain(x.Control)
	s.Network = x
	return nil
}

// step installs the next step of a plan of delivery when switches hold the one before, and writes a plan that waited for
// approval once it is in force.
func (s *Steering) step(ctx context.Context) {
	o := s.Network.deliverer
	if o == nil || len(o.steps) == 0 && !o.unkept {
		return
	}
	status, err := s.ask(ctx)
	if err != nil || status.Delivery == nil || !status.Delivery.Reached {
		return // the next time
	}
	if len(o.steps) > 0 {
		err = s.install(ctx, o)
	} else if err = writePlan("delivery.file", o.cfg.File, o.plan); err == nil {
		o.unkept = false
	}
	if err != nil && ctx.Err() == nil {
		o.fail(err, s.Log)
	}
}
