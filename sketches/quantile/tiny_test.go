package quantile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/hopscope/hopscope/sketches"
)

func TestTinySize(t *testing.T) {
	if got := unsafe.Sizeof(Tiny{}); got > 120 {
		t.Errorf("a Tiny takes %d bytes, want at most 120", got)
	}
	sum := 0
	for _, n := range tinyShare {
		sum += int(n)
	}
	if sum != tinyItems {
		t.Errorf("shares sum to %d, want %d", sum, tinyItems)
	}
}

func TestTinyEmpty(t *testing.T) {
	var s, o Tiny
	r := Rand(1)
	s.Add(nil, &r)
	s.Merge(&o, &r)
	if s.Count() != 0 || s.Min() != 0 || s.Max() != 0 || s.Quantile(0.5) != 0 || s.Rank(7) != 0 {
		t.Errorf("an empty sketch gives %d, %d, %d, %d, %g", s.Count(), s.Min(), s.Max(), s.Quantile(0.5), s.Rank(7))
	}
}

// As long as there is room, every answer is exact.
func TestTinyExact(t *testing.T) {
	var s Tiny
	var want sketches.Exact[uint16]
	r, g := Rand(1), rand.New(rand.NewPCG(1, 1))
	for range tinyItems {
		c := uint16(g.IntN(30))
		s.Update(c, &r)
		want.Update(c)
		for q := -0.1; q < 1.1; q += 0.03 {
			if s.Quantile(q) != want.Quantile(q) {
				t.Fatalf("%d codes: Quantile(%g) = %d, want %d", s.Count(), q, s.Quantile(q), want.Quantile(q))
			}
		}
		for v := range uint16(31) {
			if s.Rank(v) != want.Rank(v) {
				t.Fatalf("%d codes: Rank(%d) = %g, want %g", s.Count(), v, s.Rank(v), want.Rank(v))
			}
		}
	}
}

const merged, sampled = 0, -1 // instead of the length of a batch: sixteen parts; AddSample of what the base takes

// The figures of the type's comment, for all orders, one code at a time, in batches, merged from parts, and sampled.
func TestTinyErrorBound(t *testing.T) {
	const trials = 200
	for _, st := range streams {
		for _, batch := range []int{1, 16, 20, merged, sampled} {
			t.Run(fmt.Sprintf("%s/batch=%d", st.name, batch), func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{300, 2000, 10_000} {
					var values sketches.Exact[uint16]
					for i := range n {
						values.Update(uint16(st.value(i, n)))
					}
					badAll, badOne, badTail, sum := 0, 0, 0, 0.0
					median := values.Quantile(0.5)
					less, notMore := values.Ranks(median)
					v := make([]uint32, n)
					for seed := range uint64(trials) {
						g, r := rand.New(rand.NewPCG(seed, 6)), Rand(seed)
						for i := range v {
							v[i] = st.value(i, n)
						}
						st.order(v, g)
						codes := make([]uint16, n)
						for i, x := range v {
							codes[i] = uint16(x)
						}
						s := feed(codes, batch, &r)
						if s.Count() != uint64(n) || s.Min() != values.Quantile(0) && batch != sampled || s.Max() != values.Quantile(1) {
							t.Fatalf("n=%d seed %d: Count, Min, Max = %d, %d, %d", n, seed, s.Count(), s.Min(), s.Max())
						}
						items, weights := s.contents()
						err := worst(&values, items, weights)
						if sum += err; err > TinyErrorBound {
							badAll++
						}
						if rank := s.Rank(median); rank < float64(less)/float64(n)-0.09 || rank > float64(notMore)/float64(n)+0.09 {
							badOne++
						}
						if values.Rank(s.Quantile(0.99)) < 0.92 {
							badTail++
						}
					}
					most := allowed(trials, 0.01)
					t.Logf("n=%d: of %d, %d exceed the bound for all ranks, %d at the median, %d at 0.99; mean error %.3f", n, trials, badAll, badOne, badTail, sum/trials)
					if badAll >= most || badOne >= most || badTail >= most {
						t.Errorf("n=%d: of %d, %d exceed the bound for all ranks, %d at the median, %d at 0.99; mean error %.3f; want below %d", n, trials, badAll, badOne, badTail, sum/trials, most)
					}
				}
			})
		}
	}
}

func feed(codes []uint16, batch int, r *Rand) (s Tiny) {
	switch batch {
	case merged:
		parts := make([]Tiny, 16)
		for i, c := range codes {
			parts[i%7*i%16].Update(c, r) // uneven
		}
		for i := range parts {
			s.Merge(&parts[i], r)
		}
	case 1:
		for _, c := range codes {
			s.Update(c, r)
		}
	case sampled:
		for len(codes) > 0 {
			w := s.Base()
			n, largest := min(16<<w, len(codes)), uint16(0)
			var sample []uint16
			for block := range slices.Chunk(codes[:n], 1<<w) {
				pick := int(r.Next() & (1<<w - 1)) // in the last block, perhaps none
				for i, c := range block {
					if i == pick {
						sample = append(sample, c)
					} else {
						largest = max(largest, c)
					}
				}
			}
			s.AddSample(sample, w, uint64(n), largest, r)
			codes = codes[n:]
		}
	default:
		for len(codes) > 0 {
			n := min(batch, len(codes))
			s.Add(codes[:n], r)
			codes = codes[n:]
		}
	}
	return s
}

// The weights of the kept items sum to the count on average, and rank and quantile are inverse to each other.
func TestTinyConsistent(t *testing.T) {
	g, r := rand.New(rand.NewPCG(3, 3)), Rand(3)
	sum, n := 0.0, 0
	for range 500 {
		var s Tiny
		count := 1 + g.IntN(30_000)
		for i := 0; i < count; i += 13 {
			var codes [13]uint16
			for i := range codes {
				codes[i] = uint16(g.Uint32())
			}
			s.Add(codes[:min(13, count-i)], &r)
		}
		_, weights := s.contents()
		total := uint64(0)
		for _, w := range weights {
			total += w << s.base
		}
		sum += float64(total) / float64(s.Count())
		n++
		q := s.Quantiles(nil, 0, 0.2, 0.5, 0.9, 0.99, 1)
		for i, x := range []float64{0.2, 0.5, 0.9, 0.99} {
			if s.Rank(q[i+1]) < x || q[i+1] < q[i] {
				t.Fatalf("quantiles %d, Rank(%d) = %g below %g", q, q[i+1], s.Rank(q[i+1]), x)
			}
			if q[i+1] > q[0] && s.Rank(q[i+1]-1) >= x {
				t.Fatalf("Rank(%d) = %g, though %d is the %g-quantile", q[i+1]-1, s.Rank(q[i+1]-1), q[i+1], x)
			}
		}
	}
	// A ratio varies by some 10 %, so the mean of 500 by 0.45 %: five sigma.
	if mean := sum / float64(n); math.Abs(mean-1) > 0.025 {
		t.Errorf("kept weights are %.4f of the count on average, want 1", mean)
	}
}

// Samples of all weights are added to the sketch. The count and the largest code are exact, the kept weights are the
// count on average, and a sample without codes changes no quantile.
func TestTinyAddSample(t *testing.T) {
	r := Rand(4)
	sum, n := 0.0, 0
	for range 2000 {
		var s Tiny
		count, largest := uint64(0), uint16(0)
		for range 20 {
			w := uint8(r.Next() % 10)
			sample := make([]uint16, r.Next()%40)
			for i := range sample {
				sample[i] = uint16(r.Next())
				largest = max(largest, sample[i])
			}
			left := uint16(r.Next())
			largest = max(largest, left)
			k := uint64(len(sample)+1) << w
			count += k
			s.AddSample(append(sample, uint16(r.Next()%uint64(left+1))), w, k, left, &r)
		}
		if s.Count() != count || s.Max() != largest {
			t.Fatalf("Count, Max = %d, %d, want %d, %d", s.Count(), s.Max(), count, largest)
		}
		_, weights := s.contents()
		for _, w := range weights {
			sum += float64(w<<s.base) / float64(count)
		}
		n++
		before := s.Quantiles(nil, 0.1, 0.5, 0.9)
		s.AddSample(nil, 3, 5, 0, &r)
		if after := s.Quantiles(nil, 0.1, 0.5, 0.9); !slices.Equal(before, after) || s.Count() != count+5 {
			t.Fatalf("quantiles %v, before a sample without codes %v; Count = %d, want %d", after, before, s.Count(), count+5)
		}
	}
	if mean := sum / float64(n); math.Abs(mean-1) > 0.02 {
		t.Errorf("kept weights are %.4f of the count on average, want 1", mean)
	}
	var s Tiny
	s.AddSample(nil, 2, 0, 9, &r)
	if s.Count() != 0 || s.Max() != 0 {
		t.Errorf("no codes: Count, Max = %d, %d", s.Count(), s.Max())
	}
	s.AddSample(nil, 2, 3, 9, &r)
	if s.Count() != 3 || s.Min() != 9 || s.Max() != 9 || s.Quantile(0.5) > 9 {
		t.Errorf("three codes and no sample: Count, Min, Max, median = %d, %d, %d, %d", s.Count(), s.Min(), s.Max(), s.Quantile(0.5))
	}
}

func TestTinyMergeWithItself(t *testing.T) {
	r := Rand(1)
	var s Tiny
	for i := range 1000 {
		s.Update(uint16(i), &r)
	}
	s.Merge(&s, &r)
	if s.Count() != 2000 || s.Max() != 999 || math.Abs(s.Rank(499)-0.5) > 0.2 {
		t.Errorf("Count, Max, Rank = %d, %d, %g", s.Count(), s.Max(), s.Rank(499))
	}
}

// The same codes and the same random state give the same bytes, and nothing is allocated.
func TestTinyReplays(t *testing.T) {
	run := func() (s Tiny) {
		g, r := rand.New(rand.NewPCG(5, 5)), Rand(5)
		codes := make([]uint16, 10_000)
		for i := range codes {
			codes[i] = uint16(g.Uint32())
		}
		return feed(codes, 16, &r)
	}
	if a, b := run(), run(); !reflect.DeepEqual(a, b) {
		t.Errorf("two runs differ:\n%v\n%v", a, b)
	}
	a, b, r := run(), run(), Rand(1)
	codes, dst := make([]uint16, 40), make([]uint16, 0, 3)
	n := testing.AllocsPerRun(100, func() {
		a.Add(codes, &r)
		a.Update(3, &r)
		a.Merge(&b, &r)
		dst = a.Quantiles(dst[:0], 0.5, 0.9, 0.99)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
