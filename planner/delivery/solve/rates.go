package solve

import (
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// fill looks for rates on paths that meet the demand of points. Careful points send no more on a path than is reserved
// beyond their rate.
func (m *model) fill(list []*path, points, careful []int32) (l *program, byPoint, byServer [][]int32, how status) {
	hi := make([]float64, len(list))
	byPoint, byServer = make([][]int32, len(m.points)), make([][]int32, len(m.servers))
	for k, p := range list {
		hi[k] = m.most(p)
		if slices.Contains(careful, p.point) {
			hi[k] = min(hi[k], m.demand[p.point]-m.p.Nodes[m.points[p.point]].Rate)
		}
		byPoint[p.point] = append(byPoint[p.point], int32(k))
		byServer[p.server] = append(byServer[p.server], int32(k))
	}
	none := make([]float64, len(list))
	l = newProgram(none, hi, none)
	l.stop = m.stopped
	l.grow(len(points) + len(m.servers))
	for _, i := range points {
		most := 0.0
		for _, k := range byPoint[i] {
			most += hi[k]
		}
		if most < m.demand[i]-slack {
			return nil, nil, nil, infeasible
		}
		l.addRow(m.sum(byPoint[i]), m.demand[i], m.demand[i])
		if m.demand[i] > delivery.AddedCapacity {
			byEnd := map[int32][]int32{}
			for _, k := range byPoint[i] {
				if v := list[k].via; v >= 0 && v != m.servers[list[k].server] {
					byEnd[v] = append(byEnd[v], k)
				}
			}
			for _, v := range slices.Sorted(maps.Keys(byEnd)) {
				l.addRow(m.sum(byEnd[v]), math.Inf(-1), delivery.AddedCapacity)
			}
		}
	}
	for s, users := range byServer {
		if len(users) > 1 {
			l.addRow(m.sum(users), math.Inf(-1), m.room[s])
		}
	}
	var separate func(*program) bool // made only if a solution without it would pass
	for {
		if how = l.solve(); how != optimal {
			return nil, nil, nil, how
		}
		if separate == nil {
			separate = m.separator(m.resources(list))
		}
		if !separate(l) {
			return l, byPoint, byServer, optimal
		}
	}
}

// flows reads the rates of a point, without traces that come from rounding.
func (m *model) flows(l *program, list []*path, users []int32, demand float64) (flows []flow) {
	const trace = 1e-6
	left, top := demand, -1
	for _, k := range users {
		if x := l.x(k); x > trace {
			left -= x
			if flows = append(flows, flow{list[k], x}); top < 0 || x > flows[top].rate {
				top = len(flows) - 1
			}
		}
	}
	if top >= 0 {
		flows[top].rate += left
	}
	return flows
}
