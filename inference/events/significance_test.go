package events

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// simulated is one exporter over time: what its tracker reports of each window of ten seconds.
type simulated func(window int) inference.ExporterStats

// outcome counts the findings that started before a window and from it on. It holds the delay of the first of these in
// windows, and the window in which one ended last.
type outcome struct{ early, late, delay, ended int }

// watch lets the default detector see an exporter, and counts its findings of a kind.
func watch(kind inference.Kind, e simulated, windows, from int) (o outcome) {
	const window = 10e9
	d := New(DefaultConfig())
	w := inference.Window{Exporters: make([]inference.ExporterStats, 1)}
	for i := range windows {
		w.Start, w.End = int64(i)*window, int64(i+1)*window
		w.Exporters[0] = e(i)
		for _, f := range d.Step(&w) {
			switch {
			case f.Kind != kind:
			case f.End != 0:
				o.ended = i + 1
			case f.Start != w.End:
			case i < from:
				o.early++
			default:
				if o.late++; o.late == 1 {
					o.delay = i - from + 1
				}
			}
		}
	}
	return o
}

func poisson(rng *rand.Rand, mean float64) uint64 {
	if mean > 50 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	n, p := uint64(0), math.Exp(-mean)
	for u := rng.Float64(); u > p; n++ {
		u *= rng.Float64()
	}
	return n
}

// TestLossFalseAlarms has exporters that lose no more than the settings allow, of 0.1 to 100,000 reports a window. Each
// runs for a hundred hours, and for a thousand at night. The proven bound is one finding in a million windows at the
// ratio of the settings itself.
func TestLossFalseAlarms(t *testing.T) {
	windows := testkit.Rounds(72_000, 360_000) // at night 1000 hours
	for _, rate := range []float64{0.1, 1, 10, 1000, 100_000} {
		for _, ratio := range []float64{0, 1e-5, 1e-4} {
			rng := rand.New(rand.NewPCG(uint64(rate*10), uint64(ratio*1e6)))
			o := watch(inference.ExporterLoss, func(int) inference.ExporterStats {
				reports := poisson(rng, rate)
				return inference.ExporterStats{Sequenced: true, Reports: reports, Lost: int64(poisson(rng, float64(reports)*ratio))}
			}, windows, windows)
			t.Logf("%g reports a window, %g lost: %d findings in %d windows", rate, ratio, o.early, windows)
			if o.early > 1 || ratio < 1e-4 && o.early > 0 {
				t.Errorf("%g reports a window, %g lost: %d findings in %d windows", rate, ratio, o.early, windows)
			}
		}
	}
}

// TestLossFound: exporters that begin to lose after an hour, for an hour. Losses in bursts count as well. None is
// missed, a loss that lasts is one finding, and it ends.
func TestLossFound(t *testing.T) {
	const before, lasts, after, runs = 360, 360, 3600, 20
	for _, tt := range []struct {
		rate, ratio, burst float64
		delay              float64 // most windows, on average
	}{
		{1, 0.5, 1, 8}, {10, 0.1, 1, 8}, {100, 0.01, 1, 10}, {100, 0.1, 1, 2}, {1000, 0.001, 1, 16}, {1000, 0.01, 1, 2}, {1000, 0.01, 20, 4},
		{10_000, 0.001, 1, 3}, {10_000, 0.01, 1, 1}, {100_000, 0.001, 1, 1}, {100_000, 0.001, 50, 2}, {100_000, 0.01, 1, 1},
	} {
		delay, over, found, findings := 0, 0, 0, 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, uint64(1000*tt.rate*tt.ratio)))
			o := watch(inference.ExporterLoss, func(w int) inference.ExporterStats {
				s := inference.ExporterStats{Sequenced: true, Reports: poisson(rng, tt.rate)}
				if w >= before && w < before+lasts {
					s.Lost = min(int64(tt.burst)*int64(poisson(rng, float64(s.Reports)*tt.ratio/tt.burst)), int64(s.Reports))
					s.Reports -= uint64(s.Lost)
				}
				return s
			}, before+lasts+after, before)
			if o.early != 0 {
				t.Errorf("%+v seed %d: %d findings without loss", tt, seed, o.early)
			}
			if o.late > 0 {
				found++
			}
			findings += o.late
			delay += o.delay
			over += o.ended - before - lasts
		}
		mean := float64(delay) / runs
		t.Logf("%g reports a window, %g lost in bursts of %g: found in %d of %d after %.1f windows, %.2f findings, over after %.1f windows",
			tt.rate, tt.ratio, tt.burst, found, runs, mean, float64(findings)/runs, float64(over)/runs)
		if found != runs || mean > tt.delay || findings > runs*3/2 || over <= 0 {
			t.Errorf("%+v: found in %d of %d after %.1f windows, %d findings, over after %d", tt, found, runs, mean, findings, over)
		}
	}
}

// TestLossJitter: what comes late without a loss is no finding, and what was counted as lost and comes all the same
// ends one.
func TestLossJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	provisional := uint64(0)
	o := watch(inference.ExporterLoss, func(int) inference.ExporterStats {
		s := inference.ExporterStats{Sequenced: true, Reports: 1000 + provisional, Provisional: rng.Uint64N(6)}
		s.Reports -= s.Provisional
		provisional, s.Reordered = s.Provisional, 300
		return s
	}, 10_000, 10_000)
	if o.early != 0 {
		t.Errorf("%d findings of jitter alone", o.early)
	}
	o = watch(inference.ExporterLoss, func(w int) inference.ExporterStats {
		return inference.ExporterStats{Sequenced: true, Reports: 1000, Lost: map[int]int64{10: 500, 11: -500}[w]}
	}, 1000, 10)
	if o.late != 1 || o.ended == 0 || o.ended > 20 {
		t.Errorf("lost and found again: %+v", o)
	}
}

// TestSilence watches exporters of many kinds while they go on, and again until they stop for good after an hour or
// after ten. False findings are rarer than one in a million windows if the reports continue as before. An exporter that
// changes its habits, as by the first night, is found silent once or twice for it.
func TestSilence(t *testing.T) {
	testkit.Long(t)
	alternate := func(rng *rand.Rand, on, off func() int) func(int) uint64 {
		left, speaks := on(), true
		return func(int) uint64 {
			for ; left <= 0; speaks = !speaks {
				if speaks {
					left = off()
				} else {
					left = on()
				}
			}
			if left--; speaks {
				return 100
			}
			return 0
		}
	}
	exponential := func(rng *rand.Rand, mean float64) func() int {
		return func() int { return 1 + int(mean*rng.ExpFloat64()) }
	}
	random := func(mean float64) func(*rand.Rand) func(int) uint64 {
		return func(rng *rand.Rand) func(int) uint64 { return func(int) uint64 { return poisson(rng, mean) } }
	}
	every := func(n int) func(*rand.Rand) func(int) uint64 {
		return func(*rand.Rand) func(int) uint64 {
			return func(w int) uint64 {
				if w%n == 0 {
					return 5
				}
				return 0
			}
		}
	}
	const exporters = 10
	for i, tt := range []struct {
		name   string
		make   func(*rand.Rand) func(window int) uint64
		false_ int        // findings in 200,000 windows at most
		delay  [2]float64 // in windows on average, when it stops after an hour and after ten; 0: may be missed
	}{
		{"every window", every(1), 0, [2]float64{3, 3}},
		{"every third window", every(3), 0, [2]float64{14, 7}},
		{"every thirtieth window", every(30), 0, [2]float64{0, 70}},
		{"at random, 10 a window", random(10), 0, [2]float64{5, 4}},
		{"at random, 3 a window", random(3), 0, [2]float64{11, 8}},
		{"at random, 1 a window", random(1), 0, [2]float64{45, 25}},
		{"at random, 0.3 a window", random(0.3), 0, [2]float64{0, 110}},
		{"at random, 0.1 a window", random(0.1), 0, [2]float64{0, 350}},
		{"on and off, 20 windows each", func(rng *rand.Rand) func(int) uint64 {
			return alternate(rng, exponential(rng, 20), exponential(rng, 20))
		}, 4, [2]float64{}},
		{"on 100 windows, off 50", func(rng *rand.Rand) func(int) uint64 {
			return alternate(rng, exponential(rng, 100), exponential(rng, 50))
		}, 2 * exporters, [2]float64{}},
		{"off for Pareto times, α = 1.5", func(rng *rand.Rand) func(int) uint64 {
			return alternate(rng, exponential(rng, 15), func() int { return int(5 * math.Pow(1-rng.Float64(), -1/1.5)) })
		}, 12, [2]float64{}},
		{"off for 8 hours a day", func(*rand.Rand) func(int) uint64 {
			return func(w int) uint64 {
				if w%8640 < 5760 {
					return 100
				}
				return 0
			}
		}, 2 * exporters, [2]float64{3, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := func(seed uint64, windows, stop int) outcome {
				next := tt.make(rand.New(rand.NewPCG(seed, uint64(i))))
				return watch(inference.ExporterSilence, func(w int) inference.ExporterStats {
					s := inference.ExporterStats{Sequenced: true}
					if n := next(w); w < stop {
						s.Reports = n
					}
					return s
				}, windows, stop)
			}
			findings := 0
			for seed := range uint64(exporters) {
				findings += run(seed, 20_000, 20_000).early
			}
			t.Logf("%d false findings in %d windows", findings, exporters*20_000)
			if findings > tt.false_ {
				t.Errorf("%d false findings, want at most %d", findings, tt.false_)
			}
			for k, stop := range []int{360, 3600} {
				found, delay := 0, 0
				for seed := range uint64(exporters) {
					o := run(100+seed, stop+1500, stop)
					found += min(o.late, 1)
					delay += o.delay
				}
				mean := float64(delay) / float64(max(found, 1))
				t.Logf("stops after %d windows: found in %d of %d, after %.1f windows", stop, found, exporters, mean)
				if tt.delay[k] > 0 && (found < exporters || mean > tt.delay[k]) {
					t.Errorf("stops after %d windows: found in %d of %d, after %.1f windows, want %g", stop, found, exporters, mean, tt.delay[k])
				}
			}
		})
	}
}
