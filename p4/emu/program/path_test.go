package program

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	labels "github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// A plan of probes that tables.py has turned into entries: an empty probe goes the way of its probe, and its collector gets it
// with a label of every switch.
func TestGeneratedPath(t *testing.T) {
	var plan struct {
		Topology string          `json:"topology"`
		Probes   []planner.Probe `json:"probes"`
	}
	b, err := os.ReadFile("../../vectors/plan-paths.json")
	if err == nil {
		err = json.Unmarshal(b, &plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := topo.Parse(plan.Topology)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFabric(g, "hopscope")
	if err != nil {
		t.Fatal(err)
	}
	probe := &plan.Probes[0]
	node := func(name string) int {
		n, ok := g.Lookup(name)
		if !ok {
			t.Fatalf("the topology has no node %q", name)
		}
		return n
	}
	var empty *p4.Packet
	for n := range g.NumNodes() {
		if err := f.Switch(n).Put(fallback("egress.device", "set_device", uint64(n+1), 0)); err != nil {
			t.Fatal(err)
		}
		if err := f.Switch(n).Command("table_add ingress.probes follow 0&&&0 0&&&0 0&&&0 0&&&0 => 1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range recordedGroups(t, "hopscope") {
		var at int
		switch group.Name {
		case "INT-path: first node of a plan":
			at, empty = node(probe.Agent), group.Packets[0]
		case "INT-path: last node of a plan":
			at = node(probe.Collector)
		default:
			continue
		}
		for _, c := range group.Commands {
			if !strings.Contains(c, p4.GeneratorsName) && !strings.Contains(c, p4.CollectorsName) {
				continue
			}
			if err := f.Switch(at).Command(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if empty == nil {
		t.Fatal("no empty probe was recorded")
	}
	left, err := f.Send(node(probe.Agent), Frame{uint16(empty.In.Port), empty.In.Bytes})
	if err != nil || len(left) != 1 {
		t.Fatalf("%d frames left: %v", len(left), err)
	}
	if left[0].Node != node(probe.Collector) || int(left[0].Port) != probe.CollectorPort {
		t.Errorf("it left node %d by port %d, want %s and %d", left[0].Node, left[0].Port, probe.Collector, probe.CollectorPort)
	}
	var r decode.Report
	frame := left[0].Bytes
	labels.DecodePath(&r, frame[34:], len(frame)-34, 34, false)
	if err := r.Error(); err != nil {
		t.Fatal(err)
	}
	var got, want []int
	for _, h := range r.Hops {
		got = append(got, int(h.NodeID)-1)
	}
	for _, n := range probe.Nodes {
		want = append(want, node(n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("labels of %v, want %v", got, want)
	}
}
