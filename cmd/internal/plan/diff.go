package plan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type diffFlags struct {
	c                          *cobra.Command
	topology, instance, format string
}

func diffCommand() *cobra.Command {
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

Where there is no such order, the error names the steps that wait for each other.`,
		Example: `  hopscope plan cover --topology lab.yaml --max-hops 4 --skip leaf-1--spine-2 --format json >new.json
  hopscope plan diff plan.json new.json
  hopscope plan diff plan.json new.json --topology lab.yaml --format json`,
		Args: cli.ExactArgs(2),
	}
	o.c = c
	f := c.Flags()
	f.StringVar(&o.topology, "topology", "", "topology that both plans are carried out in, for plans of kind cover")
	f.StringVar(&o.instance, "instance", "", "instance with the capacities, for plans of kind orchestrate and delivery")
	f.StringVar(&o.format, "format", "table", "table or json")
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args[0], args[1]) }
	return c
}

func (o *diffFlags) run(c *cobra.Command, old, now string) error {
	if err := cli.CheckFormat(o.format); err != nil {
		return err
	}
	plans, kind, err := readBoth(old, now)
	if err != nil {
		return cli.WrongInput(err)
	}
	if !show.Ordered(kind) {
		return cli.Usagef("%s: plans of kind %q are followed as a whole, and there is no order of steps between two of them", now, kind)
	}
	if o.topology != "" && kind != "cover" || o.instance != "" && kind != "orchestrate" && kind != "delivery" {
		return cli.Usagef("--topology goes with plans of kind cover, and --instance with orchestrate and delivery; these are of kind %s", kind)
	}
	room, err := o.room(kind)
	if err != nil {
		return cli.WrongInput(err)
	}
	out, deadlock, err := show.Plans(kind, plans, room)
	switch {
	case errors.Is(err, show.ErrOrder):
		return err
	case err != nil:
		return cli.WrongInput(err)
	}
	if o.format == "json" {
		err = writeJSON(c.OutOrStdout(), out)
	} else {
		b := bufio.NewWriter(c.OutOrStdout())
		out.Write(b)
		err = b.Flush()
	}
	if err != nil {
		return err
	}
	return deadlock
}

// room reads the flags of capacities.
func (o *diffFlags) room(kind string) (room show.Room, err error) {
	switch {
	case o.topology != "":
		room.Graph, err = load.Topology(o.topology)
	case o.instance != "" && kind == "delivery":
		room.Delivery, err = readInstance(o.c, o.instance, delivery.Read)
	case o.instance != "":
		room.Orchestrate, err = readInstance(o.c, o.instance, func(in io.Reader) (*orchestrate.Problem, error) {
			return orchestrate.Read(in, orchestrate.Concentrate)
		})
	}
	return room, err
}

// readBoth reads two files and the kind that both plans have.
func readBoth(old, now string) (plans [2]show.Plan, kind string, err error) {
	for k, path := range [...]string{old, now} {
		text, err := cli.ReadFile(path, maxPlan)
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
		plans[k], kind = show.Plan{Name: path, Text: text}, h.Kind
	}
	return plans, kind, nil
}
