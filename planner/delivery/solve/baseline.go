package solve

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
)

// baseline plans with the assignment of the paper, and links by one of its methods or those it compares with.
func (m *model) baseline(o *Options) (r result) {
	sol, served := m.assign(nil)
	r.sol, r.first, r.without = *sol, len(served), served
	r.leftBound = m.floor(!o.NoLinks)
	defer func() { r.serverBound = m.capacityBound(m.lightest(m.leftOut(r.sol.points()))) }()
	if len(served) == len(m.points) || o.NoLinks {
		return r
	}
	b := &linker{m: m, rng: rand.New(rand.NewPCG(o.Seed, 7)), stop: o.Stop}
	var links []addition
	switch o.Method {
	case Paper:
		links = b.hubs()
	case Greedy:
		links = b.greedy()
	case Brute:
		links = b.brute()
	default:
		links = b.swarm(o.Method == PSOGA)
	}
	if with, all := m.assign(links); len(all) >= len(served) {
		r.sol = *with
	}
	return r
}

// addition is an added link.
type addition struct{ point, to int32 }

// assign is the assignment of the paper with two mistakes repaired. Here a server counts as used only if it has some
// rate, and a full one is passed over. Points come in ascending order of their usable paths. Servers in use come first,
// those with the least room before the others. Paths come by descending reliability, then latency. A point that cannot
// be served whole returns its share.
func (m *model) assign(links []addition) (sol *solution, served []int32) {
	open := make([][]*path, len(m.points))
	for i := range m.points {
		for _, k := range m.byPoint[i] {
			open[i] = append(open[i], &m.paths[k])
		}
	}
	for _, l := range links {
		open[l.point] = append(open[l.point], m.by(l)...)
	}
	order := opt.Ascending[int](len(m.points))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(open[a]), len(open[b])) })
	room, free := slices.Clone(m.room), slices.Clone(m.free)
	private := map[addition]float64{}
	used := make([]bool, len(m.servers))
	sol = new(solution)
	var servers []int32
	for _, i := range order {
		servers = servers[:0]
		for _, p := range open[i] {
			servers = append(servers, p.server)
		}
		slices.Sort(servers)
		servers = slices.Compact(servers)
		slices.SortStableFunc(servers, func(a, b int32) int {
			if used[a] != used[b] {
				if used[a] {
					return -1
				}
				return 1
			}
			if used[a] {
				return cmp.Compare(room[a], room[b])
			}
			return 0
		})
		left, from := m.demand[i], len(sol.flows)
		for _, s := range servers {
			if left <= slack {
				break
			}
			var to []*path
			for _, p := range open[i] {
				if p.server == s {
					to = append(to, p)
				}
			}
			slices.SortStableFunc(to, func(a, b *path) int { return cmp.Or(cmp.Compare(b.up, a.up), cmp.Compare(a.latency, b.latency)) })
			for _, p := range to {
				rate := min(left, room[s], m.p.Limit())
				for _, e := range p.element {
					rate = min(rate, free[e])
				}
				if p.via >= 0 {
					rate = min(rate, delivery.AddedCapacity-private[addition{p.point, p.via}])
				}
				if rate <= 1e-6 {
					continue
				}
				for _, e := range p.element {
					free[e] -= rate
				}
				if p.via >= 0 {
					private[addition{p.point, p.via}] += rate
				}
				room[s] -= rate
				left -= rate
				sol.flows = append(sol.flows, flow{p, rate})
			}
		}
		if left > slack {
			for _, f := range sol.flows[from:] {
				for _, e := range f.path.element {
					free[e] += f.rate
				}
				if f.path.via >= 0 {
					private[addition{f.path.point, f.path.via}] -= f.rate
				}
				room[f.path.server] += f.rate
			}
			sol.flows = sol.flows[:from]
			continue
		}
		for _, f := range sol.flows[from:] {
			used[f.path.server] = true
		}
		served = append(served, int32(i))
	}
	return sol, served
}

// by lists the paths that an added link opens.
func (m *model) by(l addition) (list []*path) {
	if m.kind(l.to) == delivery.ServerNode {
		if m.linkable(l.point) {
			p := m.direct(l.point, m.place[l.to])
			list = append(list, &p)
		}
		return list
	}
	ways := m.beyond(l.point)
	for k := range ways {
		if ways[k].via == l.to {
			list = append(list, &ways[k])
		}
	}
	return list
}

// linker chooses links.
type linker struct {
	m    *model
	rng  *rand.Rand
	stop func() bool
}

// candidates lists the links that a point can be given.
func (b *linker) candidates(i int32) (list []addition) {
	m := b.m
	for v := range int32(len(m.p.Nodes)) {
		if m.kind(v) != delivery.PointNode && !m.joined(i, v) {
			list = append(list, addition{i, v})
		}
	}
	return list
}

// unserved lists the points that an assignment leaves out.
func (m *model) unserved(served []int32) (list []int32) {
	for i := range int32(len(m.points)) {
		if !slices.Contains(served, i) {
			list = append(list, i)
		}
	}
	return list
}

// hubs is the heuristic of the paper. Hubs are the nodes on usable paths with the most links, as many as there are
// points (its pseudo-code sorts the other way round). Every unserved point is linked to the first hub after which more
// points are served. Servers come after the hubs.
func (b *linker) hubs() (links []addition) {
	m := b.m
	on := make([]bool, len(m.p.Nodes))
	for k := range m.paths {
		for _, v := range m.paths[k].nodes {
			on[v] = m.kind(v) != delivery.PointNode
		}
	}
	var hubs []int32
	for v, ok := range on {
		if ok {
			hubs = append(hubs, int32(v))
		}
	}
	degree := func(v int32) int32 { return m.start[v+1] - m.start[v] }
	slices.SortStableFunc(hubs, func(x, y int32) int { return cmp.Compare(degree(y), degree(x)) })
	hubs = append(hubs[:min(len(hubs), len(m.points))], m.servers...)
	_, served := m.assign(nil)
	for _, i := range m.unserved(served) {
		for _, v := range hubs {
			if b.stop() {
				return links
			}
			l := addition{i, v}
			if m.joined(i, v) || len(m.by(l)) == 0 {
				continue
			}
			if _, now := m.assign(append(links, l)); len(now) > len(served) {
				links, served = append(links, l), now
				break
			}
		}
	}
	return links
}

// score returns the number of points that an assignment with links serves, and of its servers.
func (b *linker) score(links []addition) (served, servers int) {
	sol, list := b.m.assign(links)
	return len(list), sol.servers()
}

// greedy adds the link after which most points are served, by fewest servers, until all are.
func (b *linker) greedy() (links []addition) {
	served, _ := b.score(nil)
	for served < len(b.m.points) && !b.stop() {
		best, servers, add := served, math.MaxInt, addition{-1, -1}
		_, list := b.m.assign(links)
		for _, i := range b.m.unserved(list) {
			for _, l := range b.candidates(i) {
				if b.stop() {
					break
				}
				if n, s := b.score(append(links, l)); n > best || n == best && n > served && s < servers {
					best, servers, add = n, s, l
				}
			}
		}
		if add.point < 0 {
			break
		}
		links, served = append(links, add), best
	}
	return links
}

// brute tries all sets of links, smaller ones first, until one serves all points; of equally many the one with fewest
// servers.
func (b *linker) brute() (best []addition) {
	var all []addition
	for i := range b.m.points {
		for _, l := range b.candidates(int32(i)) {
			if len(b.m.by(l)) > 0 {
				all = append(all, l)
			}
		}
	}
	most, fewest := b.score(nil)
	for size := 1; size <= len(b.m.points) && most < len(b.m.points); size++ {
		var try func(from int, links []addition)
		try = func(from int, links []addition) {
			if len(links) == size {
				if n, s := b.score(links); n > most || n == most && s < fewest && len(best) == size {
					most, fewest, best = n, s, slices.Clone(links)
				}
				return
			}
			for k := from; k < len(all) && !b.stop(); k++ {
				try(k+1, append(links, all[k]))
			}
		}
		try(0, nil)
		if b.stop() {
			break
		}
	}
	return best
}

// swarm is particle swarm optimisation (J. Kennedy and R. Eberhart, 1995). A particle holds a number for every unserved
// point, which stands for one of its candidate links. The fitness is the number of paths that the links open, as
// published. With genetic operators particles also exchange parts with the best and mutate.
func (b *linker) swarm(genetic bool) (links []addition) {
	const particles, rounds = 30, 60
	_, served := b.m.assign(nil)
	points := b.m.unserved(served)
	options := make([][]addition, len(points))
	gain := make([][]float64, len(points))
	for d, i := range points {
		options[d] = b.candidates(i)
		for _, l := range options[d] {
			gain[d] = append(gain[d], float64(len(b.m.by(l))))
		}
		if len(options[d]) == 0 {
			return nil
		}
	}
	at := func(d int, x float64) int { return min(max(0, int(x)), len(options[d])-1) }
	fitness := func(x []float64) (sum float64) {
		for d := range x {
			sum += gain[d][at(d, x[d])]
		}
		return sum
	}
	type particle struct {
		x, v, best []float64
		fit        float64
	}
	var top []float64
	topFit := math.Inf(-1)
	swarm := make([]particle, particles)
	for k := range swarm {
		p := &swarm[k]
		for d := range points {
			p.x = append(p.x, b.rng.Float64()*float64(len(options[d])))
			p.v = append(p.v, 0)
		}
		p.best, p.fit = slices.Clone(p.x), fitness(p.x)
		if p.fit > topFit {
			top, topFit = slices.Clone(p.x), p.fit
		}
	}
	for range rounds {
		if b.stop() {
			break
		}
		for k := range swarm {
			p := &swarm[k]
			for d := range p.x {
				p.v[d] = 0.7*p.v[d] + 1.5*b.rng.Float64()*(p.best[d]-p.x[d]) + 1.5*b.rng.Float64()*(top[d]-p.x[d])
				p.x[d] += p.v[d]
				if genetic {
					switch u := b.rng.Float64(); {
					case u < 0.2:
						p.x[d] = top[d]
					case u < 0.3:
						p.x[d] = b.rng.Float64() * float64(len(options[d]))
					}
				}
				p.x[d] = min(max(0, p.x[d]), float64(len(options[d]))-1e-9)
			}
			if f := fitness(p.x); f > p.fit {
				p.best, p.fit = slices.Clone(p.x), f
				if f > topFit {
					top, topFit = slices.Clone(p.x), f
				}
			}
		}
	}
	for d, x := range top {
		links = append(links, options[d][at(d, x)])
	}
	return links
}
