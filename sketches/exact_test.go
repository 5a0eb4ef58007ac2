package sketches

import (
	"math"
	"testing"
)

func TestQuantileAndRank(t *testing.T) {
	var s Exact[int]
	if s.Quantile(0.5) != 0 || s.Rank(1) != 0 {
		t.Errorf("empty: Quantile, Rank = %d, %g, want 0", s.Quantile(0.5), s.Rank(1))
	}
	var o Exact[int]
	o.Update(40, 20)
	s.Update(20, 10, 30)
	s.Merge(&o) // 10 20 20 30 40
	for _, c := range []struct {
		q    float64
		want int
	}{
		{math.Inf(-1), 10}, {math.NaN(), 10}, {0, 10}, {0.2, 10}, {0.21, 20}, {0.5, 20}, {0.6, 20}, {0.61, 30}, {0.8, 30}, {0.81, 40}, {1, 40}, {math.Inf(1), 40},
	} {
		if got := s.Quantile(c.q); got != c.want {
			t.Errorf("Quantile(%g) = %d, want %d", c.q, got, c.want)
		}
	}
	for _, c := range []struct {
		v, less, notMore int
	}{{9, 0, 0}, {10, 0, 1}, {20, 1, 3}, {25, 3, 3}, {40, 4, 5}, {41, 5, 5}} {
		if less, notMore := s.Ranks(c.v); less != c.less || notMore != c.notMore || s.Rank(c.v) != float64(notMore)/5 {
			t.Errorf("Ranks(%d) = %d, %d, Rank %g, want %d, %d", c.v, less, notMore, s.Rank(c.v), c.less, c.notMore)
		}
	}
}

func TestCounts(t *testing.T) {
	c := ExactCounts[string]{}
	c.Add("a", 2)
	c.Add("b", 1)
	c.Add("a", 3)
	if c["a"] != 5 || c["b"] != 1 || c.Total() != 6 {
		t.Errorf("counts are %v, total %d", c, c.Total())
	}
}
