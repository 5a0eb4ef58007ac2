package pint

import (
	"math"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// walk sends a packet over a path and returns the hop at which a loop is first reported, or 0.
func walk(l *Loops, id uint32, path []uint32) int {
	digest := uint64(0)
	for i, node := range path {
		var report bool
		if digest, report = l.Step(digest, id, i+1, node); report {
			return i + 1
		}
	}
	return 0
}

// within reports whether n of trials is less than six standard deviations from the expectation for probability p. A
// false alarm is rarer than 1e-8.
func within(n, trials int, p float64) bool {
	mean := float64(trials) * p
	return math.Abs(float64(n)-mean) <= 6*math.Sqrt(mean*(1-p))+1
}

func TestFalseAlarms(t *testing.T) {
	seed := uint32(testkit.Seed(t))
	path := make([]uint32, 32)
	for i := range path {
		path[i] = uint32(i)
	}
	const trials = 100_000
	for _, h := range []Hash{HashMix, HashCRC} {
		for _, c := range []struct{ bits, t int }{{4, 0}, {6, 0}, {4, 1}, {6, 1}, {3, 2}, {8, 0}} {
			l := &Loops{Hash: h, Seed: seed, Bits: c.bits, T: c.t}
			alarms := 0
			for id := range uint32(trials) {
				if walk(l, id, path) > 0 {
					alarms++
				}
			}
			if p := l.FalseAlarm(len(path)); !within(alarms, trials, p) {
				t.Errorf("seed %d: %v b=%d T=%d: %d alarms in %d packets, want %.1f", seed, h, c.bits, c.t, alarms, trials, p*trials)
			}
		}
	}
}

// PINT, section on routing loops: T = 1 and b = 15 report a loop that is none for less than 5e-7 of the packets on 32
// hops. Every bit of hash divides them by up to four.
func TestFalseAlarmsOfThePaper(t *testing.T) {
	l := &Loops{Bits: 15, T: 1}
	if l.Width() != 16 {
		t.Errorf("width %d, want 16", l.Width())
	}
	if p := l.FalseAlarm(32); p < 2.1e-7 || p > 2.2e-7 {
		t.Errorf("false alarms %g, want 2.16e-7, and below 5e-7", p)
	}
	for b := 6; b < 15; b++ {
		p, next := (&Loops{Bits: b, T: 1}).FalseAlarm(32), (&Loops{Bits: b + 1, T: 1}).FalseAlarm(32)
		if r := p / next; r < 3.6 || r > 4.05 {
			t.Errorf("b = %d: %g alarms, b = %d: %g", b, p, b+1, next)
		}
	}
}

// The algorithm as it is printed has the rates that the paper states. They are below 5e-7 for T = 1 and b = 15, and
// below 5e-13 for T = 3 and b = 14. For 16 bits without a counter they are some 0.05 %.
func TestPrintedFalseAlarms(t *testing.T) {
	for _, c := range []struct {
		bits, t     int
		least, most float64
	}{{16, 0, 4.5e-4, 5e-4}, {15, 1, 4.3e-7, 5e-7}, {14, 3, 4.3e-13, 5e-13}} {
		l := &Loops{Bits: c.bits, T: c.t}
		if p := l.PrintedFalseAlarm(32); p < c.least || p > c.most {
			t.Errorf("b = %d, T = %d: %g, want %g to %g", c.bits, c.t, p, c.least, c.most)
		}
	}
}

func TestDetection(t *testing.T) {
	seed := uint32(testkit.Seed(t))
	const trials = 20_000
	for _, c := range []struct{ t, lead, length, hops int }{{0, 0, 1, 10}, {0, 3, 4, 40}, {1, 3, 4, 64}, {1, 0, 2, 30}, {3, 2, 5, 64}} {
		l := &Loops{Seed: seed, Bits: 32, T: c.t}
		path := make([]uint32, c.hops)
		for i := range path {
			path[i] = uint32(min(i, c.lead) + max(0, i-c.lead)%c.length)
		}
		found := 0
		for id := range uint32(trials) {
			if walk(l, id, path) > 0 {
				found++
			}
		}
		if p := l.Detection(c.lead, c.length, c.hops); !within(found, trials, p) {
			t.Errorf("seed %d: %+v: %d of %d loops found, want %.1f", seed, c, found, trials, p*trials)
		}
	}
}
