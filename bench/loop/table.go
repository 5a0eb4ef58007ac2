package loop

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// row is the result of the methods with a fault of the table over all seeds.
type row struct {
	Fault    string   `json:"fault"`
	Links    bool     `json:"links"` // its element touches links; of another one nothing should be suspected
	Happened int      `json:"happened"`
	Plain    int      `json:"happened_plain"` // by the plainer count
	Methods  []column `json:"methods"`
}

// column is one method of a row.
type column struct {
	Method string `json:"method"`
	Soon   int    `json:"suspected_soon"` // faults of which a link was suspected within two cycles; losses: of enough having been lost
	Found  int    `json:"suspected"`      // as long as it lasted, and two cycles more
	// Links that were raised within two cycles, and until the next fault: of the fault and others.
	SoonRight int `json:"soon_right"`
	SoonWrong int `json:"soon_wrong"`
	Right     int `json:"right"`
	Wrong     int `json:"wrong"`
	// Plain is the same by a plainer count. Cycles count from the beginning of a fault, and other links in trouble
	// are wrong. Losses need not be distinguished from those of other links.
	Plain plainColumn `json:"plain"`

	Delays []int `json:"delays"` // in cycles, sorted; losses: beyond those that the statistics need, at least 0
}

// plainColumn is a column by the plainer count.
type plainColumn struct {
	Soon      int `json:"suspected_soon"`
	SoonRight int `json:"soon_right"`
	SoonWrong int `json:"soon_wrong"`
	Right     int `json:"right"`
	Wrong     int `json:"wrong"`
}

func (c *plainColumn) add(o plainColumn) {
	c.Soon, c.SoonRight, c.SoonWrong, c.Right, c.Wrong = c.Soon+o.Soon, c.SoonRight+o.SoonRight, c.SoonWrong+o.SoonWrong, c.Right+o.Right, c.Wrong+o.Wrong
}

// Table is the section about detection.
type Table struct {
	Section string   `json:"section"`
	Seed    uint64   `json:"seed"`
	Seeds   int      `json:"seeds"`
	Cycles  int      `json:"quiet_cycles"` // without a fault
	Quiet   []raised `json:"raised_in_100_quiet_cycles"`
	Rows    []row    `json:"rows"`
	Failed  []string `json:"failed,omitempty"` // seeds in which a foreign program gave no suspects, and why
}

// raised is how many links a method raised, in 100 cycles without a fault.
type raised struct {
	Method string  `json:"method"`
	Links  float64 `json:"links"`
}

// Detection is the section.
func runDetection(ctx context.Context, o options) (*Table, error) {
	t := &Table{Section: "detection", Seed: o.Seed, Seeds: o.Seeds, Quiet: make([]raised, len(o.methods()))}
	for m, name := range o.methods() {
		t.Quiet[m].Method = name
	}
	index := map[string]int{}
	for _, x := range scenario.Troubles() {
		if len(o.Faults) > 0 && !slices.Contains(o.Faults, x.Name) {
			continue
		}
		index[x.Name] = len(t.Rows)
		r := row{Fault: x.Name, Links: x.At != scenario.AtSender, Methods: make([]column, len(t.Quiet))}
		for m := range r.Methods {
			r.Methods[m].Method = methods[m]
		}
		t.Rows = append(t.Rows, r)
	}
	for k := range o.Seeds {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("seed %d, %d of %d", o.Seed+uint64(k), k+1, o.Seeds))
		}
		var suspects [][]int32
		if o.Algorithm != nil {
			var err error
			if suspects, err = o.suspect(ctx, o.Seed+uint64(k)); ctx.Err() != nil {
				return nil, ctx.Err()
			} else if err != nil {
				t.Failed = append(t.Failed, fmt.Sprintf("seed %d: no suspects: %s", o.Seed+uint64(k), harness.Reason(err)))
			}
		}
		d, err := detect(ctx, o, o.Seed+uint64(k), suspects)
		if err != nil {
			return nil, err
		}
		t.Cycles += d.Cycles
		for m := range t.Quiet {
			t.Quiet[m].Links += float64(d.Quiet[m])
		}
		for _, f := range d.faults {
			t.Rows[index[f.Name]].add(f)
		}
	}
	for m := range t.Quiet {
		t.Quiet[m].Links *= 100 / float64(max(t.Cycles, 1))
	}
	for i := range t.Rows {
		for m := range t.Rows[i].Methods {
			slices.Sort(t.Rows[i].Methods[m].Delays)
		}
	}
	return t, nil
}

// add counts a fault, if it happened and enough of it could be seen.
func (r *row) add(f *fault) {
	counts := f.counts && f.enough > 0
	if counts {
		r.Happened++
	}
	plain := f.counts && f.plain > 0
	if plain {
		r.Plain++
	}
	for m := range r.Methods {
		c, s := &r.Methods[m], &f.scores[m]
		c.SoonRight, c.SoonWrong = c.SoonRight+s.soon.right, c.SoonWrong+s.soon.wrong
		c.Right, c.Wrong = c.Right+s.ever.right, c.Wrong+s.ever.wrong
		p := plainColumn{SoonRight: s.Plain[0].right, SoonWrong: s.Plain[0].wrong, Right: s.Plain[1].right, Wrong: s.Plain[1].wrong}
		if plain && s.delay > 0 && s.delay-f.plain < soon {
			p.Soon = 1
		}
		c.Plain.add(p)
		if !counts || s.delay == 0 {
			continue
		}
		late := max(s.delay-f.enough, 0)
		c.Delays = append(c.Delays, late+1)
		c.Found++
		if late < soon {
			c.Soon++
		}
	}
}

// Total is all rows with links in one; wrong links are those of all rows.
func (t *Table) Total() row {
	sum := row{Fault: "all", Links: true, Methods: make([]column, len(t.Quiet))}
	for _, r := range t.Rows {
		if r.Links {
			sum.Happened += r.Happened
			sum.Plain += r.Plain
		}
		for m := range r.Methods {
			c, x := &sum.Methods[m], &r.Methods[m]
			c.SoonRight, c.SoonWrong, c.Right, c.Wrong = c.SoonRight+x.SoonRight, c.SoonWrong+x.SoonWrong, c.Right+x.Right, c.Wrong+x.Wrong
			p := x.Plain
			if !r.Links {
				p.Soon = 0
			}
			c.Plain.add(p)
			if r.Links {
				c.Soon, c.Found = c.Soon+x.Soon, c.Found+x.Found
				c.Delays = append(c.Delays, x.Delays...)
			}
		}
	}
	for m := range sum.Methods {
		slices.Sort(sum.Methods[m].Delays)
	}
	return sum
}

// text returns recall and precision within two cycles, the same over the whole fault, and the median of the delay.
func (c *column) text(r *row) string {
	recall := func(n int) string {
		if !r.Links || r.Happened == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", float64(n)/float64(r.Happened))
	}
	delay := "–"
	if n := len(c.Delays); n > 0 {
		delay = fmt.Sprint(c.Delays[n/2])
	}
	return recall(c.Soon) + " " + precision(c.SoonRight, c.SoonWrong) + "  " + recall(c.Found) + " " + precision(c.Right, c.Wrong) + "  " + delay
}

func precision(right, wrong int) string {
	if right+wrong == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(right)/float64(right+wrong))
}

// Print writes the table as text.
func (t *Table) Print(out io.Writer) error {
	fmt.Fprintf(out, `Detection of the emulator's faults, %d seeds from %d on. By method: recall and precision within two cycles (from when what
happened was enough for any statistic), the same for as long as the fault lasts, and the median of the delay in cycles. A fault is
found when a link that its element touches is suspected; precision is of links, of which those in which packets truly wait longer
than usual are right as well. The last row but one counts cycles from the beginning, and no links but the fault's.

`, t.Seeds, t.Seed)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	head := "FAULT\tN"
	for _, m := range methods[:len(t.Quiet)] {
		head += "\t" + m
	}
	fmt.Fprintln(w, head)
	for _, r := range append(slices.Clone(t.Rows), t.Total()) {
		row := fmt.Sprintf("%s\t%d", r.Fault, r.Happened)
		for m := range r.Methods {
			row += "\t" + r.Methods[m].text(&r)
		}
		fmt.Fprintln(w, row)
	}
	sum := t.Total()
	plain := fmt.Sprintf("all, from the beginning\t%d", sum.Plain)
	for m := range sum.Methods {
		c := &sum.Methods[m].Plain
		found := "–"
		if sum.Plain > 0 {
			found = fmt.Sprintf("%.2f", float64(c.Soon)/float64(sum.Plain))
		}
		plain += "\t" + found + " " + precision(c.SoonRight, c.SoonWrong) + "  – " + precision(c.Right, c.Wrong)
	}
	fmt.Fprintln(w, plain)
	row := fmt.Sprintf("raised in 100 cycles without a fault\t%d", t.Cycles)
	for _, q := range t.Quiet {
		row += fmt.Sprintf("\t%.3g", q.Links)
	}
	fmt.Fprintln(w, row)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range t.Failed {
		fmt.Fprintf(out, "theirs, %s\n", f)
	}
	return nil
}
