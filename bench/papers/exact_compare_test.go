package papers_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

// instances is how many random ones a family is held against.
const instances = 200

// The tests of files exact_*_test.go hold the plans of every family against a general solver. They state the problem
// of a family as a mixed integer programme, straight from the instance and in other terms than the planner's. HiGHS
// solves it, and they compare items left out, the objective, and every bound and claim of optimality. `make python`
// installs HiGHS.
//
// Of query mixes, packets until an answer are given here, and not modelled; the frequencies can be held. What becomes of
// those that cannot is held against exact arithmetic beside the planner, as are shares beyond the worst query's.

// truth is the solver's proven optimum.
type truth struct{ leftOut, objective float64 }

// hold compares a plan's own figures with the truth. Instances here are small: every plan has to be proven.
func hold(t *testing.T, what string, in any, s *planner.Stats, want truth) {
	t.Helper()
	wrong := ""
	switch {
	case !near(s.LeftOut, want.leftOut):
		wrong = fmt.Sprintf("leaves out %v, the least is %v", s.LeftOut, want.leftOut)
	case !near(s.Objective, want.objective):
		wrong = fmt.Sprintf("has objective %v, the least is %v", s.Objective, want.objective)
	case s.LeftOutBound > want.leftOut && !near(s.LeftOutBound, want.leftOut):
		wrong = fmt.Sprintf("says that at least %v is left out, the least is %v", s.LeftOutBound, want.leftOut)
	case s.LowerBound > want.objective && !near(s.LowerBound, want.objective):
		wrong = fmt.Sprintf("says that no objective is below %v, the least is %v", s.LowerBound, want.objective)
	case !s.Optimal:
		wrong = fmt.Sprintf("is not proven: %+v", *s)
	default:
		return
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s: the plan %s\n%s", what, wrong, b)
}

// stopAfter ends a search by the number of questions, so that every run is alike.
func stopAfter(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

func random(family uint64, k int) *rand.Rand { return rand.New(rand.NewPCG(family, uint64(k))) }

// lexicographic solves for the first cost, and then for the second among all solutions that have the least of it.
func (s *solver) lexicographic(t *testing.T, m *model, first, second []term) (a, b float64) {
	t.Helper()
	cost := func(terms []term) {
		clear(m.Cost)
		for _, c := range terms {
			m.Cost[c.at] += c.value
		}
	}
	cost(first)
	_, a, ok := s.solve(t, m)
	if !ok {
		t.Fatal("a programme that can leave out everything has no solution")
	}
	cost(second)
	m.most(a+1e-6, first...)
	if _, b, ok = s.solve(t, m); !ok {
		t.Fatal("the least of the first cost cannot be had again")
	}
	return a, b
}
