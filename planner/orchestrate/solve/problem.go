package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// problem is a orchestrate.Problem in flat arrays. Paths and lists of flows are ascending.
type problem struct {
	ifaces, flows int
	copies        int
	real          int     // flows up to here are those of the problem; later ones stand for left-out items
	demand        []int64 // by interface
	weight        []int64 // by interface: of one copy
	want          []int32 // by interface: copies that can be carried at all, each by itself
	room          []int64 // by flow: its capacity
	total         int64   // of the demands of all copies wanted
	scale         int64   // divisor of demands and rooms
	weightScale   int64   // the same of weights
	gone          int64   // weight of the copies that cannot be carried, before it was divided
	groups        []group // of interfaces that may be left out
	pathAt        []int32 // path of flow f: pathItem[pathAt[f]:pathAt[f+1]]
	pathItem      []int32
	flowAt        []int32 // flows through interface i: flowItem[flowAt[i]:flowAt[i+1]]
	flowItem      []int32
}

// group is interfaces of whose copies something may be left out: no more than room, in units of size a copy.
type group struct {
	items []int32
	size  []int64 // by interface
	room  int64
}

func newProblem(in *orchestrate.Problem) *problem {
	p := &problem{ifaces: len(in.Interfaces), flows: len(in.Flows), real: len(in.Flows), copies: in.Copies(), scale: 1, weightScale: 1}
	p.demand, p.room = make([]int64, p.ifaces), make([]int64, p.flows)
	p.weight, p.want = make([]int64, p.ifaces), make([]int32, p.ifaces)
	for k := range in.Interfaces {
		p.demand[k], p.weight[k] = in.Interfaces[k].Demand, in.Interfaces[k].Worth()
	}
	paths := make([][]int32, p.flows)
	for k := range in.Flows {
		p.room[k], paths[k] = in.Flows[k].Capacity, in.Flows[k].Interfaces
	}
	p.setPaths(paths)
	for i := range p.ifaces {
		p.want[i] = int32(p.copies)
		if !in.Split {
			p.want[i] = min(p.want[i], p.able(int32(i)))
		}
		p.total += p.demand[i] * int64(p.want[i])
		p.gone += p.weight[i] * (int64(p.copies) - int64(p.want[i]))
	}
	return p
}

// able counts the flows that could carry a copy of i alone.
func (p *problem) able(i int32) (n int32) {
	for _, f := range p.through(i) {
		if p.room[f] >= p.demand[i] {
			n++
		}
	}
	return n
}

// setPaths sorts the paths and makes the lists of flows.
func (p *problem) setPaths(paths [][]int32) {
	p.pathAt = make([]int32, p.flows+1)
	for k, path := range paths {
		p.pathAt[k+1] = p.pathAt[k] + int32(len(path))
	}
	// Turning the lists round twice sorts both.
	p.flowAt, p.flowItem = opt.Transpose(p.pathAt, slices.Concat(paths...), p.ifaces)
	p.pathAt, p.pathItem = opt.Transpose(p.flowAt, p.flowItem, p.flows)
}

func (p *problem) path(f int32) []int32    { return p.pathItem[p.pathAt[f]:p.pathAt[f+1]] }
func (p *problem) through(i int32) []int32 { return p.flowItem[p.flowAt[i]:p.flowAt[i+1]] }

// normalise divides demands and capacities by the greatest common divisor of the demands. Whole demands fit after it as
// they did before, so problems that differ only in scale become the same problem. Not for demands that may be split.
// Weights are divided by theirs.
func (p *problem) normalise() {
	p.scale = p.divide(p.demand)
	p.weightScale = p.divide(p.weight)
	for f := range p.room {
		p.room[f] /= p.scale
	}
	p.total /= p.scale
}

// divide divides by their greatest common divisor those of the values that belong to interfaces which can be carried.
// The others find no room before or after.
func (p *problem) divide(values []int64) int64 {
	g := int64(0)
	for i, d := range values {
		if p.want[i] > 0 {
			g = opt.GCD(g, d)
		}
	}
	g = max(g, 1)
	for i := range values {
		if p.want[i] > 0 {
			values[i] /= g
		}
	}
	return g
}

// spare is the weight that may be left out of whole copies.
func (p *problem) spare() int64 {
	if len(p.groups) == 0 {
		return 0
	}
	return p.groups[0].room
}

// allow lets whole copies of so much weight be left out.
func (p *problem) allow(weight int64) {
	p.groups = nil
	if weight <= 0 {
		return
	}
	g := group{size: p.weight, room: weight}
	for i, n := range p.want {
		if n > 0 && p.weight[i] <= weight {
			g.items = append(g.items, int32(i))
		}
	}
	p.groups = []group{g}
}

// must reports whether no copy of i may be left out.
func (p *problem) must(i int) bool { return p.want[i] > 0 && p.weight[i] > p.spare() }

// leave is an upper bound of the value that can be left out, within the groups, of at most count copies of each
// interface. Copies may be cut, so that it is the relaxation of a knapsack.
func (p *problem) leave(value []int64, count []int32) (sum int64) {
	for n := range p.groups {
		sum += p.groups[n].leave(value, count, p.groups[n].room)
	}
	return sum
}

// leave does the same for one group and another room.
func (g *group) leave(value []int64, count []int32, room int64) int64 {
	return opt.FractionalKnapsack(g.items, value, g.size, count, room)
}

// leaveItems bounds the items that can be left out.
func (p *problem) leaveItems() int64 { return p.leave(p.demand, p.want) }

// extended adds a flow for every group. It carries what is left out, at most the group's room in items. Only for
// transports.
func (p *problem) extended(rooms []int64) *problem {
	q := *p
	paths := make([][]int32, p.flows, p.flows+len(p.groups))
	for f := range paths {
		paths[f] = p.path(int32(f))
	}
	q.room = slices.Clone(p.room)
	for k, g := range p.groups {
		paths = append(paths, g.items)
		q.room = append(q.room, rooms[k])
	}
	q.flows = len(paths)
	q.setPaths(paths)
	return &q
}
