package collector

import (
	"math"
	"testing"
	"time"
)

// Workers wake for each datagram while there are few, and once a pause while there are many; between, never more often.
func TestWakeUps(t *testing.T) {
	const nap, workers, unit = time.Millisecond, 2, time.Microsecond
	most := workers / ((float64(nap) + wakeTime) / 1e9)
	last, each := 0.0, math.Inf(1)
	for rate := 1.0; rate < 1e7; rate *= 1.5 {
		wakes, units := wakeUps(rate, workers, nap, unit)
		if wakes > rate || wakes > most*(1+1e-9) || wakes < last || units > each || units < unitsWake {
			t.Errorf("%.0f datagrams a second: %.0f wake-ups of %.1f units", rate, wakes, units)
		}
		last, each = wakes, units
	}
	if few, units := wakeUps(1, workers, nap, unit); few < .99 || units < unitsWake+.99*unitsWait {
		t.Errorf("one datagram a second: %.2f wake-ups of %.1f units", few, units)
	}
	if last < .999*most {
		t.Errorf("%.0f wake-ups of many datagrams, want %.0f", last, most)
	}
	for _, c := range []struct {
		datagrams, want float64
		workers         int
		nap             time.Duration
	}{{0, 0, 2, nap}, {100, 0, 0, nap}, {100, 0, 0, 0}, {100, 100, 2, 0}} {
		if got, _ := wakeUps(c.datagrams, c.workers, c.nap, unit); got != c.want {
			t.Errorf("%+v: %.0f wake-ups", c, got)
		}
	}
	// Without a pause, or on a slow processor, workers take no more than all of their time.
	for _, nap := range []time.Duration{0, 1, nap, 100 * nap} {
		for _, unit := range []time.Duration{1, unit, 4 * unit, time.Millisecond} {
			if wakes, units := wakeUps(1e7, workers, nap, unit); wakes*units*unit.Seconds() > workers*(1+1e-9) {
				t.Errorf("pauses of %v, units of %v: %.0f wake-ups of %.1f units of two workers", nap, unit, wakes, units)
			}
		}
	}
}
