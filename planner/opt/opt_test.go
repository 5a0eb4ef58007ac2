package opt

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// twin is the heap of the standard library.
type twin []item

type item struct{ key, serial int }

func (h twin) Len() int           { return len(h) }
func (h twin) Less(i, j int) bool { return h[i].key < h[j].key }
func (h twin) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *twin) Push(x any)        { *h = append(*h, x.(item)) }
func (h *twin) Pop() any {
	x := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return x
}

// TestHeap holds the heap against that of the standard library, exchange by exchange: many keys are equal.
func TestHeap(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := Heap[item]{Less: func(a, b *item) bool { return a.key < b.key }}
		var want twin
		for k := range rng.IntN(30) {
			h.Items, want = append(h.Items, item{rng.IntN(6), -k}), append(want, item{0, -k})
			want[k].key = h.Items[k].key
		}
		h.Init()
		heap.Init(&want)
		for k := range 200 {
			switch x := (item{rng.IntN(6), k}); {
			case rng.IntN(2) == 0:
				h.Push(x)
				heap.Push(&want, x)
			case len(want) == 0:
			case rng.IntN(2) == 0:
				h.Items[0].key, want[0].key = x.key, x.key
				h.FixTop()
				heap.Fix(&want, 0)
			default:
				if got, want := h.Pop(), heap.Pop(&want).(item); got != want {
					t.Fatalf("seed %d, step %d: Pop = %v, want %v", seed, k, got, want)
				}
			}
			if !slices.Equal(h.Items, want) {
				t.Fatalf("seed %d, step %d: %v, want %v", seed, k, h.Items, want)
			}
		}
	}
}

type edge struct{ from, to, length int32 }

// TestNearest holds distances against relaxing all edges again and again, in one state that is used for many graphs.
func TestNearest(t *testing.T) {
	var s Nearest[int64]
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(12)
		var edges []edge
		for range rng.IntN(3 * n) {
			edges = append(edges, edge{rng.Int32N(int32(n)), rng.Int32N(int32(n)), rng.Int32N(5)})
		}
		want := slices.Repeat([]int64{math.MaxInt64}, n)
		s.Begin(n, math.MaxInt64)
		for range 1 + rng.IntN(2) {
			v := rng.Int32N(int32(n))
			want[v] = 0
			s.Reach(v, 0)
		}
		for range n {
			for _, e := range edges {
				if want[e.from] < math.MaxInt64 {
					want[e.to] = min(want[e.to], want[e.from]+int64(e.length))
				}
			}
		}
		visited, last := make([]bool, n), int64(0)
		for v, d, ok := s.Next(); ok; v, d, ok = s.Next() {
			if visited[v] || d < last || d != want[v] {
				t.Fatalf("seed %d: node %d at %d after %d, want it once and at %d", seed, v, d, last, want[v])
			}
			visited[v], last = true, d
			for _, e := range edges {
				if e.from == v {
					before := s.Dist[e.to]
					if got := s.Reach(e.to, d+int64(e.length)); got != (d+int64(e.length) < before) {
						t.Fatalf("seed %d: Reach(%d, %d) = %v, and it was at %d", seed, e.to, d+int64(e.length), got, before)
					}
				}
			}
		}
		if !slices.Equal(s.Dist, want) {
			t.Fatalf("seed %d: %v, want %v", seed, s.Dist, want)
		}
	}
}

// TestNearestTies: equally near nodes come in the order of their numbers, and a sentinel of -1 is no distance.
func TestNearestTies(t *testing.T) {
	var s Nearest[float64]
	s.Begin(4, -1)
	for _, v := range []int32{3, 1, 2} {
		s.Reach(v, 1)
	}
	if s.Reach(1, 1) || s.Reach(3, 2) {
		t.Error("a way that is no shorter was taken")
	}
	var order []int32
	for v, _, ok := s.Next(); ok; v, _, ok = s.Next() {
		order = append(order, v)
	}
	if !slices.Equal(order, []int32{1, 2, 3}) || s.Dist[0] != -1 {
		t.Errorf("order %v and distances %v, want 1 2 3 and -1 for the first", order, s.Dist)
	}
}

// TestLists holds lists by key against looking for every key.
func TestLists(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN(6)
		lists := make([][]int32, rng.IntN(7))
		start := []int32{0}
		for k := range lists {
			for range rng.IntN(6) {
				lists[k] = append(lists[k], rng.Int32N(int32(n)))
			}
			start = append(start, start[k]+int32(len(lists[k])))
		}
		all := slices.Concat(lists...)
		gs, place := Group(all, n)
		ts, row := Transpose(start, all, n)
		ps, list := Passing(lists, n, func(x int32) int32 { return int32(n) - 1 - x })
		for k := range int32(n) {
			var places, rows, passing []int32
			for r, l := range lists {
				for i, x := range l {
					if x == k {
						places, rows = append(places, start[r]+int32(i)), append(rows, int32(r))
					}
				}
				if slices.Contains(l, int32(n)-1-k) {
					passing = append(passing, int32(r))
				}
			}
			if got := place[gs[k]:gs[k+1]]; !slices.Equal(got, places) {
				t.Fatalf("seed %d: Group(%v) of %d = %v, want %v", seed, all, k, got, places)
			}
			if got := row[ts[k]:ts[k+1]]; !slices.Equal(got, rows) {
				t.Fatalf("seed %d: Transpose(%v) of %d = %v, want %v", seed, lists, k, got, rows)
			}
			if got := list[ps[k]:ps[k+1]]; !slices.Equal(got, passing) {
				t.Fatalf("seed %d: Passing(%v) of %d = %v, want %v", seed, lists, k, got, passing)
			}
		}
	}
}

// TestSets holds disjoint sets against labels that are written anew with every union.
func TestSets(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		n := 1 + rng.IntN(12)
		s, label := NewSets(n), Ascending[int32](n)
		for range rng.IntN(2 * n) {
			a, b := rng.Int32N(int32(n)), rng.Int32N(int32(n))
			s.Unite(a, b)
			x, y := label[a], label[b]
			for v := range label {
				if label[v] == max(x, y) {
					label[v] = min(x, y)
				}
			}
		}
		for v := range int32(n) {
			if got := s.Root(v); got != label[v] {
				t.Fatalf("seed %d: Root(%d) = %d, want %d", seed, v, got, label[v])
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for a := range 40 {
		for b := range 40 {
			want := 0
			for d := 1; d <= max(a, b); d++ {
				if a%d == 0 && b%d == 0 {
					want = d
				}
			}
			if got := GCD(a, b); got != want {
				t.Errorf("GCD(%d, %d) = %d, want %d", a, b, got, want)
			}
		}
	}
	for bits := range 256 {
		var a, b []int32
		for k := range int32(4) {
			if bits>>k&1 != 0 {
				a = append(a, k)
			}
			if bits>>(4+k)&1 != 0 {
				b = append(b, k)
			}
		}
		if got, want := Subset(a, b), bits&15&^(bits>>4) == 0; got != want {
			t.Errorf("Subset(%v, %v) = %v, want %v", a, b, got, want)
		}
	}
	index := Index[string, int32]([]string{"a", "b", "a"}, func(s *string) string { return *s })
	if len(index) != 2 || index["a"] != 2 || index["b"] != 1 {
		t.Errorf("Index = %v, want a: 2, b: 1", index)
	}
}

// SplitMix64 from 0, as published with xoshiro by Vigna.
func TestSplitMix(t *testing.T) {
	var s SplitMix
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := s.Next(); got != want {
			t.Errorf("next = %#x, want %#x", got, want)
		}
	}
}

func TestNever(t *testing.T) {
	if Never(nil)() || !Never(func() bool { return true })() {
		t.Error("Never must keep a function, and stand for one that is always false")
	}
}

// BenchmarkNearest goes over a grid of 100 by 100 nodes.
func BenchmarkNearest(b *testing.B) {
	const side = 100
	var s Nearest[int64]
	b.ReportAllocs()
	for b.Loop() {
		s.Begin(side*side, -1)
		s.Reach(0, 0)
		for v, d, ok := s.Next(); ok; v, d, ok = s.Next() {
			for _, w := range [...]int32{v - side, v + side, v - 1, v + 1} {
				if w >= 0 && w < side*side && (w/side == v/side || w%side == v%side) {
					s.Reach(w, d+int64(1+(v*w)%7))
				}
			}
		}
	}
}
