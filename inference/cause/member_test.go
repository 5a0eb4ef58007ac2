package cause

import (
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// bundles is a fabric in which nodes 1 and 2 have two links. These have interfaces 12 and 22 of node 1, and 11 and 21
// of node 2.
type bundles struct{ fabric }

func (m bundles) Peers(h inference.HopKey) []uint32 {
	switch {
	case h.Node == 1 && (h.EgressIf == 12 || h.EgressIf == 22):
		return []uint32{2}
	case h.Node == 2 && (h.EgressIf == 11 || h.EgressIf == 21):
		return []uint32{1}
	}
	return m.fabric.Peers(h)
}

func (m bundles) Interfaces(node uint32) []inference.HopKey {
	switch node {
	case 1:
		return []inference.HopKey{{Node: 1, EgressIf: 12}, {Node: 1, EgressIf: 22}}
	case 2:
		return []inference.HopKey{{Node: 2, EgressIf: 11}, {Node: 2, EgressIf: 21}}
	}
	return m.fabric.Interfaces(node)
}

// TestMember: the member of a bundle is named that the evidence names, and the link where it names several or none.
func TestMember(t *testing.T) {
	for _, tt := range []struct {
		reported []string
		want     string
	}{
		{[]string{"link 1:12–2"}, "link 1:12–2"},
		{[]string{"link 1:12–2", "interface 1:22"}, "link 1:12–2"},
		{[]string{"interface 1:12", "interface 2:11"}, "link 1:12–2:11"},
		{[]string{"interface 1:22", "interface 2:21"}, "link 1:22–2:21"},
		{[]string{"interface 1:22", "interface 1:12"}, "link 1–2"},
		{[]string{"link 1:12–2", "link 1:22–2"}, "link 1–2"},
		{[]string{"node 1", "interface 3:1"}, "link 1–2"},
	} {
		c := &Cause{}
		for _, e := range tt.reported {
			f := at(inference.HopSilence, e)
			c.show(&f)
		}
		if got := c.member(inference.ElementOfLink(1, 2), bundles{fabric{nodes: 4}}); got.String() != tt.want {
			t.Errorf("%q: %s, want %s", tt.reported, got, tt.want)
		}
	}
	c := &Cause{}
	f := at(inference.HopSilence, "interface 3:4")
	c.show(&f)
	if got := c.member(inference.ElementOfLink(3, 4), bundles{fabric{nodes: 4}}); got != inference.ElementOfLink(3, 4) {
		t.Errorf("of one link %s is named", got)
	}
}
