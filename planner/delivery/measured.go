package delivery

import (
	"slices"
)

// Measured is what is known of a network beside its problem.
type Measured struct {
	Rates  map[string]float64  // that points send, by their ids, in Gbit/s; others have that of the problem
	Margin float64             // that plans reserve beyond the rate, as a factor; at least 1
	Down   map[string]bool     // servers that are switched off or have failed
	Avoid  func(a, b End) bool // whether a link is suspicious; nil for none
}

// End is an end of a link.
type End struct {
	Node string
	Port int
}

// LeastRate is the lowest rate of a point in a problem, in Gbit/s.
const LeastRate = 1e-5

// Apply returns the problem as it was measured. Links keep their ports. Points whose rate still fits what the plan before
// reserves keep their rate there, so that plans do not follow every small change.
func (m *Measured) Apply(p *Problem, before *Plan) (*Problem, error) {
	q := *p
	q.Nodes, q.Links = slices.Clone(p.Nodes), slices.Clone(p.Links)
	if err := q.NamePorts(); err != nil {
		return nil, err
	}
	reserved := map[string]float64{}
	if before != nil {
		reserved = before.Reserved()
	}
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
				n.Rate = max(rate*m.Margin, LeastRate)
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

// keeps reports whether a reservation suits a rate: it suffices, and is not beyond what the margin asks for twice.
func (m *Measured) keeps(reserved, rate float64) bool {
	return reserved > 0 && rate <= reserved && (reserved <= rate*m.Margin*m.Margin*m.Margin || reserved <= LeastRate)
}

// Reserved is what a plan reserves for each point, in Gbit/s.
func (plan *Plan) Reserved() map[string]float64 {
	sum := map[string]float64{}
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
