package ways

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// moved is how a flow changed its path in a window.
type moved struct {
	flow     decode.FlowKey
	from, to []inference.HopKey // of the first change
	now      []inference.HopKey // where the last one led
	changes  uint64
	packets  uint64 // reports on the path that it left first
	shortest uint64 // sum over all changes of the reports on the path that was left, without the first
	returns  uint64 // changes to a path that the flow was on in this window

	left, joined []pair
	round        pair // at which the flow goes round now, and did not before; zero if it does not
}

// pair is a link as paths show it: two nodes that follow each other, the lesser first. A node with itself stands for
// all links by which flows leave it, for those whose further path is not reported.
type pair struct{ a, b uint32 }

func (p pair) compare(o pair) int { return cmp.Or(cmp.Compare(p.a, o.a), cmp.Compare(p.b, o.b)) }

// has reports whether a node is one of both.
func (p pair) has(n uint32) bool { return p.a == n || p.b == n }

// movedFlows returns one entry for each flow that changed its path, in the order of their first changes.
func movedFlows(changes []inference.PathChange) []moved {
	var out []moved
	index := map[decode.FlowKey]int{}
	paths := map[decode.FlowKey][]uint64{}
	for i := range changes {
		c := &changes[i]
		at, known := index[c.Flow]
		if !known {
			at = len(out)
			index[c.Flow] = at
			out = append(out, moved{flow: c.Flow, from: c.From, to: c.To, packets: c.Packets})
			paths[c.Flow] = []uint64{pathHash(c.From)}
		} else {
			out[at].shortest += c.Packets
		}
		m := &out[at]
		m.now = c.To
		m.changes++
		if h := pathHash(c.To); slices.Contains(paths[c.Flow], h) {
			m.returns++
		} else if len(paths[c.Flow]) < mostWays {
			paths[c.Flow] = append(paths[c.Flow], h)
		}
	}
	for i := range out {
		m := &out[i]
		from, to := pairs(m.from), pairs(m.to)
		m.left = slices.DeleteFunc(slices.Clone(from), func(p pair) bool { return slices.Contains(to, p) })
		m.joined = slices.DeleteFunc(to, func(p pair) bool { return slices.Contains(from, p) })
		if node, ok := m.parts(); ok && len(m.from) > 0 {
			m.left = append(m.left, pair{node, node})
		}
		m.findRound()
	}
	return out
}

// findRound sets where the flow goes round. A flow whose ways both pass the link came to it for the rounds, or left it
// with them.
func (m *moved) findRound() {
	before, was := round(m.from)
	now, is := round(m.now)
	if !is {
		now, is = round(m.to)
	}
	switch {
	case is && !was:
		m.round = now
		if !slices.Contains(m.joined, now) {
			m.joined = append(m.joined, now)
		}
	case was && !is && !slices.Contains(m.left, before):
		m.left = append(m.left, before)
	}
}

const (
	// mostWays bounds the paths of one flow that are distinguished.
	mostWays = 64
	// A flow is sent over several paths in turn if it changes its path sprayedChanges times in a window and comes back
	// to earlier paths. The changes come after at most sprayedRun reports on average.
	sprayedChanges = 4
	sprayedRun     = 4
)

// sprayed reports whether the flow is sent over several paths in turn, packet by packet. Nothing changes when such a flow
// takes another of its paths.
func (m *moved) sprayed() bool {
	return m.changes >= sprayedChanges && m.returns > 0 && m.shortest <= sprayedRun*(m.changes-1)
}

// pairs returns the links of a path, each once, in order.
func pairs(path []inference.HopKey) []pair {
	var out []pair
	for i := 1; i < len(path); i++ {
		a, b := path[i-1], path[i]
		if a.Other || b.Other || a.Node == b.Node {
			continue
		}
		out = append(out, pair{min(a.Node, b.Node), max(a.Node, b.Node)})
	}
	slices.SortFunc(out, pair.compare)
	return slices.Compact(out)
}

// parts is the last node that both ways have in common, counted from their beginning, where they part.
func (m *moved) parts() (node uint32, ok bool) {
	for i := range m.from {
		if i >= len(m.to) || m.from[i].Node != m.to[i].Node {
			break
		}
		node, ok = m.from[i].Node, true
		if m.from[i].EgressIf != m.to[i].EgressIf {
			break
		}
	}
	return node, ok
}

// hopsOn returns the hops of a path by which it passes a link, as far as they name their interface.
func hopsOn(path []inference.HopKey, p pair) (out []inference.HopKey) {
	for i := 1; i < len(path); i++ {
		a, b := path[i-1], path[i]
		if a.EgressIf != 0 && a.Node != b.Node && p.has(a.Node) && p.has(b.Node) {
			out = append(out, a)
		}
	}
	return out
}

// changedHops returns the hops that only one of both ways has.
func (m *moved) changedHops() (out []inference.HopKey) {
	for _, way := range [2][2][]inference.HopKey{{m.to, m.from}, {m.from, m.to}} {
		for _, h := range way[0] {
			if !h.Other && !slices.Contains(way[1], h) && !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	return out
}

// round returns the nodes at which a path goes round in a loop: one that it passes twice, and the one behind it.
func round(path []inference.HopKey) (p pair, ok bool) {
	for i := range path {
		for k := i + 2; k < len(path); k++ {
			if path[i].Node == path[k].Node && !path[i].Other {
				next := path[i+1].Node
				return pair{min(path[i].Node, next), max(path[i].Node, next)}, true
			}
		}
	}
	return p, false
}

// pathHash is a hash that distinguishes paths.
func pathHash(path []inference.HopKey) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for _, k := range path {
		h = (h ^ uint64(k.Node)) * prime
		h = (h ^ uint64(k.EgressIf)) * prime
		if k.Other {
			h = (h ^ 1) * prime
		}
	}
	return h
}
