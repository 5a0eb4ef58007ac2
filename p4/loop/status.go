package loop

import (
	"context"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/control"
)

// Status is a snapshot of a loop, for operators and programs.
type Status struct {
	control.Status
	Time  int64              `json:"time_ns"`
	Cycle time.Duration      `json:"cycle_ns"`
	Loop  State              `json:"loop"`
	Links map[string]*ofLink `json:"links,omitempty"` // by name, those that are suspected or looked at
	// Probes counts those of the plan that devices are to have, and Detailed those that measure in detail.
	Probes   int `json:"probes"`
	Detailed int `json:"detailed"`
	Covered  int `json:"covered"` // directions of links on them
	// Rounds are those of probes, as agents count them; nil where they are not surveyed.
	Rounds *roundsStatus `json:"rounds,omitempty"`

	// Orchestration is the assignment of flows to interfaces; nil without one.
	Orchestration *Orchestration `json:"orchestration,omitempty"`

	// Delivery is the delivery of reports over assigned paths; nil without one.
	Delivery *p4.DeliveryStatus `json:"delivery,omitempty"`

	Standby *Standby `json:"standby,omitempty"` // nil where there is a loop, and all else is of it
}

// Orchestration is the status of the assignment of flows to interfaces (INTO). Numbers of flows and interfaces are those
// of the last answer of the collector.
type Orchestration struct {
	Plans   uint64 `json:"plans"`                // since the start, with changes
	Failed  uint64 `json:"failed"`               // intervals without a plan
	Why     string `json:"why,omitempty"`        // of the last failure, until an interval succeeds
	Planned int64  `json:"planned_ns,omitempty"` // when the plan was made; 0 for one of the files
	Changed int    `json:"changed"`              // interfaces with other flows in it than before
	InForce bool   `json:"in_force"`             // every switch that is up holds all of it

	Flows      int `json:"flows"`      // that can be assigned
	Interfaces int `json:"interfaces"` // that they pass
	Outside    int `json:"outside"`    // interfaces that no flow passes, or that are of other switches
	Unserved   int `json:"unserved"`   // interfaces that fit on no flow

	Assigned     int     `json:"assigned"`      // interfaces of the plan
	FlowsUsed    int     `json:"flows_used"`    // that carry them
	Entries      int     `json:"entries"`       // of all switches
	LoadMax      int64   `json:"load_max"`      // items of 4 bytes on a packet
	Objective    float64 `json:"objective"`     // flows used, or largest load
	LowerBound   float64 `json:"lower_bound"`   // that is proven
	Freshness    float64 `json:"freshness"`     // hops over which items are carried, mean
	FreshnessMax int     `json:"freshness_max"` // and largest

	Reported int      `json:"reported"`         // assigned interfaces with reports in the newest windows
	Silent   []string `json:"silent,omitempty"` // assigned interfaces without, at most 20
}

// StandingBy is the phase of a control that has no loop at present.
const StandingBy control.Phase = "standby"

// Standby is the status of a control of a fleet while it steers nothing.
type Standby struct {
	Why      string `json:"why"`                       // a sentence without its full stop
	InCharge string `json:"in_charge,omitempty"`       // name of the control that is in charge
	Term     uint64 `json:"term,omitempty"`            // of it; 0 where no member is known to be in charge
	Refused  string `json:"network_refused,omitempty"` // why the files of this control were not reloaded
}

// ofLink is the loop's state of a link.
type ofLink struct {
	Suspect  bool    `json:"suspect"`
	Why      string  `json:"why,omitempty"`
	Weight   float64 `json:"weight,omitempty"`
	Since    int64   `json:"since_ns,omitempty"`
	Detailed bool    `json:"detailed"` // a probe on it looks closer
	Covered  bool    `json:"covered"`  // there is a probe on it
}

// Held is what switches hold. Nil is nothing.
type Held struct {
	network *control.Network // of the plan in force; nil while another one is on its way
	refuses func(sw string, list []control.Entry) bool
}

// Has reports whether one of some networks is in force, and no switch that is up refuses a part of some of its entries.
// The controller leaves out a switch that refuses something; what the others hold is in force then.
func (h *Held) Has(networks []*control.Network, entries map[string][]control.Entry) bool {
	if h == nil || h.network == nil || !slices.Contains(networks, h.network) {
		return false
	}
	for sw, list := range entries {
		if h.refuses(sw, list) {
			return false
		}
	}
	return true
}

// Status returns the status of a running loop.
func (l *Loop) Status(ctx context.Context) (Status, error) {
	var s Status
	if err := l.Ask(ctx, func(c *control.Controller, st *State) { s = l.status(c, st) }); err != nil {
		return Status{}, err // s is still the loop's, which may write to it later
	}
	return s, nil
}

// StatusNow is that of a loop that is stepped.
func (l *Loop) StatusNow() Status { return l.status(l.c, &l.state) }

func (l *Loop) status(c *control.Controller, st *State) Status {
	s := Status{Status: c.Status(), Time: l.o.Now(), Cycle: time.Duration(l.o.Control.Cycle), Loop: *st, Links: map[string]*ofLink{}}
	s.Suspects = slices.Clone(s.Suspects)
	if l.o.Rounds != nil {
		rounds := l.o.Rounds.Status()
		s.Rounds = &rounds
	}
	held := &Held{refuses: c.Refuses}
	if p := c.InForce(); p != nil && p == c.Target() {
		held.network = p.Network
	}
	if l.o.Orchestration != nil {
		s.Orchestration = l.o.Orchestration(held)
	}
	if l.o.Delivery != nil {
		s.Delivery = l.o.Delivery(held)
	}
	of := func(name string) *ofLink {
		x := s.Links[name]
		if x == nil {
			x = &ofLink{}
			s.Links[name] = x
		}
		return x
	}
	for _, x := range s.Suspects {
		y := of(x.Link)
		y.Suspect, y.Why, y.Weight, y.Since = true, x.Why, x.Weight, x.Since
	}
	p := c.Target()
	if p == nil {
		return s
	}
	s.Probes, s.Detailed = len(p.Probes), len(p.Detailed)
	covered := map[string]bool{}
	for k := range p.Probes {
		detailed := p.IsDetailed(p.Probes[k].ID)
		for _, name := range p.Probes[k].Links {
			covered[name] = true
			x := s.Links[name]
			if x == nil && detailed {
				x = of(name)
			}
			if x != nil {
				x.Covered, x.Detailed = true, x.Detailed || detailed
			}
		}
	}
	s.Covered = len(covered)
	return s
}

// Command hands a command to the controller, and returns the result: "" or why it was not obeyed.
func (l *Loop) Command(ctx context.Context, c control.Command) (why string, err error) {
	done := make(chan string, 1)
	l.post(func() {
		before := len(l.out)
		l.give(c)
		for _, a := range l.out[before:] {
			if j, ok := a.(control.Journal); ok && j.Record.What == control.Commanded {
				done <- j.Record.Why
				return
			}
		}
		done <- string(c.Verb)
	})
	text := string(c.Verb)
	if c.Author != "" {
		text += " by " + c.Author
	}
	select {
	case why = <-done:
		if len(why) > len(text)+2 {
			return why[len(text)+2:], nil
		}
		return "", nil
	case <-ctx.Done():
		return "", errStopped
	}
}
