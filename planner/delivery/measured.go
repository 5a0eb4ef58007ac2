package delivery

import (
	"maps"
	"slices"
)

// Measured is what is known of a network beside its problem.
type Measured struct {
	Rates  map[string]float64  // that points send, by their ids, in Gbit/s; others have that of the problem
	Margin float64             // that plans reserve beyond the rate, as a factor; at least 1
	Down   map[string]bool     // servers that are switched off or have failed
	Avoid  func(a, b End) bool // whether a link is suspicious; nil for none
	Held   map[string]string   // why points keep what the plan before reserves, although another rate is measured, by their ids
}

// End is an end of a link.
type End struct {
	Node string
	Port int
}

// LeastRate is the lowest rate of a point in a problem, in Gbit/s.
const LeastRate = 1e-5

// mostRate is the highest one, whatever servers state, so that sums are finite.
const mostRate = 1e6

// Apply returns the problem as it was measured. Links keep their ports. Points whose rate still fits what the plan before
// reserves keep their rate there, so that plans do not follow every small change.
func (m *Measured) Apply(p *Problem, before *Plan) (*Problem, error) {
	q := *p
	q.Nodes, q.Links = slices.Clone(p.Nodes), slices.Clone(p.Links)
	if err := q.NamePorts(); err != nil {
		return nil, err
	}
	reserved := before.Reserved()
	for i := range q.Nodes {
		n := &q.Nodes[i]
		switch n.Kind {
		case PointNode:
			rate, known := m.Rates[n.ID]
			if !known {
				rate = n.Rate
			}
			if was := reserved[n.ID]; m.keeps(was, rate) {
				n.Rate = was / max(p.Reserve, 1)
			} else {
				n.Rate = min(max(rate*m.Margin, LeastRate), mostRate)
			}
		case ServerNode:
			if m.Down[n.ID] {
				n.Capacity = 0
			}
		}
	}
	if m.Avoid != nil {
		q.Links = slices.DeleteFunc(q.Links, func(l Link) bool { return m.Avoid(End{l.A, l.PortA}, End{l.B, l.PortB}) })
	}
	return &q, nil
}

// HoldUnknown lets points keep what a plan reserves for them whose rate is unknown: no server has a report of them, or, where
// why is not empty, servers lack reports of all points. A rate of 0 is none that was measured.
func (m *Measured) HoldUnknown(before *Plan, why string) {
	maps.DeleteFunc(m.Rates, func(_ string, rate float64) bool { return !(rate > 0) })
	for point, r := range before.Reserved() {
		switch rate := m.Rates[point]; {
		case why != "" && rate < r/m.Margin:
			m.hold(point, r, why)
		case rate == 0:
			m.hold(point, r, "no server has a report of it")
		}
	}
}

// Release lets points keep no more than the lowest rate, of which no server has had a report for that time, up to now. In
// silent is since when, by their ids. The caller keeps it from one measurement to the next, and clears it after one that
// lacks reports. Points in sending are not quiet, although no server may have a report of them. Times are ns; after 0 releases none.
func (m *Measured) Release(silent map[string]int64, before *Plan, now, after int64, sending map[string]bool) {
	reserved := before.Reserved()
	loud := func(point string) bool { return m.Rates[point] > 0 || sending[point] }
	maps.DeleteFunc(silent, func(point string, _ int64) bool { return reserved[point] == 0 || loud(point) })
	for point := range reserved {
		since, known := silent[point]
		switch {
		case loud(point):
		case !known:
			silent[point] = now
		case after > 0 && now-since >= after:
			m.Rates[point] = LeastRate
		}
	}
}

// HoldUnserved lets points keep what the plan before reserves that have no place in a plan with their measured rates: what is
// beyond is refused then, and not all. With all set, every point that asks for more than before has to. The result is false
// if that changes nothing.
func (m *Measured) HoldUnserved(plan, before *Plan, all bool) (changed bool) {
	reserved, lost := before.Reserved(), map[string]string{}
	for _, u := range plan.Unserved {
		if reserved[u.Point] > 0 {
			lost[u.Point] = u.Constraint
		}
	}
	for point, r := range reserved {
		why := lost[point]
		if m.Rates[point] <= r || len(lost) == 0 || why == "" && !all {
			continue
		}
		if why == "" {
			why = "contention"
		}
		m.hold(point, r, "the measured rate has no place: "+why)
		changed = true
	}
	return changed
}

func (m *Measured) hold(point string, reserved float64, why string) {
	if m.Held == nil {
		m.Held = map[string]string{}
	}
	m.Rates[point], m.Held[point] = reserved/m.Margin, why
}

// keeps reports whether a reservation suits a rate: it suffices, and is not beyond what the margin asks for twice.
func (m *Measured) keeps(reserved, rate float64) bool {
	return reserved > 0 && rate <= reserved && (reserved <= rate*m.Margin*m.Margin*m.Margin || reserved <= LeastRate)
}

// Reserved is what a plan reserves for each point, in Gbit/s; a nil plan has none.
func (plan *Plan) Reserved() map[string]float64 {
	sum := map[string]float64{}
	if plan == nil {
		return sum
	}
	for i := range plan.Assignment {
		sum[plan.Assignment[i].Point] += plan.Assignment[i].Rate
	}
	return sum
}

// SameWays reports whether two plans assign the same rates to the same paths under the same tags.
func (plan *Plan) SameWays(o *Plan) bool {
	return slices.EqualFunc(plan.Assignment, o.Assignment, func(a, b Assignment) bool {
		return a.ID == b.ID && a.Tag == b.Tag && a.Server == b.Server && a.Rate == b.Rate && a.way() == b.way()
	})
}

// Selected are the servers of a plan; a nil plan has none.
func (plan *Plan) Selected() map[string]bool {
	on := map[string]bool{}
	if plan != nil {
		for i := range plan.Assignment {
			on[plan.Assignment[i].Server] = true
		}
	}
	return on
}
