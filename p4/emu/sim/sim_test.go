package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The oracle is a sorted list.
func TestEventsComeInOrder(t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	var q Events
	q.seq = math.MaxUint32 - 500 // the numbers wrap
	type pending struct {
		at    int64
		order int
	}
	var list []pending
	order, now := map[uint32]int{}, int64(0)
	for step := range 50_000 {
		if len(list) < 5 || r.IntN(2) == 0 {
			at := now + r.Int64N(20)
			order[q.Add(at, 0)] = step
			list = append(list, pending{at, step})
			continue
		}
		least := 0
		for i, p := range list {
			if p.at < list[least].at || p.at == list[least].at && p.order < list[least].order {
				least = i
			}
		}
		e := q.Next()
		if e.At != list[least].at || order[e.Seq] != list[least].order {
			t.Fatalf("seed %d step %d: event %d at %d, want %d at %d", seed, step, order[e.Seq], e.At, list[least].order, list[least].at)
		}
		now = e.At
		delete(order, e.Seq)
		list = slices.Delete(list, least, least+1)
	}
}

// The frequencies are compared by a chi-square statistic; with 19 degrees of freedom it passes 80 with a chance of 2e-9.
func TestAliasDrawsTheWeights(t *testing.T) {
	const seed, draws = 4, 400_000
	r := rand.New(rand.NewPCG(seed, 0))
	weights, total := make([]float64, 20), 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -1.1)
		total += weights[i]
	}
	a, count := NewAlias(weights), make([]float64, 20)
	for range draws {
		count[a.Pick(r)]++
	}
	chi := 0.0
	for i, w := range weights {
		want := draws * w / total
		chi += (count[i] - want) * (count[i] - want) / want
	}
	if chi > 80 {
		t.Errorf("seed %d: chi-square %.1f: %v", seed, chi, count)
	}
}
