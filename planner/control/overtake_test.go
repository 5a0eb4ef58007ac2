package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOvertaken has switches carry out a write after its time limit, behind the reading that followed: the answer to that says
// what was there before. What comes late is found when the switch is read the next time, and put right.
func TestOvertaken(t *testing.T) {
	const audit = 3
	late := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 15))
		w := newWorld(Config{Cycle: cycle, Timeout: timeout, Grace: grace, Attempts: 4, Audit: audit}, triangle())
		var held []request // with the switch's place
		var at []int
		for ticks := 0; ticks < 12; {
			if r.IntN(5) == 0 {
				w.bad = nil
				if r.IntN(2) == 0 {
					w.bad = []Suspect{{Link: w.links[r.IntN(len(w.links))], Weight: 1}}
				}
			}
			for k := range w.nodes {
				n := &w.nodes[k]
				if n.Kind != Switch || len(n.requests) == 0 || r.IntN(6) > 0 {
					continue
				}
				if _, read := n.requests[0].Action.(Read); !read {
					held, at = append(held, n.requests[0]), append(at, k)
					n.requests = slices.Clone(n.requests[1:])
				}
			}
			if len(held) > 0 && r.IntN(8) == 0 {
				k, x := at[0], held[0]
				held, at = held[1:], at[1:]
				n := &w.nodes[k]
				x.lost = true
				n.requests = slices.Concat([]request{x}, n.requests)
				w.carryOut(n, false)
				late++
			}
			if w.rest() {
				ticks++
			}
		}
		for i, x := range held {
			x.lost = true
			n := &w.nodes[at[i]]
			n.requests = slices.Concat([]request{x}, n.requests)
			w.carryOut(n, false)
			late++
		}
		err := fmt.Errorf("%d cycles were not enough", 3*audit)
		for ticks := 0; ticks < 3*audit && err != nil; {
			if w.rest() {
				ticks++
			}
			if w.c.settled && w.good() == "" {
				err = nil
			}
		}
		if err != nil {
			t.Fatalf("seed %d: %v: %s, after%v", seed, err, w.good(), w.trail)
		}
	}
	if late < 300 {
		t.Errorf("only %d writes came late", late)
	}
}
