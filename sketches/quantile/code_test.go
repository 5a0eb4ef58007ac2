package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/sketches"
)

// codecs are the two resolutions under one name.
var codecs = []struct {
	name   string
	encode func(uint64) uint16
	decode func(uint16) uint64
	bits   uint
	codes  int
	exact  uint64
	err    float64
}{
	{"fine", Encode, Decode, mantissa, Codes, 2048, RelativeError},
	{"dense", EncodeDense, DecodeDense, denseMantissa, DenseCodes, 64, DenseRelativeError},
}

// bounds returns the smallest and the largest value of a cell.
func bounds(c uint16, bits uint) (lo, hi uint64) {
	lo, width := cell(c, bits)
	return lo, lo + (width - 1)
}

// Every code: cells follow each other without a gap from 0 to 2⁶⁴-1, and the middle is near enough to both ends.
func TestCellsTileAllValues(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			next := uint64(0)
			for code := range c.codes {
				lo, hi := bounds(uint16(code), c.bits)
				if lo != next || hi < lo {
					t.Fatalf("code %d covers %d to %d, want it to begin at %d", code, lo, hi, next)
				}
				mid := c.decode(uint16(code))
				for _, v := range []uint64{lo, mid, hi} {
					if got := c.encode(v); int(got) != code {
						t.Fatalf("encode(%d) = %d, want %d", v, got, code)
					}
					if d := math.Abs(float64(mid) - float64(v)); d > c.err*float64(v) {
						t.Fatalf("decode(encode(%d)) = %d: off by %g, want at most %g", v, mid, d/float64(v), c.err)
					}
				}
				if lo < c.exact && lo != hi {
					t.Fatalf("code %d covers %d to %d, want one value below %d", code, lo, hi, c.exact)
				}
				next = hi + 1
			}
			if next != 0 {
				t.Fatalf("the last code ends at %d, want 2⁶⁴-1", next-1)
			}
			for code := c.codes; code < 1<<16; code++ { // codes that do not exist stand for the last
				if got, want := c.decode(uint16(code)), c.decode(uint16(c.codes-1)); got != want {
					t.Fatalf("decode(%d) = %d, want %d", code, got, want)
				}
			}
		})
	}
}

func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		a, b := r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64)
		if a > b {
			a, b = b, a
		}
		for _, c := range codecs {
			if c.encode(a) > c.encode(b) {
				t.Fatalf("%s: encode(%d) = %d > encode(%d) = %d", c.name, a, c.encode(a), b, c.encode(b))
			}
		}
	}
}

// The dense code of a fine code is that of its values, at both ends of every cell.
func TestDenseOfFine(t *testing.T) {
	for code := range Codes {
		lo, hi := bounds(uint16(code), mantissa)
		if got := Dense(uint16(code)); got != EncodeDense(lo) || got != EncodeDense(hi) {
			t.Fatalf("Dense(%d) = %d, want %d to %d", code, got, EncodeDense(lo), EncodeDense(hi))
		}
	}
}

func TestHistogramQuantiles(t *testing.T) {
	qs := []float64{math.Inf(-1), 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1, 2}
	var h, part Histogram
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		var want sketches.Exact[uint64]
		h.Reset()
		n, top := 1+r.IntN(5000), 1+r.IntN(63)
		for range n {
			v := r.Uint64() >> (63 - r.IntN(top))
			want.Update(v)
			if part.AddValue(v); r.IntN(500) == 0 {
				h.Merge(&part)
				part.Reset()
			}
		}
		h.Merge(&part)
		part.Reset()
		if h.Count() != uint64(n) {
			t.Fatalf("seed %d: Count() = %d, want %d", seed, h.Count(), n)
		}
		got := h.Quantiles(nil, qs...)
		for i, q := range qs {
			w := want.Quantile(q)
			if d := math.Abs(float64(got[i]) - float64(w)); d > DenseRelativeError*float64(w) {
				t.Errorf("seed %d: Quantile(%g) = %d, want %d within %g", seed, q, got[i], w, DenseRelativeError)
			}
			if one := h.Quantile(q); one != got[i] {
				t.Errorf("seed %d: Quantile(%g) = %d, Quantiles gives %d", seed, q, one, got[i])
			}
		}
		if h.Min() != got[1] || h.Max() != got[8] {
			t.Errorf("seed %d: Min, Max = %d, %d, want %d, %d", seed, h.Min(), h.Max(), got[1], got[8])
		}
		if h.Quantile(math.NaN()) != h.Min() {
			t.Errorf("seed %d: Quantile(NaN) = %d, want the smallest", seed, h.Quantile(math.NaN()))
		}
	}
	if max := 96 + 4*DenseCodes + 4*2*pageCodes; h.SizeBytes() > max {
		t.Errorf("SizeBytes() = %d, want at most %d", h.SizeBytes(), max)
	}
}

// A window of device latencies: what it takes in memory, and that a reset window allocates nothing.
func TestHistogramMemory(t *testing.T) {
	var h Histogram
	window := func() {
		h.Reset()
		for v := uint64(500); v < 60_000; v += 7 { // 0.5 to 60 µs: seven octaves
			h.AddValue(v)
		}
	}
	window()
	if got := h.SizeBytes(); got > 96+10*128 {
		t.Errorf("SizeBytes() = %d, want at most %d", got, 96+10*128)
	}
	if n := testing.AllocsPerRun(10, window); n != 0 {
		t.Errorf("%v allocations a window, want 0", n)
	}
}

func TestHistogramEmpty(t *testing.T) {
	var h, o Histogram
	h.Reset()
	h.Merge(&o)
	for range h.All() {
		t.Error("All() of an empty histogram yields")
	}
	if got := h.Quantiles([]uint64{7}, 0, 0.5, 1); !slices.Equal(got, []uint64{7, 0, 0, 0}) {
		t.Errorf("Quantiles() of an empty histogram appends %d", got)
	}
	if h.Count() != 0 || h.Min() != 0 || h.Max() != 0 || h.Quantile(0.5) != 0 {
		t.Errorf("an empty histogram gives %d, %d, %d, %d, want 0", h.Count(), h.Min(), h.Max(), h.Quantile(0.5))
	}
}

// A counter stops at its largest value; the count does not.
func TestHistogramSaturates(t *testing.T) {
	var h, o Histogram
	h.AddN(100, math.MaxUint32-1)
	for range 3 {
		h.Add(100)
	}
	o.AddN(100, math.MaxUint64>>8)
	o.AddN(100, 0)
	o.AddN(math.MaxUint16, 1)
	h.Merge(&o)
	if want := uint64(math.MaxUint32+2) + math.MaxUint64>>8 + 1; h.Count() != want {
		t.Errorf("Count() = %d, want %d", h.Count(), want)
	}
	for c, n := range h.All() {
		if c == 100 && n != math.MaxUint32 || c != 100 && (c != DenseCodes-1 || n != 1) {
			t.Errorf("code %d counted %d times", c, n)
		}
	}
	if h.Quantile(0.5) != DecodeDense(DenseCodes-1) { // more than half of the values are not in any counter
		t.Errorf("Quantile(0.5) = %d, want the largest", h.Quantile(0.5))
	}
}

// TestHistogramBytes writes and reads histograms of any values, also several into one. Nothing of an earlier one
// remains.
func TestHistogramBytes(t *testing.T) {
	var h, got Histogram
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		h.Reset()
		for range r.IntN(300) {
			h.AddN(uint16(r.IntN(DenseCodes)), 1+r.Uint64()>>(8+r.IntN(56)))
			h.AddValue(r.Uint64() >> r.IntN(64))
		}
		b := h.Append(nil)
		n, err := got.Read(append(b, 7, 7))
		if err != nil || n != len(b) {
			t.Fatalf("seed %d: Read() = %d, %v, want %d", seed, n, err, len(b))
		}
		if second := got.Append(nil); !slices.Equal(second, b) || got.Count() != h.Count() || got.Min() != h.Min() || got.Max() != h.Max() {
			t.Fatalf("seed %d: %d values from %d to %d are read as %d from %d to %d", seed, h.Count(), h.Min(), h.Max(), got.Count(), got.Min(), got.Max())
		}
		for n := range b {
			if seed >= 10 && r.IntN(len(b)) > 20 {
				continue
			}
			if at, err := got.Read(b[:n]); err != ErrTruncated || at > n || got.Count() != 0 || got.Max() != 0 {
				t.Fatalf("seed %d: %d of %d bytes: %d, %v, %d values", seed, n, len(b), at, err, got.Count())
			}
		}
	}
}

// TestHistogramAddOctave adds whole octaves, and merges in any grouping.
func TestHistogramAddOctave(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	var one, many, left, right Histogram
	for range 500 {
		var n [OctaveCodes]uint64
		o := r.IntN(Octaves)
		for i := range n {
			if r.IntN(3) == 0 {
				n[i] = r.Uint64() >> (20 + r.IntN(44))
				one.AddN(uint16(o*OctaveCodes+i), n[i])
			}
		}
		many.AddOctave(o, &n)
		[]*Histogram{&left, &right}[r.IntN(2)].AddOctave(o, &n)
	}
	right.Merge(&left)
	right.Merge(&Histogram{})
	for name, h := range map[string]*Histogram{"octaves": &many, "merged": &right} {
		if !slices.Equal(h.Append(nil), one.Append(nil)) {
			t.Errorf("%s: %d values, want %d", name, h.Count(), one.Count())
		}
	}
	var few Histogram
	few.AddOctave(3, &[OctaveCodes]uint64{5: 1, 9: 0, 11: 2})
	few.AddOctave(-1, &[OctaveCodes]uint64{1})
	few.AddOctave(Octaves, &[OctaveCodes]uint64{1})
	few.AddOctave(0, &[OctaveCodes]uint64{})
	if few.Count() != 3 || few.Min() != DecodeDense(3*OctaveCodes+5) || few.Max() != DecodeDense(3*OctaveCodes+11) {
		t.Errorf("%d values from %d to %d, want 3 from %d to %d", few.Count(), few.Min(), few.Max(), DecodeDense(3*OctaveCodes+5), DecodeDense(3*OctaveCodes+11))
	}
}

// TestMergeStops adds pages of counters, of which some are large, and compares with sums that are wide enough.
func TestMergeStops(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var h, o Histogram
		var want [OctaveCodes]uint64
		fill := func(h *Histogram) {
			for i := range want {
				n := uint64(rng.Uint32()) >> rng.IntN(33)
				if rng.IntN(40) == 0 {
					n = 1 << 40
				}
				h.AddN(uint16(3*OctaveCodes+i), n)
				want[i] += min(n, math.MaxUint32)
			}
		}
		fill(&h)
		fill(&o)
		count := h.Count() + o.Count()
		h.Merge(&o)
		got := [OctaveCodes]uint64{}
		for c, n := range h.All() {
			got[c-3*OctaveCodes] = uint64(n)
		}
		for i := range want {
			if want[i] = min(want[i], math.MaxUint32); got[i] != want[i] {
				t.Fatalf("seed %d: counter %d is %d, want %d", seed, i, got[i], want[i])
			}
		}
		if h.Count() != count {
			t.Fatalf("seed %d: %d values, want %d", seed, h.Count(), count)
		}
	}
}

// TestMergeReused merges into histograms that were used before, over and over: they count what fresh ones do.
func TestMergeReused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	var used, fresh, o Histogram
	for round := range 3000 {
		if rng.IntN(3) == 0 {
			used.Reset()
			fresh = Histogram{}
		}
		if o.Reset(); rng.IntN(2) == 0 {
			o = Histogram{}
		}
		from := rng.IntN(60)
		for range rng.IntN(20) {
			o.AddValue(rng.Uint64() >> from >> rng.IntN(4))
		}
		used.Merge(&o)
		fresh.Merge(&o)
		for range rng.IntN(3) {
			v := rng.Uint64() >> rng.IntN(64)
			used.AddValue(v)
			fresh.AddValue(v)
		}
		all := func(h *Histogram) (out []uint64) {
			out = append(out, h.Count(), h.Min(), h.Max())
			for c, n := range h.All() {
				out = append(out, uint64(c), uint64(n))
			}
			return out
		}
		if !slices.Equal(all(&used), all(&fresh)) {
			t.Fatalf("round %d: %v, want %v", round, all(&used), all(&fresh))
		}
	}
}

// TestEncodeBoth holds that both codes are those of Encode and EncodeDense, at the borders of cells and between them.
// Larger values have larger dense codes.
func TestEncodeBoth(t *testing.T) {
	check := func(v uint64) {
		t.Helper()
		fine, dense := EncodeBoth(v)
		if v < 1<<53 {
			if fine != uint32(Encode(v)) || dense != uint32(EncodeDense(v)) {
				t.Fatalf("EncodeBoth(%d) = %d, %d, want %d, %d", v, fine, dense, Encode(v), EncodeDense(v))
			}
			return
		}
		if _, most := EncodeBoth(1<<53 - 1); dense < most {
			t.Fatalf("EncodeBoth(%d): dense code %d is below %d", v, dense, most)
		}
	}
	for v := range uint64(1 << 16) {
		check(v)
	}
	for e := range 64 {
		for m := range uint64(1 << 11) {
			v := 1<<e + m<<max(e-11, 0)
			check(v - 1)
			check(v)
			check(^v)
		}
	}
}
