package world

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/bench/harness"
)

// Options choose the runs.
type Options struct {
	Seed     uint64
	Seeds    int
	Half     string // tune, report or all
	Scenario string // its name; "" for all
	Worst    bool   // findings against the truth, too
}

// DefaultOptions run both halves with one seed.
func DefaultOptions() Options { return Options{Seed: 1, Seeds: 1, Half: "all"} }

// Row is the result for one kind of fault or change.
type Row struct {
	Kind      string  `json:"kind"`
	Scenarios int     `json:"scenarios"`
	Runs      int     `json:"runs"`
	Named     int     `json:"named"`         // runs in which an element that may be named led the list
	Delay     int     `json:"median_delay"`  // windows, of those; -1 if there are none
	Severe    int     `json:"severe"`        // runs whose truth is critical
	SevereOK  int     `json:"severe_told"`   // of those: published as critical
	Severity  int     `json:"severity_ok"`   // runs with the right severity
	False     int     `json:"false"`         // statements about healthy elements beside it
	Critical  int     `json:"critical"`      // critical ones of those, and of those in quiet
	Runs0     int     `json:"critical_runs"` // runs with one
	InQuiet   int     `json:"in_quiet"`
	Hours     float64 `json:"element_hours"`

	delays []int
	names  map[string]bool
}

// Result is the result of Judge.
type Result struct {
	Faults   []Row      `json:"faults"`
	Benign   []Row      `json:"benign"`
	All      Row        `json:"all_faults"`
	Changes  Row        `json:"all_benign"`
	Outcomes []*Outcome `json:"outcomes"`
}

// Select returns the scenarios that the options ask for.
func (o *Options) Select() ([]Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s Scenario) bool {
		return o.Scenario != "" && s.Name != o.Scenario || o.Half == "tune" && !s.tune || o.Half == "report" && s.tune
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("no scenario %q in half %s", o.Scenario, o.Half)
	}
	return all, nil
}

// Judge runs the scenarios, each with each seed.
func Judge(ctx context.Context, o Options) (*Result, error) {
	list, err := o.Select()
	if err != nil {
		return nil, err
	}
	r := &Result{Outcomes: make([]*Outcome, len(list)*o.Seeds)}
	errs := make([]error, len(r.Outcomes))
	jobs := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range jobs {
				r.Outcomes[i], errs[i] = Run(ctx, &list[i/o.Seeds], o.Seed+uint64(i%o.Seeds))
			}
		})
	}
	for i := range r.Outcomes {
		jobs <- i
	}
	close(jobs)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	r.sum()
	return r, nil
}

func (r *Result) sum() {
	rows := map[[2]string]*Row{}
	r.All, r.Changes = Row{Kind: "all"}, Row{Kind: "all"}
	for _, o := range r.Outcomes {
		side, whole := "fault", &r.All
		if o.Benign {
			side, whole = "benign", &r.Changes
		}
		row := rows[[2]string{side, o.Kind}]
		if row == nil {
			row = &Row{Kind: o.Kind}
			rows[[2]string{side, o.Kind}] = row
		}
		row.add(o)
		whole.add(o)
	}
	for key, row := range rows {
		row.finish()
		if key[0] == "fault" {
			r.Faults = append(r.Faults, *row)
		} else {
			r.Benign = append(r.Benign, *row)
		}
	}
	byKind := func(a, b Row) int { return cmp.Compare(a.Kind, b.Kind) }
	slices.SortFunc(r.Faults, byKind)
	slices.SortFunc(r.Benign, byKind)
	r.All.finish()
	r.Changes.finish()
}

func (r *Row) add(o *Outcome) {
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[o.Scenario] = true
	r.Runs++
	if o.Named {
		r.Named++
		r.delays = append(r.delays, o.Delay)
	}
	if o.Want == "critical" {
		r.Severe++
		if o.Severity == "critical" {
			r.SevereOK++
		}
	}
	if o.severityRight() {
		r.Severity++
	}
	r.False += len(o.False)
	r.InQuiet += len(o.InQuiet)
	r.Critical += o.Critical
	if o.Critical > 0 {
		r.Runs0++
	}
	r.Hours += o.Hours
}

func (r *Row) finish() {
	r.Scenarios, r.Delay = len(r.names), -1
	if slices.Sort(r.delays); len(r.delays) > 0 {
		r.Delay = r.delays[len(r.delays)/2]
	}
}

// Print writes the tables, and where they are recorded all of the result.
func (r *Result) Print(out io.Writer, o Options) error {
	if err := r.print(out, o); err != nil {
		return err
	}
	return harness.Show(out, "all of it", r, func(io.Writer) error { return nil })
}

func (r *Result) print(out io.Writer, o Options) error {
	w := harness.Columns(out, 2, 0)
	if len(r.Faults) > 0 {
		fmt.Fprintln(out, "Faults")
		fmt.Fprintln(w, "FAULT\tSCENARIOS\tRUNS\tNAMED FIRST\tAFTER\tSEVERITY RIGHT\tCRITICAL TOLD\tFALSE BESIDE\tCRITICAL\tIN QUIET")
		for _, x := range append(r.Faults, r.All) {
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", x.Kind, x.Scenarios, x.Runs, share(x.Named, x.Runs), windows(x.Delay),
				share(x.Severity, x.Runs), share(x.SevereOK, x.Severe), x.False, x.Critical, x.InQuiet)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if len(r.Benign) > 0 {
		fmt.Fprintln(out, "Benign changes")
		fmt.Fprintln(w, "BENIGN CHANGE\tSCENARIOS\tRUNS\tRUNS WITH A CRITICAL STATEMENT\tCRITICAL\tOTHER FALSE\tIN QUIET")
		for _, x := range append(r.Benign, r.Changes) {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", x.Kind, x.Scenarios, x.Runs, x.Runs0, x.Critical, max(x.False-x.Critical, 0), x.InQuiet)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	hours, critical := r.All.Hours+r.Changes.Hours, r.All.Critical+r.Changes.Critical
	fmt.Fprintf(out, "Critical statements about healthy elements: %d in %.0f element-hours, %.2f in 1000.\n", critical, hours, 1000*float64(critical)/hours)
	if o.Worst {
		r.printWorst(out)
	}
	return nil
}

// printWorst lists runs by their findings against the truth.
func (r *Result) printWorst(out io.Writer) {
	for _, o := range r.Outcomes {
		if (o.Named || o.Benign) && o.severityRight() == !o.Benign && len(o.False)+len(o.InQuiet) == 0 || o.Benign && len(o.False)+len(o.InQuiet) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s, seed %d: ", o.Scenario, o.Seed)
		switch {
		case o.Benign:
			fmt.Fprintf(out, "benign, %d critical\n", o.Critical)
		case o.Named:
			fmt.Fprintf(out, "named after %d windows, %s (truth: %s), %d critical about healthy elements\n", o.Delay, o.Severity, o.Want, o.Critical)
		case o.Listed:
			fmt.Fprintf(out, "in the list, and not first; %s (truth: %s), %d critical about healthy elements\n", o.Severity, o.Want, o.Critical)
		default:
			fmt.Fprintf(out, "not told, %d critical about healthy elements\n", o.Critical)
		}
		for _, x := range []struct {
			what string
			list []Statement
		}{{"right", o.Right}, {"beside", o.Beside}, {"false", o.False}, {"in quiet", o.InQuiet}} {
			for _, s := range x.list {
				fmt.Fprintf(out, "  %s: %v\n", x.what, s)
			}
		}
	}
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func windows(n int) string {
	if n < 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
