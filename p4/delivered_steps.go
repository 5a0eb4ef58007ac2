package p4

import (
	"maps"
	"slices"

	"github.com/hopscope/hopscope/planner"
)

// Steps returns what switches hold on the way from one plan to another, the last of them the other plan. The rules of all paths
// come first, then the shares of one point after the other, in the order of the transition. Rules of old paths go last. Without
// a transition, all points change in one step.
func (d *Delivered) Steps(before *Delivered, t *planner.Transition) (list []*Delivered) {
	if before == nil {
		before = &Delivered{}
	}
	now := &Delivered{Rules: map[string][]Entry{}, Shares: maps.Clone(before.Shares)}
	if now.Shares == nil {
		now.Shares = map[string][]Entry{}
	}
	for _, sw := range slices.Collect(maps.Keys(d.Rules)) {
		now.Rules[sw] = union(d.Rules[sw], before.Rules[sw])
	}
	for sw, rules := range before.Rules {
		if now.Rules[sw] == nil {
			now.Rules[sw] = rules
		}
	}
	list = append(list, now)
	if t != nil {
		for i := 0; i < len(t.Steps)-1; i++ {
			point := t.Steps[i].ID
			next := &Delivered{Rules: maps.Clone(now.Rules), Shares: maps.Clone(now.Shares)}
			next.Shares[point] = d.Shares[point]
			next.Rules[point] = union(before.Rules[point], d.Rules[point]) // rates of the point as they will be
			list = append(list, next)
			now = next
		}
	}
	return append(list, d)
}

// union adds to a list the entries of another one, which count where both have one.
func union(list, more []Entry) []Entry {
	out := slices.Clone(more)
	have := make(map[string]bool, len(more))
	for i := range more {
		have[more[i].Key()] = true
	}
	for i := range list {
		if !have[list[i].Key()] {
			out = append(out, list[i])
		}
	}
	return out
}
