package solve

import (
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
)

// Two points of 30 Gbit/s share a link with 40 free, before a near server and a far one: as printed both are served, as
// each path counts by itself. Deadlines and losses leave points out unless they are ignored, and a link serves them.
func TestPrinted(t *testing.T) {
	problem := func(deadline, loss float64) *delivery.Problem {
		p := &delivery.Problem{Nodes: []delivery.Node{
			{ID: "a", Kind: delivery.PointNode, Rate: 30, Deadline: deadline, Loss: loss}, {ID: "b", Kind: delivery.PointNode, Rate: 30, Deadline: deadline, Loss: loss},
			{ID: "v", Kind: delivery.SwitchNode, Capacity: 100, Up: 1}, {ID: "w", Kind: delivery.SwitchNode, Capacity: 100, Up: 1},
			{ID: "near", Kind: delivery.ServerNode, Capacity: 40}, {ID: "far", Kind: delivery.ServerNode, Capacity: 40},
		}}
		for _, ends := range [][2]string{{"a", "v"}, {"b", "v"}, {"v", "w"}, {"w", "near"}, {"near", "far"}} {
			p.Links = append(p.Links, delivery.Link{A: ends[0], B: ends[1], Latency: 2, Capacity: 100, Up: 0.99})
		}
		p.Links[2].Capacity = 40
		p.Links[3].Capacity = 20 // and 20 over the near server, which forwards
		return p
	}
	for _, c := range []struct {
		name           string
		s              Printed
		deadline, loss float64
		want           PrintedResult
	}{
		{"each path by itself", Printed{}, 10, 0.1, PrintedResult{Points: 2, Served: 2, InTime: 2, Reliable: 2, Servers: 2}},
		{"one server", Printed{Nearest: true}, 10, 0.1, PrintedResult{Points: 2}},
		{"too late for the far one", Printed{}, 7, 0.1, PrintedResult{Points: 2}},
		{"late", Printed{Late: true}, 7, 0.1, PrintedResult{Points: 2, Served: 2, Reliable: 2, Servers: 2}},
		{"too lossy", Printed{}, 10, 0.03, PrintedResult{Points: 2}},
		{"lossy", Printed{Lossy: true}, 10, 0.03, PrintedResult{Points: 2, Served: 2, InTime: 2, Servers: 2}},
		{"a link each, as a server has room for one", Printed{Links: true}, 7, 0.1, PrintedResult{Points: 2, Served: 2, InTime: 2, Reliable: 2, Links: 2, Servers: 2}},
	} {
		if got := c.s.Plan(problem(c.deadline, c.loss)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
