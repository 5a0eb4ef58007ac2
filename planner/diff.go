package planner

import (
	"fmt"
	"reflect"
)

// Changes is the difference of two lists of probes. Probes in none of its lists stay as they are.
type Changes struct {
	Added   []Probe  `json:"added,omitempty"`   // in the order of the new list
	Removed []Probe  `json:"removed,omitempty"` // in the order of the old list
	Changed []Change `json:"changed,omitempty"` // in the order of the new list
}

// Change is a probe that keeps its id and is otherwise not what it was.
type Change struct {
	Old Probe `json:"old"`
	New Probe `json:"new"`
}

// Empty reports whether there is nothing to do.
func (c *Changes) Empty() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Diff compares two lists of probes by their ids. A plan that replaces another one keeps the ids of the probes that it
// keeps, and gives new probes unused ids. A probe of the same id in both lists is therefore the same one; it is listed
// if anything else about it differs. The order of the lists does not matter.
//
// An id that is empty, or there twice in one list, is an error: it would be unclear which probe is meant. The result shares memory
// with the lists.
func Diff(old, new []Probe) (Changes, error) {
	before, err := byID(old)
	if err != nil {
		return Changes{}, fmt.Errorf("old probes: %w", err)
	}
	after, err := byID(new)
	if err != nil {
		return Changes{}, fmt.Errorf("new probes: %w", err)
	}
	var c Changes
	for k := range new {
		p := &new[k]
		switch o := before[p.ID]; {
		case o == nil:
			c.Added = append(c.Added, *p)
		case !same(o, p):
			c.Changed = append(c.Changed, Change{*o, *p})
		}
	}
	for k := range old {
		if after[old[k].ID] == nil {
			c.Removed = append(c.Removed, old[k])
		}
	}
	return c, nil
}

// byID finds probes by their ids.
func byID(probes []Probe) (map[string]*Probe, error) {
	m := make(map[string]*Probe, len(probes))
	for k := range probes {
		p := &probes[k]
		switch {
		case p.ID == "":
			return nil, fmt.Errorf("probe %d of the list has no id", k+1)
		case m[p.ID] != nil:
			return nil, fmt.Errorf("the id %q is of two probes", p.ID)
		}
		m[p.ID] = p
	}
	return m, nil
}

// same reports whether two probes are alike in everything. A list that is empty is like one that is left out.
func same(a, b *Probe) bool {
	x, y := *a, *b
	for _, p := range [...]*Probe{&x, &y} {
		p.Nodes, p.Links, p.Ports = some(p.Nodes), some(p.Links), some(p.Ports)
	}
	return reflect.DeepEqual(x, y)
}

// some makes an empty list nil.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
