package delivery_test

import (
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
)

// TestMeasured keeps the rate of a plan while it suffices and is not far beyond what is measured, leaves servers that are down
// without capacity, and leaves out suspicious links. Ports of other links stay.
func TestMeasured(t *testing.T) {
	p := &delivery.Problem{Nodes: []delivery.Node{{ID: "m", Kind: delivery.PointNode, Rate: 1, Deadline: 9}, {ID: "v", Kind: delivery.SwitchNode, Capacity: 9},
		{ID: "s", Kind: delivery.ServerNode, Capacity: 9}, {ID: "u", Kind: delivery.ServerNode, Capacity: 9}},
		Links: []delivery.Link{{A: "m", B: "v", Capacity: 9}, {A: "m", B: "v", Capacity: 9}, {A: "v", B: "s", Capacity: 9}, {A: "v", B: "u", Capacity: 9}}}
	before := &delivery.Plan{Assignment: []delivery.Assignment{{Point: "m", Server: "s", Rate: 3}, {Point: "m", Server: "u", Rate: 1}}}
	for _, tt := range []struct{ rate, want float64 }{{2, 2.5}, {4, 4}, {3, 4}, {4.1, 5.125}, {2.1, 4}, {0, 1e-5}} {
		m := delivery.Measured{Rates: map[string]float64{"m": tt.rate}, Margin: 1.25, Down: map[string]bool{"s": true},
			Avoid: func(a, _ delivery.End) bool { return a == delivery.End{Node: "m", Port: 1} }}
		q, err := m.Apply(p, before)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Nodes[0].Rate; got != tt.want {
			t.Errorf("measured %v, planned %v, want %v", tt.rate, got, tt.want)
		}
		if q.Nodes[2].Capacity != 0 || q.Nodes[3].Capacity != 9 || len(q.Links) != 3 || q.Links[0].PortA != 2 {
			t.Errorf("%+v", q)
		}
	}
	if q, _ := (&delivery.Measured{Margin: 2}).Apply(p, nil); q.Nodes[0].Rate != 2 || p.Nodes[0].Rate != 1 || p.Links[0].PortA != 0 {
		t.Errorf("without measurements: %+v of %+v", q, p)
	}
	if on := before.Selected(); !on["s"] || !on["u"] || len((*delivery.Plan)(nil).Selected()) != 0 {
		t.Errorf("servers %v", on)
	}
}
