package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// balanceBound is what the largest load is at least: the largest demand, and the mean load of all flows.
func (p *problem) balanceBound() int64 {
	return max(slices.Max(p.demand), (p.total+int64(p.flows)-1)/int64(p.flows))
}

// balance solves Balance for whole interfaces: the published heuristic, and where it misses the bound a better bound
// (the level of the relaxation that may split), a search below the largest load, and a tree at the bound.
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
	scale := s.in.Interfaces[0].Demand / p.demand[0]
	s.bound = p.balanceBound()
	top := s.top(&best)
	defer func() { s.bound *= scale }()
	if pk.absent == 0 && (top == s.bound) {
		return s.shares(&best), nil
	}
	published := s.o.Method == Heuristic && p.copies == 1
	bound, _, short, missing := p.level(s.bound, true, s.stop)
	if len(short) > 0 && !published {
		if s.o.Partial {
			return s.balancePart(pk, &best)
		}
		return nil, s.together(short, missing)
	}
	s.bound = bound
	if published || pk.absent == 0 && top == s.bound {
		return s.shares(&best), nil
	}
	return s.lower(pk, &best)
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

// lower looks for packings below the best one, and for proofs that there are none.
func (s *solver) lower(pk *packing, best *pack) ([]orchestrate.Share, error) {
	p := s.p
	ceiling := slices.Max(p.room)
	top := ceiling + 1 // of the best packing that is whole
	if pk.absent == 0 {
		top = s.top(best)
	}
	l := newPlacer(pk, p.room, &s.rnd)
	if l.absent > 0 && (p.copies > 1 || s.o.Method == Heuristic) {
		l.run(4*len(l.pool)+1000, s.stop)
		if l.absent == 0 {
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
	for !proven() && !s.stop() {
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
		if target < min(top-1, ceiling) { // try higher before deciding what is lower
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
				t.save(best)
				top = s.top(best)
			case impossible:
				delete(trees, s.bound)
				s.bound++
				if s.bound > ceiling {
					return s.hopeless(best)
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
	return s.shares(best), nil
}

// hopeless is the end of a problem where a tree showed that not even full flows will do.
func (s *solver) hopeless(best *pack) ([]orchestrate.Share, error) {
	if s.o.Partial {
		return s.shares(best), nil
	}
	all := make([]int32, s.p.ifaces)
	for i := range all {
		all[i] = int32(i)
	}
	return nil, &Infeasible{Together: s.names(all)}
}

// balancePart places as much as it can.
func (s *solver) balancePart(pk *packing, best *pack) ([]orchestrate.Share, error) {
	l := newPlacer(pk, s.p.room, &s.rnd)
	absent := l.absent + 1
	for range 50 {
		if l.absent < absent {
			absent = l.absent
			l.save(best)
		}
		if l.run(s.p.ifaces, s.stop) || s.stop() {
			break
		}
	}
	if l.absent < absent {
		l.save(best)
	}
	return s.shares(best), nil
}

// capped gives the rooms with none above level.
func (p *problem) capped(level int64) []int64 {
	room := make([]int64, p.flows)
	for f, r := range p.room {
		room[f] = min(r, level)
	}
	return room
}

// splitBalance solves Balance where demands may be split, to its optimum.
func (s *solver) splitBalance() ([]orchestrate.Share, error) {
	p := s.p
	all := make([]int32, p.flows)
	for f := range all {
		all[f] = int32(f)
	}
	never := func() bool { return false } // a level that is not the last one is no plan
	low := (p.total + int64(p.flows) - 1) / int64(p.flows)
	level, t, short, missing := p.level(low, false, never)
	if len(short) > 0 {
		if !s.o.Partial {
			return nil, &Infeasible{Together: s.names(short), Missing: missing}
		}
		for f := range t.room {
			t.room[f] = p.room[f]
		}
		for i := range int32(p.ifaces) {
			t.send(i)
		}
	}
	s.bound = level
	return t.shares(all), nil
}
