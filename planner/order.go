package planner

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// Order finds an order of steps from one plan to another that makes before it breaks. At every moment all that both
// plans cover is covered, and no step loads a resource beyond its capacity. A resource beyond its capacity already,
// because the network has changed, gets no more load. A resource without a capacity has no limit.
//
// Additions come before removals, unless there is no room yet. An element that changes does so in one step. Where
// greedy steps end in a deadlock, a search decides. It is complete where few elements depend on each other, and
// otherwise stops after a bounded number of steps. The error is a *[Deadlock] then.
func Order(before, after []Element, capacity map[string]float64) ([]Step, error) {
	o, err := newOrderer(before, after, capacity)
	if err != nil {
		return nil, err
	}
	steps := o.greedy()
	if len(steps) == len(o.moves) {
		return o.named(steps), nil
	}
	return o.search(steps)
}

// move is a step with its effects on coverage and resources.
type move struct {
	step         Step
	loses, gains []int32 // things that both plans cover
	uses         []use   // of resources that could become scarce
}

type use struct {
	resource int32
	more     float64 // above 0: takes, below 0: gives back
}

// orderer holds the moves and the state of the network on the way.
type orderer struct {
	moves     []move // adds, changes, removes
	things    []string
	resources []string
	limit     []float64

	done    []bool // by move
	covered []int32
	always  []int32 // of these, by elements that stay until the end
	used    []float64

	thingWaits    [][]int32          // moves that wait for another element to cover it
	resourceWaits []opt.Heap[waiter] // moves that wait for room, the one that needs least first
	wake          []int32            // things, and ^resources, of which there is more
}

// greedy takes every possible step, and returns the steps.
func (o *orderer) greedy() []int32 {
	o.thingWaits, o.resourceWaits = make([][]int32, len(o.things)), slices.Repeat([]opt.Heap[waiter]{{Less: needsLess}}, len(o.resources))
	var steps []int32
	try := func(k int32) {
		thing, resource := o.blocked(k)
		switch {
		case thing >= 0:
			o.thingWaits[thing] = append(o.thingWaits[thing], k)
		case resource >= 0:
			o.resourceWaits[resource].Push(waiter{k, o.moves[k].more(resource)})
		default:
			o.move(k)
			steps = append(steps, k)
			o.wake = append(o.wake, o.moves[k].gains...)
			for _, u := range o.moves[k].uses {
				if u.more < 0 {
					o.wake = append(o.wake, ^u.resource)
				}
			}
		}
	}
	for k := range o.moves {
		try(int32(k))
		for len(o.wake) > 0 {
			x := o.wake[len(o.wake)-1]
			if next := o.waiting(x); next >= 0 {
				try(next)
			} else {
				o.wake = slices.Delete(o.wake, len(o.wake)-1, len(o.wake))
			}
		}
	}
	return steps
}

// waiting removes a move that waits for x and need not do so any longer, and returns it, or -1.
func (o *orderer) waiting(x int32) int32 {
	if x >= 0 {
		w := o.thingWaits[x]
		if len(w) == 0 || o.covered[x] < 2 {
			return -1
		}
		o.thingWaits[x] = w[1:]
		return w[0]
	}
	w := &o.resourceWaits[^x]
	if len(w.Items) == 0 || !o.room(^x, w.Items[0].need) {
		return -1
	}
	return w.Pop().move
}

// blocked returns what blocks a move: a thing that would be uncovered, or a resource without room. Both are -1 where
// the move is possible.
func (o *orderer) blocked(k int32) (thing, resource int32) {
	m := &o.moves[k]
	for _, t := range m.loses {
		if o.covered[t] < 2 {
			return t, -1
		}
	}
	for _, u := range m.uses {
		if u.more > 0 && !o.room(u.resource, u.more) {
			return -1, u.resource
		}
	}
	return -1, -1
}

// room reports whether a resource can carry so much more.
func (o *orderer) room(resource int32, more float64) bool {
	used, limit := o.used[resource]+more, o.limit[resource]
	return used <= limit || Near(used, limit)
}

// move makes a move.
func (o *orderer) move(k int32) {
	m := &o.moves[k]
	o.done[k] = true
	for _, t := range m.loses {
		o.covered[t]--
	}
	for _, t := range m.gains {
		o.covered[t]++
		o.always[t]++
	}
	for _, u := range m.uses {
		o.used[u.resource] += u.more
	}
}

// more is the amount that a move takes of a resource.
func (m *move) more(resource int32) float64 {
	for _, u := range m.uses {
		if u.resource == resource {
			return u.more
		}
	}
	return 0
}

// named gives the steps of moves.
func (o *orderer) named(moves []int32) []Step {
	steps := make([]Step, len(moves))
	for i, k := range moves {
		steps[i] = o.moves[k].step
	}
	return steps
}

// why names what blocks a move, or is "".
func (o *orderer) why(k int32) string {
	thing, resource := o.blocked(k)
	switch {
	case thing >= 0:
		return "nothing else covers " + o.things[thing]
	case resource >= 0:
		return fmt.Sprintf("needs %.6g more of %s, where %.6g of %.6g are in use", o.moves[k].more(resource), o.resources[resource], o.used[resource], o.limit[resource])
	}
	return "leads to a deadlock"
}

// waiter is a move that waits for a resource, and what it needs of that.
type waiter struct {
	move int32
	need float64
}

// needsLess orders those that wait for the same resource.
func needsLess(a, b *waiter) bool { return a.need < b.need || a.need == b.need && a.move < b.move }
