package solve

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
)

// reasons holds why points are not served without links.
type reasons struct {
	m    *model
	r    *result
	wide *network // where nothing is short of capacity

	users map[int32][]int32 // points that were served, by what their paths pass; made when needed
}

func (m *model) newReasons(r *result) *reasons {
	wide := *m.network
	wide.free = slices.Repeat([]float64{math.Inf(1)}, len(m.free))
	wide.reach = wide.distances(func(int32) bool { return true })
	return &reasons{m: m, r: r, wide: &wide}
}

func (w *network) name(e int32) string {
	if n := int32(len(w.p.Links)); e >= n {
		return "switch " + w.p.Nodes[e-n].ID
	}
	return "link " + w.p.Links[e].A + " " + w.p.Links[e].B
}

// firstInWay names the first constraint that is in the way of a point, each tried as if those after it were none.
func (y *reasons) firstInWay(i int32) delivery.Unserved {
	m, v := y.m, y.m.points[i]
	x := &m.p.Nodes[v]
	u := delivery.Unserved{Point: x.ID}
	unserved := func(constraint, format string, args ...any) delivery.Unserved {
		u.Constraint, u.Detail = constraint, fmt.Sprintf(format, args...)
		return u
	}
	nearest := y.wide.reach[v]
	if math.IsInf(nearest, 1) {
		return unserved("path", "no path through switches leads to a server")
	}
	if nearest > x.Deadline+latencySlack {
		return unserved("deadline", "the nearest server is %.3f ms away, the deadline is %.3f ms", nearest, x.Deadline)
	}
	const some = 1000
	inTime, _ := y.wide.paths(i, v, x.Deadline, 0, some)
	best := slices.MaxFunc(inTime, func(a, b path) int {
		if a.up < b.up {
			return -1
		}
		return 1
	})
	if best.up < m.leastUp(x)-1e-12 {
		return unserved("loss", "the most reliable path in time works with a probability of %.4f, asked is %.4f", best.up, 1-x.Loss)
	}
	reliable := slices.DeleteFunc(slices.Clone(inTime), func(q path) bool { return q.up < m.leastUp(x)-1e-12 })
	// This is the most that all paths together can carry, by the scarcest element of each.
	sum := 0.0
	var widest *path
	var narrow int32
	at := -1.0
	for k := range reliable {
		q := &reliable[k]
		least, where := math.Inf(1), int32(-1)
		for _, e := range q.element {
			if m.free[e] < least {
				least, where = m.free[e], e
			}
		}
		if least > at {
			widest, narrow, at = q, where, least
		}
		sum += least
	}
	alone := func(room []float64) *solution {
		one := *m
		one.room = room
		return one.realise(&stage{points: []int32{i}}, &budget{})
	}
	endless := slices.Repeat([]float64{math.MaxFloat64 / 4}, len(m.room))
	switch {
	case alone(m.room) != nil:
		return unserved("contention", "it could be served alone; not with %s, with which it shares paths or servers", y.rivals(i))
	case sum < m.demand[i] && narrow >= 0:
		return unserved("bandwidth", "it needs %.3f Gbit/s; of its widest path, to %s, %s has %.3f free", m.demand[i], m.p.Nodes[m.servers[widest.server]].ID, m.name(narrow), at)
	}
	var reach []int32
	room := 0.0
	for _, q := range reliable {
		if !slices.Contains(reach, q.server) {
			reach = append(reach, q.server)
			room += m.room[q.server]
		}
	}
	if room < m.demand[i]-slack || alone(endless) != nil {
		return unserved("server capacity", "it needs %.3f Gbit/s; the %d servers that it reaches have %.3f free together", m.demand[i], len(reach), room)
	}
	if m.p.Test() != delivery.LossPath {
		one := *m
		rules := *m.p
		rules.LossTest = delivery.LossPath
		wide := *m.network
		wide.p, one.network = &rules, &wide
		if one.realise(&stage{points: []int32{i}}, &budget{}) != nil {
			return unserved("loss", "paths that together carry %.3f Gbit/s lose too much", m.demand[i])
		}
	}
	return unserved("bandwidth", "it needs %.3f Gbit/s; all its %d paths together carry less, where they share elements", m.demand[i], len(reliable))
}

// noHelp returns why a point is not served with added links either.
func (y *reasons) noHelp(i int32) string {
	m := y.m
	if !m.linkable(i) {
		return fmt.Sprintf("; an added link would take %g ms and work with a probability of %g", delivery.AddedLatency, delivery.AddedUp)
	}
	room, demand := 0.0, 0.0
	for _, x := range m.room {
		room += x
	}
	for _, d := range m.demand {
		demand += d
	}
	if demand > room {
		return fmt.Sprintf("; no added link helps: all points need %.3f Gbit/s, all servers have %.3f free", demand, room)
	}
	return "; no added links were found that help"
}

// rivals names points whose paths meet those of a point.
func (y *reasons) rivals(i int32) string {
	m := y.m
	if y.users == nil {
		y.users = map[int32][]int32{}
		for _, j := range y.r.without {
			for _, k := range m.byPoint[j] {
				for _, e := range m.meeting(k) {
					if u := y.users[e]; len(u) == 0 || u[len(u)-1] != j {
						y.users[e] = append(u, j)
					}
				}
			}
		}
	}
	var points []int32
	for _, k := range m.byPoint[i] {
		for _, e := range m.meeting(k) {
			points = append(points, y.users[e]...)
		}
	}
	slices.Sort(points)
	var meet []string
	for _, j := range slices.Compact(points) {
		if j != i {
			meet = append(meet, m.p.Nodes[m.points[j]].ID)
		}
	}
	const most = 5
	switch {
	case len(meet) == 0:
		return "the other points"
	case len(meet) > most:
		return fmt.Sprintf("%v and %d more", meet[:most], len(meet)-most)
	}
	return fmt.Sprint(meet)
}

// meeting lists where a path can meet others: its elements, and its server as a number below 0.
func (m *model) meeting(k int32) []int32 {
	p := &m.paths[k]
	return append(p.element[:len(p.element):len(p.element)], ^p.server)
}
