package ddsketch

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/sketches/exact"
	"github.com/hopscope/hopscope/sketches/logcode"
)

func mustNew(t testing.TB, cfg Config) *Sketch {
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var shares = []float64{0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1}

// Within the accuracy, alone and after any merges, at every quantile: that is not a matter of chance.
func TestRelativeError(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{Accuracy: []float64{0.001, 0.01, 0.05}[seed%3], MaxBins: 65536}
		parts := make([]*Sketch, 1+r.IntN(8))
		for i := range parts {
			parts[i] = mustNew(t, cfg)
		}
		var want exact.Values[float64]
		n := 1 + r.IntN(20_000)
		for range n {
			v := math.Exp(r.NormFloat64() * 5)
			if r.IntN(50) == 0 {
				v = 0
			}
			want.Update(v)
			if err := parts[r.IntN(len(parts))].Add(v); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range parts[1:] {
			if err := parts[0].Merge(p); err != nil {
				t.Fatal(err)
			}
		}
		s := parts[0]
		if s.Count() != uint64(n) || s.Min() != want.Quantile(0) || s.Max() != want.Quantile(1) {
			t.Fatalf("seed %d: Count, Min, Max = %d, %g, %g, want %d, %g, %g", seed, s.Count(), s.Min(), s.Max(), n, want.Quantile(0), want.Quantile(1))
		}
		for i, got := range s.Quantiles(nil, shares...) {
			w := want.Quantile(shares[i])
			if math.Abs(got-w) > cfg.Accuracy*w*(1+1e-9) {
				t.Errorf("seed %d: Quantile(%g) = %g, want %g within %g", seed, shares[i], got, w, cfg.Accuracy)
			}
		}
	}
}

// From histograms of shards to one sketch and back: errors add up as the package comment says.
func TestHistograms(t *testing.T) {
	cfg := DefaultConfig()
	r := rand.New(rand.NewPCG(1, 2))
	s := mustNew(t, cfg)
	var want exact.Values[uint64]
	for range 10 {
		var h logcode.Histogram
		for range 1000 {
			v := r.Uint64() >> (10 + r.IntN(54))
			h.AddValue(v)
			want.Update(v)
		}
		s.FromHistogram(&h)
	}
	var back logcode.Histogram
	s.ToHistogram(&back)
	if s.Count() != 10_000 || back.Count() != 10_000 {
		t.Fatalf("Count() = %d and back %d, want 10000", s.Count(), back.Count())
	}
	once := (1+cfg.Accuracy)*(1+logcode.DenseRelativeError) - 1
	for _, q := range shares {
		w := float64(want.Quantile(q))
		if got := s.Quantile(q); math.Abs(got-w) > once*w*(1+1e-9) {
			t.Errorf("Quantile(%g) = %g, want %g within %g", q, got, w, once)
		}
		if got := float64(back.Quantile(q)); math.Abs(got-w) > (1+cfg.Accuracy)*math.Pow(1+logcode.DenseRelativeError, 2)*w-w+1 {
			t.Errorf("back: Quantile(%g) = %g, want %g", q, got, w)
		}
	}
}

// The lowest values give way; upper quantiles stay right.
func TestBoundedBins(t *testing.T) {
	s := mustNew(t, Config{Accuracy: 0.01, MaxBins: 256})
	var want exact.Values[float64]
	r := rand.New(rand.NewPCG(1, 3))
	for range 50_000 {
		v := math.Exp(r.Float64() * 60)
		want.Update(v)
		_ = s.Add(v)
	}
	for _, q := range []float64{0.95, 0.99, 1} {
		if got, w := s.Quantile(q), want.Quantile(q); math.Abs(got-w) > 0.01*w {
			t.Errorf("Quantile(%g) = %g, want %g", q, got, w)
		}
	}
	if got, w := s.Quantile(0.1), want.Quantile(0.1); got < w {
		t.Errorf("Quantile(0.1) = %g below %g", got, w)
	}
	b, _ := s.AppendBinary(nil)
	if len(b) > 4+24+20+256*4 {
		t.Errorf("%d bytes encoded", len(b))
	}
}

func TestRefuses(t *testing.T) {
	s := mustNew(t, DefaultConfig())
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := s.Add(v); !errors.Is(err, ErrValue) {
			t.Errorf("Add(%g) = %v, want %v", v, err, ErrValue)
		}
	}
	o := mustNew(t, Config{Accuracy: 0.02, MaxBins: 64})
	if err := s.Merge(o); !errors.Is(err, ErrAccuracy) {
		t.Errorf("Merge = %v, want %v", err, ErrAccuracy)
	}
	if s.Count() != 0 || s.Quantile(0.5) != 0 || s.Min() != 0 || s.Max() != 0 {
		t.Errorf("an empty sketch gives %d, %g, %g, %g", s.Count(), s.Quantile(0.5), s.Min(), s.Max())
	}
	for _, c := range []Config{{}, {0.0001, 100}, {0.3, 100}, {math.NaN(), 100}, {0.01, 63}, {0.01, 65537}} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%v) is accepted", c)
		}
	}
	if err := s.AddN(3, 1<<60); err != nil || s.Count() != maxCount {
		t.Errorf("Count() = %d, %v, want %d", s.Count(), err, uint64(maxCount))
	}
	_ = s.Merge(s)
	if err := s.Add(1); err != nil || s.Count() != 2*maxCount || s.Quantile(0.5) > 3*1.01 {
		t.Errorf("merged with itself: Count() = %d, Quantile = %g, %v", s.Count(), s.Quantile(0.5), err)
	}
}

func encoded(t testing.TB, n int) []byte {
	s, r := mustNew(t, DefaultConfig()), rand.New(rand.NewPCG(uint64(n), 4))
	for range n {
		_ = s.Add(math.Floor(r.ExpFloat64() * 1000))
	}
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBinary(t *testing.T) {
	for _, n := range []int{0, 1, 100, 100_000} {
		b := encoded(t, n)
		s := mustNew(t, DefaultConfig())
		if err := s.UnmarshalBinary(b); err != nil {
			t.Fatalf("%d values: %v", n, err)
		}
		if again, _ := s.AppendBinary(nil); !bytes.Equal(again, b) || s.Count() != uint64(n) {
			t.Errorf("%d values: read %x, wrote %x", n, b, again)
		}
		for cut := range b {
			err := s.UnmarshalBinary(b[:cut])
			if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrTruncated) || e.Offset != cut {
				t.Errorf("%d values cut at %d: %v", n, cut, err)
			}
		}
		if err := s.UnmarshalBinary(append(b, 0)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("one byte too many: %v", err)
		}
		if s.Count() != uint64(n) {
			t.Errorf("a refused sketch left traces")
		}
	}
	other := mustNew(t, Config{Accuracy: 0.02, MaxBins: 64})
	if err := other.UnmarshalBinary(encoded(t, 10)); !errors.Is(err, ErrAccuracy) {
		t.Errorf("another accuracy: %v, want %v", err, ErrAccuracy)
	}
}

// Whatever is accepted works, within its bins.
func FuzzUnmarshal(f *testing.F) {
	for _, n := range []int{0, 1, 100} {
		f.Add(encoded(f, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := mustNew(t, DefaultConfig())
		if err := s.UnmarshalBinary(b); err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Offset > len(b) || s.Count() != 0 {
				t.Fatalf("UnmarshalBinary(%x) = %v", b, err)
			}
			return
		}
		q := s.Quantiles(nil, 0, 0.5, 0.99, 1)
		if !(q[0] <= q[1] && q[1] <= q[2] && q[2] <= q[3]) {
			t.Fatalf("%x: quantiles %v", b, q)
		}
		o := mustNew(t, DefaultConfig())
		_ = o.Add(5)
		if err := o.Merge(s); err != nil || o.Count() != s.Count()+1 {
			t.Fatalf("%x: merged count %d, %v", b, o.Count(), err)
		}
	})
}
