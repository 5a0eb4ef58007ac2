package pint

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The tests here ask whether hashes are as good as random numbers, with a seed of their own every time. Limits are those
// that random numbers pass in all but about 3e-10 of the runs, for each of some hundred questions.
const deviations = 6.2

// tooUnequal compares how often each case came with how often it should have, by the chi-square test.
func tooUnequal(t *testing.T, what string, counts []int, share func(i int) float64) {
	t.Helper()
	n, x := 0, 0.0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		mean := float64(n) * share(i)
		x += (float64(c) - mean) * (float64(c) - mean) / mean
	}
	if df := float64(len(counts) - 1); x > chiSquareLimit(df) {
		t.Errorf("%s: chi-square %.1f over %d cases, want about %.0f: %v", what, x, len(counts), df, counts)
	}
}

// chiSquareLimit is the quantile that a normal variable exceeds by deviations (Wilson and Hilferty).
func chiSquareLimit(df float64) float64 {
	return df * math.Pow(1-2/(9*df)+deviations*math.Sqrt(2/(9*df)), 3)
}

// tests of both families, with ids one after the other: anywhere, and of 16 bits.
func eachHash(t *testing.T, run func(t *testing.T, h Hash, seed, first uint32)) {
	for _, h := range []Hash{HashMix, HashCRC} {
		for _, wide := range []bool{false, true} {
			name := h.String() + " 16 bits"
			seed, first := rand.Uint32(), uint32(0)
			if wide {
				name, first = h.String()+" 32 bits", rand.Uint32()
			}
			t.Run(name, func(t *testing.T) {
				run(t, h, seed, first)
				if t.Failed() {
					t.Logf("seed %d, first id %d", seed, first)
				}
			})
		}
	}
}

const hashedPackets = 1 << 16

// Baseline leaves every hop with the same probability, in packets one after the other independently, and whatever
// layer, value, instance and set of queries say.
func TestWritersAreUniform(t *testing.T) {
	eachHash(t, func(t *testing.T, h Hash, seed, first uint32) {
		for _, vectors := range []bool{false, true} {
			c := Config{Hash: h, Seed: seed, Bits: 3, Instances: 2, Tau: .3, P: []float64{.1, .2}, Vectors: vectors}
			s := scheme(t, c)
			plan := &Plan{Hash: h, Seed: seed, Sets: []Set{{Share: .25}, {Share: .75}}}
			for _, k := range []int{5, 59} {
				uniform := make([]int, k)
				pairs, valued, instances, sets := make([]int, k*k), make([]int, k*8), make([]int, k*k), make([]int, k*2)
				layers := make([]int, 3)
				last := -1
				for id := first; id != first+hashedPackets; id++ {
					p, q := s.Packet(id, 0), s.Packet(id, 1)
					layers[p.layer]++
					if !p.Baseline {
						last = -1
						continue
					}
					w := bits.TrailingZeros64(s.Writers(&p, k))
					uniform[w]++
					if last >= 0 {
						pairs[last*k+w]++
					}
					last = w
					valued[w*8+int(s.Value(&p, Replaced, 17))]++
					if q.Baseline {
						instances[w*k+bits.TrailingZeros64(s.Writers(&q, k))]++
					}
					sets[w*2+plan.Set(id)]++
				}
				even := func(n int) func(int) float64 { return func(int) float64 { return 1 / float64(n) } }
				tooUnequal(t, "layers", layers, func(i int) float64 { return [...]float64{.3, .35, .35}[i] })
				tooUnequal(t, "writers", uniform, even(k))
				tooUnequal(t, "writer and value", valued, even(k*8))
				tooUnequal(t, "writer and set of queries", sets, func(i int) float64 { return [...]float64{.25, .75}[i&1] / float64(k) })
				if k*k < 100 { // else cases would be too rare for the test
					tooUnequal(t, "writers of neighbouring packets", pairs, even(k*k))
					tooUnequal(t, "writers of two instances", instances, even(k*k))
				}
			}
		}
	})
}

// In an XOR layer each hop writes with probability p, and pairs of hops do independently.
func TestFoldersAreIndependent(t *testing.T) {
	const k = 59
	eachHash(t, func(t *testing.T, h Hash, seed, first uint32) {
		for _, vectors := range []bool{false, true} {
			for _, prob := range []float64{.1, .25, .363, .5} {
				s := scheme(t, Config{Hash: h, Seed: seed, Bits: 1, Instances: 1, P: []float64{prob}, Vectors: vectors})
				var both [k][k]int
				for id := first; id != first+hashedPackets/4; id++ {
					p := s.Packet(id, 0)
					for w := s.Writers(&p, k); w != 0; w &= w - 1 {
						i := bits.TrailingZeros64(w)
						for v := w; v != 0; v &= v - 1 {
							both[i][bits.TrailingZeros64(v)]++
						}
					}
				}
				var single, pair deviation
				for i := range k {
					single.add(both[i][i], hashedPackets/4, prob)
					for j := range i {
						// The mean of (Xᵢ-p)(Xⱼ-p) is 0, and products with a hop in common are not correlated.
						n := hashedPackets / 4.
						z := float64(both[j][i]) - prob*float64(both[i][i]+both[j][j]) + n*prob*prob
						pair.square(z / (math.Sqrt(n) * prob * (1 - prob)))
					}
				}
				single.check(t, "hops that write")
				pair.check(t, "pairs of hops that write")
			}
		}
	})
}

// deviation sums the squares of standardised deviations that are not correlated.
type deviation struct {
	sum, worst float64
	n          int
}

func (d *deviation) add(count, trials int, p float64) {
	mean := float64(trials) * p
	d.square((float64(count) - mean) / math.Sqrt(mean*(1-p)))
}

func (d *deviation) square(z float64) {
	d.sum += z * z
	d.worst = max(d.worst, math.Abs(z))
	d.n++
}

// check leaves the worst of n room for n, and for counts that are not quite normal.
func (d *deviation) check(t *testing.T, what string) {
	t.Helper()
	if df := float64(d.n); d.sum > chiSquareLimit(df) || d.worst > 9.5 {
		t.Errorf("%s: chi-square %.0f over %d cases, worst %.1f standard deviations", what, d.sum, d.n, d.worst)
	}
}

// Values of nodes are uniform. Two nodes have the same value in one of 2ᵇ packets, which is independent of any other
// two. No XOR of three or four is zero more often than by chance. Linear hashes fail the last, hashes with too few
// keys the others, first of all for ids that differ in one bit.
func TestNodesCollideIndependently(t *testing.T) {
	testkit.Long(t)
	const nodes, packets = 128, 1 << 14
	eachHash(t, func(t *testing.T, h Hash, seed, first uint32) {
		rng := rand.New(rand.NewPCG(uint64(seed), uint64(first)))
		for _, spread := range []int{0, 8, 25} { // ids 0 to 127, in the second byte, in the highest bits
			for _, b := range []int{1, 8} {
				s := scheme(t, Config{Hash: h, Seed: seed, Bits: b, Instances: 1, Tau: 1})
				ids, values := make([]uint32, nodes), make([]uint32, nodes)
				for i := range ids {
					ids[i] = uint32(i) << spread
				}
				var same [nodes][nodes]int32
				var quads [500][4]int
				var zeros [len(quads)][2]int
				for n := 0; n < len(quads); { // those whose XOR is 0 in linear hashes
					i, a, c := rng.IntN(nodes), 1+rng.IntN(nodes-1), 1<<rng.IntN(7)
					q := [4]int{i, i ^ a, i ^ c, i ^ a ^ c}
					slices.Sort(q[:])
					if a != c && !slices.Contains(quads[:n], q) {
						quads[n] = q
						n++
					}
				}
				uniform := make([]int, 1<<b)
				for id := first; id != first+packets; id++ {
					p := s.Packet(id, 0)
					s.Values(values, &p, Replaced, ids)
					uniform[values[id%nodes]]++
					for i, v := range values {
						row := same[i][:i]
						for j, w := range values[:i] {
							row[j] += int32(notAbove(v^w, 0))
						}
					}
					for n, q := range quads {
						three := values[q[0]] ^ values[q[1]] ^ values[q[2]]
						if three == 0 {
							zeros[n][0]++
						}
						if three == values[q[3]] {
							zeros[n][1]++
						}
					}
				}
				p := math.Ldexp(1, -b)
				tooUnequal(t, "values", uniform, func(int) float64 { return p })
				var two, three, four deviation
				for i := range same {
					for _, n := range same[i][:i] {
						two.add(int(n), packets, p)
					}
				}
				for _, n := range zeros {
					three.add(n[0], packets, p)
					four.add(n[1], packets, p)
				}
				two.check(t, "pairs of equal values")
				three.check(t, "XOR of three values")
				four.check(t, "XOR of four values")
			}
		}
	})
}

// The value of a node in a packet says nothing about that in the next, or in the other instance.
func TestPacketsAreIndependent(t *testing.T) {
	eachHash(t, func(t *testing.T, h Hash, seed, first uint32) {
		s := scheme(t, Config{Hash: h, Seed: seed, Bits: 4, Instances: 2, Tau: 1})
		for _, node := range []uint32{0, 1, 100} {
			next, instances, fragments := make([]int, 256), make([]int, 256), make([]int, 256)
			last := -1
			for id := first; id != first+hashedPackets; id++ {
				p, q := s.Packet(id, 0), s.Packet(id, 1)
				v := int(s.Value(&p, Replaced, node))
				if last >= 0 {
					next[last<<4|v]++
				}
				last = v
				instances[v<<4|int(s.Value(&q, Replaced, node))]++
				fragments[v<<4|int(uint64(h.global(h.salt(seed, ofFragment), id))*16>>32)]++
			}
			even := func(int) float64 { return 1. / 256 }
			tooUnequal(t, "neighbouring packets", next, even)
			tooUnequal(t, "instances", instances, even)
			tooUnequal(t, "value and fragment", fragments, even)
		}
	})
}
