package solve

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
)

// trailsOracle is the least number of probes of at most most links that pass every link, or direction, of a small
// problem once. It tries all sets that one trail can pass, and all ways to put them together.
func trailsOracle(p *cover.Problem, most int) int {
	n := newNet(p, nil)
	m := n.Edges()
	ends := make([][]uint64, 1<<m) // by set: where a trail of exactly these edges can end
	trail := make([]bool, 1<<m)
	for set := range ends {
		ends[set] = make([]uint64, 1)
	}
	for set := 1; set < 1<<m; set++ {
		if bits.OnesCount(uint(set)) > most {
			continue
		}
		for e := range m {
			if set>>e&1 == 0 {
				continue
			}
			for h := int32(2 * e); h <= int32(2*e+1); h++ {
				if !n.Walkable(h) {
					continue
				}
				if rest := set &^ (1 << e); rest == 0 || ends[rest][0]>>n.From[h]&1 == 1 {
					ends[set][0] |= 1 << n.Head(h)
					trail[set] = true
				}
			}
		}
	}
	fewest := make([]int, 1<<m)
	for set := 1; set < 1<<m; set++ {
		first := set & -set
		rest := set &^ first
		fewest[set] = m
		for s := rest; ; s = (s - 1) & rest {
			if trail[s|first] {
				fewest[set] = min(fewest[set], 1+fewest[set&^(s|first)])
			}
			if s == 0 {
				break
			}
		}
	}
	return fewest[1<<m-1]
}

// With a limit of hops the number of probes comes from a heuristic. On small networks it is optimal, and no bound is
// above it.
func TestMaxHopsAgainstAllCovers(t *testing.T) {
	proven := 0
	const instances = 700
	for seed := range uint64(instances) {
		r := rand.New(rand.NewPCG(seed, 23))
		p := &cover.Problem{Directed: seed%4 == 0, MaxHops: 1 + r.IntN(6)}
		if p.Graph = randomGraph(t, r, 9, 11); p.Directed {
			p.Graph = randomGraph(t, r, 6, 5)
		}
		if seed%3 == 0 {
			p.MaxPort = 1 + r.IntN(5)
		}
		p.Skip = make([]bool, p.Graph.NumLinks())
		for l := range p.Skip {
			p.Skip[l] = r.IntN(9) == 0
		}
		plan := checked(t, seed, p, Options{Partial: true})
		want := trailsOracle(p, p.MaxHops)
		s := plan.Stats
		if s.Objective != float64(want) || s.LowerBound > float64(want) || s.LeftOutBound != s.LeftOut {
			t.Errorf("seed %d: %v probes of at most %d links, bound %v, want %d", seed, s.Objective, p.MaxHops, s.LowerBound, want)
		}
		if s.Optimal {
			proven++
		}
	}
	t.Logf("%d of %d proven", proven, instances)
}

// walksOracle is the least number of traversals of walks between depots, of at most most links each, that pass every
// coverable link or direction. It also returns how many are not coverable.
func walksOracle(p *cover.Problem, most int) (traversals, left int) {
	g := p.Graph
	n := newNet(p, nil)
	m := n.Edges()
	item := make([]int, g.NumInterfaces())
	for i := range item {
		item[i] = -1
	}
	for h := range int32(len(n.From)) {
		if n.Walkable(h) {
			item[n.Label[h]] = int(h >> 1)
		}
	}
	const far = 1 << 20
	length := make([]int, 1<<m) // by set: of a shortest walk that passes these
	for set := range length {
		length[set] = far
	}
	// A walk is a set and a node; breadth first over both.
	type state struct{ set, node int }
	dist := map[state]int{}
	var queue []state
	for _, d := range p.Depots {
		dist[state{0, d}] = 0
		queue = append(queue, state{0, d})
	}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		if slices.Contains(p.Depots, x.node) {
			length[x.set] = min(length[x.set], dist[x])
		}
		if dist[x] == most {
			continue
		}
		lo, hi := g.Interfaces(x.node)
		for i := lo; i < hi; i++ {
			if item[i] < 0 {
				continue
			}
			y := state{x.set | 1<<item[i], g.Neighbor(i)}
			if _, ok := dist[y]; !ok {
				dist[y] = dist[x] + 1
				queue = append(queue, y)
			}
		}
	}
	can := 0
	for set, l := range length {
		if l < far {
			can |= set
		}
	}
	best := make([]int, 1<<m)
	for set := 1; set < 1<<m; set++ {
		best[set] = far
		for s := set; s > 0; s = (s - 1) & set {
			if length[s] < far {
				best[set] = min(best[set], length[s]+best[set&^s])
			}
		}
	}
	// A walk may pass more than what is still wanted: least over all sets above.
	for e := range m {
		for set := range best {
			if set>>e&1 == 0 && set&^can == 0 {
				best[set] = min(best[set], best[set|1<<e])
			}
		}
	}
	total := 0
	for l := range g.NumLinks() {
		if p.Skip != nil && p.Skip[l] {
			continue
		}
		if total++; p.Directed {
			total++
		}
	}
	return best[can], total - bits.OnesCount(uint(can))
}

// Between depots, whatever cannot be addressed or reached is left out, and the rest is planned as well as it can be.
func TestDepotsAgainstAllWalks(t *testing.T) {
	for seed := range uint64(700) {
		r := rand.New(rand.NewPCG(seed, 24))
		p := &cover.Problem{Directed: seed%2 == 0, Graph: randomGraph(t, r, 7, 8)}
		if p.Directed {
			p.Graph = randomGraph(t, r, 5, 4)
		}
		p.Depots, _ = randomDepots(r, p.Graph)
		if seed%3 != 0 {
			p.MaxPort = 1 + r.IntN(5)
		}
		p.Skip = make([]bool, p.Graph.NumLinks())
		for l := range p.Skip {
			p.Skip[l] = r.IntN(9) == 0
		}
		plan := checked(t, seed, p, Options{Partial: true})
		want, left := walksOracle(p, 1<<10)
		s := plan.Stats
		if int(s.Objective) != want || !s.Optimal || int(s.LeftOut) != left || s.LeftOutBound != s.LeftOut {
			t.Errorf("seed %d: directed %v: %v traversals, bound %v, without %v (%v), want %d without %d", seed, p.Directed, s.Objective, s.LowerBound, s.LeftOut, s.LeftOutBound, want, left)
		}
	}
}
