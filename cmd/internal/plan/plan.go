// Package plan is the command "hopscope plan". It has a command for each family of plans, with its flags and the
// reading of its problem, and the comparison of two plans.
package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// Command is "hopscope plan" with all commands below it.
func Command() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan probes, their loads, their detail and their delivery",
		Long: `Turn a topology, or an instance in JSON, into a plan on standard output. Every
plan is checked by code that knows nothing of how it was made, and states how far it
can be from the best there is.`,
		Args: cli.NoCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, command := range commands {
		c.AddCommand(command())
	}
	return c
}

// commands are the commands of the families of plans, one a line. Each has a file of its own with its flags, the
// reading of its problem, its table and its picture. The function carryOut does what all of them have in common.
var commands = []func() *cobra.Command{
	coverCommand,
	orchestrateCommand,
	attentionCommand,
	deliveryCommand,
	queriesCommand,
	diffCommand,
	scheduleCommand,
}

// sharedFlags are the flags that all plan commands share.
type sharedFlags struct {
	c                                       *cobra.Command
	topology, instance, method, format, svg string
	verify                                  string // file of a plan
	given                                   planner.Given
	replan                                  string // file of an older plan
	churn                                   int
	checksSteps                             bool     // from an older plan, with --check and --replan
	extra                                   []string // formats beside table and json
	seed                                    uint64
	timeLimit                               time.Duration
}

// addSharedFlags adds the shared flags to c. A command takes a topology, an instance, or either.
func addSharedFlags(c *cobra.Command, topology, instance bool, methods, method string) *sharedFlags {
	o := &sharedFlags{c: c}
	f := c.Flags()
	if topology {
		f.StringVar(&o.topology, "topology", "", "file ("+load.Formats+") or generator ("+topo.Generators+")")
	}
	if instance {
		f.StringVar(&o.instance, "instance", "", `JSON file with the whole problem ("-" is standard input)`)
	}
	if methods != "" {
		f.StringVar(&o.method, "method", method, methods)
	}
	f.DurationVar(&o.timeLimit, "time-limit", 2*time.Second, "when to stop improving the plan")
	f.StringVar(&o.format, "format", "table", "table or json")
	f.StringVar(&o.svg, "svg", "", "also draw the plan into this file")
	f.StringVar(&o.verify, "check", "", "check the plan in this JSON file, of any origin: what follows from its decisions is derived and need not be given, and what it says of itself is proven again")
	return o
}

// addReplan adds the flags for a plan that follows an older one. Without --churn, that many elements may change; -1 is
// any number.
func (o *sharedFlags) addReplan(c *cobra.Command, older, elements string, churn int) {
	f := c.Flags()
	f.StringVar(&o.replan, "replan", "", "JSON of an older plan, "+older)
	f.IntVar(&o.churn, "churn", churn, "with --replan: most "+elements+" that change, or those that have to if these are more (-1: any number)")
}

// checkReplan returns what is wrong with these flags. Some families can check the steps from an older plan, too.
func (o *sharedFlags) checkReplan() error {
	switch {
	case o.replan == "" && o.c.Flags().Changed("churn"):
		return cli.Usagef("--churn goes with --replan: it says how much of an older plan may change")
	case o.churn < -1:
		return cli.Usagef("--churn %d: a number of changes from 0 on, or -1 for any", o.churn)
	case o.verify != "" && o.replan != "" && !o.checksSteps:
		return cli.Usagef("--check makes no plan, and --replan is for making one")
	}
	return nil
}

// addSeed adds --seed to a command, with what depends on it. A command in which nothing does has no such flag.
func (o *sharedFlags) addSeed(c *cobra.Command, of string) {
	c.Flags().Uint64Var(&o.seed, "seed", 1, "start of the random numbers of "+of)
}

// check returns what is wrong with the shared flags.
func (o *sharedFlags) check() error {
	if o.timeLimit <= 0 {
		return cli.Usagef("--time-limit %v is not above 0s", o.timeLimit)
	}
	if formats := slices.Concat([]string{"table", "json"}, o.extra); !slices.Contains(formats, o.format) {
		return cli.Usagef("--format %q is neither %s", o.format, strings.Join(formats, " nor "))
	}
	return o.checkReplan()
}

// stop starts the clock and returns the function that an algorithm calls to see whether to stop. It returns true when
// the time is over or the command is interrupted.
func (o *sharedFlags) stop(c *cobra.Command) func() bool {
	end := time.Now().Add(o.timeLimit)
	ctx := c.Context()
	return func() bool { return ctx.Err() != nil || time.Now().After(end) }
}

// readInstance reads a problem from a file, or from standard input for "-".
func readInstance[P any](c *cobra.Command, path string, read func(io.Reader) (*P, error)) (*P, error) {
	in := c.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	p, err := read(bufio.NewReaderSize(in, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("instance %s: %w", path, err)
	}
	return p, nil
}

// readPrevious reads the plan of --replan, nil without one.
func readPrevious[P any](o *sharedFlags) (*P, error) {
	if o.replan == "" {
		return nil, nil
	}
	old := new(P)
	return old, readPlan(o.replan, o.c.Name(), old)
}

// maxPlan bounds the file of a plan.
const maxPlan = 1 << 30

// readPlan reads the JSON of a plan of the given kind.
func readPlan(path, kind string, plan any) error {
	return openPlan(path, func(r io.Reader) error { return planner.ReadPlan(r, kind, plan) })
}

func openPlan(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return cli.WrongInput(err)
	}
	defer f.Close()
	if err := read(io.LimitReader(f, maxPlan)); err != nil {
		return cli.WrongInput(fmt.Errorf("plan %s: %w", path, err))
	}
	return nil
}

// readCovers reads the probes of covers of a graph. Where there are several covers, ids get the number of theirs.
func readCovers(paths []string, g *topo.Graph) (list []planner.Probe, err error) {
	for i, path := range paths {
		var plan cover.Plan
		if err := readPlan(path, "cover", &plan); err != nil {
			return nil, err
		}
		probes := append(plan.Probes, plan.Second...)
		if len(probes) == 0 {
			return nil, fmt.Errorf("plan %s: no probes", path)
		}
		if _, err := cover.Walks(g, probes); err != nil {
			return nil, fmt.Errorf("plan %s: %w", path, err)
		}
		for _, x := range probes {
			if len(paths) > 1 {
				x.ID = fmt.Sprintf("%d/%s", i+1, x.ID)
			}
			list = append(list, x)
		}
	}
	return list, nil
}

// holds returns the error of a plan that was made, or read from a file, and fails its check.
func (o *sharedFlags) holds(err error) error {
	switch {
	case err == nil:
		return nil
	case o.verify != "":
		return fmt.Errorf("the plan %s does not hold: %w", o.verify, err)
	}
	return fmt.Errorf("the plan does not hold: %w", err)
}

// family holds the differences between the commands that make a plan of a problem.
type family[P any] struct {
	size      string                               // of the problem, for the progress
	solve     func(stop func() bool) (*P, error)   // makes the plan
	complete  func(*P, planner.Given) error        // derives the missing parts of a plan of --check
	resolve   func(*P, func() bool) (*P, error)    // makes the best plan of the problem of one that was read, for --check; nil: as solve
	adopt     func(plan, resolved *P)              // takes over bounds where the plan that was read claims none; nil: by stats alone
	hold      func(plan, resolved *P) error        // checks the claims of the first by the second; nil: by stats alone
	badMethod error                                // error of solve for an unknown method; nil where there are no methods
	stats     func(*P) *planner.Stats              // of the plan, for the time taken
	check     func(*P) error                       // by code independent of solve
	steps     func(*P) error                       // checks the way from the plan of --replan; nil where there is none
	finish    func(*P) error                       // applied to a valid plan of any origin; nil for nothing
	draw      func(io.Writer, *P) error            // for --svg
	table     func(io.Writer, *P) error            // for --format table
	formats   map[string]func(io.Writer, *P) error // further ones of --format
}

// carryOut makes a plan or reads that of --check, and checks, draws and prints it.
func carryOut[P any](c *cobra.Command, o *sharedFlags, f family[P]) error {
	plan, err := f.plan(c, o)
	if err != nil && f.badMethod != nil && errors.Is(err, f.badMethod) {
		return cli.UsageError{Err: err}
	}
	if err != nil {
		return err
	}
	if c.Context().Err() != nil {
		return errors.New("interrupted")
	}
	err = f.check(plan)
	if err == nil && f.steps != nil && o.replan != "" {
		err = f.steps(plan)
	}
	if err := o.holds(err); err != nil {
		return err
	}
	if o.verify != "" {
		if err := f.prove(c, o, plan); err != nil {
			return err
		}
	}
	planner.Mark(plan, c.Name())
	if f.finish != nil {
		if err := f.finish(plan); err != nil {
			return err
		}
	}
	if err := o.writeSVG(func(w io.Writer) error { return f.draw(w, plan) }); err != nil {
		return err
	}
	if write := f.formats[o.format]; write != nil {
		return write(c.OutOrStdout(), plan)
	}
	if o.format == "json" {
		return writeJSON(c.OutOrStdout(), plan)
	}
	return f.table(c.OutOrStdout(), plan)
}

// plan makes the plan, or reads that of --check.
func (f *family[P]) plan(c *cobra.Command, o *sharedFlags) (*P, error) {
	if o.verify != "" {
		plan := new(P)
		return plan, openPlan(o.verify, func(r io.Reader) (err error) {
			o.given, err = planner.ReadDecisions(r, c.Name(), plan, func(g planner.Given) error { return f.complete(plan, g) })
			if err == nil {
				f.stats(plan).Claim(o.given)
			}
			return err
		})
	}
	done := cli.ShowProgress(c.ErrOrStderr(), "planning", func() string { return f.size })
	defer done()
	start := time.Now()
	plan, err := f.solve(o.stop(c))
	if err != nil {
		return nil, err
	}
	f.stats(plan).Seconds = time.Since(start).Seconds()
	return plan, nil
}

// prove makes the plan once more, as well as possible, and checks the claims of the read plan against it. Claims that
// could not be proven in the available time stay claims.
func (f *family[P]) prove(c *cobra.Command, o *sharedFlags, plan *P) error {
	done := cli.ShowProgress(c.ErrOrStderr(), "proving", func() string { return f.size })
	best := f.resolve
	if best == nil {
		best = func(_ *P, stop func() bool) (*P, error) { return f.solve(stop) }
	}
	resolved, err := best(plan, o.stop(c))
	done()
	if c.Context().Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil { // the problem has a plan, which is there: it was only not found again
		f.stats(plan).Proof = planner.Claimed
		return nil
	}
	switch {
	case o.given["stats.lower_bound"]:
	case f.adopt != nil:
		f.adopt(plan, resolved)
	default:
		f.stats(plan).Adopt(f.stats(resolved))
	}
	if f.hold != nil {
		return o.holds(f.hold(plan, resolved))
	}
	return o.holds(f.stats(plan).Hold(f.stats(resolved)))
}

// writeJSON writes a plan as one JSON object.
func writeJSON(w io.Writer, plan any) error {
	b := bufio.NewWriterSize(w, 64<<10)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(plan); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}

// writeSVG draws into the file of --svg, if there is one.
func (o *sharedFlags) writeSVG(draw func(io.Writer) error) error {
	if o.svg == "" {
		return nil
	}
	f, err := os.Create(o.svg)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	err = draw(b)
	if err == nil {
		err = b.Flush()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.svg, err)
	}
	return nil
}
