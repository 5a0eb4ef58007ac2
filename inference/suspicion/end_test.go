package suspicion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// A loss that ends after some cycles is over as soon as its share would have shown, however many cycles without a loss
// follow.
func TestLossEnds(t *testing.T) {
	for seed := range uint64(20) {
		in, r := crossings(t), rand.New(rand.NewPCG(seed, 1))
		s := New(DefaultConfig(), in, nil)
		const begins, ends = 300, 314
		raised, last := false, 0
		for k := range 500 {
			share := 0.0
			if k >= begins && k < ends {
				share = .03
			}
			got := s.Step(&Cycle{Now: int64(k+1) * 1e9, Rounds: lossy(in, 20, []int32{3}, share, r)})
			raised = raised || slices.Contains(links(got), 3)
			if len(got) > 0 {
				last = k
			}
		}
		// In a cycle 40 rounds cross the link. At 3 %, 12 more are lost in ten cycles, or in twice as many by the few
		// losses that were seen.
		if most := 20 + DefaultConfig().ClearAfter + 1; !raised || last-ends > most {
			t.Errorf("seed %d: raised is %v, and %d cycles after the end it is suspected still, want %d at most", seed, raised, last-ends, most)
		}
	}
}

// A cause is evidence as long as one of the findings that it explains is open, and no longer: it stays open for others.
func TestCauseEnds(t *testing.T) {
	cfg := DefaultConfig()
	s := New(cfg, crossings(t), by{{Kind: inference.InterfaceElement, Node: 3}: {3}})
	member := inference.Finding{ID: 1, Cause: 2, Kind: inference.HighQueue, Severity: inference.Warning, Element: inference.Element{Kind: inference.InterfaceElement, Node: 3}, Node: 3}
	cause := inference.Finding{ID: 2, Evidence: 1, Kind: inference.HighQueue, Severity: inference.Warning, Element: inference.Element{Kind: inference.InterfaceElement, Node: 3}, Node: 3}
	late := member
	late.ID = 3
	suspected := func(open ...inference.Finding) bool {
		return len(s.Step(&Cycle{NoNewWindow: true, NoNewRounds: true, Findings: open})) > 0
	}
	for k := range 20 {
		if !suspected(member, cause) {
			t.Fatalf("cycle %d with its evidence: it is not suspected", k)
		}
	}
	for k := range cfg.ClearAfter - 1 {
		if !suspected(cause) {
			t.Fatalf("%d cycles after its evidence it is not suspected", k+1)
		}
	}
	for k := range 10 {
		if suspected(cause) {
			t.Fatalf("%d cycles after its evidence it is suspected", cfg.ClearAfter+k)
		}
	}
	if !suspected(cause, late) {
		t.Error("it has evidence again, and is not suspected")
	}
}

// A finding that stays open because it came back before accuses nothing while its place is as usual, and does again
// when it is back.
func TestRestingEnds(t *testing.T) {
	cfg := DefaultConfig()
	f := inference.Finding{ID: 1, Kind: inference.HighQueue, Severity: inference.Critical, Element: inference.Element{Kind: inference.InterfaceElement, Node: 3}, Node: 3}
	cause := f
	cause.ID, cause.Evidence = 2, 1
	for _, open := range [][]inference.Finding{{f}, {f, cause}} {
		s := New(cfg, crossings(t), by{{Kind: inference.InterfaceElement, Node: 3}: {3}})
		suspected := func(resting bool) bool {
			now := slices.Clone(open)
			if now[0].Resting = resting; len(open) > 1 {
				now[0].Cause = 2
			}
			return len(s.Step(&Cycle{NoNewWindow: true, NoNewRounds: true, Findings: now})) > 0
		}
		for range 3 {
			for k := range 10 {
				if !suspected(false) {
					t.Fatalf("%d findings, cycle %d: it is not suspected", len(open), k)
				}
			}
			for k := range 2 * cfg.ClearAfter {
				if got, want := suspected(true), k < cfg.ClearAfter-1; got != want {
					t.Fatalf("%d findings, %d cycles after it was as usual: suspected is %v", len(open), k+1, got)
				}
			}
		}
	}
}
