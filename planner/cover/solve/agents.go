package solve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// assigner finds directions of walks for which agents have room. A walk of free direction leaves one of its ends to the
// agents that send there. A node with d ends of walks, room to send S and room to receive R needs between d - R and S
// senders. This is a flow problem; turning walks round along paths of walks solves it.
type assigner struct {
	c             *coverer
	walks         []cover.Walk
	second        int    // from here on they are of the second cover
	kept          []bool // of an older plan: as it is
	turns         []bool // may go the other way
	send, receive []int  // room by node
	out, ends     []int  // by node: walks that begin, and that begin or end
	at            [][]int
	short         int // node where there is no room
	stuck         []bool
}

// assign turns and joins walks such that agents have room for them. In a partial plan it leaves out those for which there
// is none.
func (c *coverer) assign(walks, second []cover.Walk) (first, other []cover.Walk, err error) {
	p := c.p
	if p.Agents == nil {
		return walks, second, nil
	}
	a := &assigner{c: c, walks: append(slices.Clone(walks), second...), second: len(walks)}
	a.send, a.receive = p.Room()
	a.kept = make([]bool, len(a.walks))
	for k := range a.walks {
		a.kept[k] = k < c.keptFirst || k >= a.second && k < a.second+c.keptSecond
	}
	a.turns = make([]bool, len(a.walks))
	for k, w := range a.walks {
		a.turns[k] = !p.Directed && !p.Redundant && !a.kept[k] && p.Within(c.back(w))
	}
	fits := a.place()
	for steps := 4*len(a.walks) + 16; !fits && steps > 0 && !c.o.Stop() && (a.join() || a.extend()); steps-- {
		fits = a.place()
	}
	if !fits {
		v := a.short
		problem := fmt.Sprintf("the agents at %s can send %s and receive %s, and %d start or end there", p.Graph.NodeName(v), roomText(a.send[v]), roomText(a.receive[v]), a.ends[v])
		if !c.o.Partial || p.Redundant {
			return nil, nil, fmt.Errorf("cover: the probes %w: %s", ErrUncoverable, problem)
		}
		a.drop()
	}
	return a.walks[:a.second:a.second], a.walks[a.second:], nil
}

// back is a walk the other way round.
func (c *coverer) back(w cover.Walk) cover.Walk {
	b := make(cover.Walk, len(w))
	for k, i := range w {
		b[len(w)-1-k] = int32(c.p.Graph.Peer(int(i)))
	}
	return b
}

func (a *assigner) tail(k int) int { return a.c.p.Graph.Node(int(a.walks[k][0])) }
func (a *assigner) head(k int) int {
	w := a.walks[k]
	return a.c.p.Graph.Neighbor(int(w[len(w)-1]))
}

// place turns walks round until every node has room, or reports one that has none and the nodes that its walks lead to.
func (a *assigner) place() bool {
	n := a.c.p.Graph.NumNodes()
	a.out, a.ends, a.at = make([]int, n), make([]int, n), make([][]int, n)
	for k := range a.walks {
		u, v := a.tail(k), a.head(k)
		a.out[u]++
		a.ends[u]++
		a.ends[v]++
		a.at[u] = append(a.at[u], k)
		if u != v {
			a.at[v] = append(a.at[v], k)
		}
	}
	for v := range n {
		for a.out[v] > a.send[v] {
			if !a.turnPath(v, true) {
				return false
			}
		}
		for a.ends[v]-a.out[v] > a.receive[v] {
			if !a.turnPath(v, false) {
				return false
			}
		}
	}
	return true
}

// turnPath reverses the walks on a path of walks from v to a node that can send (receive) one more. All of them led
// along the path (or else against it).
func (a *assigner) turnPath(v int, sends bool) bool {
	by := make([]int, len(a.at))
	seen := make([]bool, len(a.at))
	a.short, a.stuck = v, seen
	if a.ends[v] > a.send[v]+a.receive[v] {
		seen[v] = true
		return false
	}
	queue := []int{v}
	seen[v] = true
	for at := 0; at < len(queue); at++ {
		u := queue[at]
		if u != v && (sends && a.out[u] < a.send[u] || !sends && a.ends[u]-a.out[u] < a.receive[u]) {
			for u != v {
				k := by[u]
				a.out[a.tail(k)]--
				a.out[a.head(k)]++
				u = a.tail(k) + a.head(k) - u
				a.walks[k] = a.c.back(a.walks[k])
			}
			return true
		}
		for _, k := range a.at[u] {
			from, to := a.tail(k), a.head(k)
			if !sends {
				from, to = to, from
			}
			if from == u && a.turns[k] && !seen[to] {
				seen[to], by[to] = true, k
				queue = append(queue, to)
			}
		}
	}
	return false
}

// join makes one walk of two at a node without room, the shortest that the limits allow, and reports whether it could.
func (a *assigner) join() bool {
	p := a.c.p
	best, one, two := cover.Walk(nil), -1, -1
	for v, stuck := range a.stuck {
		if !stuck || !p.Transit(v) {
			continue
		}
		for x, i := range a.at[v] {
			for _, k := range a.at[v][x+1:] {
				if a.kept[i] || a.kept[k] || (i < a.second) != (k < a.second) {
					continue
				}
				if best != nil && len(a.walks[i])+len(a.walks[k]) >= len(best) {
					continue
				}
				if w := a.joined(i, k, v); w != nil && p.Within(w) {
					best, one, two = w, i, k
				}
			}
		}
	}
	if best == nil {
		return false
	}
	a.walks[one] = best
	a.turns[one] = a.turns[one] && a.turns[two] && p.Within(a.c.back(best))
	a.remove(two)
	return true
}

// joined is walk i, or what it is the other way round, with walk k behind it at node v.
func (a *assigner) joined(i, k, v int) cover.Walk {
	for _, order := range [...][2]int{{i, k}, {k, i}} {
		x, y := a.walks[order[0]], a.walks[order[1]]
		switch {
		case a.head(order[0]) == v && a.tail(order[1]) == v:
		case a.head(order[0]) == v && a.turns[order[1]]:
			y = a.c.back(y)
		case a.tail(order[1]) == v && a.turns[order[0]]:
			x = a.c.back(x)
		default:
			continue
		}
		return append(slices.Clone(x), y...)
	}
	return nil
}

// extend prolongs a walk at a node without room to another depot, at its beginning or end, by as few links as possible.
// It reports whether the limits allowed that for a walk.
func (a *assigner) extend() bool {
	p := a.c.p
	best, which := cover.Walk(nil), -1
	least := 0
	for v, stuck := range a.stuck {
		if !stuck || !p.Transit(v) || len(a.at[v]) == 0 {
			continue
		}
		on, from := a.waysOn(v, false), a.waysOn(v, true)
		for _, k := range a.at[v] {
			if a.kept[k] {
				continue
			}
			try := func(more cover.Walk, w cover.Walk) {
				if (which < 0 || len(more) < least) && p.Within(w) {
					best, which, least = w, k, len(more)
				}
			}
			if a.head(k) == v {
				for _, way := range on {
					try(way, append(slices.Clone(a.walks[k]), way...))
				}
			}
			if a.tail(k) == v {
				for _, way := range from {
					try(way, append(slices.Clone(way), a.walks[k]...))
				}
			}
		}
	}
	if which < 0 {
		return false
	}
	a.walks[which] = best
	a.turns[which] = a.turns[which] && p.Within(a.c.back(best))
	return true
}

// waysOn gives the shortest ways from v to the depots that are not without room, or with home set from these to v.
func (a *assigner) waysOn(v int, home bool) (ways []cover.Walk) {
	p, g := a.c.p, a.c.p.Graph
	via := make([]int32, g.NumNodes())
	for n := range via {
		via[n] = -1
	}
	via[v] = -2
	queue := []int{v}
	for at := 0; at < len(queue); at++ {
		u := queue[at]
		if u != v && !p.Transit(u) {
			continue
		}
		lo, hi := g.Interfaces(u)
		for i := lo; i < hi; i++ {
			w, walked := g.Neighbor(i), i
			if home {
				walked = g.Peer(i)
			}
			if w >= 0 && via[w] == -1 && a.c.ways.usable(walked) {
				via[w] = int32(walked)
				queue = append(queue, w)
			}
		}
	}
	for _, d := range p.Depots {
		if d == v || via[d] == -1 || a.stuck[d] {
			continue
		}
		var way cover.Walk
		for u := d; u != v; {
			way = append(way, via[u])
			if home {
				u = g.Neighbor(int(via[u]))
			} else {
				u = g.Node(int(via[u]))
			}
		}
		if !home {
			slices.Reverse(way)
		}
		ways = append(ways, way)
	}
	return ways
}

// roomText is the number of probes that agents have room for, in words.
func roomText(n int) string {
	if n >= topo.Any {
		return "any number of probes"
	}
	return fmt.Sprintf("%d probe%s", n, map[bool]string{true: "", false: "s"}[n == 1])
}

func (a *assigner) remove(k int) {
	if k < a.second {
		a.second--
	}
	a.walks = slices.Delete(a.walks, k, k+1)
	a.kept = slices.Delete(a.kept, k, k+1)
	a.turns = slices.Delete(a.turns, k, k+1)
}

// drop leaves walks out until there is room for all others, those first that alone cover least, and lists what they
// covered.
func (a *assigner) drop() {
	c, g := a.c, a.c.p.Graph
	item := func(i int32) int32 {
		if !c.p.Directed {
			return min(i, int32(g.Peer(int(i))))
		}
		return i
	}
	times := make([]int, g.NumInterfaces())
	for _, w := range a.walks {
		for _, i := range w {
			times[item(i)]++
		}
	}
	alone := func(w cover.Walk) (n int) {
		for _, i := range w {
			if times[item(i)] == 1 {
				n++
			}
		}
		return n
	}
	var dropped []cover.Walk
	reason := fmt.Sprintf("the agents at %s have no room for another probe", g.NodeName(a.short))
	for !a.place() {
		least, which := 0, -1
		for k, w := range a.walks {
			if !a.stuck[a.tail(k)] && !a.stuck[a.head(k)] {
				continue
			}
			n := alone(w)
			if which < 0 || a.kept[which] && !a.kept[k] || a.kept[which] == a.kept[k] && n < least {
				least, which = n, k
			}
		}
		dropped = append(dropped, a.walks[which])
		for _, i := range a.walks[which] {
			times[item(i)]--
		}
		if which < c.keptFirst {
			c.keptFirst--
			c.lost = append(c.lost, which)
		}
		a.remove(which)
	}
	slices.SortStableFunc(dropped, func(x, y cover.Walk) int { return cmp.Compare(len(y), len(x)) })
	for _, w := range dropped { // a walk left out for another one may have room now
		if alone := slices.ContainsFunc(w, func(i int32) bool { return times[item(i)] == 0 }); !alone {
			continue
		}
		walks, kept, turns := slices.Clone(a.walks), slices.Clone(a.kept), slices.Clone(a.turns)
		a.walks, a.kept, a.turns, a.second = append(a.walks, w), append(a.kept, false), append(a.turns, !c.p.Directed && c.p.Within(c.back(w))), a.second+1
		if !a.place() {
			a.walks, a.kept, a.turns, a.second = walks, kept, turns, a.second-1
			continue
		}
		for _, i := range w {
			times[item(i)]++
		}
	}
	a.place()
	for i := range int32(g.NumInterfaces()) {
		if l := g.Link(int(i)); l >= 0 && item(i) == i && times[i] == 0 && a.covers(int(i)) {
			u := cover.Unprobed{Link: g.LinkName(l), Reason: reason}
			if c.p.Directed {
				u.From = g.NodeName(g.Node(int(i)))
			}
			c.left = append(c.left, u)
			c.some = true
			c.loose++
		}
	}
}

// covers reports whether interface i was to be covered, in an undirected problem that of a link's lower end.
func (a *assigner) covers(i int) bool {
	p := a.c.p
	l := p.Graph.Link(i)
	x, y := p.Graph.Ends(l)
	first, second := p.Wanted(l)
	if i == y && x != y && p.Directed {
		return second && a.c.want(y)
	}
	return first && a.c.want(x)
}

// nameAgents names the agents that send and receive every probe. A probe that was kept keeps its agents; other probes
// get the agent with the least load.
func (c *coverer) nameAgents(plan *cover.Plan, before map[string]*planner.Probe) {
	agents := c.p.Agents
	if agents == nil {
		return
	}
	byNode := map[string][]int{}
	for k, a := range agents {
		name := c.p.Graph.NodeName(a.Node)
		byNode[name] = append(byNode[name], k)
	}
	choose := func(node, old string, load []int, room func(a *topo.Agent) int) *topo.Agent {
		best := -1
		for _, k := range byNode[node] {
			switch {
			case load[k] >= room(&agents[k]):
			case agents[k].Name == old:
				best = k
			case best < 0 || agents[best].Name != old && load[k] < load[best]:
				best = k
			}
		}
		load[best]++
		return &agents[best]
	}
	sends, receives := make([]int, len(agents)), make([]int, len(agents))
	for n, probes := range [...][]planner.Probe{plan.Probes, plan.Second} {
		for k := range probes {
			q, old := &probes[k], planner.Probe{}
			if b := before[q.ID]; b != nil && k < [...]int{c.keptFirst, c.keptSecond}[n] {
				old = *b
			}
			a := choose(q.Agent, old.AgentHost, sends, func(a *topo.Agent) int { return a.Send })
			q.AgentHost, q.AgentPort = a.Name, a.Port
			a = choose(q.Collector, old.CollectorHost, receives, func(a *topo.Agent) int { return a.Receive })
			q.CollectorHost, q.CollectorPort = a.Name, a.Port
		}
	}
}
