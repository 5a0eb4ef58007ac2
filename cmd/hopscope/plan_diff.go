package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type diffFlags struct {
	c                          *cobra.Command
	topology, instance, format string
}

func planDiffCommand() *cobra.Command {
	var o diffFlags
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "What changes between two plans, and in which order",
		Long: `Compare two plans of the same kind in JSON: what is added, removed, changed and kept, by
id, and an order of steps in which nothing that both plans cover is ever uncovered. The
order is checked step by step.

What is compared are probes (cover, attention, schedule), interfaces (orchestrate) and
measurement points (delivery). Room is looked at where it is known: with --instance the
capacities of flows, links, switches and servers are never exceeded on the way, and with
--topology what agents can send; a probe that the topology does not let pass any more
covers nothing.

Where there is no such order, the error says which steps wait for each other.`,
		Example: `  hopscope plan cover --topology lab.yaml --max-hops 4 --skip leaf-1--spine-2 --format json >new.json
  hopscope plan diff plan.json new.json
  hopscope plan diff plan.json new.json --topology lab.yaml --format json`,
		Args: exactArgs(2),
	}
	o.c = c
	f := c.Flags()
	f.StringVar(&o.topology, "topology", "", "topology that both plans are carried out in, for plans of kind cover")
	f.StringVar(&o.instance, "instance", "", "instance with the capacities, for plans of kind orchestrate and delivery")
	f.StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args[0], args[1]) }
	return c
}

// planDiff is the JSON of a difference.
type planDiff struct {
	planner.Head
	Of string `json:"of"` // the kind of the plans
	planner.Transition
	Deadlock string `json:"deadlock,omitempty"` // why there are no steps
}

func (o *diffFlags) run(c *cobra.Command, old, now string) error {
	if err := checkFormat(o.format); err != nil {
		return err
	}
	plans, kind, err := readBoth(old, now)
	if err != nil {
		return wrongInput(err)
	}
	compare := diffKinds[kind]
	if compare == nil {
		return usagef("%s: plans of kind %q are followed as a whole, and there is no order of steps between two of them", now, kind)
	}
	if o.topology != "" && kind != "cover" || o.instance != "" && kind != "orchestrate" && kind != "delivery" {
		return usagef("--topology goes with plans of kind cover, and --instance with orchestrate and delivery; these are of kind %s", kind)
	}
	before, after, capacity, err := compare(o, plans)
	if err != nil {
		return wrongInput(err)
	}
	t, deadlock := planner.NewTransition(before, after, capacity)
	if t == nil {
		return wrongInput(deadlock)
	}
	out := planDiff{Of: kind, Transition: *t}
	if planner.Mark(&out, "diff"); deadlock != nil {
		out.Deadlock = deadlock.Error()
	} else if err := planner.Simulate(before, after, t.Steps, capacity); err != nil {
		return fmt.Errorf("the order of steps does not hold: %w", err)
	}
	if o.format == "json" {
		err = writeJSON(c.OutOrStdout(), &out)
	} else {
		b := bufio.NewWriter(c.OutOrStdout())
		writeDiff(b, &out)
		err = b.Flush()
	}
	if err != nil {
		return err
	}
	return deadlock
}

// writeDiff writes a difference for people.
func writeDiff(b *bufio.Writer, d *planDiff) {
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

// readBoth reads two files and the kind that both plans have.
func readBoth(old, now string) (plans [2]planFile, kind string, err error) {
	for k, path := range [...]string{old, now} {
		text, err := readFile(path, maxPlan)
		if err != nil {
			return plans, "", err
		}
		h, err := planner.ReadHead(bytes.NewReader(text))
		switch {
		case err != nil:
			return plans, "", fmt.Errorf("plan %s: %w", path, err)
		case h.Kind == "":
			return plans, "", fmt.Errorf(`plan %s: it does not say of which kind it is: the key "kind" is missing`, path)
		case k == 1 && h.Kind != kind:
			return plans, "", fmt.Errorf("plan %s is of kind %s, and %s of kind %s: only plans of one kind can be compared", old, kind, now, h.Kind)
		}
		plans[k], kind = planFile{path, text}, h.Kind
	}
	return plans, kind, nil
}

// planFile is the text of a plan.
type planFile struct {
	path string
	text []byte
}

// diffKinds gives for every kind of plan the elements of two of them, and what capacities are known.
var diffKinds = map[string]func(o *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error){
	"cover": func(o *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
		var p *cover.Problem
		if o.topology != "" {
			g, err := load.Topology(o.topology)
			if err != nil {
				return nil, nil, nil, err
			}
			p = &cover.Problem{Graph: g, Agents: g.Agents()}
			capacity = cover.Capacities(p)
		}
		before, after, err = elementsOf("cover", plans, func(plan *cover.Plan) ([]planner.Element, error) { return cover.Elements(p, plan), nil })
		return before, after, capacity, err
	},
	"attention": func(_ *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
		before, after, err = elementsOf("attention", plans, func(plan *attention.Plan) ([]planner.Element, error) { return plan.Outline(), nil })
		attention.Join(before, after)
		return before, after, nil, err
	},
	"orchestrate": func(o *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
		p := new(orchestrate.Problem)
		if o.instance != "" {
			if p, err = readInstance(o.c, o.instance, func(in io.Reader) (*orchestrate.Problem, error) {
				return orchestrate.Read(in, orchestrate.Concentrate)
			}); err != nil {
				return nil, nil, nil, err
			}
			capacity = map[string]float64{}
			for _, f := range p.Flows {
				capacity[f.ID] = float64(f.Capacity)
			}
		}
		before, after, err = elementsOf("orchestrate", plans, func(plan *orchestrate.Plan) ([]planner.Element, error) {
			list := orchestrate.Elements(p, plan)
			for k := range list { // without an instance nobody knows how many items these are
				list[k].Form = strings.Join(slices.Sorted(maps.Keys(list[k].Uses)), ", ")
			}
			return list, nil
		})
		return before, after, capacity, err
	},
	"delivery": func(o *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
		return diffDelivery(o, plans)
	},
	"schedule": func(_ *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
		before, after, err = elementsOf("schedule", plans, func(plan *schedule.Plan) ([]planner.Element, error) { return plan.Outline(), nil })
		return before, after, nil, err
	},
}

// diffDelivery compares plans point by point.
func diffDelivery(o *diffFlags, plans [2]planFile) (before, after []planner.Element, capacity map[string]float64, err error) {
	elements := func(plan *delivery.Plan) ([]planner.Element, error) { return plan.Outline(), nil }
	if o.instance != "" {
		p, err := readInstance(o.c, o.instance, delivery.Read)
		if err != nil {
			return nil, nil, nil, err
		}
		if capacity, err = delivery.Capacities(p); err != nil {
			return nil, nil, nil, err
		}
		elements = func(plan *delivery.Plan) ([]planner.Element, error) { return delivery.Elements(p, plan) }
	}
	before, after, err = elementsOf("delivery", plans, elements)
	return before, after, capacity, err
}

// elementsOf reads two plans and gives their elements.
func elementsOf[P any](kind string, plans [2]planFile, elements func(*P) ([]planner.Element, error)) (before, after []planner.Element, err error) {
	for k, to := range [...]*[]planner.Element{&before, &after} {
		plan := new(P)
		if err = planner.ReadPlan(bytes.NewReader(plans[k].text), kind, plan); err == nil {
			*to, err = elements(plan)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("plan %s: %w", plans[k].path, err)
		}
	}
	return before, after, nil
}
