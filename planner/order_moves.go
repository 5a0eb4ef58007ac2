package planner

import (
	"fmt"
	"maps"
	"slices"
)

// newOrderer lists the moves between two plans, and numbers what they cover and use.
func newOrderer(before, after []Element, capacity map[string]float64) (*orderer, error) {
	t, err := compare(before, after)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Sorted(maps.Keys(capacity)) {
		if c := capacity[r]; !(c >= 0) {
			return nil, fmt.Errorf("the capacity of %s is %v, which is not a number of at least 0", r, c)
		}
	}
	old, _ := elementsByID(before)
	now, _ := elementsByID(after)
	o := &orderer{}
	n := numbering{orderer: o, things: shared(before, after), numbers: map[string]int32{}, scarce: scarce(before, now, after, capacity), resources: map[string]int32{}, capacity: capacity}
	for k := range before {
		covers, uses := n.covers(&before[k]), n.uses(&before[k], nil)
		for _, c := range covers {
			o.covered[c]++
		}
		for _, u := range uses {
			o.used[u.resource] += u.more
		}
		if a := now[before[k].ID]; a != nil { // things in both stay covered to the end
			for _, c := range common(covers, n.covers(a)) {
				o.always[c]++
			}
		}
	}
	for _, id := range t.Add {
		o.moves = append(o.moves, move{Step{OpAdd, id}, nil, n.covers(now[id]), n.uses(now[id], nil)})
	}
	for _, id := range t.Change {
		was, is := n.covers(old[id]), n.covers(now[id])
		stay := common(was, is)
		o.moves = append(o.moves, move{Step{OpChange, id}, without(was, stay), without(is, stay), n.uses(now[id], old[id])})
	}
	for _, id := range t.Remove {
		o.moves = append(o.moves, move{Step{OpRemove, id}, n.covers(old[id]), nil, n.uses(nil, old[id])})
	}
	o.done = make([]bool, len(o.moves))
	return o, nil
}

// shared are the things that both plans cover.
func shared(before, after []Element) map[string]bool {
	things := map[string]bool{}
	for k := range before {
		for _, c := range before[k].Covers {
			things[c] = false
		}
	}
	for k := range after {
		for _, c := range after[k].Covers {
			if _, ok := things[c]; ok {
				things[c] = true
			}
		}
	}
	return things
}

// scarce are the resources that some order of steps could exceed. All others need no thought.
func scarce(before []Element, now map[string]*Element, after []Element, capacity map[string]float64) map[string]bool {
	most := map[string]float64{} // with the larger of old and new everywhere
	for k := range before {
		b := &before[k]
		for r, x := range b.Uses {
			if a := now[b.ID]; a != nil {
				x = max(x-a.Uses[r], 0)
			}
			most[r] += x
		}
	}
	for k := range after {
		for r, x := range after[k].Uses {
			most[r] += x
		}
	}
	m := map[string]bool{}
	for r, x := range most {
		if limit, ok := capacity[r]; ok && x > limit {
			m[r] = true
		}
	}
	return m
}

// numbering assigns numbers to names, in the order of appearance.
type numbering struct {
	*orderer
	things    map[string]bool // true: of both plans
	numbers   map[string]int32
	scarce    map[string]bool
	resources map[string]int32
	capacity  map[string]float64
}

// covers numbers what both plans cover of what an element covers, each once, sorted.
func (n *numbering) covers(e *Element) []int32 {
	var list []int32
	for _, c := range e.Covers {
		if !n.things[c] {
			continue
		}
		k, ok := n.numbers[c]
		if !ok {
			k = int32(len(n.orderer.things))
			n.numbers[c] = k
			n.orderer.things = append(n.orderer.things, c)
			n.covered, n.always = append(n.covered, 0), append(n.always, 0)
		}
		list = append(list, k)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// uses returns how much more of every scarce resource an element takes in place of another. Either may be nil.
func (n *numbering) uses(e, instead *Element) []use {
	amount := map[string]float64{}
	if e != nil {
		for r, x := range e.Uses {
			if n.scarce[r] {
				amount[r] = x
			}
		}
	}
	if instead != nil {
		for r, x := range instead.Uses {
			if n.scarce[r] {
				amount[r] -= x
			}
		}
	}
	var list []use
	for _, r := range slices.Sorted(maps.Keys(amount)) {
		if amount[r] == 0 {
			continue
		}
		k, ok := n.resources[r]
		if !ok {
			k = int32(len(n.orderer.resources))
			n.resources[r] = k
			n.orderer.resources = append(n.orderer.resources, r)
			n.limit, n.used = append(n.limit, n.capacity[r]), append(n.used, 0)
		}
		list = append(list, use{k, amount[r]})
	}
	return list
}

// common and without compare sorted lists.
func common(a, b []int32) []int32 {
	var list []int32
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			list = append(list, x)
		}
	}
	return list
}

func without(a, b []int32) []int32 {
	var list []int32
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok {
			list = append(list, x)
		}
	}
	return list
}
