package planner

import (
	"errors"
	"fmt"
)

// Simulate applies the steps one after the other and names the first that goes wrong. A step is wrong if it is
// impossible, uncovers what both plans cover, or adds load to a resource at its capacity. The result must be exactly
// the new plan. Simulate is independent of the search for an order.
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
		if err := s.step(step, capacity); err != nil {
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

// step takes one step.
func (s *simulation) step(step Step, capacity map[string]float64) error {
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

// end returns where the network differs from the new plan.
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

// Check returns where a transition does not lead from one plan to the other, by its lists or by its steps.
func (t *Transition) Check(before, after []Element, capacity map[string]float64) error {
	if err := t.CheckLists(before, after); err != nil {
		return err
	}
	if err := Simulate(before, after, t.Steps, capacity); err != nil {
		return fmt.Errorf("transition: %w", err)
	}
	return nil
}

// CheckLists is [Transition.Check] without the steps, for a transition that has none because of a [Deadlock].
func (t *Transition) CheckLists(before, after []Element) error {
	was, is := map[string]*Element{}, map[string]*Element{}
	for k := range before {
		was[before[k].ID] = &before[k]
	}
	for k := range after {
		is[after[k].ID] = &after[k]
	}
	seen := map[string]bool{}
	for _, list := range [...]struct {
		name string
		ids  []string
		ok   func(old, now *Element) bool
	}{
		{"add", t.Add, func(old, now *Element) bool { return old == nil && now != nil }},
		{"remove", t.Remove, func(old, now *Element) bool { return old != nil && now == nil }},
		{"change", t.Change, func(old, now *Element) bool { return old != nil && now != nil && !old.alike(now) }},
		{"keep", t.Keep, func(old, now *Element) bool { return old != nil && now != nil && old.alike(now) }},
	} {
		for _, id := range list.ids {
			if seen[id] || !list.ok(was[id], is[id]) {
				return fmt.Errorf("transition: %q does not belong into %q", id, list.name)
			}
			seen[id] = true
		}
	}
	if all := len(was) + len(t.Add); len(seen) != all {
		return fmt.Errorf("transition: %d elements are listed, and there are %d", len(seen), all)
	}
	return nil
}

// Churn returns how many elements a transition adds, removes or changes.
func (t *Transition) Churn() int { return len(t.Add) + len(t.Remove) + len(t.Change) }
