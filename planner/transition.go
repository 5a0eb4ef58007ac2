package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Transition is the way of a network from one plan to another, element by element. An element is the unit that the
// family switches: a probe, or the assignment of one interface or one measurement point. Ids are stable, so that an
// element of the same id in both plans is the same one.
type Transition struct {
	Add    []string `json:"add"`    // only in the new plan, in its order
	Remove []string `json:"remove"` // only in the old plan, in its order
	Change []string `json:"change"` // in both, and not alike, in the order of the new plan
	Keep   []string `json:"keep"`   // in both, and alike, in the order of the new plan
	Steps  []Step   `json:"steps"`  // what to do, one after the other
}

// Step adds, removes or changes one element. A change is one step: the old form ends when the new one begins.
type Step struct {
	Op Op     `json:"op"`
	ID string `json:"id"`
}

// Op is the operation of a step.
type Op string

// The operations.
const (
	OpAdd    Op = "add"
	OpRemove Op = "remove"
	OpChange Op = "change"
)

// Element is the part of a plan's element that a transition needs.
//
// The family defines what Covers names. Examples are the links of a cover's probe, the suspicious links that a probe
// measures in detail, the interface of a flow's items, and the served measurement point. An element of the old plan
// that the network has broken covers only what it still reaches.
//
// Uses is the amount of each resource that the element takes while it is active. Resources are the capacity of a flow,
// the bandwidth of a link or a server, and the sending rate of an agent.
type Element struct {
	ID     string
	Covers []string
	Uses   map[string]float64
	Form   string // whatever else makes it another one when it differs, such as its path
}

// NewTransition compares two plans by their elements and finds an order of steps from one to the other, as [Order]
// does. Where there is no such order, it returns a transition without steps, and the error.
func NewTransition(before, after []Element, capacity map[string]float64) (*Transition, error) {
	t, err := compare(before, after)
	if err != nil {
		return nil, err
	}
	t.Steps, err = Order(before, after, capacity)
	if err != nil {
		t.Steps = []Step{}
	}
	return t, err
}

// compare lists what becomes of the elements.
func compare(before, after []Element) (*Transition, error) {
	old, err := elementsByID(before)
	if err != nil {
		return nil, fmt.Errorf("old plan: %w", err)
	}
	now, err := elementsByID(after)
	if err != nil {
		return nil, fmt.Errorf("new plan: %w", err)
	}
	t := &Transition{Add: []string{}, Remove: []string{}, Change: []string{}, Keep: []string{}, Steps: []Step{}}
	for k := range after {
		e := &after[k]
		switch o := old[e.ID]; {
		case o == nil:
			t.Add = append(t.Add, e.ID)
		case o.alike(e):
			t.Keep = append(t.Keep, e.ID)
		default:
			t.Change = append(t.Change, e.ID)
		}
	}
	for k := range before {
		if now[before[k].ID] == nil {
			t.Remove = append(t.Remove, before[k].ID)
		}
	}
	return t, nil
}

// elementsByID finds elements by their ids.
func elementsByID(list []Element) (map[string]*Element, error) {
	m := make(map[string]*Element, len(list))
	for k := range list {
		e := &list[k]
		switch {
		case e.ID == "":
			return nil, fmt.Errorf("element %d has no id", k+1)
		case m[e.ID] != nil:
			return nil, fmt.Errorf("the id %q is of two elements", e.ID)
		}
		for r, x := range e.Uses {
			if !(x >= 0) || math.IsInf(x, 1) {
				return nil, fmt.Errorf("element %s uses %v of %s, which is not a number of at least 0", e.ID, x, r)
			}
		}
		m[e.ID] = e
	}
	return m, nil
}

// alike reports whether two elements differ in nothing that matters.
func (e *Element) alike(o *Element) bool {
	if e.Form != o.Form || !slices.Equal(set(e.Covers), set(o.Covers)) {
		return false
	}
	for _, both := range [...][2]map[string]float64{{e.Uses, o.Uses}, {o.Uses, e.Uses}} {
		for r, x := range both[0] {
			if both[1][r] != x {
				return false
			}
		}
	}
	return true
}

// set sorts names and takes out what is there twice.
func set(names []string) []string {
	if len(names) < 2 {
		return names
	}
	s := slices.Clone(names)
	slices.Sort(s)
	return slices.Compact(s)
}

// Deadlock is the error of plans between which no order was found. It lists the steps that could not be taken where most
// others had been.
type Deadlock struct {
	Blocked []Blocked
	Proven  bool // there is no order; otherwise the search was given up
}

// Blocked is a step that cannot be taken, and why.
type Blocked struct {
	Step Step
	Why  string
}

func (d *Deadlock) Error() string {
	var b strings.Builder
	b.WriteString("no order of steps was found in which nothing is ever uncovered and no capacity exceeded")
	if d.Proven {
		b.Reset()
		b.WriteString("there is no order of steps in which nothing is ever uncovered and no capacity exceeded")
	}
	const most = 5
	for k, x := range d.Blocked {
		if k == most {
			fmt.Fprintf(&b, "; and %d more", len(d.Blocked)-most)
			break
		}
		fmt.Fprintf(&b, "%s %s %s: %s", map[bool]string{true: ":", false: ";"}[k == 0], x.Step.Op, x.Step.ID, x.Why)
	}
	return b.String()
}
