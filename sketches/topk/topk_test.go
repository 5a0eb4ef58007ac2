package topk

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/sketches"
)

func hash(k uint64) uint64 { k *= 0x9e3779b97f4a7c15; k ^= k >> 32; return k * 0xd6e8feb86659fd93 }

// zipf draws keys whose weight falls as their rank to the power s.
func zipf(r *rand.Rand, s float64, n int) func() uint64 {
	z := rand.NewZipf(r, s, 1, uint64(n-1))
	return z.Uint64
}

// check holds l against the true weights: the three promises of the package comment, with bound for N/m.
func check(t *testing.T, what string, l *List[uint64], want sketches.ExactCounts[uint64], bound float64) {
	t.Helper()
	total := want.Total()
	if l.Total() != total {
		t.Fatalf("%s: Total() = %d, want %d", what, l.Total(), total)
	}
	items := l.Append(nil, math.MaxInt)
	listed := map[uint64]bool{}
	for i, it := range items {
		if true_ := want[it.Key]; it.Count < true_ || it.Count-it.Error > true_ {
			t.Fatalf("%s: %+v, true weight %d", what, it, true_)
		}
		if float64(it.Error) > bound {
			t.Fatalf("%s: %+v, want an error of at most %g", what, it, bound)
		}
		if i > 0 && it.Count > items[i-1].Count {
			t.Fatalf("%s: %+v behind %+v", what, it, items[i-1])
		}
		if got := l.Get(hash(it.Key)&(3<<62|0xff), &it.Key); got != it {
			t.Fatalf("%s: Get gives %+v, Append %+v", what, got, it)
		}
		listed[it.Key] = true
	}
	if len(listed) != len(items) || len(items) != l.Len() {
		t.Fatalf("%s: %d keys, %d different, Len() = %d", what, len(items), len(listed), l.Len())
	}
	for k, n := range want {
		if !listed[k] {
			if float64(n) > bound {
				t.Fatalf("%s: key %d of weight %d is missing, bound %g", what, k, n, bound)
			}
			if got := l.Get(hash(k)&(3<<62|0xff), &k); got.Count < n || got.Count != got.Error || got.Count != l.Min() {
				t.Fatalf("%s: Get of an unlisted key of weight %d gives %+v, Min() = %d", what, n, got, l.Min())
			}
		}
	}
}

func TestBounds(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := 1 + r.IntN(100)
		l, want := New[uint64](m), sketches.ExactCounts[uint64]{}
		next := zipf(r, 1.05+r.Float64(), 1+r.IntN(5000))
		for round := range 3 {
			for range r.IntN(20_000) {
				k, n := next(), uint64(1)
				if seed%2 == 0 {
					n = r.Uint64N(100) // also 0
				}
				l.Add(hash(k)&(3<<62|0xff), &k, n) // tags collide
				want.Add(k, n)
			}
			check(t, "", l, want, float64(want.Total())/float64(m))
			if round == 1 {
				l.Reset()
				clear(want)
			}
		}
	}
}

// As long as there are free counters, nothing is wrong.
func TestExactBelowCapacity(t *testing.T) {
	l, want := New[uint64](60), sketches.ExactCounts[uint64]{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		k := r.Uint64N(50)
		l.Add(hash(k)&(3<<62|0xff), &k, 1)
		want.Add(k, 1)
	}
	check(t, "", l, want, 0)
	absent := uint64(77)
	if got := l.Get(hash(absent), &absent); got != (Item[uint64]{Key: 77}) || l.Min() != 0 {
		t.Errorf("Get of an absent key gives %+v, Min() = %d", got, l.Min())
	}
}

func TestMerge(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		want := sketches.ExactCounts[uint64]{}
		var lists []*List[uint64]
		bound := 0.0
		for range 2 + r.IntN(4) {
			m := 1 + r.IntN(60)
			l := New[uint64](m)
			next := zipf(r, 1.1, 1+r.IntN(500))
			shift := r.Uint64N(50) // the lists do not have the same heavy keys
			n := r.IntN(5000)
			for range n {
				k := next() + shift
				l.Add(hash(k)&(3<<62|0xff), &k, 1)
				want.Add(k, 1)
			}
			bound = max(bound, 1/float64(m))
			lists = append(lists, l)
		}
		for _, l := range lists[1:] {
			before := l.Append(nil, math.MaxInt)
			lists[0].Merge(l)
			if after := l.Append(nil, math.MaxInt); !reflect.DeepEqual(before, after) {
				t.Fatalf("seed %d: Merge changed its argument", seed)
			}
		}
		for range r.IntN(1000) { // and goes on
			k := r.Uint64N(1000)
			lists[0].Add(hash(k)&(3<<62|0xff), &k, 1)
			want.Add(k, 1)
		}
		check(t, "", lists[0], want, bound*float64(want.Total()))
	}
	l, k := New[uint64](2), uint64(1)
	l.Add(hash(k), &k, 5)
	l.Merge(l)
	if got := l.Append(nil, 5); len(got) != 1 || got[0] != (Item[uint64]{1, 10, 0}) || l.Total() != 10 {
		t.Errorf("merged with itself: %v, total %d", got, l.Total())
	}
}

func TestAppend(t *testing.T) {
	l := New[uint64](3)
	for k, n := range []uint64{5, 9, 7} {
		k := uint64(k)
		l.Add(hash(k), &k, n)
	}
	got := l.Append([]Item[uint64]{{Key: 42}}, 2)
	if want := []Item[uint64]{{Key: 42}, {Key: 1, Count: 9}, {Key: 2, Count: 7}}; !reflect.DeepEqual(got, want) {
		t.Errorf("Append = %v, want %v", got, want)
	}
	if got := l.Append(nil, -1); len(got) != 0 {
		t.Errorf("Append of -1 = %v", got)
	}
}

func TestNoAllocations(t *testing.T) {
	l, k := New[uint64](100), uint64(0)
	dst := make([]Item[uint64], 0, 100)
	n := testing.AllocsPerRun(10_000, func() {
		k = k*6364136223846793005 + 1
		l.Add(hash(k), &k, 1)
		hot := k % 10
		l.Add(hash(hot), &hot, 1)
		dst = l.Append(dst[:0], 10)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// The linked list of the paper makes the same promises, and the comparison in BenchmarkAdd is with one that works.
func TestStreamSummary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s, want := newStreamSummary(30), sketches.ExactCounts[uint64]{}
	next := zipf(r, 1.2, 1000)
	for range 50_000 {
		k := next()
		s.add(k)
		want.Add(k, 1)
	}
	for k, c := range s.where {
		if it := s.counters[c]; it.key != k || it.count < want[k] || it.count-it.err > want[k] || it.err > 50_000/30 {
			t.Errorf("%+v, true weight %d", it, want[k])
		}
	}
}
