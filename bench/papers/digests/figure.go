package digests

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/hopscope/hopscope/bench/harness"
)

// Options choose how the figures of PINT (R. Ben Basat et al., SIGCOMM 2020) are reproduced.
type Options struct {
	Seed uint64
	// Runs is the number of repetitions of each point. 0 means 10 000, or fewer if a run is long, as the table
	// states. The result depends on Seed and Runs alone, not on the number of cores.
	Runs     int
	Rows     []string           // of the figure errors: only rows whose name contains one of these; none for all
	Progress func(point string) // called when a point begins; may be nil
}

// figures are the figures of the paper that are made again.
var figures = []struct {
	name string
	make func(*bench) error
}{
	{"1", (*bench).completionTimes},
	{"2", (*bench).longGoodputs},
	{"5", (*bench).coding},
	{"7", (*bench).hpccOverINT},
	{"8", (*bench).hpccShares},
	{"9", (*bench).latencyErrors},
	{"10", (*bench).tracing},
	{"10links", (*bench).mapTracing},
	{"11", (*bench).mix},
	{"11hpcc", (*bench).hpccAmongQueries},
	{"loops", (*bench).loops},
	{"spray", (*bench).spray},
	{"cost", (*bench).cost},
	{"errors", (*bench).errors},
}

// Figures are the names that [Make] accepts.
func Figures() []string {
	var names []string
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// A figure is tables of package harness.
type (
	table    = harness.Table
	interval = harness.Interval
)

// Figure is one figure of the paper, repeated.
type Figure struct {
	Name   string  `json:"figure"`
	Seed   uint64  `json:"seed"`
	Tables []table `json:"tables"`
	Charts []Chart `json:"-"`
}

// Make makes one of [Figures] again.
func Make(ctx context.Context, name string, o Options) (*Figure, error) {
	for _, f := range figures {
		if f.name == name {
			b := &bench{ctx: ctx, o: o, out: &Figure{Name: name, Seed: o.Seed}}
			if err := f.make(b); err != nil {
				return nil, fmt.Errorf("figure %s: %w", name, err)
			}
			return b.out, nil
		}
	}
	return nil, fmt.Errorf("no figure %q: there are %s", name, strings.Join(Figures(), ", "))
}

// bench makes a figure.
type bench struct {
	ctx context.Context
	o   Options
	out *Figure
}

// runs is how often a point is repeated if it should take no more than most.
func (b *bench) runs(most int) int {
	if b.o.Runs > 0 {
		return b.o.Runs
	}
	return min(most, 10_000)
}

func (b *bench) progress(point string) {
	if b.o.Progress != nil {
		b.o.Progress(point)
	}
}

// sample repeats an experiment. Each worker makes its own experiment with begin. The random numbers of a run depend
// on the options' seed, the name of the stream and the number of the run. Experiments with the same stream meet the
// same packets. The results are in the order of the runs. The point names the experiment in progress.
func sample[T any](b *bench, point, stream string, runs int, begin func() (func(r *rand.Rand) (T, error), error)) ([]T, error) {
	b.progress(point)
	h := fnv.New64a()
	io.WriteString(h, stream)
	results := make([]T, runs)
	workers := min(runtime.GOMAXPROCS(0), runs)
	failed := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			run, err := begin()
			source := rand.NewPCG(0, 0)
			r := rand.New(source)
			for i := w; i < runs && err == nil; i += workers {
				source.Seed(b.o.Seed^h.Sum64(), uint64(i))
				if results[i], err = run(r); err == nil {
					err = b.ctx.Err()
				}
			}
			failed[w] = err
		})
	}
	wait.Wait()
	return results, errors.Join(failed...)
}

// counting makes an experiment of one that needs nothing and does not fail.
func counting[T any](run func(r *rand.Rand) T) func() (func(*rand.Rand) (T, error), error) {
	return func() (func(*rand.Rand) (T, error), error) {
		return func(r *rand.Rand) (T, error) { return run(r), nil }, nil
	}
}

// summary is the distribution of how many packets it took.
type summary struct {
	runs         int
	mean         interval
	median, tail interval // tail: 99th percentile
	sorted       []int
}

func summarize(packets []int) summary {
	v := slices.Sorted(slices.Values(packets))
	s := summary{runs: len(v), sorted: v}
	values := make([]float64, len(v))
	for i, x := range v {
		values[i] = float64(x)
	}
	s.mean = meanInterval(values)
	s.median, s.tail = orderStatistic(v, 0.5), orderStatistic(v, 0.99)
	return s
}

// meanInterval is the mean.
func meanInterval(v []float64) interval {
	var sum, square float64
	for _, x := range v {
		sum += x
		square += x * x
	}
	n := float64(len(v))
	mean := sum / n
	half := 1.96 * math.Sqrt(max(square/n-mean*mean, 0)/max(n-1, 1))
	return interval{Value: mean, Low: mean - half, High: mean + half}
}

// orderStatistic is a quantile with the confidence interval of the order statistics, whose ranks are binomial.
func orderStatistic(sorted []int, q float64) interval {
	n := float64(len(sorted))
	half := 1.96 * math.Sqrt(n*q*(1-q))
	at := func(rank float64) float64 {
		return float64(sorted[min(max(int(math.Ceil(rank)), 1), len(sorted))-1])
	}
	return interval{Value: at(n * q), Low: at(n*q - half), High: at(n*q + half)}
}

// share is the share of runs that took no more than n packets.
func (s *summary) share(n int) float64 {
	k, _ := slices.BinarySearch(s.sorted, n+1)
	return float64(k) / float64(s.runs)
}

// Print writes a figure's tables, or adds them to those that are recorded.
func (f *Figure) Print(w io.Writer) error {
	if r, ok := w.(*harness.Recorder); ok {
		r.Add(f.Tables...)
		return nil
	}
	for _, t := range f.Tables {
		if err := t.Print(w); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "  seed %d\n\n", f.Seed); err != nil {
			return err
		}
	}
	return nil
}
