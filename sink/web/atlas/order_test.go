package atlas

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// An order is a permutation that keeps neighbours near. Of a shuffled ladder, whose best bandwidth is 2, it is small.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const n = 60
	shuffled := r.Perm(n)
	var directions [][2]int
	add := func(a, b int) {
		directions = append(directions, [2]int{shuffled[a], shuffled[b]}, [2]int{shuffled[b], shuffled[a]})
	}
	for i := 0; i+2 < n; i++ {
		if add(i, i+2); i%2 == 0 {
			add(i, i+1)
		}
	}
	order := Order(make([]Spot, n), directions)
	row := make([]int, n)
	for at, i := range order {
		row[i] = at
	}
	if s := slices.Clone(order); true {
		slices.Sort(s)
		for i := range s {
			if s[i] != i {
				t.Fatalf("no permutation: %v", order)
			}
		}
	}
	farthest := 0
	for _, d := range directions {
		farthest = max(farthest, row[d[0]]-row[d[1]])
	}
	if farthest > 3 {
		t.Errorf("neighbours are %d rows apart", farthest)
	}

	// A fabric stands by pods, edges first, and its cores behind them.
	spots := []Spot{{3, 0, 1}, {2, 2, 0}, {1, 1, 0}, {2, 1, 0}, {1, 2, 0}, {}}
	if got, want := Order(spots, nil), []int{2, 3, 4, 1, 0, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
