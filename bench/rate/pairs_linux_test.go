package rate

import (
	"strings"
	"testing"
)

// Ratios are those of one round, and the limit of a receiver is that of most rounds.
func TestPairs(t *testing.T) {
	r := PairsResult{pairs: pairs[:2]}
	for i := range 7 {
		speed := float64(i + 1) // of the machine
		r.Rounds = append(r.Rounds, []steady{
			{Receiver: "ring-pipeline", Rate: 90 * speed, Cost: 4, Full: 0.9}, {Receiver: "ring-bare", Rate: 100 * speed, Cost: 1, Full: 0.01},
			{Receiver: "xdp-pipeline", Rate: 50 * speed, Cost: 4, Full: 0.9}, {Receiver: "xdp-bare", Rate: 100 * speed, Cost: 1, Full: 0.9, Lost: 3},
		})
	}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ring-bare   0.90        0.90  0.90", "xdp-bare   0.50        0.50  0.50", "ring-bare           400                   1     0    sender", "xdp-bare           400                   1    21  receiver"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
}

// Every receiver of a pair is one.
func TestPairsNames(t *testing.T) {
	for _, p := range pairs {
		for _, name := range []string{p.over, p.under} {
			if _, err := lookupReceiver(name); err != nil {
				t.Error(err)
			}
		}
	}
}

// The processor time of this process is what it is to the nanosecond, and grows.
func TestTaskTime(t *testing.T) {
	before, err := taskTime(1)
	if err != nil || before <= 0 {
		t.Errorf("taskTime = %v, %v", before, err)
	}
}
