package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/pathpackets"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

type queriesFlags struct {
	*planFlags
	bits    int
	epoch   uint8
	hash    string
	routing string
	partial bool
	earlier *querymix.Plan // that of --replan

	measured measured

	graph *topo.Graph // nil without a topology
}

func planQueriesCommand() *cobra.Command {
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
		Args: exactArgs(1),
	}
	o.planFlags = addPlanFlags(c, true, false, "", "")
	o.addSeed(c, "the paths and packets that are tried")
	f := c.Flags()
	f.IntVar(&o.bits, "bits", 0, "bits of a packet, instead of those of the file")
	f.Uint8Var(&o.epoch, "epoch", 0, "number of the plan, 1 to 255; 0 derives one from what the plan says")
	f.StringVar(&o.hash, "hash", "", "how switches hash, instead of what the file says: mix (left out, too) or crc")
	f.StringVar(&o.routing, "routing", "any", "what the collector knows of paths over the topology, as in its settings: any, distance, ecmp or weights")
	f.BoolVar(&o.partial, "partial", false, "leave out queries that no packet has room for, and lower frequencies that cannot be held")
	o.measured.flags(c, "how long paths are and how many nodes they pass, for queries that do not say so")
	o.addReplan(c, "which the network has now, to say what is different", "queries", -1)
	f.Lookup("format").Usage = "table, json, p4 or entries"
	o.extra = []string{"p4", "entries"}
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args[0]) }
	return c
}

func (o *queriesFlags) run(c *cobra.Command, path string) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.checkReplan(c, false); err != nil {
		return err
	}
	p, err := o.problem(c, path)
	if err == nil {
		err = o.readEarlier(p)
	}
	if err != nil {
		return wrongInput(err)
	}
	if err := o.measure(c, p); err != nil {
		return err
	}
	var made *pint.Plan // what switches and the collector make of the plan
	return carryOut(c, o.planFlags, family[querymix.Plan]{
		size: fmt.Sprintf("%d queries", len(p.Queries)),
		solve: func(stop func() bool) (*querymix.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: o.partial, Stop: stop, Previous: o.earlier, Churn: o.churn})
		},
		again: func(plan *querymix.Plan, stop func() bool) (*querymix.Plan, error) {
			return solve.Plan(p, solve.Options{Seed: o.seed, Partial: plan.Partial, Stop: stop, Previous: o.earlier, Churn: o.churn})
		},
		stats:  func(plan *querymix.Plan) *planner.Stats { return &plan.Stats.Stats },
		check:  func(plan *querymix.Plan) error { return querymix.Check(p, plan) },
		finish: func(plan *querymix.Plan) (err error) { made, err = pintplan.New(plan); return err },
		draw:   drawQueries,
		table:  queriesTable,
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
		return usageError{Err: fmt.Errorf("%w (--hash crc, or hash: crc in the file)", err)}
	}
	return err
}

// writeEntries writes the entries of p4/pint.p4, with those that all plans share.
func writeEntries(w io.Writer, plan *pint.Plan) error {
	list, err := pintplan.SwitchEntries(plan)
	if errors.Is(err, pintplan.ErrProgram) {
		return usageError{Err: err}
	}
	if err != nil {
		return err
	}
	return p4rt.WriteJSON(w, append(pintplan.SwitchShared(), list...))
}

// maxQueriesFile bounds the file of queries.
const maxQueriesFile = 1 << 20

// problem reads the file, with what flags say instead.
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
			return nil, failure{Err: err}
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

// lengths asks a running collector for paths.
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
	routing, ok := map[string]pathtrace.Routing{"any": pathtrace.None, "distance": pathtrace.Distance, "ecmp": pathtrace.ECMP, "weights": pathtrace.Weights}[o.routing]
	switch {
	case !ok:
		return usagef("--routing %q is none of any, distance, ecmp and weights", o.routing)
	case o.graph == nil && c.Flags().Changed("routing"):
		return usagef("--routing goes with --topology")
	case o.graph == nil:
		return nil
	}
	ctx := c.Context()
	tracer := pathpackets.New(o.graph, routing, o.seed, func() error { return context.Cause(ctx) })
	var now atomic.Value
	now.Store("")
	done := showProgress(c.ErrOrStderr(), "tracing paths", func() string { return now.Load().(string) })
	defer done()
	return solve.Measure(p, tracer, func(query string, k querymix.PathCoding) {
		now.Store(fmt.Sprintf("%s in %s bits, tau %.3g, xor %.3g", query, k.Width, k.Tau, k.XOR))
	})
}

// queriesTable writes a plan for people.
func queriesTable(w io.Writer, plan *querymix.Plan) error {
	b := bufio.NewWriter(w)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SHARE\tHASHES OF PACKET IDS\tBITS OF THE DIGEST")
	for _, s := range plan.Sets {
		var slots []string
		for _, x := range s.Slots {
			slots = append(slots, fmt.Sprintf("%d-%d %s", x.Shift, x.Shift+x.Bits-1, x.Query))
		}
		fmt.Fprintf(t, "%s\t%08x-%08x\t%s\n", percent(s.Share), s.First, s.Last, strings.Join(slots, ", "))
	}
	t.Flush()
	fmt.Fprintln(b)
	fmt.Fprintln(t, "QUERY\tBITS\tSHARE\tPACKETS TO ANSWER\tALONE\tWANTED\tRATIO")
	for i := range plan.Queries {
		q := &plan.Queries[i]
		wanted := "as alone"
		switch q.Demand {
		case querymix.WantWithin:
			wanted = fmt.Sprintf("%.4g", q.Goal)
		case querymix.WantFrequency:
			wanted = "on " + percent(q.Frequency)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t%.4g\t%s\t%.3f\n", q.Name, queryWidth(q), percent(q.Share), q.Packets, q.Alone, wanted, q.Ratio)
	}
	t.Flush()
	fmt.Fprintln(b)
	for _, s := range explainQueries(plan) {
		fmt.Fprintln(b, s)
	}
	s := plan.Stats
	how := howGood(&s.Stats, fmt.Sprintf("the best there is has at least %.6g", s.LowerBound))
	fmt.Fprintf(b, "%s, objective %.6g: %s; %.3f ms; epoch %d\n", plan.Algorithm, s.Objective, how, s.Seconds*1e3, plan.Epoch)
	queriesSteps(b, plan)
	for _, l := range plan.LeftOut {
		fmt.Fprintf(b, "left out: %s (%s)\n", l.Name, l.Reason)
	}
	if plan.Partial {
		fmt.Fprintln(b, "This plan is partial: it does not do everything that is asked.")
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func queryWidth(q *querymix.PlannedQuery) string {
	return querymix.Width{Bits: q.Bits, Instances: q.Instances}.String()
}

// explainQueries says in words what a plan does, and why.
func explainQueries(plan *querymix.Plan) (text []string) {
	say := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	query := map[string]*querymix.PlannedQuery{}
	for i := range plan.Queries {
		query[plan.Queries[i].Name] = &plan.Queries[i]
	}
	for _, s := range plan.Sets {
		var names []string
		used := 0
		for _, x := range s.Slots {
			names = append(names, fmt.Sprintf("%s (%s bits)", x.Query, queryWidth(query[x.Query])))
			used += x.Bits
		}
		what := "nothing"
		if len(names) > 0 {
			what = enumerate(names)
		}
		if free := plan.Bits - used; free > 0 {
			what += fmt.Sprintf("; %d bit%s stay%s free", free, plural(free), map[bool]string{true: "s"}[free == 1])
		}
		say("%s of packets carry %s.", percent(s.Share), what)
	}
	for i := range plan.Queries {
		q := &plan.Queries[i]
		where := "all packets"
		if q.Share < 1-1e-9 {
			where = percent(q.Share) + " of packets"
			if q.Frequency > 0 && q.Share < q.Frequency*(1+1e-6) {
				where += ", which is the frequency that it asks for"
			}
			if len(q.LimitedBy) > 0 {
				where += "; a larger share would leave less for " + enumerate(q.LimitedBy)
			}
		}
		say("%s is on %s. It needs %.4g packets of a flow, %s.", q.Name, where, q.Packets, compare(q))
	}
	for i := range plan.Queries {
		q := &plan.Queries[i]
		for k := range q.Widths {
			w := &q.Widths[k]
			switch {
			case w.Bits == q.Bits && w.Instances == q.Instances:
			case w.Reason != "":
				say("%s does not use %s bits: %s.", q.Name, w.Width(), w.Reason)
			case w.Objective > 0:
				say("%s in %s bits would need %.4g packets alone instead of %.4g, and the worst ratio would be %.4g instead of %.4g.",
					q.Name, w.Width(), w.Packets, q.Carrying, w.Objective, plan.Stats.Objective)
			}
		}
	}
	if plan.Held > 0 {
		say("Only %s of every frequency can be held.", percent(plan.Held))
	}
	if q := query[plan.Stats.Worst]; q != nil {
		say("The query that is worst off is %s: it needs %.4g packets, %s.", q.Name, q.Packets, compare(q))
	}
	return text
}

// compare sets the packets of a query against what it wants.
func compare(q *querymix.PlannedQuery) string {
	alone := fmt.Sprintf("%.3g times as many as it needs alone", q.Packets/q.Alone)
	if q.Packets < 1.0005*q.Alone {
		alone = "no more than it needs alone"
	}
	if q.Demand != querymix.WantWithin {
		return alone
	}
	return fmt.Sprintf("%.3g times as many as the %.4g that are wanted, and %s", q.Ratio, q.Goal, alone)
}

// enumerate joins names as a sentence does.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
