package testkit

import "testing"

func TestRounds(t *testing.T) {
	defer func(old bool) { night = old }(night)
	night = true
	if n := Stride(); n != 1 {
		t.Errorf("by night every %dth, want each", n)
	}
	if n := Rounds(8, 1000); n != 1000 {
		t.Errorf("by night %d, want 1000", n)
	}
	night = false
	want, stride := 8, 1
	if Race || testing.Short() {
		want, stride = 2, 4
	}
	if n := Stride(); n != stride {
		t.Errorf("in the gate every %dth, want every %dth", n, stride)
	}
	if n := Rounds(8, 1000); n != want {
		t.Errorf("in the gate %d, want %d", n, want)
	}
	if n := Rounds(1, 1000); n != 1 {
		t.Errorf("one round became %d", n)
	}
}
