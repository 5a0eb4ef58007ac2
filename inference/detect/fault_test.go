package detect

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// usualOf is the usual median of a hop.
func (r *run) usualOf() float64 { return math.Exp(float64(r.stats[P50].mean[usual])) - r.cfg.Floor }

// TestFaultsTrainNothing has a port that is twenty times as slow in fifteen of every forty windows. That lasts three
// hours of windows of a second, from soon after it was first seen. Each of the faults is seen, and they are one finding
// that rests between them. The usual level stays within a tenth of its value.
func TestFaultsTrainNothing(t *testing.T) {
	for hop := range uint64(5) {
		s, r := newSource(hop, 200, .3, 0), newRun()
		for range 120 {
			r.add(s.window(nil))
		}
		healthy, seen, faults, late := r.usualOf(), 0, 0, 0
		r.begun = nil
		for k := range 3 * 3600 {
			var change func(float64) float64
			if k%40 < 15 {
				change = func(v float64) float64 { return 20 * v }
			}
			r.add(s.window(change))
			switch k % 40 {
			case 3:
				faults++
				if r.active() && r.open.Cause == Rise {
					seen++
				}
			case 39:
				if r.active() {
					late++
				}
				if got := r.usualOf(); math.Abs(got/healthy-1) > .1 {
					t.Fatalf("hop %d, window %d: %.0f ns is usual, and was %.0f", hop, k, got, healthy)
				}
			}
		}
		if late > faults/50 {
			t.Errorf("hop %d: %d of %d faults are open where the hop is as usual", hop, late, faults)
		}
		if seen < faults || len(r.begun) > 4 || r.Times() < faults-2 {
			t.Errorf("hop %d: %d of %d faults are seen, as %d findings, the last one active %d times", hop, seen, faults, len(r.begun), r.Times())
		}
	}
}

// TestReturnIsNoFinding has a fault that lasts until its level is the usual one. When the hop is as before again, that
// is an end and nothing else; when the fault comes again, it is a finding.
func TestReturnIsNoFinding(t *testing.T) {
	for hop := range uint64(5) {
		for _, factor := range []float64{4, .25} {
			s, r := newSource(hop, 200, .3, 0), newRun()
			faulty := func(v float64) float64 { return factor * v }
			for range 2160 {
				r.add(s.window(nil))
			}
			for range 600 {
				r.add(s.window(faulty))
			}
			if len(r.begun) != 1 || len(r.ended) != 1 {
				t.Fatalf("hop %d, × %v: findings begin at %v and end at %v", hop, factor, r.begun, r.ended)
			}
			for range 600 {
				r.add(s.window(nil))
			}
			if len(r.begun) != 1 {
				t.Errorf("hop %d, × %v: the way back from 2760 on is a finding at %v: %v", hop, factor, r.begun[1:], r.causes[1:])
			}
			for range 5 {
				r.add(s.window(faulty))
			}
			if len(r.begun) != 2 {
				t.Errorf("hop %d, × %v: the fault comes back and is not found", hop, factor)
			}
		}
	}
}

// TestOneReport has hops with one report a window, 120 of 400 of which get four hundred times as slow. Half of them are
// found within ten windows. Values wait for a free line with a probability of a half.
func TestOneReport(t *testing.T) {
	found, other := 0, 0
	for hop := range uint64(400) {
		s, r := newSource(hop, 1, .5, 0), newRun()
		for range 720 {
			r.add(s.window(nil))
		}
		r.begun = nil
		for range 10 {
			w := s.window(nil)
			if hop%10 < 3 {
				w.P50, w.P90, w.P99 = 400*w.P50, 400*w.P90, 400*w.P99
			}
			r.add(w)
		}
		switch {
		case len(r.begun) > 0 && hop%10 < 3:
			found++
		case len(r.begun) > 0:
			other++
		}
	}
	if found < 60 || other > 0 {
		t.Errorf("%d of 120 are found, and %d of the others", found, other)
	}
}

// TestFloorAndTail holds that floor and tail show changes that median and 99th percentile do not. On a hop whose level
// wanders far, these are a floor that is twice as high, and a tail that is twice as long.
func TestFloorAndTail(t *testing.T) {
	for name, change := range map[string]func(w *Window){
		"low":  func(w *Window) { w.Low *= 2 },
		"tail": func(w *Window) { w.P99 *= 2 },
	} {
		for hop := range uint64(5) {
			s, r := newSource(hop, 1000, .3, .1), newRun()
			window := func() Window {
				w := s.window(nil)
				w.Low, w.HasLow = 5000+10*s.r.Float64(), true
				return w
			}
			for range 2160 {
				r.add(window())
			}
			r.begun, r.causes = nil, nil
			for range 3 {
				w := window()
				change(&w)
				r.add(w)
			}
			if len(r.begun) != 1 || r.causes[0].Statistic.String() != name {
				t.Errorf("%s, hop %d: found at %v: %+v", name, hop, r.begun, r.causes)
			}
		}
	}
}

// TestGraveOfOneValue: the 99th percentile of 80 values is one value, which was four times as high once in a long time.
// A tail that doubles is not grave because of that. One that is ten times as high is, within a few windows.
func TestGraveOfOneValue(t *testing.T) {
	for _, x := range []struct {
		factor      float64
		least, most int // seeds of 20
	}{{2.2, 0, 1}, {10, 19, 20}} {
		grave, once := 0, 0
		for seed := range uint64(20) {
			s, r := newSource(seed, 80, .5, .02), newRun()
			for range 720 {
				r.add(s.window(nil))
			}
			is, was := false, false
			for k := range 200 {
				w := s.window(func(v float64) float64 {
					if v > 1.5e4 {
						return x.factor * v
					}
					return v
				})
				r.add(w)
				if f, open := r.Open(); open && f.Statistic == P99 {
					is = is || r.Hop.Grave(&r.cfg, &w) && (x.factor < 4 || k < 8)
					was = was || f.Grave(&r.cfg)
				}
			}
			if is {
				grave++
			}
			if was {
				once++
			}
		}
		t.Logf("%v times: grave with %d of 20 seeds, in one window with %d", x.factor, grave, once)
		if grave < x.least || grave > x.most {
			t.Errorf("%v times: grave with %d of 20 seeds, want %d to %d", x.factor, grave, x.least, x.most)
		}
	}
}

// TestLate: the window in which a step began is among those in which it may have begun by the contrast that found it.
// That holds on any ground and for any height of a step that is found.
func TestLate(t *testing.T) {
	cfg := Utilization(10 * time.Second)
	found, late, missed := 0, 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		var h Hop
		step := 1 + .02*float64(1+seed%20)
		for k := range 700 {
			level := .3
			if k >= 600 {
				level *= step
			}
			if h.Add(&cfg, cfg.At(int64(k+1)*1e10), Window{Count: 1, P50: level * (1 + .03*r.NormFloat64())}) != Begun || k < 600 {
				continue
			}
			f, _ := h.Open()
			if found++; k-600 > 0 {
				late++
			}
			if uint64(k-600) > f.Late() {
				missed++
			}
			break
		}
	}
	if found < 60 || late < 30 || 10*missed > late {
		t.Errorf("%d steps are found, %d of them later than at once, %d later than stated", found, late, missed)
	}
	for contrast, want := range [contrasts]uint64{0, 0, 7, 22, 67, 200} {
		if got := (&Finding{Cause: Rise, contrast: uint8(contrast)}).Late(); got != want {
			t.Errorf("contrast %d is the greatest %d windows after a step, want %d", contrast, got, want)
		}
	}
	if got := (&Finding{Cause: Silent, contrast: nineSlow}).Late(); got != 0 {
		t.Errorf("a silence is found %d windows late", got)
	}
}
