package p4_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/delivery"
)

// TestDeliverySettings refuses a page of two servers, whose reports would count twice, and points and servers that the instance
// lacks. A point that a plan neither serves nor names as unserved is described as not served.
func TestDeliverySettings(t *testing.T) {
	c := p4.DefaultDeliveryConfig()
	c.File = "x"
	c.Servers = []p4.DeliveryHost{{Name: "s", Address: "192.0.2.1:1", MAC: "02:00:00:00:00:01", Page: "http://192.0.2.1:8080"}, {Name: "u", Address: "192.0.2.2:1", MAC: "02:00:00:00:00:02", Page: "http://192.0.2.2:8080"}}
	c.Points = []p4.DeliveryPoint{{Name: "m", Address: "10.0.0.1"}}
	if err := errors.Join(c.Validate(false)...); err != nil {
		t.Fatal(err)
	}
	node := func(id string, k delivery.NodeKind) delivery.Node { return delivery.Node{ID: id, Kind: k} }
	all := []delivery.Node{node("m", delivery.PointNode), node("s", delivery.ServerNode), node("u", delivery.ServerNode)}
	for _, tt := range []struct {
		nodes []delivery.Node
		want  string
	}{{all, ""}, {all[1:], `points[0]: the instance has no point "m"`}, {all[:2], `servers[1]: the instance has no server "u"`}} {
		err := c.Fits(&delivery.Problem{Nodes: tt.nodes}, map[string]bool{"m": true})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d nodes: %v, want %q", len(tt.nodes), err, tt.want)
		}
	}
	c.Servers[1].Page = c.Servers[0].Page
	if err := errors.Join(c.Validate(false)...); err == nil || !strings.Contains(err.Error(), "is that of another server") {
		t.Errorf("one page of two servers: %v", err)
	}
	var s p4.DeliveryStatus
	if s.Describe(&c, nil); s.Points[0].Constraint != "" {
		t.Errorf("without a plan: %+v", s.Points)
	}
	if s.Describe(&c, &delivery.Plan{}); s.Points[0].Constraint == "" {
		t.Errorf("a plan without the point: %+v", s.Points)
	}
}
