package show

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/topo"
)

// PlanDiff is the JSON of a difference.
type PlanDiff struct {
	planner.Head
	Of string `json:"of"` // the kind of the plans
	planner.Transition
	Deadlock string `json:"deadlock,omitempty"` // why there are no steps
}

// Write writes a difference as text.
func (d *PlanDiff) Write(b io.Writer) {
	for _, list := range [...]struct {
		name string
		ids  []string
	}{{"add", d.Add}, {"remove", d.Remove}, {"change", d.Change}, {"keep", d.Keep}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(b, "%-7s %s\n", list.name, strings.Join(list.ids, ", "))
		}
	}
	for k, s := range d.Steps {
		fmt.Fprintf(b, "step %d: %s %s\n", k+1, s.Op, s.ID)
	}
	if d.Churn() == 0 {
		fmt.Fprintln(b, "nothing changes")
	}
}

// Plan is the JSON of a plan, and its name for errors.
type Plan struct {
	Name string
	Text []byte
}

// Room holds the inputs of capacities, as far as they are known.
type Room struct {
	Graph       *topo.Graph          // of plans of kind cover
	Orchestrate *orchestrate.Problem // of plans of kind orchestrate
	Delivery    *delivery.Problem    // of plans of kind delivery
}

// ErrOrder is that of an order of steps which does not hold.
var ErrOrder = errors.New("the order of steps does not hold")

// Ordered reports whether there are orders of steps between plans of this kind.
func Ordered(kind string) bool { return kinds[kind] != nil }

// Plans compares two plans of an ordered kind. A deadlock is the reason why a difference has no steps. Without a difference
// it is part of err.
func Plans(kind string, plans [2]Plan, room Room) (d *PlanDiff, deadlock, err error) {
	before, after, capacity, err := kinds[kind](room, plans)
	if err != nil {
		return nil, nil, err
	}
	t, deadlock := planner.NewTransition(before, after, capacity)
	if t == nil {
		return nil, nil, deadlock
	}
	d = &PlanDiff{Of: kind, Transition: *t}
	if planner.Mark(d, "diff"); deadlock != nil {
		d.Deadlock = deadlock.Error()
	} else if err := planner.Simulate(before, after, t.Steps, capacity); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	return d, deadlock, nil
}

// elementsFunc returns the elements of two plans, and the known capacities.
type elementsFunc func(room Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error)

// kinds are the kinds of plans whose elements change one by one.
var kinds = map[string]elementsFunc{
	"cover": func(room Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error) {
		var p *cover.Problem
		if room.Graph != nil {
			p = &cover.Problem{Graph: room.Graph, Agents: room.Graph.Agents()}
			capacity = cover.Capacities(p)
		}
		before, after, err = elementsOf("cover", plans, func(plan *cover.Plan) ([]planner.Element, error) { return cover.Elements(p, plan), nil })
		return before, after, capacity, err
	},
	"attention": func(_ Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error) {
		before, after, err = elementsOf("attention", plans, func(plan *attention.Plan) ([]planner.Element, error) { return plan.Outline(), nil })
		attention.Join(before, after)
		return before, after, nil, err
	},
	"orchestrate": func(room Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error) {
		p := new(orchestrate.Problem)
		if room.Orchestrate != nil {
			p, capacity = room.Orchestrate, map[string]float64{}
			for _, f := range p.Flows {
				capacity[f.ID] = float64(f.Capacity)
			}
		}
		before, after, err = elementsOf("orchestrate", plans, func(plan *orchestrate.Plan) ([]planner.Element, error) {
			list := orchestrate.Elements(p, plan)
			for k := range list { // without an instance the number of items is not known
				list[k].Form = strings.Join(slices.Sorted(maps.Keys(list[k].Uses)), ", ")
			}
			return list, nil
		})
		return before, after, capacity, err
	},
	"delivery": func(room Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error) {
		elements := func(plan *delivery.Plan) ([]planner.Element, error) { return plan.Outline(), nil }
		if p := room.Delivery; p != nil {
			if capacity, err = delivery.Capacities(p); err != nil {
				return nil, nil, nil, err
			}
			elements = func(plan *delivery.Plan) ([]planner.Element, error) { return delivery.Elements(p, plan) }
		}
		before, after, err = elementsOf("delivery", plans, elements)
		return before, after, capacity, err
	},
	"schedule": func(_ Room, plans [2]Plan) (before, after []planner.Element, capacity map[string]float64, err error) {
		before, after, err = elementsOf("schedule", plans, func(plan *schedule.Plan) ([]planner.Element, error) { return plan.Outline(), nil })
		return before, after, nil, err
	},
}

// elementsOf reads two plans and returns their elements.
func elementsOf[P any](kind string, plans [2]Plan, elements func(*P) ([]planner.Element, error)) (before, after []planner.Element, err error) {
	for k, to := range [...]*[]planner.Element{&before, &after} {
		plan := new(P)
		if err = planner.ReadPlan(bytes.NewReader(plans[k].Text), kind, plan); err == nil {
			*to, err = elements(plan)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("plan %s: %w", plans[k].Name, err)
		}
	}
	return before, after, nil
}
