package aggregation

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sketches"
)

// number is a code that stands for itself.
type number int

func (number) Decode(c uint32) float64 { return float64(c) }
func (n number) Bits() int             { return int(n) }

func newPool(t testing.TB, c Config, code Code, seed uint64) *Pool {
	t.Helper()
	p, err := NewPool(c, code, seed)
	if err != nil {
		t.Fatalf("NewPool(%+v): %v", c, err)
	}
	return p
}

func config(hops int) Config {
	c := DefaultConfig()
	c.Hops = hops
	return c
}

var quantiles = []float64{0, .001, .1, .25, .5, .9, .99, 1}

// Codes that all have a bin are counted exactly: 16 of 4 bits in any number, 30 in 100 bytes of wider ones.
func TestFewCodesAreExact(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct{ bits, different, digests int }{
		{4, 16, 50_000}, {8, 30, 50_000}, {16, 22, 50_000}, {1, 2, 1000}, {8, 1, 1},
	} {
		p := newPool(t, config(3), number(c.bits), seed)
		codes := rng.Perm(1 << c.bits)[:c.different]
		var f Flow
		var all [4]sketches.Exact[float64]
		for range c.digests {
			hop, code := 1+rng.IntN(3), codes[rng.IntN(rng.IntN(c.different)+1)]
			all[hop].Update(float64(code))
			if !p.Add(&f, hop, uint32(code), 0) {
				t.Fatal("refused")
			}
		}
		for hop := 1; hop <= 3; hop++ {
			h, ok := p.Hop(&f, hop, 0)
			if n := all[hop].Count(); !ok || h.Count != uint64(n) {
				if ok || n != 0 {
					t.Errorf("seed %d: %+v: hop %d has %d digests, %v, want %d", seed, c, hop, h.Count, ok, n)
				}
				continue
			}
			for _, q := range quantiles {
				if h.shared {
					continue // 30 of 30 bins look as if codes had shared them: seen below
				}
				if got, want := h.Quantile(q), all[hop].Quantile(q); got != want {
					t.Errorf("seed %d: %+v: hop %d: quantile %v is %v, want %v", seed, c, hop, q, got, want)
				}
			}
			for _, e := range h.entries {
				less, notMore := all[hop].Ranks(float64(e.code))
				if e.weight != uint64(notMore-less) {
					t.Errorf("seed %d: %+v: hop %d: %d digests have code %d, want %d", seed, c, hop, e.weight, e.code, notMore-less)
				}
			}
		}
	}
}

// The rank of every code is right on average, when codes share bins and when weights have been halved.
func TestRanksAreUnbiased(t *testing.T) {
	seed := testkit.Seed(t)
	for _, c := range []struct{ bits, digests, runs, bytes int }{
		{8, 2000, 600, 100}, {16, 2000, 400, 100}, {8, 200_000, 60, 40},
	} {
		rng := rand.New(rand.NewPCG(seed, 1))
		codes := make([]uint32, c.digests)
		var all sketches.Exact[uint32]
		for i := range codes {
			codes[i] = uint32(math.Exp(rng.NormFloat64()*.3)*100) % (1 << c.bits)
			// A weight that comes to its end, alone: its bin will never be shared, which would be a rare event of much
			// weight.
			if c.digests > 1<<16 && (i%3 == 0 || codes[i] > 85 && codes[i] < 115) {
				codes[i] = 100
			}
			all.Update(codes[i])
		}
		const points = 12
		var sum, square [points]float64
		halved := false
		for run := range c.runs {
			conf := config(1)
			conf.Bytes = c.bytes
			p := newPool(t, conf, number(c.bits), seed+uint64(run))
			var f Flow
			for _, code := range codes {
				p.Add(&f, 1, code, 0)
			}
			h, _ := p.Hop(&f, 1, 0)
			halved = halved || p.sketch(1, 0)[shiftAt] != 0
			for i := range points {
				x := 40 + 20*uint16(i)
				var rank float64
				for _, e := range h.entries {
					if e.code <= x {
						rank += float64(e.weight)
					}
				}
				sum[i] += rank
				square[i] += rank * rank
			}
		}
		if halved != (c.digests > 1<<16) {
			t.Errorf("%+v: weights halved: %v", c, halved)
		}
		for i := range points {
			_, want := all.Ranks(40 + 20*uint32(i))
			if share := float64(want) / float64(c.digests); share < .05 || share > .95 {
				continue // ranks that a rare event of much weight decides: means of them are not normal
			}
			n := float64(c.runs)
			mean := sum[i] / n
			deviation := math.Sqrt(max(square[i]/n-mean*mean, 0) / n)
			// Seven standard deviations of the mean: a false alarm in 10⁹ with as few runs as these.
			if math.Abs(mean-float64(want)) > 7*deviation+1e-6*float64(want) {
				t.Errorf("seed %d: %+v: rank of %d is %v ± %v on average, want %d", seed, c, 40+20*i, mean, deviation, want)
			}
		}
	}
}

// spaceSaving is the algorithm Space-Saving as published (Metwally, Agrawal and El Abbadi, ICDT 2005): the counters by
// code.
type spaceSaving map[uint16]uint64

func (s spaceSaving) add(code uint16, counters int) {
	if _, ok := s[code]; ok || len(s) < counters {
		s[code]++
		return
	}
	least := s.least()
	for c, n := range s {
		if n == least {
			delete(s, c)
			break
		}
	}
	s[code] = least + 1
}

func (s spaceSaving) least() uint64 { return slices.Min(slices.Collect(maps.Values(s))) }

func TestFrequent(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, bits := range []int{3, 8, 12} {
		for _, panes := range []int{1, 4} {
			c := config(1)
			c.Kind = Frequent
			if c.Panes = panes; panes > 1 {
				c.PaneDigests = 2500
			}
			p := newPool(t, c, number(bits), 0)
			counters := p.layout.room
			if bits == 8 && counters != 18 {
				t.Errorf("%d counters in 100 bytes, want 18", counters)
			}
			var f Flow
			truth := sketches.ExactCounts[uint16]{}
			paper := spaceSaving{}
			const digests = 10_000
			for range digests {
				code := uint16(math.Abs(rng.NormFloat64()*rng.ExpFloat64()*20)) % (1 << bits)
				truth.Add(code, 1)
				paper.add(code, counters)
				p.Add(&f, 1, uint32(code), 0)
			}
			h, _ := p.Hop(&f, 1, 0)
			if h.Count != digests {
				t.Fatalf("seed %d: %d digests, want %d", seed, h.Count, digests)
			}
			got := h.Frequent(nil, 0)
			in := map[uint16]bool{}
			for i, v := range got {
				code := uint16(v.Value)
				in[code] = true
				if n := truth[code]; n > v.Count || n < v.Count-v.Error {
					t.Errorf("seed %d: code %d: count %d less up to %d, want %d", seed, code, v.Count, v.Error, n)
				}
				if v.Error > digests/uint64(counters)*uint64(min(panes, 2)) {
					t.Errorf("seed %d: code %d: error %d of %d digests in %d counters", seed, code, v.Error, digests, counters)
				}
				if i > 0 && got[i-1].Count < v.Count {
					t.Errorf("seed %d: order: %v", seed, got)
				}
			}
			for code, n := range truth {
				if n > digests/uint64(counters) && !in[code] {
					t.Errorf("seed %d: code %d of %d digests is missing", seed, code, n)
				}
			}
			// The paper's sketch, with as many counters, holds the same smallest count.
			if panes == 1 && bits == 8 && p.layout.overcount(p.sketch(1, 0)) != paper.least() {
				t.Errorf("seed %d: smallest counter %d, want %d", seed, p.layout.overcount(p.sketch(1, 0)), paper.least())
			}
			for _, v := range h.Frequent(nil, .1) {
				if v.Count <= digests/10 {
					t.Errorf("seed %d: share of 0.1: %+v", seed, v)
				}
			}
		}
	}
}

func TestPanesByTime(t *testing.T) {
	c := config(2)
	c.Panes, c.PaneTime = 4, time.Second
	p := newPool(t, c, number(8), 1)
	var f Flow
	at := func(s float64) int64 { return int64(s * 1e9) }
	for i := range 10 { // one digest every half second, code 0 first
		p.Add(&f, 1, uint32(i), at(float64(i)/2))
	}
	check := func(now float64, count uint64, low, high float64) {
		t.Helper()
		h, ok := p.Hop(&f, 1, at(now))
		if ok != (count > 0) || h.Count != count || h.Min != low || h.Max != high {
			t.Errorf("at %v s: %d digests from %v to %v, want %d from %v to %v", now, h.Count, h.Min, h.Max, count, low, high)
		}
	}
	check(4.9, 8, 2, 9) // seconds 1 to 4
	check(5.1, 6, 4, 9)
	check(7.5, 2, 8, 9)
	check(8, 0, 0, 0)
	check(1, 8, 2, 9) // a question about the past gets the latest answer
	p.Add(&f, 1, 77, at(2))
	check(4.9, 9, 2, 77) // late, in the present pane
	p.Add(&f, 1, 5, at(1000))
	check(1000, 1, 5, 5)
	p.Add(&f, 2, 6, at(-3))
	if h, ok := p.Hop(&f, 2, at(-3)); !ok || h.Count != 1 {
		t.Errorf("before 1970: %v, %v", h.Count, ok)
	}
}

func TestPanesByCount(t *testing.T) {
	c := config(1)
	c.Panes, c.PaneDigests = 2, 10
	p := newPool(t, c, number(8), 1)
	var f Flow
	for i := range 25 {
		p.Add(&f, 1, uint32(i), 0)
		h, _ := p.Hop(&f, 1, 0)
		if want := uint64(i + 1 - max(0, i/10-1)*10); h.Count != want || h.Max != float64(i) || h.Min != float64(max(0, i/10-1)*10) {
			t.Errorf("after %d: %d digests from %v to %v", i+1, h.Count, h.Min, h.Max)
		}
	}
}

// Flows share the pool, give back what they had, and find nothing of former owners.
func TestFlows(t *testing.T) {
	const hops = 40
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newPool(t, config(hops), number(8), seed)
	type key struct{ flow, hop int }
	var flows [8]Flow
	want := map[key]*sketches.Exact[float64]{}
	var full, refused uint64
	for range 20_000 {
		k := key{rng.IntN(len(flows)), 1 + rng.IntN(12)}
		if rng.IntN(50) == 0 {
			p.Free(&flows[k.flow])
			for w := range want {
				if w.flow == k.flow {
					delete(want, w)
				}
			}
		}
		code := rng.IntN(20)
		switch rng.IntN(100) {
		case 0:
			if p.Add(&flows[k.flow], rng.IntN(2)*100-rng.IntN(2), uint32(code), 0) {
				t.Fatal("a hop out of range was taken")
			}
			refused++
		case 1:
			if p.Add(&flows[k.flow], k.hop, 256+rng.Uint32N(1<<30), 0) {
				t.Fatal("a code out of range was taken")
			}
			refused++
		}
		ok := p.Add(&flows[k.flow], k.hop, uint32(code), 0)
		if ok != (want[k] != nil || len(want) < hops) {
			t.Fatalf("seed %d: Add: %v with %d of %d blocks taken", seed, ok, len(want), hops)
		}
		if !ok {
			full++
			continue
		}
		if want[k] == nil {
			want[k] = new(sketches.Exact[float64])
		}
		want[k].Update(float64(code))
		h, _ := p.Hop(&flows[k.flow], k.hop, 0)
		if h.Count != uint64(want[k].Count()) || h.Quantile(.5) != want[k].Quantile(.5) {
			t.Fatalf("seed %d: %v: %d digests, median %v, want %d and %v", seed, k, h.Count, h.Quantile(.5), want[k].Count(), want[k].Quantile(.5))
		}
	}
	if s := p.Stats(); s.Full != full || s.Refused != refused || s.Hops != len(want) || full == 0 {
		t.Errorf("seed %d: %+v, want %d lost, %d refused, %d hops", seed, s, full, refused, len(want))
	}
	if _, ok := p.Hop(&flows[0], 0, 0); ok {
		t.Error("hop 0 has digests")
	}
	if _, ok := p.Hop(new(Flow), 3, 0); ok {
		t.Error("a new flow has digests")
	}
}

func TestConfigs(t *testing.T) {
	for _, c := range []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { c.Kind = 2 }, "kind 2"},
		{func(c *Config) { c.Bytes = 31 }, "31 bytes"},
		{func(c *Config) { c.Bytes = 1025 }, "1025 bytes"},
		{func(c *Config) { c.Hops = 0 }, "0 hops"},
		{func(c *Config) { c.Panes = 0 }, "0 panes"},
		{func(c *Config) { c.Panes = 17 }, "17 panes"},
		{func(c *Config) { c.PaneTime = time.Second }, "one pane has no end"},
		{func(c *Config) { c.Panes = 2 }, "one of the two"},
		{func(c *Config) { c.Panes, c.PaneTime, c.PaneDigests = 2, 1, 1 }, "one of the two"},
		{func(c *Config) { c.Panes, c.PaneTime = 2, -1 }, "1 µs at least"},
	} {
		conf := config(1)
		c.change(&conf)
		if _, err := NewPool(conf, number(8), 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", conf, err, c.want)
		}
	}
	for _, code := range []Code{nil, number(0), number(17)} {
		if _, err := NewPool(config(1), code, 0); err == nil {
			t.Errorf("code %v: taken", code)
		}
	}
}

// The lowest bin may spread to below code 0, where no code is.
func TestLowestBin(t *testing.T) {
	c := config(1)
	c.Bytes = 32 // seven bins
	p := newPool(t, c, number(8), 1)
	var f Flow
	for _, code := range []uint32{1, 1, 40, 80, 120, 160, 200, 240, 250} {
		p.Add(&f, 1, code, 0)
	}
	h, _ := p.Hop(&f, 1, 0)
	if got := h.Quantile(.01); !h.shared || got != 1 {
		t.Errorf("lowest quantile %v, want 1", got)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []Kind{Quantiles, Frequent} {
		c := config(100)
		c.Kind = kind
		p := newPool(t, c, number(8), 1)
		var f [10]Flow
		if n := testing.AllocsPerRun(10_000, func() {
			i := rng.IntN(len(f))
			p.Add(&f[i], 1+rng.IntN(15), rng.Uint32N(256), 0)
			if rng.IntN(100) == 0 {
				p.Free(&f[i])
			}
			if h, ok := p.Hop(&f[i], 1, 0); ok {
				h.Quantile(.5)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations a digest, want 0", kind, n)
		}
	}
}

func FuzzPool(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"), uint8(8), uint8(100))
	f.Add([]byte("seven or eight codes and some more of them, and more than thirty of them, all of them different: 0123456789"), uint8(8), uint8(40))
	f.Add([]byte("\xff\xff\x00\x00\xff\xff"), uint8(16), uint8(32))
	f.Fuzz(func(t *testing.T, b []byte, bits, size uint8) {
		c := config(4)
		c.Bytes = int(size)
		c.Kind = Kind(size % 2)
		p, err := NewPool(c, number(bits), 1)
		if err != nil {
			return
		}
		var flow Flow
		var added uint64
		for i := 0; i+2 < len(b); i += 2 {
			if p.Add(&flow, int(b[i]%6), uint32(b[i+1])|uint32(b[i+2])<<8&(1<<bits-1), 0) {
				added++
			}
		}
		var sum uint64
		for hop := range 7 {
			h, ok := p.Hop(&flow, hop, 0)
			if !ok {
				continue
			}
			sum += h.Count
			if h.total != h.Count {
				t.Fatalf("hop %d: weights are %d, digests %d", hop, h.total, h.Count)
			}
			last := h.Min
			for _, q := range quantiles {
				v := h.Quantile(q)
				if v < last || v > h.Max {
					t.Fatalf("hop %d: quantile %v is %v, a smaller one %v, the largest %v", hop, q, v, last, h.Max)
				}
				last = v
				if s := h.Smooth(q); math.IsNaN(s) || s < 0 {
					t.Fatalf("hop %d: smooth quantile %v is %v", hop, q, s)
				}
			}
			h.Frequent(nil, .1)
		}
		if s := p.Stats(); sum != added || s.Digests != added {
			t.Fatalf("%d digests in hops, %d counted, %d taken", sum, s.Digests, added)
		}
	})
}

var _ Code = (*pint.Levels)(nil)
