package findings

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/inference/detect"
)

// portFault is a fault of a port for the windows of an episode.
type portFault struct {
	name         string
	load         float64 // factor of its load
	factor, tail float64 // of all times, and of those of the slowest twentieth besides
}

const episode = 30 // windows

var portFaults = []portFault{
	{"× 2 of everything", 1, 2, 1}, {"tails × 2", 1, 1, 2}, {"load .5 → .8", 1.6, 1, 1}, {"× 1.5 of everything", 1, 1.5, 1},
}

var (
	portShares = []float64{1e-4, 1.5e-5, 1.45e-6}
	portLoads  = []float64{.3, .5, .7, .8, .9, .95}
	portCounts = []int{1, 5, 20, 100, 1000, 10_000} // values a window
	portSpread = []float64{.1, .25}                 // coefficients of variation of the load
)

// window draws the next window of a port, by exact order statistics at the load of the window.
func (p *port) window(count int, f *portFault) detect.Window {
	more := 1.0
	if f != nil {
		more = f.load
	}
	load := p.next(more)
	u := orderStatistics(p.r, count)
	var v [len(ranks)]float64
	for i := range v {
		v[i] = portTime(load, u[i])
		if f != nil {
			if u[i] > .95 {
				v[i] *= f.tail
			}
			v[i] *= f.factor
		}
		v[i] = math.Round(v[i])
	}
	return windowOf(count, v)
}

// watched is a port and the detector that follows it.
type watched struct {
	*port
	cfg detect.Config
	hop detect.Hop
	end int64
}

func watchPort(r *rand.Rand, load, spread, share float64) *watched {
	w := &watched{port: newPort(r, load, spread), cfg: detect.Latency(10 * time.Second)}
	w.cfg.Share = share
	return w
}

func (w *watched) step(x detect.Window) (begun bool) {
	w.end += int64(w.cfg.Window)
	return w.hop.Add(&w.cfg, w.cfg.At(w.end), x) == detect.Begun
}

// runPorts counts found faults and false findings on ports whose load has a long memory.
func runPorts(ctx context.Context, out io.Writer, o options) error {
	fmt.Fprintf(out, "Found within %d windows of an episode at a load of .5, of %d episodes each, after %d quiet windows, by the share of false findings that is asked for\n\n", episode, o.Hops*10, learnt)
	t := harness.Columns(out, 2, 0)
	fmt.Fprint(t, "FAULT\tVALUES")
	for _, s := range portShares {
		fmt.Fprintf(t, "\t%.3g", s)
	}
	fmt.Fprintln(t)
	for i := range portFaults {
		for _, count := range portCounts[3:] {
			fmt.Fprintf(t, "%s\t%d", portFaults[i].name, count)
			for _, share := range portShares {
				part, err := portPower(ctx, &portFaults[i], count, share, o)
				if err != nil {
					return err
				}
				fmt.Fprintf(t, "\t%.2f", part)
			}
			fmt.Fprintln(t)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return portQuiet(ctx, out, o)
}

// portPower is the part of episodes in which a finding begins, of those on ports without one.
func portPower(ctx context.Context, f *portFault, count int, share float64, o options) (float64, error) {
	found, all := 0, 0
	for k := range uint64(o.Hops) * 10 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		w := watchPort(rand.New(rand.NewPCG(o.Seed, k)), .5, .15, share)
		for range learnt {
			w.step(w.window(count, nil))
		}
		if _, open := w.hop.Open(); open {
			continue
		}
		all++
		for range episode {
			if w.step(w.window(count, f)) {
				found++
				break
			}
		}
	}
	return float64(found) / float64(max(all, 1)), nil
}

// portQuiet counts false findings by load, its spread and values a window.
func portQuiet(ctx context.Context, out io.Writer, o options) error {
	shares := portShares[1:]
	fmt.Fprintf(out, "\nFalse findings, as a multiple of the share that is asked for, in %d windows of each kind of port after %d\n\n", o.Quiet, learnt)
	t := harness.Columns(out, 2, 0)
	fmt.Fprintln(t, "LOAD\tSPREAD\tVALUES\t1.5e-05\t1.45e-06")
	pooled, windows := make([]int, len(shares)), 0
	for _, spread := range portSpread {
		for _, load := range portLoads {
			for _, count := range portCounts {
				found, n := make([]int, len(shares)), 0
				for hop := uint64(0); n < o.Quiet; hop++ {
					if err := ctx.Err(); err != nil {
						return err
					}
					long := min(day, o.Quiet-n)
					for i, share := range shares {
						w := watchPort(rand.New(rand.NewPCG(o.Seed+3_000_000, hop)), load, spread, share)
						for k := range learnt + long {
							if w.step(w.window(count, nil)) && k >= learnt {
								found[i]++
							}
						}
					}
					n += long
				}
				fmt.Fprintf(t, "%v\t%v\t%d", load, spread, count)
				for i, share := range shares {
					fmt.Fprintf(t, "\t%.2f (%d)", float64(found[i])/float64(n)/share, found[i])
					pooled[i] += found[i]
				}
				fmt.Fprintln(t)
				windows += n
			}
		}
	}
	fmt.Fprint(t, "all\t\t")
	for i, share := range shares {
		fmt.Fprintf(t, "\t%.2f (%d)", float64(pooled[i])/float64(max(windows, 1))/share, pooled[i])
	}
	fmt.Fprintln(t)
	return t.Flush()
}
