package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// balanceBound is a lower bound of the largest load: the largest demand that may not be left out, and the mean load of
// all flows.
func (p *problem) balanceBound() (bound int64) {
	for i, d := range p.demand {
		if p.must(i) {
			bound = max(bound, d)
		}
	}
	return max(bound, (p.total-p.leaveItems()+int64(p.real)-1)/int64(p.real))
}

// balance solves Balance for whole interfaces. It starts with the published heuristic. Where that misses the bound, it
// computes a better one: the level of the relaxation that may split. It then searches below the largest load, and
// decides the bound by a tree.
func (s *solver) balance() ([]orchestrate.Share, error) {
	heuristic := make([]int32, 0)
	if s.p.copies == 1 {
		heuristic = s.p.balanceHeuristic()
	}
	s.p.normalise()
	p := s.p
	pk := newPacking(p)
	pk.assign(heuristic)
	var best pack
	pk.save(&best)
	s.bound = p.balanceBound()
	defer func() { s.bound *= p.scale }()
	if pk.absent == 0 && s.top(&best) == s.bound {
		return s.shares(&best), nil
	}
	published := s.o.Method == Heuristic && p.copies == 1
	bound, _, short, missing := p.level(s.bound, true, s.stop)
	if len(short) > 0 && !s.o.Partial && !published {
		return nil, s.together(short, missing)
	}
	if pk.absent > 0 && s.o.Partial && !(len(short) == 0 && s.fitAll(pk, &best)) {
		best = s.partial(&best, s.balancePart)
		return s.shares(&best), nil
	}
	if len(short) == 0 {
		s.bound = bound
	}
	if published || pk.absent == 0 && s.top(&best) == s.bound {
		return s.shares(&best), nil
	}
	_, err := s.lower(pk, &best, math.MaxInt)
	return s.shares(&best), err
}

// fitAll tries for a while to place everything.
func (s *solver) fitAll(pk *packing, best *pack) bool {
	if s.o.Method == Heuristic && s.p.copies == 1 {
		return false
	}
	start := best.clone()
	l := newPlacer(pk, s.p.room, &s.rnd)
	done := l.run(4*len(l.pool)+1000, s.stop)
	if done {
		l.save(best)
	} else {
		l.restore(&start)
	}
	return done
}

// balanceLevel bounds the largest load of plans that leave out no more than is allowed.
func (s *solver) balanceLevel() {
	p := s.p
	s.bound = p.balanceBound()
	if len(p.groups) > 0 {
		p = p.extended([]int64{p.leaveItems()})
	}
	s.bound, _, _, _ = p.level(s.bound, true, s.stop)
}

// balancePart makes the largest load small where something may be left out. It reports whether it is proven.
func (s *solver) balancePart(best *pack, turns int) bool {
	p := s.p
	s.balanceLevel()
	if s.o.Method == Heuristic {
		return false
	}
	pk := newPacking(p)
	pk.restore(best)
	proven, _ := s.lower(pk, best, turns)
	return proven
}

// top is the largest load of a packing.
func (s *solver) top(k *pack) (top int64) {
	load := make(map[int32]int64)
	for n, f := range k.flow {
		load[f] += s.p.demand[k.iface[n]]
		top = max(top, load[f])
	}
	return top
}

// lower looks for packings below the best one, and for proofs that there are none, in a number of turns. It reports
// whether the best one is proven.
func (s *solver) lower(pk *packing, best *pack, turns int) (bool, error) {
	p := s.p
	ceiling := slices.Max(p.room)
	top := ceiling + 1 // of the best packing that is whole
	if pk.enough() {
		top = s.top(best)
	}
	l := newPlacer(pk, p.room, &s.rnd)
	if !l.enough() && (p.copies > 1 || s.o.Method == Heuristic) {
		l.run(4*len(l.pool)+1000, s.stop)
		if l.enough() {
			l.save(best)
			top = s.top(best)
		}
	}
	proven := func() bool { return top == s.bound }
	// Down from above: by halves while that works, then one by one.
	goal := func() int64 {
		if top > ceiling {
			return ceiling
		}
		return s.bound + (top-s.bound-1)/2
	}
	trees := make(map[int64]*tree)
	steps, nodes := 20*p.ifaces+2000, int64(firstNodes)
	target := goal()
	for ; turns > 0 && !proven() && !s.stop(); turns-- {
		if s.o.Method == Heuristic && top <= ceiling {
			break
		}
		l.lower(p.capped(target))
		if l.run(steps, s.stop) {
			l.save(best)
			top = s.top(best)
			delete(trees, target)
			target = goal()
			continue
		}
		if target < min(top-1, ceiling) { // try higher levels before deciding lower ones
			target += (min(top-1, ceiling) - target + 1) / 2
			continue
		}
		if s.wantsTree() || top > ceiling {
			t := trees[s.bound]
			if t == nil {
				t = newTree(p, p.capped(s.bound), p.flows, nil)
				trees[s.bound] = t
			}
			switch t.search(nodes, s.stop) {
			case possible:
				t.saveAll(best)
				top = s.top(best)
			case impossible:
				delete(trees, s.bound)
				s.bound++
				if s.bound > ceiling {
					return false, s.hopeless()
				}
			}
			nodes += nodes / 2
		}
		steps += steps / 2
		target = goal()
	}
	if top > ceiling {
		l.lower(p.room)
		l.save(best)
	}
	return proven(), nil
}

// hopeless is the end of a problem where a tree showed that not even full flows will do.
func (s *solver) hopeless() error {
	return &Infeasible{Together: s.names(opt.Ascending[int32](s.p.ifaces))}
}

// capped returns the rooms with none above level.
func (p *problem) capped(level int64) []int64 {
	room := make([]int64, p.flows)
	for f, r := range p.room {
		room[f] = min(r, level)
	}
	return room
}

// splitBalance solves Balance where demands may be split, to its optimum.
func (s *solver) splitBalance() ([]orchestrate.Share, error) {
	if err := s.splitLoss(); err != nil {
		return nil, err
	}
	p := s.p
	never := func() bool { return false } // a level that is not the last one is no plan
	low := (p.total - p.leaveItems() + int64(p.real) - 1) / int64(p.real)
	level, t, _, _ := p.level(max(low, 0), false, never)
	s.bound = level
	return t.shares(opt.Ascending[int32](p.real)), nil
}

// splitLoss decides what is left out where demands may be split, so that the rest can be sent for certain. Sets that
// can be sent together are the independent sets of a polymatroid, so taking the most valuable first gives the most.
// Every other plan that leaves out as little weight leaves out as many items of each value as this one. One extra flow
// for each such group therefore makes the problem complete.
func (s *solver) splitLoss() error {
	t := s.p.send(false)
	short := t.unsent()
	if len(short) == 0 {
		return nil
	}
	if !s.o.Partial {
		return s.shortOf(short)
	}
	order := s.p.byDensity()
	var rooms []int64
	for k := 0; k < len(order); {
		e, left := k, int64(0)
		for ; e < len(order) && s.p.denser(order[k], order[e]) == 0; e++ {
			left += t.Left[order[e]]
		}
		if left > 0 {
			s.p.groups = append(s.p.groups, group{slices.Sorted(slices.Values(order[k:e])), s.p.demand, left})
			rooms = append(rooms, left)
		}
		k = e
	}
	s.splitOut = true
	s.p = s.p.extended(rooms)
	return nil
}

// shortOf is the error for items that cannot be sent.
func (s *solver) shortOf(short []int32) error {
	_, _, cut, missing := s.p.level(slices.Max(s.p.room), false, func() bool { return false })
	if len(cut) == 0 {
		cut = short
	}
	return &Infeasible{Together: s.names(cut), Missing: max(missing, 1)}
}
