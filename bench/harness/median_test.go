package harness

import "testing"

// The order of a list has no effect on its median.
func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 4}, 4}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := Median(tt.v); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.v, got, tt.want)
		}
	}
}

// The interval has the ranks of the sign test: of 21 values the 6th and the 16th.
func TestMedianInterval(t *testing.T) {
	var list []float64
	for i := range 21 {
		list = append(list, float64((i*8)%21+1))
	}
	for _, tt := range []struct {
		list      []float64
		low, high float64
	}{{list, 6, 16}, {[]float64{3, 1, 2}, 1, 3}, {[]float64{6, 5, 4, 3, 2, 1}, 1, 6}, {[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, 2, 8}, {nil, 0, 0}} {
		if low, high := MedianInterval(tt.list); low != tt.low || high != tt.high {
			t.Errorf("MedianInterval(%v) = %v, %v, want %v, %v", tt.list, low, high, tt.low, tt.high)
		}
	}
}
