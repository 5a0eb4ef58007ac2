package loop

import (
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
)

// The probes cross both directions of every link, and reach every host. No two links have the same probes, and no two
// probes the same path.
func TestRoutes(t *testing.T) {
	n, err := emu.New(emu.DefaultConfig(), 1)
	if err != nil {
		t.Fatal(err)
	}
	g := n.Graph()
	all, err := routes(g)
	if err != nil {
		t.Fatal(err)
	}
	crossed := make([]int, g.NumInterfaces())
	var lists [][]int32
	for k, r := range all {
		if slices.ContainsFunc(all[:k], func(o route) bool { return slices.Equal(o, r) }) {
			t.Errorf("two probes go by %v", r)
		}
		lists = append(lists, r)
		for _, i := range r {
			crossed[i]++
		}
	}
	in, err := suspicion.NewIncidence(g.NumInterfaces(), lists)
	if err != nil {
		t.Fatal(err)
	}
	alike := 0
	for i, c := range crossed {
		if c == 0 {
			t.Errorf("no probe leaves %s by port %d", g.NodeName(g.Node(i)), g.Port(i))
		}
		if len(in.Alike(int32(i))) > 1 {
			alike++
		}
	}
	if alike > 0 {
		t.Errorf("%d of %d links are crossed by the same probes as others", alike, len(crossed))
	}
	c := emu.DefaultConfig()
	c.Probes = configured(g, all)
	if _, err := emu.New(c, 1); err != nil {
		t.Error(err)
	}
}
