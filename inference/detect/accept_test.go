package detect

import (
	"bytes"
	"math"
	"testing"
)

// TestAccept has a hop that gets four times as slow or fast for good, which is accepted ten windows later. The finding
// ends, and the level is the usual one. Staying there, going back and coming again are no findings. Sixteen times as
// far is one, though the hop strayed that much.
func TestAccept(t *testing.T) {
	for hop := range uint64(5) {
		for _, factor := range []float64{4, .25} {
			s, r := newSource(hop, 200, .3, 0), newRun()
			by := func(f float64) func(float64) float64 { return func(v float64) float64 { return f * v } }
			for range 2160 {
				r.add(s.window(nil))
			}
			healthy := r.usualOf()
			for range 10 {
				r.add(s.window(by(factor)))
			}
			if len(r.begun) != 1 || !r.Accept() || r.Accept() {
				t.Fatalf("hop %d, × %v: findings begin at %v; the last one can not be accepted once", hop, factor, r.begun)
			}
			if got := r.usualOf() / healthy; math.Abs(got/factor-1) > .15 {
				t.Errorf("hop %d, × %v: × %.2f is usual", hop, factor, got)
			}
			before := r.AppendState(nil)
			var second Hop
			if err := second.ReadState(before); err != nil || !bytes.Equal(second.AppendState(nil), before) {
				t.Errorf("hop %d, × %v: its state is another one when it is read: %v", hop, factor, err)
			}
			for _, then := range []float64{factor, 1, factor, 1, factor} {
				for range 200 {
					r.add(s.window(by(then)))
				}
			}
			if len(r.begun) != 1 {
				t.Errorf("hop %d, × %v: findings begin at %v", hop, factor, r.begun)
			}
			for range 20 {
				r.add(s.window(by(factor * factor * factor)))
			}
			if len(r.begun) != 2 {
				t.Errorf("hop %d, × %v: × %v is not found", hop, factor, factor*factor*factor)
			}
		}
	}
}

// TestAcceptRecurring has a port that is overloaded in fifteen of every forty windows, which is accepted while it rests.
func TestAcceptRecurring(t *testing.T) {
	s, r := newSource(1, 200, .3, 0), newRun()
	step := func(k int) {
		if k%40 < 15 {
			r.add(s.window(func(v float64) float64 { return 20 * v }))
			return
		}
		r.add(s.window(nil))
	}
	for range 360 {
		r.add(s.window(nil))
	}
	for k := range 40 * 10 {
		step(k)
	}
	if !r.Resting() || !r.Accept() {
		t.Fatal("no finding rests")
	}
	r.begun = nil
	for k := range 40 * 20 {
		step(k)
	}
	if len(r.begun) > 0 {
		t.Errorf("findings begin at %v", r.begun)
	}
}
