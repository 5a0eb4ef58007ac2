package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
	"github.com/hopscope/hopscope/planner/show"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type queriesFlags struct {
	*sharedFlags
	bits    int
	epoch   uint8
	hash    string
	routing string
	partial bool
	earlier *querymix.Plan // that of --replan

	measured measuredFlags

	graph *topo.Graph // nil without a topology
}

func queriesCommand() *cobra.Command {
	var o queriesFlags
	c := &cobra.Command{
		Use:   "queries FILE",
		Short: "Which packets carry which PINT queries",
		Long: `Choose the execution plan of PINT queries that share the bits of a packet: sets of
queries that travel together, and the share of packets of each, such that the query
that is worst off has its answer after as few packets as can be, then the second
worst, and so on.

FILE is YAML or JSON ("-" is standard input): the bits of a packet, and for each query
its value, aggregation, widths to choose from (8, 4, 2x8), frequency (the least share
of packets), within (packets of a flow after which the answer is wanted), and what the
packets to an answer follow from: hops and nodes of paths, samples or rank_error; or
else the packets themselves, as measured: {bits: 8, packets: 42}. docs/plan-queries.md
describes all of it. With a topology the collector's own path tracing is measured on
shortest paths of it; without, a model of the published decoder says what paths take.

The plan in JSON is what switches, emulator and collector follow; p4 gives entries for
the tables of any P4 program, and entries those of p4/pint.p4 as the control of probes
takes them for its switches (both with hash: crc).`,
		Example: `  hopscope plan queries queries.yaml
  hopscope plan queries queries.yaml --bits 32 --format json --svg plan.svg >plan.json
  hopscope plan queries queries.yaml --topology fat-tree:8 --routing distance
  hopscope plan queries queries.yaml --from-collector http://127.0.0.1:8080
  hopscope plan queries queries.yaml --hash crc --format p4 >entries.txt
  hopscope plan queries switch.yaml --format entries >entries.json`,
		Args: cli.ExactArgs(1),
	}
	o.sharedFlags = addSharedFlags(c, true, false, "", "")
	o.addSeed(c, "the paths and packets that are tried")
	f := c.Flags()
	f.IntVar(&o.bits, "bits", 0, "bits of a packet, instead of those of the file")
	f.Uint8Var(&o.epoch, "epoch", 0, "number of the plan, 1 to 255; 0 derives one from what the plan says")
	f.StringVar(&o.hash, "hash", "", "how switches hash, instead of what the file says: mix (left out, too) or crc")
	f.StringVar(&o.routing, "routing", "any", "what the collector knows of paths over the topology, as in its settings: any, distance, ecmp or weights")
	f.BoolVar(&o.partial, "partial", false, "leave out queries that no packet has room for, and lower frequencies that cannot be held")
	o.measured.flags(c, "how long paths are and how many nodes they pass, for queries that do not say so")
	o.addReplan(c, "which the network has now, to show what is different", "queries", -1)
	f.Lookup("format").Usage = "table, json, p4 or entries"
	o.extra = []string{"p4", "entries"}
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args[0]) }
	return c
}

func (o *queriesFlags) run(c *cobra.Command, path string) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.problem(c, path)
	if err == nil {
		err = o.readEarlier(p)
	}
	if err != nil {
		return cli.WrongInput(err)
	}
	if err := o.measure(c, p); err != nil {
		return err
	}
	var made *pint.Plan // the plan for switches and the collector
	return carryOut(c, o.sharedFlags, family[querymix.Plan]{
		size: fmt.Sprintf("%d queries", len(p.Queries)),
		solve: func(stop func() bool) (*querymix.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: o.partial, Stop: stop, Previous: o.earlier, Churn: o.churn})
		},
		resolve: func(plan *querymix.Plan, stop func() bool) (*querymix.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: plan.Partial, Stop: stop, Previous: o.earlier, Churn: o.churn})
		},
		complete: func(plan *querymix.Plan, given planner.Given) error { return solve.Complete(p, plan, given, o.seed) },
		stats:    func(plan *querymix.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:    func(plan *querymix.Plan) error { return querymix.Check(p, plan) },
		finish:   func(plan *querymix.Plan) (err error) { made, err = pintplan.New(plan); return err },
		draw:     show.DrawQueries,
		table:    show.QueriesTable,
		formats: map[string]func(io.Writer, *querymix.Plan) error{
			"p4":      func(w io.Writer, _ *querymix.Plan) error { return writeTables(w, made) },
			"entries": func(w io.Writer, _ *querymix.Plan) error { return writeEntries(w, made) },
		},
	})
}

// writeTables writes entries for the tables of a P4 program.
func writeTables(w io.Writer, plan *pint.Plan) error {
	err := pint.WriteTables(w, plan)
	if errors.Is(err, pint.ErrHash) {
		return cli.UsageError{Err: fmt.Errorf("%w (--hash crc, or hash: crc in the file)", err)}
	}
	return err
}

// writeEntries writes the entries of p4/pint.p4, with those that all plans share.
func writeEntries(w io.Writer, plan *pint.Plan) error {
	list, err := pintplan.SwitchEntries(plan)
	if errors.Is(err, pintplan.ErrProgram) {
		return cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	return p4rt.WriteJSON(w, append(pintplan.SwitchShared(), list...))
}

// maxQueriesFile bounds the file of queries.
const maxQueriesFile = 1 << 20

// problem reads the file, and applies flags over it.
func (o *queriesFlags) problem(c *cobra.Command, path string) (*querymix.Problem, error) {
	in := c.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxQueriesFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxQueriesFile {
		return nil, fmt.Errorf("queries %s: more than %d bytes", path, maxQueriesFile)
	}
	if err := settings.CheckYAML("queries "+path, text); err != nil {
		return nil, err
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		return nil, fmt.Errorf("queries %s: %w", path, err)
	}
	p, err := querymix.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("queries %s: %w", path, err)
	}
	flags := c.Flags()
	if flags.Changed("bits") {
		p.Bits = o.bits
	}
	if flags.Changed("epoch") {
		p.Epoch = o.epoch
	}
	if flags.Changed("hash") {
		p.Hash = o.hash
	}
	if asked, err := o.measured.asked(c); err != nil {
		return nil, err
	} else if asked {
		if err := o.lengths(c, p); err != nil {
			return nil, cli.Failure{Err: err}
		}
	}
	if o.topology != "" {
		// Hops and nodes of paths follow from it.
		if o.graph, err = load.Topology(o.topology); err != nil {
			return nil, err
		}
		for i := range p.Queries {
			if q := &p.Queries[i]; q.Aggregation == querymix.Static {
				q.Nodes = o.graph.NumNodes()
				if q.Hops == 0 {
					q.Hops = min(o.graph.Diameter()+1, pint.MaxHops)
				}
			}
		}
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("queries %s: %w", path, err)
	}
	return p, nil
}

// lengths reads paths from a running collector.
func (o *queriesFlags) lengths(c *cobra.Command, p *querymix.Problem) error {
	if err := o.measured.open(c.Context()); err != nil {
		return err
	}
	longest, nodes, err := o.measured.queries(c.Context(), p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "measured: paths of at most %d hops over %d nodes\n", longest, nodes)
	return err
}

// measure fills in how many packets paths of the topology take, if there is one.
func (o *queriesFlags) measure(c *cobra.Command, p *querymix.Problem) error {
	routing, ok := map[string]prior.Routing{"any": prior.None, "distance": prior.Distance, "ecmp": prior.ECMP, "weights": prior.Weights}[o.routing]
	switch {
	case !ok:
		return cli.Usagef("--routing %q is none of any, distance, ecmp and weights", o.routing)
	case o.graph == nil && c.Flags().Changed("routing"):
		return cli.Usagef("--routing goes with --topology")
	case o.graph == nil:
		return nil
	}
	ctx := c.Context()
	tracer := NewTracer(o.graph, routing, o.seed, func() error { return context.Cause(ctx) })
	var now atomic.Value
	now.Store("")
	done := cli.ShowProgress(c.ErrOrStderr(), "tracing paths", func() string { return now.Load().(string) })
	defer done()
	return solve.Measure(p, tracer, func(query string, k querymix.PathCoding) {
		now.Store(fmt.Sprintf("%s in %s bits, tau %.3g, xor %.3g", query, k.Width, k.Tau, k.XOR))
	})
}

// readEarlier reads the earlier plan, if there is one. With a limit of changes, static queries keep their coding,
// unless the problem sets another one.
func (o *queriesFlags) readEarlier(p *querymix.Problem) (err error) {
	if o.earlier, err = readPrevious[querymix.Plan](o.sharedFlags); err != nil || o.earlier == nil {
		return err
	}
	for i := range o.earlier.Queries {
		d := &o.earlier.Queries[i]
		for k := range p.Queries {
			q := &p.Queries[k]
			if o.churn >= 0 && q.Name == d.Name && q.Aggregation == querymix.Static && d.Aggregation == querymix.Static && q.Tau == 0 && q.XOR == nil {
				q.Tau, q.XOR = d.Tau, d.XOR
			}
		}
	}
	return p.Validate()
}
