package pint

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// configs are schemes of our own of all kinds.
func configs() map[string]Config {
	list := make(map[string]Config)
	for _, h := range []Hash{HashMix, HashCRC} {
		for _, vectors := range []bool{false, true} {
			name := h.String()
			if vectors {
				name += " vectors"
			}
			c := Config{Hash: h, Vectors: vectors, Seed: 7, Bits: 8, Instances: 1}
			add := func(kind string, change func(c *Config)) {
				c := c
				change(&c)
				list[name+" "+kind] = c
			}
			add("baseline", func(c *Config) { c.Tau = 1 })
			add("xor", func(c *Config) { c.P = []float64{.04} })
			add("half", func(c *Config) { c.P = []float64{.5} })
			add("all", func(c *Config) { c.P = []float64{1} })
			add("never", func(c *Config) { c.P = []float64{1e-30} })
			add("hybrid", func(c *Config) { c.Bits, c.Instances, c.Tau, c.P = 8, 2, .5, []float64{.1} })
			add("layers", func(c *Config) { c.Bits, c.Instances, c.Tau, c.P = 1, 3, .4, []float64{.05, .2, .375} })
			add("fragments", func(c *Config) { c.Tau, c.P, c.ValueBits = .3, []float64{.1}, 30 })
			add("wide", func(c *Config) { c.Bits, c.Instances, c.Tau, c.P = 32, 2, .3, []float64{.25} })
		}
	}
	return list
}

func scheme(t testing.TB, c Config) *Scheme {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func schemes(t testing.TB) map[string]*Scheme {
	list := map[string]*Scheme{"mininet": Mininet(), "tofino": Tofino(false), "tofino high": Tofino(true)}
	for name, c := range configs() {
		list[name] = scheme(t, c)
	}
	return list
}

// The set of writers equals the decisions of the switches one by one.
func TestWritersAreTheOnesThatWrite(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, s := range schemes(t) {
		for range 3000 {
			id, k := rng.Uint32(), 1+rng.IntN(MaxHops)
			if s.dialect != own {
				id %= 1000
			}
			p := s.Packet(id, rng.IntN(s.Instances()))
			if got, want := s.Writers(&p, k), s.writersOneByOne(&p, k); got != want {
				t.Fatalf("seed %d: %s: packet %d after %d hops: writers %b, want %b", seed, name, id, k, got, want)
			}
		}
	}
}

// Paths that no digest can cover are no reason to fail.
func TestWritersOutOfRange(t *testing.T) {
	for name, s := range schemes(t) {
		p := s.Packet(1, 0)
		for _, k := range []int{math.MinInt, -1, 0} {
			if got := s.Writers(&p, k); got != 0 {
				t.Errorf("%s: writers after %d hops: %b", name, k, got)
			}
		}
		if got, want := s.Writers(&p, math.MaxInt), s.Writers(&p, MaxHops); got != want {
			t.Errorf("%s: writers after very many hops: %b, want %b", name, got, want)
		}
		for _, i := range []int{math.MinInt, -1, 0, MaxHops + 1, math.MaxInt} {
			if s.Writes(&p, i) {
				t.Errorf("%s: hop %d writes", name, i)
			}
		}
	}
}

// Many values at once are the same as one by one.
func TestValues(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, s := range schemes(t) {
		for n := range 70 {
			values, dst := make([]uint32, n), make([]uint32, n)
			for i := range values {
				values[i] = rng.Uint32() >> rng.IntN(32)
			}
			p := s.Packet(rng.Uint32N(1000), 0)
			s.Values(dst, &p, FoldedLast, values)
			for i, v := range values {
				if want := s.Value(&p, FoldedLast, v); dst[i] != want {
					t.Fatalf("seed %d: %s: value %d of %d, %#x: %#x, want %#x", seed, name, i, n, v, dst[i], want)
				}
			}
		}
	}
}

// Match keeps exactly those of a set whose value it is, and Sum is the XOR of values.
func TestMatchAndSum(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, s := range schemes(t) {
		for round := range 200 {
			n := round
			if n >= 130 {
				n = rng.IntN(800)
			}
			values := make([]uint32, n)
			for i := range values {
				values[i] = rng.Uint32N(1000)
			}
			p := s.Packet(rng.Uint32N(1000), 0)
			role := Role(rng.IntN(3))
			if p.Baseline {
				role = Replaced
			}
			set := make([]uint64, (n+63)/64)
			for i := range set {
				if round%3 > 0 {
					set[i] = rng.Uint64() & rng.Uint64()
				}
			}
			wrote, path := rng.Uint64(), values[:min(n, MaxHops)]
			want, digest := make([]uint64, len(set)), uint32(0)
			match := uint32(0)
			if n > 0 {
				match = s.Value(&p, role, values[rng.IntN(n)])
			}
			for i, v := range values {
				if set[i/64]>>(i%64)&1 != 0 && s.Value(&p, role, v) == match {
					want[i/64] |= 1 << (i % 64)
				}
			}
			writers := uint64(0)
			for i := range path {
				writers |= wrote & (1 << i)
			}
			for i, v := range path {
				if wrote>>i&1 != 0 {
					digest ^= s.Value(&p, p.Role(writers, i+1), v)
				}
			}
			if s.Match(set, &p, role, values, match); !slices.Equal(set, want) {
				t.Fatalf("seed %d: %s: matches %x, want %x", seed, name, set, want)
			}
			if got := s.Sum(&p, wrote, path); got != digest {
				t.Fatalf("seed %d: %s: sum of %b: %#x, want %#x", seed, name, wrote, got, digest)
			}
		}
	}
}

// Nothing here allocates.
func TestAllocations(t *testing.T) {
	values, dst, set := make([]uint32, 754), make([]uint32, 754), make([]uint64, 12)
	for name, s := range schemes(t) {
		id := uint32(0)
		if n := testing.AllocsPerRun(100, func() {
			p := s.Packet(id, 0)
			sink += s.Writers(&p, 59)
			s.Values(dst, &p, FoldedLast, values)
			set[0] = ^uint64(0)
			s.Match(set, &p, FoldedLast, values, 7)
			sink += s.Digest(id, values[:59]) + s.Write(7, id, 59, 5)
			sink += uint64(s.Check(id, 59, 7))
			id++
		}); n != 0 {
			t.Errorf("%s: %v allocations per packet, want 0", name, n)
		}
	}
}

var sink uint64

func BenchmarkWriters(b *testing.B) {
	for _, name := range []string{"mix", "mix vectors", "crc", "crc vectors"} {
		for _, k := range []int{5, 25, 59} {
			b.Run(fmt.Sprintf("%s/k=%d", name, k), func(b *testing.B) {
				s := scheme(b, configs()[name+" hybrid"])
				id := uint32(0)
				for b.Loop() {
					p := s.Packet(id, 0)
					sink += s.Writers(&p, k)
					id++
				}
			})
		}
	}
}

// BenchmarkVerify is the check of a digest by a decoder that knows the path.
func BenchmarkVerify(b *testing.B) {
	for _, name := range []string{"mix", "mix vectors", "crc", "crc vectors"} {
		for _, k := range []int{5, 59} {
			b.Run(fmt.Sprintf("%s/k=%d", name, k), func(b *testing.B) {
				s := scheme(b, configs()[name+" hybrid"])
				path := make([]uint32, k)
				for i := range path {
					path[i] = uint32(i * 7)
				}
				id := uint32(0)
				for b.Loop() {
					sink += s.Digest(id, path)
					id++
				}
			})
		}
	}
}

// BenchmarkMatch narrows the candidates of a hop.
func BenchmarkMatch(b *testing.B) {
	for _, name := range []string{"mix", "crc"} {
		b.Run(name+"/754", func(b *testing.B) {
			s := scheme(b, configs()[name+" hybrid"])
			values, set := make([]uint32, 754), make([]uint64, 12)
			for i := range values {
				values[i] = uint32(i)
			}
			p := s.Packet(1, 0)
			for b.Loop() {
				for i := range set {
					set[i] = ^uint64(0)
				}
				s.Match(set, &p, FoldedLast, values, 7)
			}
			sink += set[0]
		})
	}
}

func BenchmarkValues(b *testing.B) {
	for _, name := range []string{"mix", "crc"} {
		b.Run(name+"/754", func(b *testing.B) {
			s := scheme(b, configs()[name+" hybrid"])
			values, dst := make([]uint32, 754), make([]uint32, 754)
			for i := range values {
				values[i] = uint32(i)
			}
			p := s.Packet(1, 0)
			for b.Loop() {
				s.Values(dst, &p, FoldedLast, values)
			}
			sink += uint64(dst[0])
		})
	}
}
