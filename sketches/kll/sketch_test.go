package kll

import (
	"bytes"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/sketches/exact"
)

// Zeros and ones are enough (Knuth, TAOCP 3, §5.3.4, theorem Z): a network that sorts all of them sorts everything.
func TestSort16(t *testing.T) {
	for x := range 1 << 16 {
		var a [bufItems]uint16
		for i := range a {
			a[i] = uint16(x >> i & 1)
		}
		sort16(&a)
		for i := range a {
			if want := i >= bufItems-bits.OnesCount16(uint16(x)); (a[i] == 1) != want {
				t.Fatalf("%016b is sorted to %d", x, a)
			}
		}
	}
}

func TestMergeRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		all := make([]int, r.IntN(40))
		for i := range all {
			all[i] = r.IntN(20)
		}
		n := r.IntN(len(all) + 1)
		a := slices.Clone(all[:n])
		dst := slices.Clone(all)
		slices.Sort(a)
		slices.Sort(dst[n:])
		merge(dst, a)
		if slices.Sort(all); !slices.Equal(dst, all) {
			t.Fatalf("merged %v, want %v", dst, all)
		}
	}
}

// As long as all values are kept, every answer is exact, whatever has been asked before.
func TestExactWhileSmall(t *testing.T) {
	for _, k := range []int{MinK, 200} {
		s := New[float64](k, 1)
		full := s.limit()
		var want exact.Values[float64]
		r := rand.New(rand.NewPCG(uint64(k), 1))
		for range full {
			v := math.Floor(r.NormFloat64() * 20)
			s.Update(v)
			want.Update(v)
			if r.IntN(3) == 0 {
				continue
			}
			if s.Min() != want.Quantile(0) || s.Max() != want.Quantile(1) || s.Count() != uint64(want.Count()) {
				t.Fatalf("Min, Max, Count = %g, %g, %d", s.Min(), s.Max(), s.Count())
			}
			for q := -0.1; q < 1.1; q += 0.07 {
				if s.Quantile(q) != want.Quantile(q) {
					t.Fatalf("k=%d, %d values: Quantile(%g) = %g, want %g", k, s.Count(), q, s.Quantile(q), want.Quantile(q))
				}
			}
			if v := v + float64(r.IntN(3)-1)/2; s.Rank(v) != want.Rank(v) {
				t.Fatalf("k=%d, %d values: Rank(%g) = %g, want %g", k, s.Count(), v, s.Rank(v), want.Rank(v))
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	s, o := New[int64](1, 1), New[int64](1_000_000, 1)
	s.Merge(o)
	s.Reset()
	if s.K() != MinK || o.K() != MaxK {
		t.Errorf("K() = %d and %d, want %d and %d", s.K(), o.K(), MinK, MaxK)
	}
	if s.Count() != 0 || s.Min() != 0 || s.Max() != 0 || s.Quantile(0.5) != 0 || s.Rank(0) != 0 {
		t.Errorf("an empty sketch gives %d, %d, %d, %d, %g", s.Count(), s.Min(), s.Max(), s.Quantile(0.5), s.Rank(0))
	}
}

func TestNaNIsLeftOut(t *testing.T) {
	s, nan := New[float64](8, 1), math.NaN()
	s.Update(nan)
	for i := range 100_000 {
		s.Update(float64(i))
		s.Update(nan)
	}
	if s.Count() != 100_000 || s.Min() != 0 || s.Max() != 99_999 || s.Rank(nan) != 0 {
		t.Errorf("Count, Min, Max = %d, %g, %g", s.Count(), s.Min(), s.Max())
	}
	for _, q := range s.Quantiles(nil, nan, 0.1, 0.9, 1) {
		if q != q {
			t.Error("a quantile is NaN")
		}
	}
	s = New[float64](8, 1)
	s.Update(math.Inf(1))
	s.Update(math.Inf(-1))
	if s.Min() != math.Inf(-1) || s.Max() != math.Inf(1) || s.Quantile(0.5) != math.Inf(-1) {
		t.Errorf("infinities: %g, %g, %g", s.Min(), s.Max(), s.Quantile(0.5))
	}
}

// Rank and Quantile are inverse to each other, at any size.
func TestRankOfQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := fill(MinK+r.IntN(100), 1+r.IntN(20_000), r.Uint64(), func(r *rand.Rand) int { return r.IntN(5000) })
		qs := []float64{0, 0.01, 0.3, 0.5, 0.9, 0.999, 1}
		got := s.Quantiles([]int{-1}, qs...)[1:]
		if got[0] != s.Min() || got[6] != s.Max() {
			t.Fatalf("quantiles %v, want %d to %d at the ends", got, s.Min(), s.Max())
		}
		for i, q := range qs[1:6] {
			v := got[i+1]
			if v != s.Quantile(q) || v < got[i] || s.Rank(v) < q || v > s.Min() && s.Rank(v-1) >= q {
				t.Fatalf("Quantile(%g) = %d or %d, Rank = %g, of one less %g", q, v, s.Quantile(q), s.Rank(v), s.Rank(v-1))
			}
		}
	}
}

func encode[T Number](s *Sketch[T]) []byte {
	b, _ := s.AppendBinary(nil)
	return b
}

// The same input and seed give the same bytes; questions on the way change nothing; another seed gives others.
func TestReplays(t *testing.T) {
	value := func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }
	a, b := fill(100, 50_000, 7, value), New[uint16](100, 7)
	for i, r := 0, rand.New(rand.NewPCG(7, 1)); i < 50_000; i++ {
		b.Update(value(r))
		if i%37 == 0 {
			b.Quantile(0.5)
			b.Rank(1)
		}
	}
	if !bytes.Equal(encode(a), encode(b)) {
		t.Error("two runs differ")
	}
	if c := fill(100, 50_000, 8, value); bytes.Equal(encode(a)[48:], encode(c)[48:]) {
		t.Error("another seed gives the same")
	}
}

func TestCopyAndReset(t *testing.T) {
	value := func(r *rand.Rand) uint16 { return uint16(r.Uint32()) }
	a := fill(50, 30_000, 1, value)
	var b Sketch[uint16]
	b.CopyFrom(a)
	before := encode(a)
	if !bytes.Equal(encode(&b), before) {
		t.Fatal("a copy differs")
	}
	for i := range 30_000 {
		b.Update(uint16(i))
	}
	if !bytes.Equal(encode(a), before) {
		t.Error("using a copy changed the original")
	}
	b.Reset()
	b.Update(9)
	if b.Count() != 1 || b.Min() != 9 || b.Max() != 9 || b.Quantile(0.3) != 9 {
		t.Errorf("after Reset: %d, %d, %d, %d", b.Count(), b.Min(), b.Max(), b.Quantile(0.3))
	}
	b.CopyFrom(a) // into memory that is there
	if !bytes.Equal(encode(&b), before) {
		t.Error("a copy into used memory differs")
	}
	a.Merge(a)
	if a.Count() != 60_000 {
		t.Errorf("merged with itself: %d values", a.Count())
	}
}

// What a full sketch takes, header included: the table of the package comment.
func TestSize(t *testing.T) {
	for _, c := range []struct{ k, codes, floats int }{{8, 210, 568}, {25, 276, 832}, {100, 596, 2112}, {200, 1024, 3824}} {
		codes := fill(c.k, 3_000_000, 1, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
		floats := fill(c.k, 300_000, 1, (*rand.Rand).Float64)
		if codes.SizeBytes() != c.codes || floats.SizeBytes() != c.floats {
			t.Errorf("k=%d: %d bytes of codes and %d of float64, want %d and %d", c.k, codes.SizeBytes(), floats.SizeBytes(), c.codes, c.floats)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	s := fill(200, 100_000, 1, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
	o := fill(200, 3000, 2, func(r *rand.Rand) uint16 { return uint16(r.Uint32()) })
	dst, out, v := make([]uint16, 0, 3), make([]byte, 0, 2000), uint16(0)
	n := testing.AllocsPerRun(300, func() {
		for range 100 {
			v += 40503
			s.Update(v)
		}
		s.Merge(o)
		dst = s.Quantiles(dst[:0], 0.5, 0.9, 0.99)
		out, _ = s.AppendBinary(out[:0])
		s.Rank(7)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
