package findings

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// tally is the result of causes with one fault of the table.
type tally struct {
	Name    string
	happens int
	idle    int // it met no packet, which is no fault
	Found   int // a cause named the element
	Causes  int // that were published
	right   int // of them, those that named the element
	wrong   map[string]int
	ours    versus
	Others  []versus
	delays  []time.Duration // from the beginning of the fault to that of its first right cause
}

// recall is the share of the faults whose element a cause names. Faults without a due cause count if they have none.
func (t *tally) recall() float64 { return float64(t.Found) / float64(max(t.happens, 1)) }

// Precision is the share of the causes that name the element.
func (t *tally) Precision() float64 {
	if t.Causes == 0 {
		return 1
	}
	return float64(t.right) / float64(t.Causes)
}

// Add counts the faults of an outcome. tallies are by name of the fault, as in the table.
func (o *outcome) Add(tallies map[string]*tally, epoch int64) {
	for i := range o.Faults {
		t := &o.Faults[i]
		s := tallies[t.Name]
		if s == nil {
			s = &tally{Name: t.Name, wrong: map[string]int{}, Others: make([]versus, len(rivalNames))}
			tallies[t.Name] = s
		}
		if t.Idle {
			s.idle++
			continue
		}
		s.happens++
		for d, v := range t.others {
			s.Others[d].add(v)
		}
		s.Causes += len(t.causes)
		found := false
		for k := range t.causes {
			f := &t.causes[k]
			if len(t.Trouble.Kinds) == 0 || !t.names(f) {
				s.wrong[f.Kind.String()+" of "+f.Element.Kind.String()]++
				continue
			}
			s.right++
			if !found {
				s.delays = append(s.delays, time.Duration(f.Start-epoch)-t.From)
			}
			found = true
		}
		if len(t.causes) > 0 {
			s.ours.Found++
		}
		if found {
			s.ours.named++
		}
		s.ours.False = s.Causes - s.right
		if found || len(t.Trouble.Kinds) == 0 && len(t.causes) == 0 {
			s.Found++
		}
	}
}

// add counts one more fault.
func (v *versus) add(o versus) {
	v.Found, v.named, v.False = v.Found+o.Found, v.named+o.named, v.False+o.False
}

func runEmulated(ctx context.Context, out io.Writer, o options) error {
	tallies := map[string]*tally{}
	before, open, others := 0, 0, make([]int, len(rivalNames))
	for seed := range uint64(o.Seeds) {
		e := NewEmulation(o.Seed + seed)
		c, err := e.config()
		if err != nil {
			return err
		}
		r, err := e.Run(ctx)
		if err != nil {
			return err
		}
		r.Add(tallies, c.Epoch.UnixNano())
		before += len(r.False)
		open += len(r.Open)
		for d, n := range r.Before {
			others[d] += n
		}
	}
	return printEmulated(out, tallies, o.Seeds, before, open, others)
}

// printEmulated prints the table of the detectors, that of the causes of hopscope, and the findings without a fault.
func printEmulated(out io.Writer, tallies map[string]*tally, seeds, before, open int, others []int) error {
	fmt.Fprintf(out, "Faults of the emulated network, %d seeds: those during which something was found, those of which something named the element,\n"+
		"and the number of findings that named something else. FANT's test and the former one judge hops one by one, a convolution judges the picture of the network; ours are causes.\n\n", seeds)
	if err := printVersus(out, tallies); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nFindings before the first fault:")
	for d, n := range others {
		fmt.Fprintf(out, " %s %d,", rivalNames[d], n)
	}
	fmt.Fprintf(out, " ours %d; of ours, open at the end: %d\n\n", before, open)
	fmt.Fprint(out, "Causes: the share of faults whose element a cause names, the share of causes that name it, and the median of the delay.\n"+
		"Faults without an element need no finding. A fault that met no packet is none.\n\n")
	return printTallies(out, tallies)
}

func printVersus(out io.Writer, tallies map[string]*tally) error {
	w := harness.Columns(out, 2, 0)
	head, sums := "FAULT\tELEMENT\tHAPPENED", make([]versus, len(rivalNames)+1)
	for _, name := range rivalNames {
		head += "\t" + name
	}
	fmt.Fprintln(w, head+"\tours")
	happened := 0
	for _, t := range scenario.Troubles() {
		s := tallies[t.Name]
		if s == nil {
			continue
		}
		row := fmt.Sprintf("%s\t%s\t%d", t.Name, element(&t), s.happens)
		happened += s.happens
		for d, v := range append(slices.Clone(s.Others), s.ours) {
			sums[d].add(v)
			row += "\t" + v.String()
		}
		fmt.Fprintln(w, row)
	}
	row := fmt.Sprintf("all\t\t%d", happened)
	for _, v := range sums {
		row += "\t" + v.String()
	}
	fmt.Fprintln(w, row)
	return w.Flush()
}

// element is the element that has to be named.
func element(t *scenario.Trouble) string {
	if len(t.Kinds) == 0 {
		return "–"
	}
	return t.At.String()
}

// printTallies prints how causes fared, fault by fault.
func printTallies(out io.Writer, tallies map[string]*tally) error {
	w := harness.Columns(out, 2, 0)
	fmt.Fprintln(w, "FAULT\tELEMENT\tFOUND\tRECALL\tCAUSES\tPRECISION\tDELAY\tOTHER CAUSES")
	var sum tally
	for _, t := range scenario.Troubles() {
		s := tallies[t.Name]
		if s == nil {
			continue
		}
		sum.happens, sum.Found, sum.Causes, sum.right = sum.happens+s.happens, sum.Found+s.Found, sum.Causes+s.Causes, sum.right+s.right
		delay := "–"
		if slices.Sort(s.delays); len(s.delays) > 0 {
			delay = s.delays[len(s.delays)/2].String()
		}
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%.2f\t%d\t%.2f\t%s\t%s\n", t.Name, element(&t), s.Found, s.happens, s.recall(), s.Causes, s.Precision(), delay, counts(s.wrong))
	}
	fmt.Fprintf(w, "all\t\t%d/%d\t%.3f\t%d\t%.3f\n", sum.Found, sum.happens, sum.recall(), sum.Causes, sum.Precision())
	return w.Flush()
}

// counts writes how often something was there, the most frequent first.
func counts(m map[string]int) string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	for i, k := range names {
		names[i] = fmt.Sprintf("%d %s", m[k], k)
	}
	return strings.Join(names, ", ")
}
