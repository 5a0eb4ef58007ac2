package control

import "testing"

// TestPlanOfThisLife has an agent connect again that still has the first plan, when the second one is the target: that is a
// plan of this life, and not one of which nothing is known. Epochs below the first, and above what was sent, are others'.
func TestPlanOfThisLife(t *testing.T) {
	w := newWorld(Config{Cycle: cycle, Timeout: timeout, Grace: grace, Attempts: 4}, triangle())
	for range 200 {
		w.rest()
	}
	first := w.c.InForce()
	if first == nil || !w.c.settled {
		t.Fatalf("no plan came into force%v", w)
	}
	w.bad = []Suspect{{Link: w.links[0], Weight: 1}}
	for range 200 {
		if w.rest(); w.c.target.Epoch > first.Epoch {
			break
		}
	}
	d := &w.c.devices[0]
	if d.Kind != Agent || w.c.target.Epoch <= first.Epoch || w.c.first != first.Epoch {
		t.Fatalf("the first epoch is %d and the target's %d, want that of the first plan, %d, and a later one", w.c.first, w.c.target.Epoch, first.Epoch)
	}
	for _, c := range []struct {
		first, epoch, mayHave uint32
		foreign               bool
	}{
		{first.Epoch, first.Epoch, first.Epoch, false},
		{first.Epoch, first.Epoch, w.c.target.Epoch, false},
		{first.Epoch, w.c.target.Epoch, w.c.target.Epoch, false},
		{first.Epoch, 0, w.c.target.Epoch, false},
		{w.c.target.Epoch, first.Epoch, w.c.target.Epoch, true},
		{first.Epoch, first.Epoch, 0, true},
	} {
		w.c.first = c.first
		d.met, d.known, d.foreign, d.mayHave, d.inForce = true, true, false, c.mayHave, c.epoch
		w.c.ask(d)
		w.c.readBack(ReadBack{Device: d.Device, Request: d.request, Epoch: c.epoch})
		if d.foreign != c.foreign {
			t.Errorf("a plan of epoch %d, after those up to %d were sent, is of another life: %v, want %v", c.epoch, c.mayHave, d.foreign, c.foreign)
		}
	}
}
