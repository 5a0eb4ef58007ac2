package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/sketches"
)

// worst returns the largest error over all ranks. An error is between the share of values and the estimated share that
// is not larger than v, for every v. Items and weights are those of the sketch, in order.
func worst(values *sketches.Exact[uint16], items []uint16, weights []uint64) float64 {
	var total uint64
	for _, w := range weights {
		total += w
	}
	n, t, err := float64(values.Count()), float64(total), 0.0
	var below uint64
	for i := 0; i < len(items); {
		v := items[i]
		less, notMore := values.Ranks(v)
		err = max(err, math.Abs(float64(below)/t-float64(less)/n))
		for ; i < len(items) && items[i] == v; i++ {
			below += weights[i]
		}
		err = max(err, math.Abs(float64(below)/t-float64(notMore)/n))
	}
	return err
}

func (t *Tiny) contents() (items []uint16, weights []uint64) {
	var sorted [tinyItems]uint32
	n, _ := t.sort(&sorted)
	for _, c := range sorted[:n] {
		items, weights = append(items, uint16(c>>8)), append(weights, 1<<(c&0xff))
	}
	return items, weights
}

// allowed is the number of violations, each of probability at most p, that n trials reach with probability below
// 1e-6 (sum of the binomial tail).
func allowed(n int, p float64) int {
	tail := 0.0
	for k := n; k >= 0; k-- {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		if tail += math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log(1-p)); tail >= 1e-6 {
			return k + 1
		}
	}
	return 0
}

func TestAllowed(t *testing.T) {
	// P(Binomial(200, 0.01) ≥ 13) = 4.6e-7, ≥ 12 = 2.8e-6.
	if got := allowed(200, 0.01); got != 13 {
		t.Errorf("allowed(200, 0.01) = %d, want 13", got)
	}
}

// streams are orders and distributions that sketches have been known to get wrong.
var streams = []struct {
	name  string
	value func(i, n int) uint32 // ascending in i
	order func(v []uint32, r *rand.Rand)
}{
	{"shuffled", identity, shuffle},
	{"ascending", identity, func([]uint32, *rand.Rand) {}},
	{"descending", identity, func(v []uint32, _ *rand.Rand) { slices.Reverse(v) }},
	{"few values", func(i, n int) uint32 { return uint32(i * 20 / n) }, shuffle},
	{"long tail", func(i, n int) uint32 { return uint32(float64(n) / float64(n-i)) }, shuffle},
	{"inwards", identity, func(v []uint32, _ *rand.Rand) { // smallest, largest, second, ...
		u := slices.Clone(v)
		for i := range v {
			if v[i] = u[i/2]; i%2 == 1 {
				v[i] = u[len(u)-1-i/2]
			}
		}
	}},
	{"blocks", identity, func(v []uint32, r *rand.Rand) { // a value range after the other, each shuffled
		for c := range slices.Chunk(v, 1+len(v)/7) {
			shuffle(c, r)
		}
	}},
}

func identity(i, _ int) uint32 { return uint32(i) }

func shuffle(v []uint32, r *rand.Rand) {
	r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
}
