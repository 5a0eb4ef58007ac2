package aggregation

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

func newTracker(t testing.TB, window time.Duration) (*LoadTracker, *pint.Levels) {
	t.Helper()
	code, err := pint.NewCode(UtilizationCode())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := NewLoadTracker(LoadConfig{Window: window}, code)
	if err != nil {
		t.Fatal(err)
	}
	return tr, code
}

// The code of the paper: 8 bits hold 1/512 to 500 times a full link within (1+ε)² - 1, without bias.
func TestUtilizationCode(t *testing.T) {
	tr, code := newTracker(t, time.Second)
	if lo, hi := tr.Decode(1), tr.Decode(255); lo != 1./512 || hi < 500 {
		t.Errorf("levels from %v to %v", lo, hi)
	}
	if e := code.RelativeError(); e > 1.025*1.025-1 {
		t.Errorf("relative error %v", e)
	}
	if tr.Decode(1<<20) != tr.Decode(255) {
		t.Error("a code that is none has a value of its own")
	}
	// The example of HPCC-PINT: 0.75 is stored as one of two codes that stand for 0.731 ± 2.5 % and 5 % more.
	v := uint64(.75 * pint.UtilizationUnit)
	lo, hi := tr.Decode(code.Encode(v, math.MaxUint32)), tr.Decode(code.Encode(v, 0))
	if !(lo <= .75 && .75 <= hi && hi/lo < 1.0507) {
		t.Errorf("0.75 is between %v and %v", lo, hi)
	}
}

// Windows against a list of everything.
func TestWindowAgainstList(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	const window = 4000
	tr, _ := newTracker(t, window)
	type digest struct {
		at   int64
		code uint32
	}
	for range 50 {
		var f FlowLoad
		var all []digest
		now := rng.Int64N(20_000) - 10_000
		for range 300 {
			now += rng.Int64N(300)
			if rng.IntN(40) == 0 {
				now += rng.Int64N(8000)
			}
			d := digest{now, rng.Uint32N(256)}
			all = append(all, d)
			if !tr.Add(&f, d.code, now) {
				t.Fatal("refused")
			}
			ask := now + rng.Int64N(2)*rng.Int64N(6000)
			pane := func(at int64) int64 { return int64(math.Floor(float64(at) / (window / 4))) }
			var want Load
			var largest uint32
			for _, d := range all {
				if pane(d.at) > pane(ask)-4 {
					want.Count++
					want.Mean += tr.Decode(d.code)
					largest = max(largest, d.code)
				}
			}
			got, ok := tr.Window(&f, ask)
			if ok != (want.Count > 0) || got.Count != want.Count {
				t.Fatalf("seed %d: %d digests, want %d", seed, got.Count, want.Count)
			}
			if !ok {
				continue
			}
			want.Mean /= float64(want.Count)
			if got.Max != tr.Decode(largest) || got.Last != tr.Decode(d.code) || math.Abs(got.Mean-want.Mean) > 1e-9*want.Mean {
				t.Fatalf("seed %d: %+v, want %+v, maximum %v", seed, got, want, tr.Decode(largest))
			}
		}
		before, _ := tr.Window(&f, now)
		if !tr.Add(&f, 3, now-1e6) {
			t.Fatal("late digest refused")
		}
		if after, _ := tr.Window(&f, now); after.Count != before.Count+1 {
			t.Errorf("seed %d: a late digest: %d after %d", seed, after.Count, before.Count)
		}
	}
}

// A path of switches with steady links: the mean over packets is the utilisation of the bottleneck, the maximum at
// most two codes from it.
func TestBottleneck(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	tr, code := newTracker(t, time.Second)
	links := []float64{.31, .778, .2, .779, .5}
	const packets = 100_000
	var f FlowLoad
	for i := range packets {
		rnd := rng.Uint32() // the hash of the packet id
		digest := uint32(0)
		for _, u := range links {
			digest = max(digest, code.Encode(uint64(u*pint.UtilizationUnit), rnd))
		}
		tr.Add(&f, digest, int64(i))
	}
	w, ok := tr.Window(&f, packets)
	v := uint64(links[3] * pint.UtilizationUnit)
	_, deviation := code.Error(v)
	want := float64(v) / pint.UtilizationUnit
	if off := math.Abs(w.Mean - want); !ok || off > 6*deviation/pint.UtilizationUnit/math.Sqrt(packets) { // false alarm: 2e-9
		t.Errorf("seed %d: mean %v, want %v", seed, w.Mean, want)
	}
	if w.Max < want || w.Max > want*1.025*1.025 {
		t.Errorf("seed %d: maximum %v of %v", seed, w.Max, want)
	}
}

func TestRefused(t *testing.T) {
	tr, code := newTracker(t, time.Second)
	var f FlowLoad
	if _, ok := tr.Window(&f, 0); ok {
		t.Error("a new flow has digests")
	}
	if tr.Add(&f, 256, 0) || f != (FlowLoad{}) {
		t.Error("a code of 9 bits was taken")
	}
	if size := unsafe.Sizeof(f); size != 72 {
		t.Errorf("a flow takes %d bytes", size)
	}
	for _, window := range []time.Duration{0, 999, 25 * time.Hour} {
		if _, err := NewLoadTracker(LoadConfig{Window: window}, code); err == nil || !strings.Contains(err.Error(), "window") {
			t.Errorf("window %v: %v", window, err)
		}
	}
	if _, err := NewLoadTracker(DefaultLoadConfig(), nil); err == nil {
		t.Error("no code: taken")
	}
}

func FuzzTracker(f *testing.F) {
	f.Add(uint32(3), int64(5), uint32(9), int64(1e12), int64(2e12))
	f.Add(uint32(300), int64(math.MinInt64), uint32(255), int64(math.MaxInt64), int64(0))
	f.Fuzz(func(t *testing.T, a uint32, at int64, b uint32, bt, now int64) {
		tr, _ := newTracker(t, time.Second)
		var flow FlowLoad
		n := uint64(0)
		for _, d := range []struct {
			code uint32
			at   int64
		}{{a, at}, {b, bt}, {a, bt}} {
			if tr.Add(&flow, d.code, d.at) {
				n++
			}
		}
		if w, ok := tr.Window(&flow, now); ok && (w.Count > n || !(w.Mean >= 0 && w.Mean <= w.Max)) {
			t.Fatalf("%d digests: %+v", n, w)
		}
	})
}

func BenchmarkLoadAdd(b *testing.B) {
	tr, _ := newTracker(b, time.Second)
	var f FlowLoad
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		tr.Add(&f, uint32(now>>10)&0xff, now)
	}
}
