package findings

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/inference/detect"
)

// shares of windows with a false finding that are asked for; each needs some ten million windows to be counted.
var shares = []float64{3e-5, 6e-6, 1.5e-6}

// quiet is how many false findings there are with each factor on one background.
type quiet struct {
	background *Background
	windows    int
	found      []int // by share
}

// sum adds up those of some groups.
func sum(all []quiet, groups ...string) (s quiet) {
	for _, q := range all {
		for _, g := range groups {
			if q.background.group == g {
				s.windows += q.windows
				s.found = append(s.found, make([]int, len(q.found)-len(s.found))...)
				for i, n := range q.found {
					s.found[i] += n
				}
			}
		}
	}
	return s
}

// share is that of windows with a false finding.
func (q *quiet) share(i int) float64 { return float64(q.found[i]) / float64(max(q.windows, 1)) }

// countFalse counts the false findings at some requested shares, on the backgrounds without faults. It counts from
// the windows on that follow those that a hop learns from.
func countFalse(ctx context.Context, o options, shares []float64) (all []quiet, err error) {
	const run = 2 * day
	for k := range Backgrounds {
		b := &Backgrounds[k]
		if b.group != groupSampled && b.group != groupWanders && b.group != groupQueue {
			continue
		}
		q := quiet{background: b, found: make([]int, len(shares))}
		for hop := 0; q.windows < o.Quiet; hop++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s := newSeries(b, o.Seed+2_000_000, uint64(hop))
			cfg, hops := make([]detect.Config, len(shares)), make([]detect.Hop, len(shares))
			for i := range cfg {
				cfg[i] = detect.Latency(10 * time.Second)
				if b.queue() {
					cfg[i] = detect.Queue(10 * time.Second)
				}
				cfg[i].Share = shares[i]
			}
			n := min(run, max(o.Quiet-q.windows, hour))
			for t := range learnt + n {
				w, at := s.Next(nil), cfg[0].At(int64(t+1)*int64(cfg[0].Window))
				for i := range hops {
					if hops[i].Add(&cfg[i], at, w) == detect.Begun && t >= learnt {
						q.found[i]++
					}
				}
			}
			q.windows += n
		}
		all = append(all, q)
	}
	return all, nil
}

// runSensitivity requests shares of false findings and counts them, with seeds of its own. It does so on the
// backgrounds for which the limits were measured and on others.
func runSensitivity(ctx context.Context, out io.Writer, o options) error {
	fmt.Fprintf(out, "Share of windows with a false finding: asked for, and counted from %d windows of each background on; A and B are those that\nthe limits were measured on\n\n", learnt)
	all, err := countFalse(ctx, o, shares)
	if err != nil {
		return err
	}
	t := harness.Columns(out, 2, 0)
	fmt.Fprintln(t, "ASKED FOR\tA, B\tRATIO\tQUEUES\tRATIO")
	hops, queues := sum(all, groupSampled, groupWanders), sum(all, groupQueue)
	for i, share := range shares {
		row := fmt.Sprintf("%.2g", share)
		for _, q := range []quiet{hops, queues} {
			row += fmt.Sprintf("\t%.2g (%d in %d)\t%.2f", q.share(i), q.found[i], q.windows, q.share(i)/share)
		}
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}
