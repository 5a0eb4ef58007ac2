package planner

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// maxSearch bounds the moves that one search tries. Up to about twenty elements that depend on each other it is never
// reached.
const maxSearch = 1 << 25

// search looks for an order where greedy steps did not reach the end. Independent groups of moves are searched apart; a
// group that was completed stays as it is.
func (o *orderer) search(steps []int32) ([]Step, error) {
	part, stuck := o.parts(), map[int32]bool{}
	for k := range o.moves {
		if !o.done[k] {
			stuck[part[k]] = true
		}
	}
	open := make([][]int32, 0, len(stuck))
	number := map[int32]int{}
	for k := range o.moves {
		if p := part[k]; stuck[p] {
			i, ok := number[p]
			if !ok {
				i = len(open)
				number[p] = i
				open = append(open, nil)
			}
			open[i] = append(open[i], int32(k))
		}
	}
	for i := len(steps) - 1; i >= 0; i-- { // back to where these parts began
		if stuck[part[steps[i]]] {
			o.undo(steps[i])
		}
	}
	steps = slices.DeleteFunc(steps, func(k int32) bool { return stuck[part[k]] })
	dead := &Deadlock{Proven: true}
	for _, moves := range open {
		s := searcher{orderer: o, moves: moves, seen: map[uint64]bool{}, left: maxSearch}
		switch {
		case s.run():
			steps = append(steps, s.steps...)
		default:
			dead.Blocked = append(dead.Blocked, s.blocked...)
			dead.Proven = dead.Proven && s.left > 0
		}
	}
	if len(dead.Blocked) > 0 {
		return nil, dead
	}
	return o.named(steps), nil
}

// undo takes a move back.
func (o *orderer) undo(k int32) {
	m := &o.moves[k]
	o.done[k] = false
	for _, t := range m.loses {
		o.covered[t]++
	}
	for _, t := range m.gains {
		o.covered[t]--
		o.always[t]--
	}
	for _, u := range m.uses {
		o.used[u.resource] -= u.more
	}
}

// parts gives, by move, the number of the part that it belongs to: moves of different parts have no thing and no resource
// in common.
func (o *orderer) parts() []int32 {
	sets := opt.NewSets(len(o.moves) + len(o.things) + len(o.resources))
	things, resources := int32(len(o.moves)), int32(len(o.moves)+len(o.things))
	for k := range o.moves {
		m := &o.moves[k]
		for _, list := range [...][]int32{m.loses, m.gains} {
			for _, t := range list {
				sets.Unite(int32(k), things+t)
			}
		}
		for _, u := range m.uses {
			sets.Unite(int32(k), resources+u.resource)
		}
	}
	part := make([]int32, len(o.moves))
	for k := range part {
		part[k] = sets.Root(int32(k))
	}
	return part
}

// searcher tries the orders of some moves, depth first. States are what has been done, in whatever order.
type searcher struct {
	*orderer
	moves   []int32
	steps   []int32
	seen    map[uint64]bool // states from which there is no way to the end
	state   uint64
	left    int
	most    int
	blocked []Blocked // where most was done
}

// key distinguishes states: up to 64 moves for certain, more by a hash.
func (s *searcher) key(i int) uint64 {
	if len(s.moves) <= 64 {
		return 1 << i
	}
	x := uint64(i) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s *searcher) make(i int) {
	s.move(s.moves[i])
	s.state ^= s.key(i)
	s.steps = append(s.steps, s.moves[i])
}

func (s *searcher) unmake(i int) {
	s.undo(s.moves[i])
	s.state ^= s.key(i)
	s.steps = s.steps[:len(s.steps)-1]
}

// frame is a state on the way: the moves that led to it from the state before, and the next one to try.
type frame struct {
	made []int
	next int
}

// run reports whether there is an order, which is in steps then.
func (s *searcher) run() bool {
	stack := []frame{{made: s.harmless(nil)}}
	if s.ended() {
		return true
	}
	for len(stack) > 0 && s.left > 0 {
		f := &stack[len(stack)-1]
		for f.next < len(s.moves) && !s.can(f.next) {
			f.next++
		}
		if f.next == len(s.moves) {
			s.seen[s.state] = true
			for k := len(f.made) - 1; k >= 0; k-- {
				s.unmake(f.made[k])
			}
			stack = stack[:len(stack)-1]
			continue
		}
		i := f.next
		f.next++
		s.make(i)
		made := s.harmless([]int{i})
		if s.ended() {
			return true
		}
		stack = append(stack, frame{made: made})
		if s.seen[s.state] {
			stack[len(stack)-1].next = len(s.moves)
		}
	}
	for len(s.steps) > 0 { // given up
		s.undo(s.steps[len(s.steps)-1])
		s.steps = s.steps[:len(s.steps)-1]
	}
	return false
}

// can reports whether a move is open and can be made.
func (s *searcher) can(i int) bool {
	k := s.moves[i]
	if s.left--; s.done[k] {
		return false
	}
	thing, resource := s.orderer.blocked(k)
	return thing < 0 && resource < 0
}

// harmless makes the moves that cannot block any other and adds them to made. Such a move takes nothing, and all that
// it uncovers stays covered to the end.
func (s *searcher) harmless(made []int) []int {
	for changed := true; changed; {
		changed = false
		for i, k := range s.moves {
			if s.can(i) && s.free(k) {
				s.make(i)
				made, changed = append(made, i), true
			}
		}
	}
	return made
}

func (s *searcher) free(k int32) bool {
	m := &s.orderer.moves[k]
	return !slices.ContainsFunc(m.loses, func(t int32) bool { return s.always[t] == 0 }) &&
		!slices.ContainsFunc(m.uses, func(u use) bool { return u.more > 0 })
}

// ended reports whether all moves are made, and notes what is in the way where more are than ever before.
func (s *searcher) ended() bool {
	if len(s.steps) == len(s.moves) {
		return true
	}
	if s.blocked == nil || len(s.steps) > s.most {
		s.most, s.blocked = len(s.steps), s.blocked[:0]
		for _, k := range s.moves {
			if !s.done[k] {
				s.blocked = append(s.blocked, Blocked{s.orderer.moves[k].step, s.why(k)})
			}
		}
	}
	return false
}
