package inference

import (
	"math"
	"testing"
)

func TestNanoseconds(t *testing.T) {
	for _, c := range []struct {
		ns   float64
		want string
	}{
		{0, "0ns"}, {1, "1ns"}, {999, "999ns"}, {999.6, "1µs"}, {1000, "1µs"}, {1234, "1.23µs"}, {12_345_678, "12.3ms"}, {999_499, "999µs"},
		{999_999, "1ms"}, {5_420_000, "5.42ms"}, {20e9, "20s"}, {123_456e9, "123000s"}, {-1500, "-1.5µs"}, {0.1234, "0.123ns"},
	} {
		if got := Nanoseconds(c.ns); got != c.want {
			t.Errorf("Nanoseconds(%g) = %q, want %q", c.ns, got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		share         float64
		digits        int
		want, atLeast string
	}{
		{0, 2, "0 %", "0 %"}, {.9996, 2, "100 %", "99 %"}, {.996, 2, "100 %", "99 %"}, {1, 2, "100 %", "100 %"}, {.99999, 3, "100 %", "99.9 %"}, {.12345, 3, "12.3 %", "12.3 %"},
		{.12356, 3, "12.4 %", "12.3 %"}, {.0000012, 2, "0.00012 %", "0.00012 %"}, {12.345, 3, "1230 %", "1230 %"}, {.0999, 2, "10 %", "9.9 %"}, {.09949, 3, "9.95 %", "9.94 %"},
	} {
		if got := Percent(c.share, c.digits); got != c.want {
			t.Errorf("Percent(%g, %d) = %q, want %q", c.share, c.digits, got, c.want)
		}
		if got := PercentAtLeast(c.share, c.digits); got != c.atLeast {
			t.Errorf("PercentAtLeast(%g, %d) = %q, want %q", c.share, c.digits, got, c.atLeast)
		}
	}
	if got := RoughNanoseconds(1_274_000) + " " + RoughNanoseconds(999) + " " + RoughNanoseconds(51_499); got != "1.3ms 1µs 51µs" {
		t.Errorf("rough times are %s", got)
	}
}

func TestRound(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {7, 7}, {999, 999}, {1234, 1230}, {1235, 1240}, {63_543, 63_500}, {.012345, .0123}, {math.MaxFloat64, math.MaxFloat64}, {math.Inf(1), math.Inf(1)}} {
		if got := Round(c[0]); got != c[1] {
			t.Errorf("Round(%g) = %g, want %g", c[0], got, c[1])
		}
	}
}
