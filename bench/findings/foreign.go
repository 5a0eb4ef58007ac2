package findings

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/inference/detect"
)

// foreignBackgrounds are those that foreign detectors see, one of each group.
var foreignBackgrounds = []string{"lognormal 0.5, 200 values", "AR(1) .98, 3 %", "bursts × 8", "queue, 1500 B, 30 % busy"}

// question is a number of hops, which have the same fault from the same window on, or none.
type question struct {
	harness.Question
	background *Background
	fault      *Fault // nil for none
	cut        int    // windows of the question that is asked to see whether an answer depends on what comes later
}

// hopsText is the problem of a question.
type hopsText struct {
	Quantity string        `json:"quantity"` // latency or queue
	Unit     string        `json:"unit"`
	Window   float64       `json:"window_seconds"`
	Columns  []string      `json:"columns"` // of each window; a window without values has 0 in all of them
	Learn    int           `json:"learn"`   // windows before the first one that is judged
	Hops     [][][5]uint64 `json:"hops"`    // windows of each hop
}

var columns = []string{"count", "least", "p50", "p90", "p99"}

// span is a finding: it is open from one window, numbered from 0, up to another one, which is no longer part of it.
type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// spansText is an answer.
type spansText struct {
	Hops [][]span `json:"hops"`
}

// truthText is the faults of the hops.
type truthText struct {
	Fault string `json:"fault,omitempty"` // none on all hops where it is absent
	From  int    `json:"from,omitempty"`  // window in which it begins
	To    int    `json:"to,omitempty"`    // findings that begin before it are found in time
}

// questions yields the hops of all faults on some backgrounds, and of these without a fault, one question at a time.
// All of them at once would be large.
func questions(o options, seconds float64) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		for _, name := range foreignBackgrounds {
			b := &Backgrounds[slices.IndexFunc(Backgrounds, func(b Background) bool { return b.Name == name })]
			for f := range len(faults) + 1 {
				q := &question{background: b}
				q.Name = b.Name + ", no fault"
				if f < len(faults) {
					q.fault = &faults[f]
					q.Name = b.Name + ", " + q.fault.Name
				}
				q.Family, q.Seed, q.Seconds = "findings", o.Seed, seconds
				q.hops(o)
				if !yield(q) {
					return
				}
			}
		}
	}
}

// seed is that of found, or of [False], so that all detectors have the same hops.
func (q *question) seed(o options) uint64 {
	if q.fault == nil {
		return o.Seed + 1_000_000
	}
	return o.Seed
}

// windows is the number of windows of a hop.
func (q *question) windows() int {
	if q.fault == nil {
		return q.background.history() + day
	}
	return q.background.history() + q.fault.within
}

// hops makes the problem and its truth.
func (q *question) hops(o options) {
	b, learn := q.background, q.background.history()
	p := &hopsText{Quantity: "latency", Unit: "ns", Window: 10, Columns: columns, Learn: learn}
	if b.queue() {
		p.Quantity, p.Unit = "queue", "bytes"
	}
	for hop := range o.Hops {
		s := newSeries(b, q.seed(o), uint64(hop))
		var windows [][5]uint64
		for t := range q.windows() {
			var fault *Fault
			if t >= learn {
				fault = q.fault
			}
			w := s.Next(fault)
			row := [5]uint64{w.Count}
			if w.Count > 0 {
				row = [5]uint64{w.Count, uint64(w.Low), uint64(w.P50), uint64(w.P90), uint64(w.P99)}
			}
			windows = append(windows, row)
		}
		p.Hops = append(p.Hops, windows)
	}
	q.Problem = p
	truth := truthText{}
	if q.fault != nil {
		truth = truthText{Fault: q.fault.Name, From: learn, To: learn + q.fault.within}
	}
	q.Truth = truth
	q.cut = learn + rand.New(rand.NewPCG(o.Seed, uint64(learn))).IntN(q.windows()-learn)
}

// short is the same question without its last windows.
func (q *question) short() *harness.Question {
	short, p := q.Question, *q.Problem.(*hopsText)
	p.Hops = slices.Clone(p.Hops)
	for i := range p.Hops {
		p.Hops[i] = p.Hops[i][:q.cut]
	}
	short.Problem = &p
	return &short
}

// check returns the errors of an answer about hops of so many windows.
func (a *spansText) check(hops, windows int) error {
	if len(a.Hops) != hops {
		return fmt.Errorf("hops: %d lists, want one for each of %d hops, empty where nothing is found", len(a.Hops), hops)
	}
	for hop, list := range a.Hops {
		for k, s := range list {
			if s.From < 0 || s.To <= s.From || s.To > windows || k > 0 && s.From < list[k-1].To {
				return fmt.Errorf("hops[%d][%d]: from %d to %d; findings are in order, each of a window at least, within 0 to %d", hop, k, s.From, s.To, windows)
			}
		}
	}
	return nil
}

// before is the part of an answer about the first windows.
func (a *spansText) before(cut int) (all [][]span) {
	for _, list := range a.Hops {
		var kept []span
		for _, s := range list {
			if s.From < cut {
				kept = append(kept, span{s.From, min(s.To, cut)})
			}
		}
		all = append(all, kept)
	}
	return all
}

// ask asks the whole question and its beginning. Both answers must agree on the beginning, as a detector has no later
// window.
func (q *question) ask(ctx context.Context, p *harness.Program) (answer spansText, took time.Duration, err error) {
	if took, err = p.Ask(ctx, &q.Question, &answer); err != nil {
		return answer, took, err
	}
	hops := len(q.Problem.(*hopsText).Hops)
	if err := answer.check(hops, q.windows()); err != nil {
		return answer, took, err
	}
	var early spansText
	if _, err := p.Ask(ctx, q.short(), &early); err != nil {
		return answer, took, fmt.Errorf("of the first %d windows alone: %w", q.cut, err)
	}
	if err := early.check(hops, q.cut); err != nil {
		return answer, took, fmt.Errorf("of the first %d windows alone: %w", q.cut, err)
	}
	now := early.before(q.cut)
	for hop, then := range answer.before(q.cut) {
		if !slices.Equal(then, now[hop]) {
			return answer, took, fmt.Errorf("hops[%d]: what is found in the first %d windows depends on later ones", hop, q.cut)
		}
	}
	return answer, took, nil
}

// recorded follows a hop by an answer.
type recorded struct {
	spans []span
	t     int
}

// Step reports the answer for the next window.
func (x *recorded) Step(detect.Window) (begun, open bool) {
	for len(x.spans) > 0 && x.t >= x.spans[0].To {
		x.spans = x.spans[1:]
	}
	if len(x.spans) > 0 && x.t >= x.spans[0].From {
		begun, open = x.t == x.spans[0].From, true
	}
	x.t++
	return begun, open
}

// detector returns a detector whose watches take the answer's hops in order.
func (a *spansText) detector() detector {
	next := 0
	return detector{"theirs", func(bool) watch {
		next++
		return &recorded{spans: a.Hops[(next-1)%len(a.Hops)]}
	}}
}

// WriteQuestions writes the questions and their truths into a directory.
func WriteQuestions(dir string, o options, seconds float64) error {
	return harness.Write(dir, func(yield func(*harness.Question) bool) {
		for q := range questions(o, seconds) {
			if !yield(&q.Question) {
				return
			}
		}
	})
}

// quiet counts the findings of each detector that begin on the hops of a question without a fault.
func (q *question) quiet(o options, detectors []detector) []int {
	found := make([]int, len(detectors))
	for hop := range o.Hops {
		s := newSeries(q.background, q.seed(o), uint64(hop))
		watches := watching(detectors, q.background)
		for t := range q.windows() {
			w := s.Next(nil)
			for d := range watches {
				if begun, _ := watches[d].Step(w); begun && t >= q.background.history() {
					found[d]++
				}
			}
		}
	}
	return found
}

// ForeignTable runs a foreign program to find faults, and prints its findings beside those of all detectors on the
// same hops. An invalid answer has a line with the reason.
func ForeignTable(ctx context.Context, w io.Writer, p *harness.Program, o options) (err error) {
	fmt.Fprintf(w, "Found by %s, at most %v each, and median/95th percentile of the delay in windows, of %d hops; without a fault: findings of these hops in a day\n\n", p, p.Limit, o.Hops)
	t := harness.Columns(w, 2, 0)
	defer func() { // also of the results so far when it is interrupted
		if e := t.Flush(); err == nil {
			err = e
		}
	}()
	fmt.Fprint(t, "BACKGROUND, FAULT")
	for _, d := range Detectors {
		fmt.Fprint(t, "\t"+d.Name)
	}
	fmt.Fprintln(t, "\ttheirs\tSECONDS\tREMARK")
	for q := range questions(o, p.Limit.Seconds()) {
		answer, took, failed := q.ask(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		detectors := Detectors
		if failed == nil {
			detectors = append(slices.Clip(Detectors), answer.detector())
		}
		row := q.Name
		if q.fault == nil {
			for _, n := range q.quiet(o, detectors) {
				row += fmt.Sprintf("\t%d", n)
			}
		} else {
			scores, err := found(ctx, q.background, q.fault, detectors, o)
			if err != nil {
				return err
			}
			for d := range scores {
				row += "\t" + scores[d].String()
			}
		}
		if failed != nil {
			fmt.Fprintf(t, "%s\t-\t%.2f\tno findings: %s\n", row, took.Seconds(), harness.Reason(failed))
			continue
		}
		fmt.Fprintf(t, "%s\t%.2f\t\n", row, took.Seconds())
	}
	return nil
}
