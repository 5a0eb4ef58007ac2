package solve

import (
	"errors"

	"github.com/hopscope/hopscope/planner/cover"
)

// mostLengths is how many lengths of probes are looked at before those beside the best.
const mostLengths = 16

// forAttention plans probes for the fewest bytes in a loop with attention. Long probes measure many healthy links in
// detail; short ones pass links twice on their ways from and to depots. It tries several limits of hops and takes the
// plan of the fewest bytes.
func forAttention(p *cover.Problem, o Options) (*cover.Plan, error) {
	free, err := once(p, o)
	if err != nil {
		return nil, err
	}
	least, most, reach := 1, max(free.Stats.Longest, 1), reaches(p)
	for _, d := range reach {
		least = max(least, d)
	}
	best := free
	tried := map[int]bool{most: true}
	best.Stats.Attention.MaxHops = most
	try := func(hops int) error {
		if tried[hops] || hops < least || hops > most {
			return nil
		}
		tried[hops] = true
		q := *p
		q.MaxHops = hops
		plan, err := once(&q, o)
		switch {
		case errors.Is(err, ErrUncoverable):
			return nil
		case err != nil:
			return err
		}
		plan.Stats.Attention.MaxHops = hops
		if x, y := &plan.Stats, &best.Stats; x.LeftOut < y.LeftOut || x.LeftOut == y.LeftOut && x.Attention.Bytes < y.Attention.Bytes {
			best = plan
		}
		return nil
	}
	stopped := func() bool { return o.Stop != nil && o.Stop() }
	for k := 0; k <= mostLengths && !stopped(); k++ {
		hops := least + (most-least)*k*k/(mostLengths*mostLengths) // close where probes are short
		if most-least <= mostLengths {
			hops = least + k
		}
		if err := try(hops); err != nil {
			return nil, err
		}
	}
	for step := (most - least) / 8; step > 0 && !stopped(); step /= 2 {
		at := best.Stats.Attention.MaxHops
		for _, hops := range [...]int{at - step, at + step} {
			if err := try(hops); err != nil {
				return nil, err
			}
		}
	}
	traversals := len(reach)
	if p.Depots != nil && best.Minimise == "" && free.Stats.LeftOut == 0 {
		traversals = max(traversals, int(free.Stats.LowerBound))
	}
	best.Stats.LowerBound, best.Stats.Optimal = free.Stats.LowerBound, best.Stats.Objective == free.Stats.LowerBound && best.Stats.LeftOut == free.Stats.LeftOut
	if !best.Partial {
		best.Stats.Attention.Bound = min(p.AttentionBound(traversals, reach), best.Stats.Attention.Bytes)
	}
	return best, nil
}

// reaches gives the fewest links of a probe that passes it, for each link or direction that can be covered.
func reaches(p *cover.Problem) (list []int) {
	var ways *depotWays
	if p.Depots != nil {
		ways = newDepotWays(p)
	}
	hops := func(i int) int {
		if ways == nil {
			return 1
		}
		a, b := ways.from[p.Graph.Node(i)], ways.to[p.Graph.Neighbor(i)]
		if a < 0 || b < 0 {
			return 0
		}
		return int(a) + 1 + int(b)
	}
	for l := range p.Graph.NumLinks() {
		x, y := p.Graph.Ends(l)
		first, second := p.Wanted(l)
		a, b := hops(x), hops(y)
		switch {
		case p.Directed:
			if first && a > 0 {
				list = append(list, a)
			}
			if second && b > 0 {
				list = append(list, b)
			}
		case first && max(a, b) > 0:
			if a == 0 || b > 0 && b < a {
				a = b
			}
			list = append(list, a)
		}
	}
	return list
}
