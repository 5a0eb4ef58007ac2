package planner

import (
	"errors"
	"fmt"
)

// Simulate takes the steps one after the other and says at which one something goes wrong: what both plans cover is
// uncovered, a resource that is at its capacity or above it gets more to carry, or a step cannot be. In the end exactly
// the new plan must be there. It knows nothing of how an order is found.
func Simulate(before, after []Element, steps []Step, capacity map[string]float64) error {
	s := simulation{active: map[string]*Element{}, target: map[string]*Element{}, covered: map[string]int{}, wanted: map[string]bool{}, used: map[string]float64{}}
	for k := range before {
		if s.active[before[k].ID] != nil {
			return fmt.Errorf("old plan: the id %q is of two elements", before[k].ID)
		}
		s.put(&before[k])
	}
	for k := range after {
		if s.target[after[k].ID] != nil {
			return fmt.Errorf("new plan: the id %q is of two elements", after[k].ID)
		}
		s.target[after[k].ID] = &after[k]
		for _, c := range after[k].Covers {
			s.wanted[c] = s.covered[c] > 0
		}
	}
	for k, step := range steps {
		if err := s.take(step, capacity); err != nil {
			return fmt.Errorf("step %d, %s %s: %w", k+1, step.Op, step.ID, err)
		}
	}
	return s.end()
}

type simulation struct {
	active, target map[string]*Element
	covered        map[string]int  // how many active elements cover it
	wanted         map[string]bool // both plans cover it
	used           map[string]float64
}

func (s *simulation) put(e *Element) {
	s.active[e.ID] = e
	for _, c := range e.Covers {
		s.covered[c]++
	}
	for r, x := range e.Uses {
		s.used[r] += x
	}
}

func (s *simulation) drop(e *Element) {
	delete(s.active, e.ID)
	for _, c := range e.Covers {
		s.covered[c]--
	}
	for r, x := range e.Uses {
		s.used[r] -= x
	}
}

// take takes one step.
func (s *simulation) take(step Step, capacity map[string]float64) error {
	old, now := s.active[step.ID], s.target[step.ID]
	var ok bool
	switch step.Op {
	case OpAdd:
		ok = old == nil && now != nil
	case OpRemove:
		ok = old != nil && now == nil
	case OpChange:
		ok = old != nil && now != nil && old != now
	}
	if !ok {
		return errors.New("there is no such step to take")
	}
	if old != nil {
		s.drop(old)
	}
	if now != nil {
		s.put(now)
		for r, x := range now.Uses {
			limit, limited := capacity[r]
			if !limited || old != nil && old.Uses[r] >= x {
				continue
			}
			if used := s.used[r]; used > limit && !Near(used, limit) {
				return fmt.Errorf("%v of %s are used, which has %v", used, r, limit)
			}
		}
	}
	if old != nil {
		for _, c := range old.Covers {
			if s.wanted[c] && s.covered[c] == 0 {
				return fmt.Errorf("nothing covers %s", c)
			}
		}
	}
	return nil
}

// end says in what the network is not what the new plan asks for.
func (s *simulation) end() error {
	for id, e := range s.target {
		if a := s.active[id]; a == nil || a != e && !a.alike(e) {
			return errors.New("after all steps the new plan is not there: a step is missing")
		}
	}
	if len(s.active) != len(s.target) {
		return errors.New("after all steps something of the old plan is still there")
	}
	return nil
}
