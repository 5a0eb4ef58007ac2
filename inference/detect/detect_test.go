package detect

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

const day = 8640 // windows of ten seconds

// source draws the values of a hop: lognormal around 10 µs, with a level that wanders where drift is set.
type source struct {
	r      *rand.Rand
	n      int
	sigma  float64
	drift  float64 // of the level in a window; it returns with .98
	level  float64
	values []float64
}

func newSource(seed uint64, n int, sigma, drift float64) *source {
	return &source{r: rand.New(rand.NewPCG(seed, 1)), n: n, sigma: sigma, drift: drift}
}

// window draws the next one; change makes other values of some.
func (s *source) window(change func(v float64) float64) Window {
	s.level = .98*s.level + s.drift*s.r.NormFloat64()
	s.values = s.values[:0]
	for range s.n {
		v := 1e4 * math.Exp(s.level+s.sigma*s.r.NormFloat64())
		if change != nil {
			v = change(v)
		}
		s.values = append(s.values, math.Round(v/100)*100)
	}
	slices.Sort(s.values)
	at := func(q float64) float64 { return s.values[int(math.Ceil(q*float64(s.n)-1e-9))-1] }
	return Window{Count: uint64(s.n), P50: at(.5), P90: at(.9), P99: at(.99)}
}

// run feeds windows to a hop and records the findings by the windows in which they began and ended.
type run struct {
	Hop
	cfg    Config
	t      int
	begun  []int
	ended  []int
	causes []Finding
}

func newRun() *run { return &run{cfg: Latency(10 * time.Second)} }

func (r *run) add(w Window) {
	switch r.Add(&r.cfg, r.cfg.At(int64(r.t+1)*int64(r.cfg.Window)), w) {
	case Begun:
		f, _ := r.Open()
		r.begun, r.causes = append(r.begun, r.t), append(r.causes, f)
	case Ended:
		r.ended = append(r.ended, r.t)
	}
	r.t++
}

// TestQuiet has hops without a fault. One false finding in a million windows is accepted, so 0.2 are expected here.
// Seven would have a probability of three in a billion.
func TestQuiet(t *testing.T) {
	testkit.Long(t)
	found, windows := 0, 0
	for k, sigma := range []float64{.3, .5, 1} {
		for hop := range uint64(28) {
			s, r := newSource(100*uint64(k)+hop, 20+int(hop%4)*60, sigma, 0), newRun()
			for range 3000 {
				r.add(s.window(nil))
			}
			for _, at := range r.begun {
				if at >= 720 {
					found++
				}
			}
			windows += 3000 - 720
		}
	}
	if found > 6 {
		t.Errorf("%d false findings in %d windows", found, windows)
	}
}

// TestFaults lets every kind of fault happen to five hops of each kind, and wants it to be found in time.
func TestFaults(t *testing.T) {
	testkit.Long(t)
	scale := func(f float64) func(int) func(float64) float64 {
		return func(int) func(float64) float64 { return func(v float64) float64 { return f * v } }
	}
	ramp := func(f float64, windows int) func(int) func(float64) float64 {
		return func(k int) func(float64) float64 {
			g := math.Pow(f, min(1, float64(k+1)/float64(windows)))
			return func(v float64) float64 { return g * v }
		}
	}
	for _, tt := range []struct {
		name   string
		change func(k int) func(float64) float64 // k windows behind the onset
		within int
		cause  Cause
	}{
		{"four times", scale(4), 2, Rise},
		{"twice", scale(2), 5, Rise},
		{"half more", scale(1.5), 20, Rise},
		{"a quarter", scale(.25), 3, Fall},
		{"half", scale(.5), 20, Fall},
		{"ten times in half an hour", ramp(10, 180), 180, Rise},
		{"ten times in three hours", ramp(10, 1080), 1080, Rise},
		{"a tail of four times", func(int) func(float64) float64 {
			return func(v float64) float64 {
				if v > 1.6e4 {
					return 4 * v
				}
				return v
			}
		}, 6, Rise},
		{"a median of twice", func(int) func(float64) float64 {
			return func(v float64) float64 { return max(v, 2e4) }
		}, 9, Rise},
		{"twenty times in every second window", func(k int) func(float64) float64 {
			if k%2 == 1 {
				return nil
			}
			return func(v float64) float64 { return 20 * v }
		}, 2, Rise},
		{"one window of four times", func(k int) func(float64) float64 {
			if k > 0 {
				return nil
			}
			return func(v float64) float64 { return 4 * v }
		}, 1, Rise},
		{"stuck", func(int) func(float64) float64 {
			return func(float64) float64 { return 12000 }
		}, 6, none},
		{"stuck at zero", func(int) func(float64) float64 {
			return func(float64) float64 { return 0 }
		}, 1, Fall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for hop := range uint64(5) {
				s, r := newSource(hop, 200, .3, 0), newRun()
				for range 2160 {
					r.add(s.window(nil))
				}
				if f, ok := r.Open(); ok {
					t.Fatalf("hop %d: a finding before there is a fault: %+v", hop, f)
				}
				r.begun, r.causes = nil, nil
				for k := 0; k < tt.within && len(r.begun) == 0; k++ {
					r.add(s.window(tt.change(k)))
				}
				switch {
				case len(r.begun) == 0:
					t.Errorf("hop %d: not found in %d windows", hop, tt.within)
				case tt.cause != none && r.causes[0].Cause != tt.cause:
					t.Errorf("hop %d: found as %v, want %v", hop, r.causes[0].Cause, tt.cause)
				}
			}
		})
	}
}

func TestSilence(t *testing.T) {
	s, r := newSource(1, 200, .3, 0), newRun()
	for range 720 {
		r.add(s.window(nil))
	}
	for range 10 {
		r.add(Window{})
	}
	if len(r.begun) != 1 || r.begun[0] > 722 || r.causes[0].Cause != Silent || !r.causes[0].Grave(&r.cfg) {
		t.Fatalf("silence from window 720: found at %v as %+v", r.begun, r.causes)
	}
	for range 20 {
		r.add(s.window(nil))
	}
	if len(r.ended) != 1 || len(r.begun) != 1 {
		t.Errorf("the silence is over: findings end at %v and begin at %v", r.ended, r.begun)
	}
}

// TestRareHop has a hop of which every second window is empty: that is how it is.
func TestRareHop(t *testing.T) {
	s, r := newSource(1, 50, .3, 0), newRun()
	for range 2000 {
		r.add(s.window(nil))
		if s.r.IntN(2) == 0 {
			r.add(Window{Count: 2})
		}
	}
	if late := slices.DeleteFunc(r.begun, func(at int) bool { return at < 720 }); len(late) > 0 {
		t.Errorf("findings at %v", late)
	}
}

// TestLasting has a fault that stays. It is one finding, which ends when the new level is the usual one. Another fault
// on top of that is found again.
func TestLasting(t *testing.T) {
	s, r := newSource(3, 200, .3, 0), newRun()
	for range 2160 {
		r.add(s.window(nil))
	}
	for range 1000 {
		r.add(s.window(func(v float64) float64 { return 4 * v }))
	}
	if len(r.begun) != 1 || len(r.ended) != 1 || r.ended[0]-r.begun[0] > 370 {
		t.Fatalf("findings begin at %v and end at %v; the fault at 2160 stays", r.begun, r.ended)
	}
	for range 3 {
		r.add(s.window(func(v float64) float64 { return 16 * v }))
	}
	if len(r.begun) != 2 {
		t.Error("a second fault on top of the first is not found")
	}
}

// TestHourlyJob has a hop that is eight times as slow for three minutes of every hour: from the fourth day on that is no
// news.
func TestHourlyJob(t *testing.T) {
	s, r := newSource(1, 30, .3, 0), newRun()
	for r.t < 5*day {
		if r.t%360 < 18 {
			r.add(s.window(func(v float64) float64 { return 8 * v }))
		} else {
			r.add(s.window(nil))
		}
	}
	early, late := 0, 0
	for _, at := range r.begun {
		if at < 3*day {
			early++
		} else {
			late++
		}
	}
	if late > 2 {
		t.Errorf("%d findings in the fourth and fifth day", late)
	}
	if early == 0 {
		t.Error("the first visits of the job are news, and were not found")
	}
}

// TestScale has the same hop in other units: findings do not depend on them.
func TestScale(t *testing.T) {
	a, b := newRun(), newRun()
	b.cfg.Floor *= 1024
	s := newSource(9, 100, .5, .03)
	for k := range 4000 {
		var change func(float64) float64
		if k > 3000 && k < 3100 {
			change = func(v float64) float64 { return 5 * v }
		}
		w := s.window(change)
		a.add(w)
		b.add(Window{Count: w.Count, P50: 1024 * w.P50, P90: 1024 * w.P90, P99: 1024 * w.P99})
	}
	if len(a.begun) == 0 || !slices.Equal(a.begun, b.begun) || !slices.Equal(a.ended, b.ended) {
		t.Errorf("findings at %v to %v, with other units at %v to %v", a.begun, a.ended, b.begun, b.ended)
	}
}

// FuzzAdd feeds any windows: nothing may become infinite or no number, or the hop would be blind for ever.
func FuzzAdd(f *testing.F) {
	f.Add(uint64(1), uint64(5), 0.0, 0.0, 0.0)
	f.Add(uint64(2), uint64(1)<<63, 1e18, 1e18, 1e18)
	f.Fuzz(func(t *testing.T, seed, n uint64, p50, p90, p99 float64) {
		for _, v := range []float64{p50, p90, p99} {
			if !(v >= 0 && v <= 1e18) {
				return // no reader gives such values
			}
		}
		s, r := newSource(seed, 10, .5, .1), newRun()
		for k := range 200 {
			if k%3 == 2 {
				r.add(Window{Count: n, P50: p50, P90: p90, P99: p99})
			} else {
				r.add(s.window(nil))
			}
		}
		for i := range r.stats {
			for k, m := range r.stats[i].mean {
				if math.IsNaN(float64(m)) || math.IsInf(float64(m), 0) {
					t.Fatalf("mean %d of statistic %d is %v", k, i, m)
				}
			}
			for j := range contrasts {
				for _, sc := range r.stats[i].scale[j] {
					if q := float64(sc.tail + sc.square); !(q >= 0 && q < 1e12) {
						t.Fatalf("scale %d of statistic %d is %v", j, i, q)
					}
				}
			}
		}
	})
}
