package detect

import (
	"testing"
	"time"
)

// A finding is grave from the configured multiple of the usual value on, or the same part of it.
func TestGraveThreshold(t *testing.T) {
	cfg := Latency(time.Second)
	for _, x := range []struct {
		finding Finding
		want    bool
	}{
		{Finding{Cause: Rise, Factor: cfg.Grave - .001}, false}, {Finding{Cause: Rise, Factor: cfg.Grave}, true}, {Finding{Cause: Rise, Factor: cfg.Grave + .001}, true},
		{Finding{Cause: Fall, Factor: 1/cfg.Grave - .001}, true}, {Finding{Cause: Fall, Factor: 1 / cfg.Grave}, true}, {Finding{Cause: Fall, Factor: 1/cfg.Grave + .001}, false},
		{Finding{Cause: Silent}, true}, {Finding{Cause: Stuck}, false}, {Finding{}, false},
	} {
		if got := x.finding.Grave(&cfg); got != x.want {
			t.Errorf("%v by %v: grave %v, want %v", x.finding.Cause, x.finding.Factor, got, x.want)
		}
	}
}

// A window counts from MinCount values on, a hop is judged after Warmup of them, and learns until learnSteady.
func TestCountThresholds(t *testing.T) {
	cfg := Latency(time.Second)
	run := func(windows int, count uint64) *Hop {
		h := new(Hop)
		for i := range windows {
			h.Add(&cfg, cfg.At(int64(i+1)*1e9), Window{Count: count, P50: 1000 + float64(i%7), P90: 2000, P99: 3000 + float64(i%5)})
		}
		return h
	}
	for i, want := range []uint32{0, 9, 9} {
		if n := cfg.MinCount - 1 + uint64(i); run(9, n).windows != want {
			t.Errorf("%d values: %d windows count, want %d", n, run(9, n).windows, want)
		}
	}
	for i, want := range []bool{true, false, false} {
		if n := cfg.Warmup - 1 + i; run(n, 200).Warming(&cfg) != want {
			t.Errorf("%d windows: warming %v, want %v", n, !want, want)
		}
		if n := learnSteady - 1 + i; run(n, 200).Learning() != want {
			t.Errorf("%d windows: learning %v, want %v", n, !want, want)
		}
	}
}
