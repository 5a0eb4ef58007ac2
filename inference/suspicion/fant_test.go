package suspicion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is FANT's test written down as it reads, over all values that came.
func naive(values []float64, theta1, theta2 float64) bool {
	n := len(values) - 1
	v := values[n]
	average := func(s []float64) (sum, size float64) {
		for _, x := range s {
			sum += x / float64(len(s))
			size += math.Abs(x) / float64(len(s))
		}
		return sum, size
	}
	var changes []float64
	for i := 1; i <= n; i++ {
		changes = append(changes, values[i]-values[i-1])
	}
	if n >= fantHistory {
		if mean, _ := average(values[n-fantHistory : n]); math.Abs(v-mean) > theta1*mean {
			return true
		}
	}
	if k := len(changes) - 1; k >= fantHistory {
		if mean, size := average(changes[k-fantHistory : k]); math.Abs(changes[k]-mean) > theta2*size {
			return true
		}
	}
	return false
}

// The test follows its formulas, for random values, values that stand still, and steps.
func TestDeviation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	said := map[bool]int{}
	for range 200 {
		var d Deviation
		var values []float64
		for k := range 60 {
			v := math.Round(10 * r.ExpFloat64())
			if k > 40 {
				v *= 5
			}
			values = append(values, v)
			got := d.Step(v, 1, 3)
			if want := naive(values, 1, 3); got != want {
				t.Fatalf("after %v: %v, want %v", values, got, want)
			}
			said[got]++
		}
	}
	if said[true] < 100 || said[false] < 100 {
		t.Errorf("said %v", said)
	}
	var d Deviation
	for _, v := range []float64{1, 1, 1, 1, 1, math.NaN(), math.Inf(1), 1, 1} {
		if d.Step(v, 1, 3) {
			t.Errorf("%v is suspicious beside ones", v)
		}
	}
	if !d.Step(2.5, 1, 3) {
		t.Error("2.5 is not suspicious beside ones")
	}
}

// A link is suspicious if any metric of any probe is, and in that cycle alone; nothing is allocated.
func TestFant(t *testing.T) {
	f := NewFant(4, 2, [][]int32{{0, 1, 2}, {3, 1, 3}}, 1, 3)
	buf := make([]int32, 0, 4)
	cycle := func(odd float64) []int32 {
		for m := range 2 {
			for p := range 2 {
				for h := range 3 {
					v := 10.0
					if m == 1 && p == 1 && h == 2 {
						v = odd
					}
					f.Add(m, p, h, v)
				}
			}
		}
		return f.AppendSuspicious(buf[:0])
	}
	for range 10 {
		if got := cycle(10); len(got) > 0 {
			t.Fatalf("%v of values that do not change", got)
		}
	}
	if got := cycle(30); !slices.Equal(got, []int32{3}) {
		t.Errorf("%v, want link 3, the last one of probe 1", got)
	}
	if n := testing.AllocsPerRun(100, func() { cycle(10) }); n != 0 {
		t.Errorf("%v allocations a cycle", n)
	}
}
