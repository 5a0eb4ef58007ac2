package fleet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// again returns a gate that goes on from the state of g.
func again(t *testing.T, g *Gate) *Gate {
	t.Helper()
	n, written := g.fresh(), g.AppendState(nil)
	if err := n.ReadState(written); err != nil || !bytes.Equal(n.AppendState(nil), written) {
		t.Fatalf("another state after it was read: %v", err)
	}
	return n
}

// TestGateOutOfOrder adds the records of a run in any order, some of them twice, with restarts and windows that close.
// Each is taken once, however far it is behind the others. Only copies are duplicates.
func TestGateOutOfOrder(t *testing.T) {
	duplicates, late, behind := 0, 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newScript(t, nil)
		seen := map[uint64]bool{}
		var all []uint64
		blocks := rng.Perm(4 + rng.IntN(8)) // of numbers that follow each other, as waiting records do
		most := 1 + rng.IntN(150)
		for _, b := range blocks {
			for n := range most {
				all = append(all, uint64(1+b*most+n))
			}
		}
		for range rng.IntN(maxGaps / 4) { // and some that are moved by themselves
			i, j := rng.IntN(len(all)), rng.IntN(len(all))
			all[i], all[j] = all[j], all[i]
		}
		closed := int64(0)
		for i := range all {
			for n := range 1 + rng.IntN(3) {
				seq := all[i]
				if n > 0 {
					seq = all[rng.IntN(i+1)]
				}
				h := part("a", 1, seq, 100+int64(seq)/50)
				v, err := s.add(h)
				want := Nothing
				switch {
				case seen[seq]:
					want = Duplicate
					duplicates++
				case h.End <= closed:
					want = Late
					late++
				}
				if v.Kind != want || err != nil {
					t.Fatalf("seed %d, number %d: %v, %v, want %v", seed, seq, v.Kind, err, want)
				}
				if len(s.g.names["a"].runs[0].gaps) > 1 {
					behind++
				}
				seen[seq] = true
			}
			if rng.IntN(30) == 0 {
				s.g = again(t, s.g)
			}
			if rng.IntN(60) == 0 && s.g.Open() > 0 {
				closed = s.g.open[0].end
				s.closes(closed/tick, nil, nil)
			}
		}
	}
	if duplicates < 1000 || late < 100 || behind < 1000 {
		t.Errorf("%d duplicates, %d late, %d with gaps: too few", duplicates, late, behind)
	}
}

// TestGateManyGaps: where a run has more gaps than are known, a record of the lowest ones is refused, with the reason.
// No record is a duplicate that is none.
func TestGateManyGaps(t *testing.T) {
	s := newScript(t, nil)
	const odd = 2 * (ringLen + maxGaps + 10)
	for seq := uint64(1); seq < odd; seq += 2 {
		s.want(part("a", 1, seq, 100), Nothing, nil)
	}
	s.g = again(t, s.g)
	refused := 0
	for seq := uint64(odd - 2); seq > 0; seq -= 2 {
		v, err := s.add(part("a", 1, seq, 100))
		switch {
		case v.Kind == Nothing && err == nil && refused == 0:
			s.want(part("a", 1, seq, 100), Duplicate, nil)
		case v.Kind == Refused && LeftOut(err):
			refused++
		default:
			t.Fatalf("number %d: %v, %v", seq, v.Kind, err)
		}
	}
	if refused == 0 || refused > 30 {
		t.Errorf("%d are refused", refused)
	}
}

// TestGateGapsEnd: gaps are forgotten when their records are too old. A state without gaps is one that a former program
// reads, and one with gaps is none.
func TestGateGapsEnd(t *testing.T) {
	s := newScript(t, func(c *Options) { c.Corrections = 5 * tick })
	if v := s.g.AppendState(nil)[0]; v != 1 {
		t.Errorf("version %d", v)
	}
	for seq := uint64(2); seq < 60; seq++ {
		s.want(part("a", 1, seq, 100), Nothing, nil)
	}
	s.same("gaps", s.g.names["a"].runs[0].gaps, []gap{{1, 1, 100 * tick}})
	if v := s.g.AppendState(nil)[0]; v != gateState {
		t.Errorf("version %d", v)
	}
	for w := int64(100); w < 107; w++ {
		s.same(fmt.Sprint("gaps before window ", w), len(s.g.names["a"].runs[0].gaps), map[bool]int{true: 1}[w < 106])
		s.closes(w, nil, nil)
		s.want(part("a", 1, uint64(w), w+1), Nothing, nil)
	}
	if v := s.g.AppendState(nil)[0]; v != 1 {
		t.Errorf("version %d", v)
	}
}

// TestGateForgottenRun: a run that was forgotten comes again. What is open of it is known, so its copies do not count.
func TestGateForgottenRun(t *testing.T) {
	s := newScript(t, nil)
	for run := range uint64(maxRuns + 3) {
		for seq := range uint64(40) {
			s.want(part("a", run+1, seq+1, 100+int64(run)), Nothing, nil)
		}
	}
	for run := range uint64(3) {
		for seq := range uint64(40) {
			s.want(part("a", run+1, seq+1, 100+int64(run)), Duplicate, nil)
		}
	}
	s.want(part("a", 1, 41, 100), Nothing, nil)
}
