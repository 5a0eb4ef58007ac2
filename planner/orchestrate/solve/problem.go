package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// problem is a orchestrate.Problem in flat arrays. Paths and lists of flows are ascending.
type problem struct {
	ifaces, flows int
	copies        int
	demand        []int64 // by interface
	room          []int64 // by flow: its capacity
	total         int64   // of the demands, times copies
	pathAt        []int32 // path of flow f: pathItem[pathAt[f]:pathAt[f+1]]
	pathItem      []int32
	flowAt        []int32 // flows through interface i: flowItem[flowAt[i]:flowAt[i+1]]
	flowItem      []int32
}

func newProblem(in *orchestrate.Problem) *problem {
	p := &problem{ifaces: len(in.Interfaces), flows: len(in.Flows), copies: in.Copies()}
	p.demand, p.room = make([]int64, p.ifaces), make([]int64, p.flows)
	for k, i := range in.Interfaces {
		p.demand[k] = i.Demand
		p.total += i.Demand * int64(p.copies)
	}
	p.pathAt, p.flowAt = make([]int32, p.flows+1), make([]int32, p.ifaces+1)
	for k := range in.Flows {
		f := &in.Flows[k]
		p.room[k] = f.Capacity
		p.pathAt[k+1] = p.pathAt[k] + int32(len(f.Interfaces))
		for _, i := range f.Interfaces {
			p.flowAt[i+1]++
		}
	}
	for i := range p.ifaces {
		p.flowAt[i+1] += p.flowAt[i]
	}
	p.pathItem, p.flowItem = make([]int32, p.pathAt[p.flows]), make([]int32, p.pathAt[p.flows])
	// Turning the lists round twice sorts both.
	next := slices.Clone(p.flowAt)
	for k := range in.Flows {
		for _, i := range in.Flows[k].Interfaces {
			p.flowItem[next[i]] = int32(k)
			next[i]++
		}
	}
	next = slices.Clone(p.pathAt)
	for i := range int32(p.ifaces) {
		for _, f := range p.through(i) {
			p.pathItem[next[f]] = i
			next[f]++
		}
	}
	return p
}

func (p *problem) path(f int32) []int32    { return p.pathItem[p.pathAt[f]:p.pathAt[f+1]] }
func (p *problem) through(i int32) []int32 { return p.flowItem[p.flowAt[i]:p.flowAt[i+1]] }

// normalise divides demands and capacities by the greatest common divisor of the demands. Whole demands fit after it as
// they did before, so problems that differ only in scale become the same problem. Not for demands that may be split.
func (p *problem) normalise() {
	g := int64(0)
	for _, d := range p.demand {
		for g, d = d, g; d != 0; g, d = d, g%d {
		}
	}
	if g <= 1 {
		return
	}
	for i := range p.demand {
		p.demand[i] /= g
	}
	for f := range p.room {
		p.room[f] /= g
	}
	p.total /= g
}
