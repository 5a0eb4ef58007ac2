package testkit

import "testing"

func TestSeed(t *testing.T) {
	defer func(old bool) { night = old }(night)
	t.Setenv(seedSetting, "")
	night = false
	gate := Seed(t)
	if second := Seed(t); second != gate {
		t.Errorf("two seeds of the gate: %d and %d", gate, second)
	}
	t.Run("another", func(t *testing.T) {
		if other := Seed(t); other == gate {
			t.Errorf("two tests have the seed %d", gate)
		}
	})
	night = true
	if a, b := Seed(t), Seed(t); a == b {
		t.Errorf("the night draws %d twice", a)
	}
	t.Setenv(seedSetting, "18446744073709551615")
	if seed := Seed(t); seed != 1<<64-1 {
		t.Errorf("%d, want the seed that is set", seed)
	}
}
