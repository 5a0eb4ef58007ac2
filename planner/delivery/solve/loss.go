package solve

import (
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// maxLossPaths bounds the paths of a point whose states are counted one by one.
const maxLossPaths = 12

// tooLossy reports whether a point loses more than it tolerates with these flows.
func (m *model) tooLossy(i int32, flows []flow) bool {
	x := &m.p.Nodes[m.points[i]]
	const tolerance = 1e-12
	switch m.p.Test() {
	case delivery.LossPath:
		return false // its paths were chosen so
	case delivery.LossJoint:
		return m.together(flows, 1<<len(flows)-1) < 1-x.Loss-tolerance
	case delivery.LossExact:
		return len(flows) > maxLossPaths || m.exactLoss(flows, x.Rate) > x.Loss+tolerance
	default:
		return m.chernoffLoss(flows, x.Rate) > x.Loss+tolerance
	}
}

// elements of a path, with its added link as one more.
func (m *model) elements(p *path) []int32 {
	if p.via < 0 {
		return p.element
	}
	return append(p.element[:len(p.element):len(p.element)], ^p.via) // a point adds one link at most to a node
}

func (m *model) elementUp(e int32) float64 {
	if e < 0 {
		return delivery.AddedUp
	}
	return m.up[e]
}

// together is the probability that all elements of a set of flows work.
func (m *model) together(flows []flow, set uint) float64 {
	var all []int32
	for k := range flows {
		if set>>k&1 == 1 {
			all = append(all, m.elements(flows[k].path)...)
		}
	}
	slices.Sort(all)
	up := 1.0
	for _, e := range slices.Compact(all) {
		up *= m.elementUp(e)
	}
	return up
}

// exactLoss is the probability that the working flows carry less than rate. Inclusion and exclusion turns the
// probabilities that all flows of a set work into those that exactly these work.
func (m *model) exactLoss(flows []flow, rate float64) float64 {
	n := len(flows)
	p := make([]float64, 1<<n)
	for set := range p {
		p[set] = m.together(flows, uint(set))
	}
	for k := range n {
		for set := range p {
			if set>>k&1 == 0 {
				p[set] -= p[set|1<<k]
			}
		}
	}
	loss := 0.0
	for set := range p {
		sum := 0.0
		for s := uint(set); s != 0; s &= s - 1 {
			sum += flows[bits.TrailingZeros(s)].rate
		}
		if sum < rate-1e-6 {
			loss += p[set]
		}
	}
	return loss
}

// chernoffLoss bounds that probability for paths that share nothing. It is 1 where the bound is void.
func (m *model) chernoffLoss(flows []flow, rate float64) float64 {
	mu, top := 0.0, 0.0
	var all []int32
	for k := range flows {
		mu += flows[k].rate * m.together(flows, 1<<k)
		top = max(top, flows[k].rate)
		all = append(all, m.elements(flows[k].path)...)
	}
	slices.Sort(all)
	if mu <= rate || len(slices.Compact(slices.Clone(all))) < len(all) {
		return 1
	}
	d := 1 - rate/mu
	return math.Exp(-mu / (2 * top) * d * d)
}
