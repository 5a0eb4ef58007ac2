package pint

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// Comparison with all assignments of values to hops. A hop is known if its value is the same in all that agree with
// the digests, and a digest disagrees if none is left.
func TestEliminatorKnowsWhatFollows(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var e Eliminator
	for range 500 {
		e.Reset()
		k, q := 1+rng.IntN(5), 1+rng.IntN(2)
		var left []uint32 // assignments, hop i in bits q·i and up
		for a := range uint32(1) << (q * k) {
			left = append(left, a)
		}
		for n := range 12 {
			writers := rng.Uint64N(1 << k)
			digest := rng.Uint32N(1 << q)
			if n < 4 || rng.IntN(3) > 0 { // most of them the digest of one that is left
				digest = fold(left[rng.IntN(len(left))], writers, q)
			}
			var agree []uint32
			for _, a := range left {
				if fold(a, writers, q) == digest {
					agree = append(agree, a)
				}
			}
			fresh, agrees := e.Add(writers, digest)
			if agrees != (len(agree) > 0) || fresh != (len(agree) > 0 && len(agree) < len(left)) {
				t.Fatalf("seed %d: Add(%b, %d) = %v, %v: %d of %d assignments agree", seed, writers, digest, fresh, agrees, len(agree), len(left))
			}
			if agrees {
				left = agree
			}
			for i := range k {
				same := true
				v := left[0] >> (q * i) & (1<<q - 1)
				for _, a := range left {
					same = same && a>>(q*i)&(1<<q-1) == v
				}
				if known := e.Known()>>i&1 != 0; known != same || known && e.Value(i+1) != v {
					t.Fatalf("seed %d: hop %d of %d: known %v, want %v (%d)", seed, i+1, k, known, same, v)
				}
			}
			if want := k*q - bits.Len(uint(len(left)-1)); e.Rank()*q != want {
				t.Fatalf("seed %d: rank %d with %d of %d assignments left", seed, e.Rank(), len(left), 1<<(q*k))
			}
		}
	}
}

// fold is the digest of an assignment.
func fold(a uint32, writers uint64, q int) (d uint32) {
	for ; writers != 0; writers &= writers - 1 {
		d ^= a >> (q * bits.TrailingZeros64(writers)) & (1<<q - 1)
	}
	return d
}

// Raw values come back from fragments, one Eliminator each, whatever the coding scheme.
func TestRawValues(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, c := range map[string]Config{
		"linear":              Linear(32, 32),
		"linear, fragments":   Linear(8, 30),
		"baseline, fragments": {Bits: 7, Instances: 1, Tau: 1, ValueBits: 32},
		"hybrid, fragments":   {Bits: 5, Instances: 2, Tau: .5, P: []float64{.1, .3}, ValueBits: 17, Vectors: true},
		"hybrid, crc":         {Hash: HashCRC, Bits: 16, Instances: 1, Tau: .5, P: []float64{.2}, ValueBits: 17},
	} {
		s := scheme(t, c)
		if want := (c.ValueBits + c.Bits - 1) / c.Bits; s.Fragments() != want {
			t.Errorf("%s: %d fragments, want %d", name, s.Fragments(), want)
		}
		path := make([]uint32, 1+rng.IntN(MaxHops))
		for i := range path {
			path[i] = rng.Uint32() & uint32(mask64(c.ValueBits))
		}
		parts := make([]Eliminator, s.Fragments())
		missing := len(parts) * len(path)
		for id := uint32(0); missing > 0; id++ {
			if id == 1e6 {
				t.Fatalf("seed %d: %s: %d hops of fragments are missing after %d packets", seed, name, missing, id)
			}
			digest := uint64(0)
			for i, v := range path {
				digest = s.Write(digest, id, i+1, v)
			}
			for n := range s.Instances() {
				p := s.Packet(id, n)
				fresh, agrees := parts[p.Fragment()].Add(s.Writers(&p, len(path)), s.Part(digest, n))
				if !agrees {
					t.Fatalf("seed %d: %s: packet %d disagrees", seed, name, id)
				}
				if fresh {
					missing--
				}
			}
		}
		for i, want := range path {
			got := uint32(0)
			for f := range parts {
				got |= parts[f].Value(i+1) << (f * c.Bits)
			}
			if got != want {
				t.Errorf("seed %d: %s: value at hop %d is %#x, want %#x", seed, name, i+1, got, want)
			}
		}
	}
}

func TestEliminatorAllocates(t *testing.T) {
	s := scheme(t, Linear(32, 32))
	e, id := new(Eliminator), uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		p := s.Packet(id, 0)
		e.Add(s.Writers(&p, 59), 0)
		id++
	}); n != 0 {
		t.Errorf("%v allocations per digest, want 0", n)
	}
}

// BenchmarkEliminator decodes a path, again and again.
func BenchmarkEliminator(b *testing.B) {
	for _, k := range []int{25, 59} {
		b.Run(map[int]string{25: "k=25", 59: "k=59"}[k], func(b *testing.B) {
			s := scheme(b, Linear(32, 32))
			sets := make([]uint64, 4096)
			for id := range sets {
				p := s.Packet(uint32(id), 0)
				sets[id] = s.Writers(&p, k)
			}
			var e Eliminator
			digests := 0
			for b.Loop() {
				if e.Add(sets[digests%len(sets)], 0); e.Rank() == k {
					e.Reset()
				}
				digests++
			}
		})
	}
}
