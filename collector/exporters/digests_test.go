package exporters

import (
	"testing"
)

// TestTopologyNames takes the labels of the topology where there is no inventory.
func TestTopologyNames(t *testing.T) {
	n := (&DigestNetwork{Nodes: []uint32{0, 1}, Labels: []string{"Berlin", "Bonn"}}).Names(0)
	if got := n.Node(1); got != "Bonn (1)" {
		t.Errorf("%q", got)
	}
	if n := (&DigestNetwork{Nodes: []uint32{7}}).Names(0); n != nil {
		t.Errorf("a network of numbers has names: %v", n)
	}
}
