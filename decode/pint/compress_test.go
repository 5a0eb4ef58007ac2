package pint

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// codes are of all kinds and extremes.
var codes = []CodeConfig{
	{Kind: Multiplicative, Bits: 8, Epsilon: .025},
	{Kind: Multiplicative, Bits: 8, Epsilon: .025, Unit: 128},
	{Kind: Multiplicative, Bits: 4, Max: 1_000_000},
	{Kind: Multiplicative, Bits: 8, Max: 1_000_000},
	{Kind: Multiplicative, Bits: 4, Max: 50_000_000, Unit: 1000},
	{Kind: Multiplicative, Bits: 1, Max: 1000, Unit: 1000},
	{Kind: Multiplicative, Bits: 3, Max: math.MaxUint64},
	{Kind: Multiplicative, Bits: 16, Epsilon: 1e-4},
	{Kind: Multiplicative, Bits: 16, Max: math.MaxUint64},
	{Kind: Multiplicative, Bits: 6, Epsilon: 2},
	{Kind: LogLinear, Bits: 8, Epsilon: .025},
	{Kind: LogLinear, Bits: 8, Max: 1_000_000},
	{Kind: LogLinear, Bits: 4, Max: 16384},
	{Kind: LogLinear, Bits: 5, Max: 1 << 40, Unit: 1 << 12},
	{Kind: LogLinear, Bits: 16, Epsilon: 1e-4},
	{Kind: LogLinear, Bits: 1, Epsilon: 1},
	{Kind: Additive, Bits: 8, Unit: 64},
	{Kind: Additive, Bits: 4, Max: 1_000_000},
	{Kind: Additive, Bits: 16},
	{Kind: Additive, Bits: 8, Max: math.MaxUint64},
	{Kind: LogLinear, Bits: 12, Epsilon: .5, Unit: 1 << 40}, // fewer levels than codes, as in the next one
	{Kind: Additive, Bits: 8, Unit: 1 << 60},
}

func newCode(t testing.TB, c CodeConfig) *Levels {
	t.Helper()
	l, err := NewCode(c)
	if err != nil {
		t.Fatalf("NewCode(%+v): %v", c, err)
	}
	return l
}

// probes are values at and around levels, and random ones of every magnitude.
func probes(l *Levels, rng *rand.Rand) []uint64 {
	v := []uint64{0, 1, 2, 3, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1}
	for range 200 {
		level := l.Level(rng.Uint32N(uint32(l.Codes())))
		v = append(v, level-1, level, level+1, rng.Uint64()>>rng.UintN(64))
		if m := l.Max(); m < math.MaxUint64 {
			v = append(v, rng.Uint64N(m+1))
		}
	}
	return v
}

// up counts the rnd, of all 2³², with which v is rounded up: that of lo + ⌊gap·rnd/2³²⌋ < v, by big integers.
func up(lo, hi, v uint64) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(v-lo), 32)
	gap := new(big.Int).SetUint64(hi - lo)
	n.Add(n, gap).Sub(n, big.NewInt(1))
	return n.Div(n, gap) // the ceiling
}

func TestLevels(t *testing.T) {
	for _, c := range codes {
		l := newCode(t, c)
		if l.Codes() > 1<<c.Bits || l.Level(0) != 0 || l.Bits() != c.Bits {
			t.Errorf("%+v: %d codes from %d", c, l.Codes(), l.Level(0))
		}
		if c.Max != 0 && l.Max() < c.Max {
			t.Errorf("%+v: ends at %d", c, l.Max())
		}
		for i := 1; i < l.Codes(); i++ {
			lo, hi := l.Level(uint32(i-1)), l.Level(uint32(i))
			if lo >= hi {
				t.Fatalf("%+v: level %d is %d, before it %d", c, i, hi, lo)
			}
			if l.Decode(uint32(i)) != float64(hi) {
				t.Errorf("%+v: Decode(%d) = %v, want %d", c, i, l.Decode(uint32(i)), hi)
			}
			if c.Kind == LogLinear && (hi-lo)&(hi-lo-1) != 0 {
				t.Errorf("%+v: levels %d and %d: distance is no power of two", c, lo, hi)
			}
			if e := c.Epsilon; e != 0 && i > 1 && hi-lo > l.Config().Unit && float64(hi)/float64(lo) > (1+e)*(1+e)*(1+1e-9) {
				t.Errorf("%+v: levels %d and %d: further apart than (1+ε)²", c, lo, hi)
			}
			if c.Kind == Additive && hi-lo != l.Config().Unit {
				t.Errorf("%+v: levels %d and %d", c, lo, hi)
			}
		}
	}
}

// A value is rounded to one of its neighbours, up with exactly the probability that makes the mean right.
func TestEncodeIsUnbiased(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range codes {
		l := newCode(t, c)
		for _, v := range probes(l, rng) {
			low := uint32(sort.Search(l.Codes(), func(i int) bool { return l.Level(uint32(i)) > v }) - 1)
			lo, hi := l.Level(low), l.Level(low+1)
			if v >= l.Max() {
				if got := l.Encode(v, rng.Uint32()); int(got) != l.Codes()-1 {
					t.Fatalf("seed %d: %+v: Encode(%d) = %d, want the last", seed, c, v, got)
				}
				continue
			}
			// Encode is up for all rnd below the count, and for no other.
			n := up(lo, hi, v).Uint64()
			for _, rnd := range []uint64{0, n - 1, n, n + 1, uint64(rng.Uint32()), math.MaxUint32} {
				if rnd > math.MaxUint32 {
					continue
				}
				want := low
				if rnd < n {
					want++
				}
				if got := l.Encode(v, uint32(rnd)); got != want {
					t.Fatalf("seed %d: %+v: Encode(%d, %d) = %d, want %d: up for rnd below %d", seed, c, v, rnd, got, want, n)
				}
			}
			// The bias, gap·n - (v - lo)·2³², is smaller than the gap, and 0 if that is a power of two.
			bias := new(big.Int).Mul(new(big.Int).SetUint64(hi-lo), new(big.Int).SetUint64(n))
			bias.Sub(bias, new(big.Int).Lsh(new(big.Int).SetUint64(v-lo), 32))
			gap := hi - lo
			if bias.Sign() < 0 || bias.Cmp(new(big.Int).SetUint64(gap)) >= 0 || gap&(gap-1) == 0 && gap <= 1<<32 && bias.Sign() != 0 {
				t.Fatalf("seed %d: %+v: %d between %d and %d has bias %v·2⁻³²", seed, c, v, lo, hi, bias)
			}
		}
	}
}

// The larger value never has the smaller code, so that the largest code of a path is the code of the largest value.
func TestEncodeIsMonotone(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range codes {
		l := newCode(t, c)
		v := probes(l, rng)
		slices.Sort(v)
		for range 20 {
			rnd := rng.Uint32()
			for i := 1; i < len(v); i++ {
				if a, b := l.Encode(v[i-1], rnd), l.Encode(v[i], rnd); a > b {
					t.Fatalf("seed %d: %+v: %d has code %d, %d has %d", seed, c, v[i-1], a, v[i], b)
				}
			}
		}
	}
}

func TestCodeErrors(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range codes {
		l := newCode(t, c)
		relative := l.RelativeError()
		if e := c.Epsilon; e != 0 && relative > e*(2+e) {
			t.Errorf("%+v: relative error %v", c, relative)
		}
		for _, v := range probes(l, rng) {
			largest, deviation := l.Error(v)
			for _, rnd := range []uint32{0, Nearest, rng.Uint32(), math.MaxUint32} {
				code := l.Encode(v, rnd)
				off := math.Abs(float64(l.Level(code)) - float64(v))
				if lo, hi := l.Bounds(code); !(lo-lo*1e-15 < float64(v) && float64(v) < hi+hi*1e-15) {
					t.Errorf("seed %d: %+v: %d has code %d, whose bounds are %v and %v", seed, c, v, code, lo, hi)
				}
				if off > largest*(1+1e-12) {
					t.Errorf("seed %d: %+v: %d is off by %v, bound %v", seed, c, v, off, largest)
				}
				if v >= l.Config().Unit && v <= l.Max() && off > relative*float64(v)*(1+1e-12) {
					t.Errorf("seed %d: %+v: %d is off by %v, relative bound %v", seed, c, v, off, relative)
				}
				if e := c.Epsilon; e != 0 && rnd == Nearest && v >= l.Config().Unit && v <= l.Max() && off > e*float64(v) {
					t.Errorf("seed %d: %+v: nearest of %d is off by %v, more than ε", seed, c, v, off)
				}
			}
			if e := c.Epsilon; e != 0 && v >= l.Config().Unit && deviation > e*float64(v) {
				t.Errorf("seed %d: %+v: %d deviates by %v, more than ε", seed, c, v, deviation)
			}
		}
	}
}

// After any number of additions the expected level is the sum. The distribution over codes follows, step by step,
// from the count of random numbers that round up.
func TestAddIsUnbiased(t *testing.T) {
	const steps = 40
	for _, c := range []CodeConfig{
		{Kind: Multiplicative, Bits: 6, Epsilon: .2},
		{Kind: Multiplicative, Bits: 8, Epsilon: .025},
		{Kind: LogLinear, Bits: 6, Epsilon: .3},
		{Kind: LogLinear, Bits: 6, Epsilon: 1}, // Morris: powers of two
	} {
		for _, v := range []uint64{1, 3, 50} {
			l := newCode(t, c)
			p := make([]float64, l.Codes())
			p[0] = 1
			for n := 1; n <= steps; n++ {
				next := make([]float64, len(p))
				for code, q := range p {
					if q == 0 {
						continue
					}
					sum := l.Level(uint32(code)) + v
					low := l.Add(uint32(code), v, math.MaxUint32)
					if sum > l.Max() {
						t.Fatalf("%+v: %d times %d is beyond the last level", c, n, v)
					}
					lo, hi := l.Level(low), sum
					if lo < sum {
						hi = l.Level(low + 1)
						rise := float64(up(lo, hi, sum).Uint64()) / (1 << 32)
						if l.Add(uint32(code), v, uint32(rise*(1<<32)-1)) != low+1 {
							t.Fatalf("%+v: Add(%d, %d) is not up with probability %v", c, code, v, rise)
						}
						next[low+1] += q * rise
						q -= q * rise
					}
					next[low] += q
				}
				p = next
			}
			var mean, square, total float64
			for code, q := range p {
				mean += q * l.Decode(uint32(code))
				square += q * l.Decode(uint32(code)) * l.Decode(uint32(code))
				total += q
			}
			want := steps * float64(v)
			if math.Abs(total-1) > 1e-9 || math.Abs(mean-want) > want*1e-8 {
				t.Errorf("%+v: %d times %d: mean %v, want %v", c, steps, v, mean, want)
			}
			if e := c.Epsilon; e != 0 {
				if sd := math.Sqrt(max(square-mean*mean, 0)); sd > e*math.Sqrt(steps)*want {
					t.Errorf("%+v: %d times %d: standard deviation %v, bound %v", c, steps, v, sd, e*math.Sqrt(steps)*want)
				}
			}
		}
	}
}

// Sums beyond 64 bits are as large as can be.
func TestAddSaturates(t *testing.T) {
	for _, c := range codes {
		l := newCode(t, c)
		last := uint32(l.Codes() - 1)
		if got := l.Add(last, math.MaxUint64, math.MaxUint32); got != last {
			t.Errorf("%+v: the last code and more is %d", c, got)
		}
		if got := l.Add(math.MaxUint32, 1, math.MaxUint32); got != last {
			t.Errorf("%+v: a code that is none and more is %d", c, got)
		}
	}
}

// One hash of the packet id for all switches keeps the maximum of codes unbiased; a coin for each of them does not.
func TestMaximumAlongPath(t *testing.T) {
	const runs = 200_000
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	l := newCode(t, CodeConfig{Kind: Multiplicative, Bits: 8, Epsilon: .025})
	path := []uint64{40_000, 40_100, 40_500, 39_000, 41_000}
	var shared, own float64
	for range runs {
		rnd := rng.Uint32()
		var a, b uint32
		for _, v := range path {
			a = max(a, l.Encode(v, rnd))
			b = max(b, l.Encode(v, rng.Uint32()))
		}
		shared += l.Decode(a) / runs
		own += l.Decode(b) / runs
	}
	_, deviation := l.Error(41_000)
	if off := math.Abs(shared - 41_000); off > 6*deviation/math.Sqrt(runs) { // false alarm: 2e-9
		t.Errorf("seed %d: shared rounding: %v on average, want 41000", seed, shared)
	}
	if own < 41_000+6*deviation/math.Sqrt(runs) {
		t.Errorf("seed %d: a coin for each switch: %v on average, want more than 41000", seed, own)
	}
}

func TestCodeConfigs(t *testing.T) {
	for _, c := range []struct {
		config CodeConfig
		want   string
	}{
		{CodeConfig{Kind: 7, Bits: 8}, "unknown"},
		{CodeConfig{Bits: 0, Epsilon: .1}, "code of 0 bits"},
		{CodeConfig{Bits: 17, Epsilon: .1}, "code of 17 bits"},
		{CodeConfig{Bits: 8}, "epsilon 0"},
		{CodeConfig{Bits: 8, Epsilon: math.NaN()}, "epsilon NaN"},
		{CodeConfig{Bits: 8, Epsilon: math.Inf(1)}, "epsilon +Inf"},
		{CodeConfig{Bits: 8, Epsilon: .1, Max: 5}, "one gives the other"},
		{CodeConfig{Kind: Additive, Bits: 8, Epsilon: .1}, "its error is the unit"},
		{CodeConfig{Kind: Additive, Bits: 8, Unit: 5, Max: 5}, "one gives the other"},
		{CodeConfig{Kind: LogLinear, Bits: 8, Unit: 3, Max: 1000}, "power of two"},
		{CodeConfig{Kind: LogLinear, Bits: 3, Max: 1 << 40}, "the last level is 64"},
	} {
		if _, err := NewCode(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewCode(%+v): %v, want %q", c.config, err, c.want)
		}
	}
	for k := range CodeKind(len(codeKinds)) {
		text, _ := k.MarshalText()
		var got CodeKind
		if err := got.UnmarshalText(text); err != nil || got != k {
			t.Errorf("%s: read as %v, %v", text, got, err)
		}
	}
	if err := new(CodeKind).UnmarshalText([]byte("morris")); err == nil {
		t.Error("morris: read")
	}
}

// The levels of a code that recordings and switches may hold do not change.
func TestLevelsAreFixed(t *testing.T) {
	for _, c := range []struct {
		config CodeConfig
		codes  []uint32
		want   []uint64
	}{
		{CodeConfig{Kind: Multiplicative, Bits: 8, Epsilon: .025}, []uint32{1, 20, 21, 22, 100, 200, 255}, []uint64{1, 20, 21, 22, 606, 83346, 1260260}},
		{CodeConfig{Kind: Multiplicative, Bits: 4, Max: 1_000_000}, []uint32{1, 2, 3, 8, 15}, []uint64{1, 2, 5, 773, 1000060}},
		{CodeConfig{Kind: LogLinear, Bits: 8, Epsilon: .025}, []uint32{1, 63, 64, 65, 255}, []uint64{1, 63, 64, 66, 4032}},
		{CodeConfig{Kind: Additive, Bits: 4, Max: 1_000_000}, []uint32{1, 15}, []uint64{66667, 1000005}},
	} {
		l := newCode(t, c.config)
		for i, code := range c.codes {
			if got := l.Level(code); got != c.want[i] {
				t.Errorf("%+v: level %d is %d, want %d", c.config, code, got, c.want[i])
			}
		}
	}
}

func FuzzCode(f *testing.F) {
	for i, c := range codes {
		f.Add(uint8(c.Kind), uint8(c.Bits), c.Unit, c.Epsilon, c.Max, uint64(i)<<50, uint32(i), uint32(i))
	}
	f.Fuzz(func(t *testing.T, kind, bits uint8, unit uint64, epsilon float64, top, v uint64, code, rnd uint32) {
		l, err := NewCode(CodeConfig{Kind: CodeKind(kind), Bits: int(bits % 12), Unit: unit, Epsilon: epsilon, Max: top})
		if err != nil {
			return
		}
		if got := l.Encode(v, rnd); int(got) >= l.Codes() {
			t.Fatalf("%+v: Encode(%d, %d) = %d of %d", l.Config(), v, rnd, got, l.Codes())
		}
		if got := l.Add(code, v, rnd); int(got) >= l.Codes() || got < min(code, uint32(l.Codes()-1)) {
			t.Fatalf("%+v: Add(%d, %d, %d) = %d of %d", l.Config(), code, v, rnd, got, l.Codes())
		}
		if got := l.Decode(code); !(got >= 0 && got <= math.MaxUint64) {
			t.Fatalf("%+v: Decode(%d) = %v", l.Config(), code, got)
		}
	})
}

func BenchmarkCode(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	v := make([]uint64, 4096)
	for i := range v {
		v[i] = uint64(math.Exp(rng.NormFloat64()*1.5 + 9))
	}
	for _, c := range []CodeConfig{
		{Kind: Multiplicative, Bits: 8, Epsilon: .025},
		{Kind: Multiplicative, Bits: 4, Max: 1_000_000},
		{Kind: LogLinear, Bits: 8, Max: 1_000_000},
		{Kind: Additive, Bits: 8, Max: 1_000_000},
	} {
		l := newCode(b, c)
		b.Run(fmt.Sprintf("Encode/%v/bits=%d", c.Kind, c.Bits), func(b *testing.B) {
			var sum uint32
			i := uint32(0)
			for b.Loop() {
				sum += l.Encode(v[i%4096], i*0x9e3779b9)
				i++
			}
			_ = sum
		})
	}
}
