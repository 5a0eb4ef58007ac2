package roster

import (
	"strings"
	"testing"
	"time"
)

func TestParams(t *testing.T) {
	a := NewParams("east", 16, 10*time.Second, 1)
	if second := NewParams("east", 16, 10*time.Second, 1); len(a.Differences(&second)) > 0 {
		t.Errorf("%v differ from themselves", a)
	}
	if NewParams("west", 16, 10*time.Second, 1).Seed == a.Seed {
		t.Error("the mark of a seed is the same in every fleet")
	}
	b := NewParams("west", 8, time.Second, 2)
	b.Codes, b.Version = 7, 8
	got := strings.Join(a.Differences(&b), "\n")
	for _, want := range []string{"name: the fleet has east, this member west", "slices: ", "window: the fleet has 10s, this member 1s", "codes and units: ", "records: ", "seed: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}
