package opt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestKnapsack compares with all subsets, and splitting with the same done item by item.
func TestKnapsack(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var k Knapsack
	for n := range testkit.Rounds(4000, 20000) {
		items := r.IntN(9)
		path, demand, price := make([]int32, items), make([]int64, items), make([]int64, items)
		for i := range items {
			path[i], demand[i], price[i] = int32(i), 1+r.Int64N(9), r.Int64N(20)<<28
		}
		room, floor := r.Int64N(30), r.Int64N(2)<<32
		var best int64
		for set := range 1 << items {
			var value, size int64
			for i := range items {
				if set>>i&1 == 1 {
					value += price[i]
					size += demand[i]
				}
			}
			if size <= room {
				best = max(best, value)
			}
		}
		k.Split = false
		got := k.Solve(path, room, floor, demand, price)
		if got != best && !(best <= floor && got <= floor && got >= best) {
			t.Fatalf("seed %d, knapsack %d: value %d, want %d above %d", seed, n, got, best, floor)
		}
		if got > floor {
			var value, size int64
			for j, i := range k.Items {
				if k.Part[j] != 0 {
					value += price[i]
					size += demand[i]
				}
			}
			if value != got || size > room {
				t.Fatalf("seed %d, knapsack %d: the set has value %d and size %d, want %d and at most %d", seed, n, value, size, got, room)
			}
		}
		k.Split = true
		if got := k.Solve(path, room, floor, demand, price); got > floor {
			value, size := 0.0, 0.0
			for j, i := range k.Items {
				value += k.Part[j] * float64(price[i])
				size += k.Part[j] * float64(demand[i])
			}
			if got < best || math.Abs(value-float64(got)) > 2 || size > float64(room)+1e-9 {
				t.Fatalf("seed %d, knapsack %d: splitting gives %d of size %v with value %v, whole items %d", seed, n, got, size, value, best)
			}
		}
	}
}
