package solve

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// splitTree decides by depth-first search whether most flows are enough where demands may be split. Where the transport
// cannot send everything its cut names interfaces of which every solution carries more on another flow. The search
// branches on which that is, and shuts out those that it has tried.
type splitTree struct {
	*transport
	most   int
	used   []int32
	shut   []bool
	earns  []int64 // by flow: the most that it can earn at the prices, at most one
	worth  int64   // of everything, less the possible profit of the used flows
	rooms  []int64 // by falling size
	budget int64
	stop   func() bool
}

func newSplitTree(p *problem, most int, price []int64) *splitTree {
	t := &splitTree{transport: newTransport(p, false), most: most, shut: make([]bool, p.flows), earns: make([]int64, p.flows)}
	sack := opt.Knapsack{Split: true}
	for f := range p.real {
		t.earns[f] = sack.Solve(p.path(int32(f)), p.room[f], 0, p.demand, price)
	}
	for i, u := range price {
		t.worth += u * int64(p.want[i])
	}
	t.worth -= p.leave(price, p.want)
	for f := p.real; f < p.flows; f++ {
		t.Open(int32(f), p.room[f])
	}
	t.rooms = slices.Clone(p.room[:p.real])
	slices.SortFunc(t.rooms, func(a, b int64) int { return cmp.Compare(b, a) })
	return t
}

// search visits about that many nodes. Where the answer is possible used and the transport are the proof.
func (t *splitTree) search(nodes int64, stop func() bool) verdict {
	t.budget, t.stop = nodes, stop
	for len(t.used) > 0 {
		t.drop()
	}
	clear(t.shut)
	return t.descend()
}

func (t *splitTree) use(f int32) {
	t.used = append(t.used, f)
	t.worth -= t.earns[f]
	t.Open(f, t.p.room[f])
}

func (t *splitTree) drop() {
	f := t.used[len(t.used)-1]
	t.used = t.used[:len(t.used)-1]
	t.worth += t.earns[f]
	t.Close(f)
}

func (t *splitTree) descend() verdict {
	if t.budget--; t.budget < 0 || t.budget%64 == 0 && t.stop() {
		t.budget = -1
		return undecided
	}
	more := t.most - len(t.used)
	if t.worth > int64(more)*one {
		return impossible
	}
	var left, spare int64
	stuck := int32(none)
	for i := range int32(t.p.ifaces) {
		if !t.Send(i) {
			stuck = i
			left += t.Left[i]
		}
	}
	if stuck == none {
		return possible
	}
	for _, room := range t.rooms[:min(more, len(t.rooms))] {
		spare += room
	}
	if spare < left {
		return impossible
	}
	type option struct {
		flow  int32
		value int64
	}
	var options []option
	for _, i := range t.Cut(stuck) {
		for _, f := range t.p.through(i) {
			if t.shut[f] || t.Room[f] > 0 || t.p.room[f] == 0 {
				continue
			}
			t.shut[f] = true // so that it is listed once
			var sum int64
			for _, j := range t.p.path(f) {
				sum += min(t.Left[j], t.p.demand[j])
			}
			options = append(options, option{f, min(sum, t.p.room[f])})
		}
	}
	for _, o := range options {
		t.shut[o.flow] = false
	}
	slices.SortStableFunc(options, func(a, b option) int { return cmp.Compare(b.value, a.value) })
	answer := impossible
	tried := 0
	for _, o := range options {
		t.use(o.flow)
		if answer = min(answer, t.descend()); answer == possible {
			return possible
		}
		t.drop()
		t.shut[o.flow] = true
		tried++
		if t.budget < 0 {
			break
		}
	}
	for _, o := range options[:tried] {
		t.shut[o.flow] = false
	}
	if t.budget < 0 {
		return undecided
	}
	return answer
}
