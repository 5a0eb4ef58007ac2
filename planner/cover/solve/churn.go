package solve

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
)

// improve improves a plan whose first walks are kept from an older one. It changes no more than most probes, unless it
// has to; a negative most is no limit. A changed probe covers all that it did before, so that it can change at once.
// improve returns the fewest changes that were found.
//
// Without depots a plan is best where no two ends of walks meet at a node. Walks whose ends meet are joined, those of
// the least churn first. Where a limit or depots leave less to join, some probes are given up, and their links are
// planned afresh with the rest. Planning everything anew is tried as well. The best plan within the churn is taken.
func (c *coverer) improve(k *kept, old *cover.Plan, most int) (forced int) {
	whole, fewest := *k, *k
	forced = c.splice(&fewest, len(old.Probes), 0)
	churn := c.splice(k, len(old.Probes), most)
	consider := func(other kept, n int) {
		a, b := c.objective(other.walks), c.objective(k.walks)
		if (most < 0 || n <= most) && (a < b || a == b && n < churn) {
			*k, churn = other, n
		}
	}
	if c.p.Depots == nil && len(k.walks) <= c.boundLimits(newNet(c.p, c.want)) {
		return min(forced, churn) // nothing is better
	}
	if c.p.MaxHops > 0 || c.p.MaxDelay > 0 || c.p.Depots != nil {
		worst := c.worst(&whole)
		for n := 1; n < len(worst) && (most < 0 || n < most) && !c.o.Stop(); n *= 2 {
			gone := map[string]bool{}
			for _, i := range worst[:n] {
				gone[whole.ids[i]] = true
			}
			probes := slices.DeleteFunc(slices.Clone(old.Probes), func(p planner.Probe) bool { return gone[p.ID] })
			other, _ := c.keep(probes, nil)
			c.replanRest(&other)
			consider(other, c.splice(&other, len(old.Probes), most))
		}
	}
	consider(c.anew(old))
	return min(forced, churn)
}

// worst sorts the kept probes by the gain of giving them up. With depots the probes come first that pass most of what
// others pass too, otherwise the shortest.
func (c *coverer) worst(k *kept) []int {
	times := make([]int, c.p.Graph.NumLinks())
	for _, w := range k.walks {
		for _, i := range w {
			times[c.p.Graph.Link(int(i))]++
		}
	}
	list, cost := make([]int, len(k.ids)), make([]int, len(k.ids))
	for n := range list {
		list[n], cost[n] = n, len(k.walks[n])
		if c.p.Depots != nil {
			cost[n] = 0
			for _, i := range k.walks[n] {
				cost[n] -= times[c.p.Graph.Link(int(i))] - 1
			}
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	return list
}

// splice joins walks where their ends meet, and returns the churn against a plan of that many probes.
func (c *coverer) splice(k *kept, old, most int) int {
	s := &splicer{c: c, none: make([]bool, len(k.covered)), churn: old - len(k.ids), most: most}
	for n, w := range k.walks {
		p := piece{walk: w}
		if n < len(k.ids) {
			p.members = []int32{int32(n)}
		}
		s.pieces = append(s.pieces, p)
		s.churn += p.churn()
	}
	if c.p.Depots == nil {
		s.run()
	}
	ids := k.ids
	k.walks, k.ids, k.changed = nil, nil, 0
	for stage := range 3 { // kept, changed, new
		for n := range s.pieces {
			p := &s.pieces[n]
			if p.walk == nil || p.stage() != stage {
				continue
			}
			k.walks = append(k.walks, p.walk)
			if stage < 2 {
				k.ids = append(k.ids, ids[p.members[0]])
				k.changed += stage
			}
		}
	}
	return s.churn
}

// anew plans everything anew. Walks that an old probe goes too, either way in an undirected plan, are that probe.
func (c *coverer) anew(old *cover.Plan) (k kept, churn int) {
	ids := map[string]string{} // by the interfaces passed
	key := func(w cover.Walk) string {
		b := make([]byte, 0, 4*len(w))
		for _, i := range w {
			b = append(b, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
		}
		return string(b)
	}
	for n := range old.Probes {
		if read, err := cover.Walks(c.p.Graph, old.Probes[n:n+1]); err == nil {
			ids[key(read[0])] = old.Probes[n].ID
		}
	}
	var fresh []cover.Walk
	for _, w := range c.cover(newNet(c.p, c.want)) {
		id, found := ids[key(w)]
		if !found && !c.p.Directed {
			back := c.back(w)
			if id, found = ids[key(back)]; found {
				w = back
			}
		}
		if !found || id == "" {
			fresh = append(fresh, w)
			continue
		}
		delete(ids, key(w))
		k.ids, k.walks = append(k.ids, id), append(k.walks, w)
	}
	k.walks = append(k.walks, fresh...)
	return k, len(old.Probes) - len(k.ids) + len(fresh)
}

// piece is a walk that was put together from walks of an older plan and new ones.
type piece struct {
	walk    cover.Walk // nil: it is part of another
	members []int32    // of the older plan, by number
	fresh   bool       // some of it is new
}

// stage is 0 for a probe that is kept, 1 for one that is changed, and 2 for a new one.
func (p *piece) stage() int {
	switch {
	case len(p.members) == 0:
		return 2
	case len(p.members) > 1 || p.fresh:
		return 1
	}
	return 0
}

// churn counts what becomes of the members: one is changed, the others are removed.
func (p *piece) churn() int { return [...]int{0, len(p.members), 1}[p.stage()] }

// splicer joins pieces.
type splicer struct {
	c      *coverer
	pieces []piece
	none   []bool  // by interface: nothing is covered
	ends   [][]int // pieces by the node where they start or end
	churn  int
	most   int
}

func (s *splicer) start(k int) int { return s.c.p.Graph.Node(int(s.pieces[k].walk[0])) }
func (s *splicer) end(k int) int {
	w := s.pieces[k].walk
	return s.c.p.Graph.Neighbor(int(w[len(w)-1]))
}

// run joins until there is nothing to join, or no churn left for it. The least churn comes first. To join a new walk to
// one that is changed anyway saves one, and to join two kept walks costs two.
func (s *splicer) run() {
	s.ends = make([][]int, s.c.p.Graph.NumNodes())
	for k := range s.pieces {
		for _, v := range [...]int{s.start(k), s.end(k)} {
			s.ends[v] = append(s.ends[v], k)
		}
	}
	for cost := -1; cost <= 2 && !s.c.o.Stop(); {
		if s.joinAll(cost) || s.spliceAll(cost) {
			cost = -1
		} else {
			cost++
		}
	}
}

// cost is the churn of joining two pieces, and affordable whether that is left.
func (s *splicer) affordable(a, b, cost int) bool {
	p, q := &s.pieces[a], &s.pieces[b]
	both := piece{members: slices.Concat(p.members, q.members), fresh: p.fresh || q.fresh || p.stage() == 2 || q.stage() == 2}
	more := both.churn() - p.churn() - q.churn()
	return more <= cost && (more <= 0 || s.most < 0 || s.churn+more <= s.most)
}

// merge makes one piece of two.
func (s *splicer) merge(a, b int, w cover.Walk) {
	p, q := &s.pieces[a], &s.pieces[b]
	s.churn -= p.churn() + q.churn()
	p.fresh = p.fresh || q.fresh || p.stage() == 2 || q.stage() == 2
	p.members = slices.Sorted(slices.Values(slices.Concat(p.members, q.members)))
	p.walk, q.walk = w, nil
	s.churn += p.churn()
	for _, v := range [...]int{s.start(a), s.end(a)} {
		if !slices.Contains(s.ends[v], a) {
			s.ends[v] = append(s.ends[v], a)
		}
	}
}

// joinAll joins pieces whose ends meet.
func (s *splicer) joinAll(cost int) (some bool) {
	for v := range s.ends {
		for changed := true; changed; {
			changed = false
			s.ends[v] = slices.DeleteFunc(s.ends[v], func(k int) bool { return s.pieces[k].walk == nil || s.start(k) != v && s.end(k) != v })
			list := s.ends[v]
			for i := 0; i < len(list) && !changed; i++ {
				for j := i + 1; j < len(list) && !changed; j++ {
					changed = s.join(list[i], list[j], v, cost)
				}
			}
			some = some || changed
		}
		if s.c.o.Stop() {
			return false
		}
	}
	return some
}

// join joins two pieces at a node where both have an end.
func (s *splicer) join(a, b, v, cost int) bool {
	if a == b || !s.c.p.Transit(v) || !s.affordable(a, b, cost) {
		return false
	}
	x, y := s.pieces[a].walk, s.pieces[b].walk
	if p := s.c.p; p.MaxHops > 0 && len(x)+len(y) > p.MaxHops {
		return false
	}
	switch {
	case s.end(a) == v && s.start(b) == v:
	case s.start(a) == v && s.end(b) == v:
		x, y = y, x
	case s.c.p.Directed:
		return false
	case s.end(a) == v: // and so does b
		y = s.c.back(y)
	default:
		x = s.c.back(x)
	}
	w := slices.Concat(x, y)
	if !s.c.whole(w, s.none) {
		return false
	}
	s.merge(min(a, b), max(a, b), w)
	return true
}

// spliceAll puts closed pieces into others that come by.
func (s *splicer) spliceAll(cost int) (some bool) {
	g := s.c.p.Graph
	by := make([][2]int, g.NumNodes()) // two pieces that leave the node, counted from 1
	for k := range s.pieces {
		for _, i := range s.pieces[k].walk {
			switch v := g.Node(int(i)); {
			case by[v][0] == 0:
				by[v][0] = k + 1
			case by[v][0] != k+1 && by[v][1] == 0:
				by[v][1] = k + 1
			}
		}
	}
	for k := range s.pieces {
		if s.pieces[k].walk == nil || s.start(k) != s.end(k) {
			continue
		}
	positions:
		for x, i := range s.pieces[k].walk {
			for _, other := range by[g.Node(int(i))] {
				if s.splice(k, x, other-1, cost) {
					some = true
					break positions
				}
			}
		}
	}
	return some
}

// splice puts closed piece k, from its hop x on, into another.
func (s *splicer) splice(k, x, into, cost int) bool {
	if into < 0 || into == k || s.pieces[into].walk == nil || !s.affordable(k, into, cost) {
		return false
	}
	g, w, circle := s.c.p.Graph, s.pieces[into].walk, s.pieces[k].walk
	if !s.c.p.Transit(s.start(k)) || !s.c.p.Transit(g.Node(int(circle[x]))) {
		return false
	}
	at := slices.IndexFunc(w, func(i int32) bool { return g.Node(int(i)) == g.Node(int(circle[x])) })
	if at < 0 {
		return false
	}
	w = slices.Concat(w[:at], circle[x:], circle[:x], w[at:])
	if !s.c.whole(w, s.none) {
		return false
	}
	s.merge(into, k, w)
	return true
}
