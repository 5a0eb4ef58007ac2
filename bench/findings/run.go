package findings

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/hopscope/hopscope/bench/harness"
)

// options are the extent of the measurement.
type options struct {
	Seed  uint64
	Hops  int // of each background, for each fault
	Quiet int // windows of each background without a fault
	Seeds int // of emulated networks
}

// DefaultOptions take about a minute on one core.
func DefaultOptions() options { return options{Seed: 1, Hops: 20, Quiet: 200_000, Seeds: 50} }

// part is a half of the table.
type part struct {
	Name  string
	Doc   string
	Aside bool // printed only when it is asked for
	Run   func(ctx context.Context, out io.Writer, o options) error
}

// Parts are all of them, in the order in which they are printed.
var Parts = []part{
	{Name: "series", Doc: "series of windows whose truth is known", Run: runSeries},
	{Name: "quiet", Doc: "false findings on series without a fault, alone", Aside: true, Run: runQuiet},
	{Name: "sensitivity", Doc: "false findings that are asked for, and that are counted", Aside: true, Run: runSensitivity},
	{Name: "ports", Doc: "ports whose load has a long memory: what is found, and what is false", Aside: true, Run: runPorts},
	{Name: "emulated", Doc: "faults of an emulated network, and the causes that are named", Aside: true, Run: runEmulated},
	{Name: "symptoms", Doc: "where the faults of an emulated network show", Aside: true, Run: runSymptoms},
	{Name: "picture", Doc: "the kernel of the detector that looks at pictures of a network, learnt anew, as bench/findings/picture.json", Aside: true, Run: runPicture},
	{Name: "ways", Doc: "how often an element that could explain a finding was its cause", Aside: true, Run: runWays},
}

const (
	learnt    = 6 * hour // windows before a hop is judged here
	learntJob = 3 * day  // of a hop with an hourly job, or with days
)

// score is the result of one detector with one fault on one group of backgrounds.
type score struct {
	hops, busy int // hops with the fault; hops that had a finding before it
	delays     []int
}

func (s *score) String() string {
	judged := s.hops - s.busy
	if judged == 0 {
		return "–"
	}
	text := fmt.Sprintf("%.0f %%", 100*float64(len(s.delays))/float64(judged))
	if len(s.delays) > 0 {
		slices.Sort(s.delays)
		text += fmt.Sprintf(" %d/%d", s.delays[len(s.delays)/2], s.delays[min(len(s.delays)*95/100, len(s.delays)-1)])
	}
	return text
}

func (b *Background) history() int {
	switch b.Name {
	case "hourly job", "M/M/1 over the day", "queue, 1500 B, busy by day":
		return learntJob
	}
	return learnt
}

func (b *Background) queue() bool { return b.group == groupQueue }

// groups are those that faults are put to, in their order.
var groups = []string{groupSampled, groupWanders, groupRhythms, groupQueue}

// watching begins to follow a hop of a background with each detector.
func watching(detectors []detector, b *Background) []watch {
	watches := make([]watch, len(detectors))
	for d := range detectors {
		watches[d] = detectors[d].New(b.queue())
	}
	return watches
}

// found applies a fault to some hops of a background and returns the score of each detector.
func found(ctx context.Context, b *Background, f *Fault, detectors []detector, o options) ([]score, error) {
	scores := make([]score, len(detectors))
	for hop := range o.Hops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s := newSeries(b, o.Seed, uint64(hop))
		watches := watching(detectors, b)
		open, found := make([]bool, len(detectors)), make([]bool, len(detectors))
		for t := range b.history() + f.within {
			k := t - b.history()
			var fault *Fault
			if k >= 0 {
				fault = f
			}
			w := s.Next(fault)
			waiting := false
			for d := range watches {
				if k == 0 {
					scores[d].hops++
					if open[d] {
						scores[d].busy++
						found[d] = true
					}
				}
				var begun bool
				begun, open[d] = watches[d].Step(w)
				if k >= 0 && begun && !found[d] {
					found[d] = true
					scores[d].delays = append(scores[d].delays, k+1)
				}
				waiting = waiting || !found[d]
			}
			if k >= 0 && !waiting {
				break
			}
		}
	}
	return scores, nil
}

// False counts the findings that begin on hops without a fault, after the windows for learning.
func False(ctx context.Context, b *Background, detectors []detector, o options) (found []int, windows int, err error) {
	found = make([]int, len(detectors))
	const run = 2 * day
	for hop := 0; windows < o.Quiet; hop++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		s := newSeries(b, o.Seed+1_000_000, uint64(hop))
		watches := watching(detectors, b)
		n := min(run, max(o.Quiet-windows, day))
		for t := range b.history() + n {
			w := s.Next(nil)
			for d := range watches {
				if begun, _ := watches[d].Step(w); begun && t >= b.history() {
					found[d]++
				}
			}
		}
		windows += n
	}
	return found, windows, nil
}

func runSeries(ctx context.Context, out io.Writer, o options) error {
	fmt.Fprintf(out, "Found, and median/95th percentile of the delay in windows, of %d hops of each background; A: nothing varies but the\n"+
		"sample, B: the level wanders, C: days, hourly job, swinging count, bursts, Q: queues\n\n", o.Hops)
	t := harness.Columns(out, 2, 0)
	head := "FAULT\tON"
	for _, d := range Detectors {
		head += "\t" + d.Name
	}
	fmt.Fprintln(t, head)
	for i := range faults {
		f := &faults[i]
		for _, group := range groups {
			sum := make([]score, len(Detectors))
			for k := range Backgrounds {
				b := &Backgrounds[k]
				if b.group != group {
					continue
				}
				scores, err := found(ctx, b, f, Detectors, o)
				if err != nil {
					return err
				}
				for d := range sum {
					sum[d].hops += scores[d].hops
					sum[d].busy += scores[d].busy
					sum[d].delays = append(sum[d].delays, scores[d].delays...)
				}
			}
			row := f.Name + "\t" + group
			for d := range sum {
				row += "\t" + sum[d].String()
			}
			fmt.Fprintln(t, row)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return runQuiet(ctx, out, o)
}

func runQuiet(ctx context.Context, out io.Writer, o options) error {
	t := harness.Columns(out, 2, 0)
	head := ""
	for _, d := range Detectors {
		head += "\t" + d.Name
	}
	fmt.Fprintf(out, "False findings in 100,000 windows of hops without a fault, after %d hours (days: after 3 days)\n\n", learnt/hour)
	fmt.Fprintln(t, "BACKGROUND\tWINDOWS"+head)
	for k := range Backgrounds {
		b := &Backgrounds[k]
		found, windows, err := False(ctx, b, Detectors, o)
		if err != nil {
			return err
		}
		row := fmt.Sprintf("%s\t%d", b.Name, windows)
		for _, n := range found {
			row += "\t" + rate(n, windows)
		}
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}

// rate writes a number of findings in 100,000 windows with the digits that it has.
func rate(n, windows int) string {
	r := float64(n) * 1e5 / float64(windows)
	if n == 0 {
		return "0"
	}
	digits := max(0, 1-int(math.Floor(math.Log10(r))))
	return fmt.Sprintf("%.*f", digits, r)
}
