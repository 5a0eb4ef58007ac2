package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// transport sends items from interfaces to open flows, any part of a demand on any flow. It is the problem itself where demands may be
// split, and a relaxation where they may not.
type transport struct {
	*opt.Transport
	p *problem
}

// newTransport has all flows closed. With whole set, a demand above the room of a flow goes elsewhere entirely, for it could not be split.
func newTransport(p *problem, whole bool) *transport {
	most, left := make([]int64, len(p.pathItem)), make([]int64, p.ifaces)
	for f := range p.flows {
		for e := p.pathAt[f]; e < p.pathAt[f+1]; e++ {
			switch i := p.pathItem[e]; {
			case f >= p.real: // of one copy at most, but all may be left out
				most[e] = p.demand[i] * int64(p.want[i])
			case whole && p.demand[i] > p.room[f]:
				most[e] = -1
			default:
				most[e] = p.demand[i]
			}
		}
	}
	for i, d := range p.demand {
		left[i] = d * int64(p.want[i])
	}
	return &transport{opt.NewTransport(p.flowAt, p.flowItem, p.pathAt, p.pathItem, most, left), p}
}

// shares returns what is sent, in the order of the flows.
func (t *transport) shares(used []int32) (shares []orchestrate.Share) {
	used = slices.Sorted(slices.Values(used)) // not those that stand for left-out items
	for _, f := range used {
		for e := t.p.pathAt[f]; e < t.p.pathAt[f+1]; e++ {
			if t.Sent[e] > 0 {
				shares = append(shares, orchestrate.Share{Interface: t.p.pathItem[e], Flow: f, Items: t.Sent[e]})
			}
		}
	}
	return shares
}

// unsent lists the interfaces of which something is not sent.
func (t *transport) unsent() (ifaces []int32) {
	for i, n := range t.Left {
		if n > 0 {
			ifaces = append(ifaces, int32(i))
		}
	}
	return ifaces
}

// level returns the smallest level, from low on, so that everything can be sent with no flow above it, and the
// transport there. Where there is none it returns the interfaces that need more than their flows can carry, and how
// much.
//
// Every cut that is found gives the next level that it leaves possible. This is Newton's method on the capacity of
// cuts, which is concave, so the level never overshoots.
func (p *problem) level(low int64, whole bool, stop func() bool) (level int64, t *transport, short []int32, missing int64) {
	t = newTransport(p, whole)
	for f := range int32(p.real) {
		t.Open(f, min(p.room[f], low))
	}
	for f := p.real; f < p.flows; f++ {
		t.Open(int32(f), p.room[f])
	}
	for i := range int32(p.ifaces) {
		for !t.Send(i) {
			if stop() {
				return low, nil, nil, 0
			}
			rising := int64(0)
			for f := range int32(p.real) {
				if t.InCut(f) && p.room[f] > low {
					rising++
				}
			}
			if rising == 0 {
				return low, t, slices.Sorted(slices.Values(t.Reached())), t.Left[i]
			}
			low += (t.Left[i] + rising - 1) / rising
			for f := range p.real {
				t.Room[f] = min(p.room[f], low)
			}
		}
	}
	return low, t, nil, 0
}
