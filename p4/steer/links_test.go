package steer

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
)

// lostRounds are rounds of probes as a survey returns them.
type lostRounds []loop.ProbeRounds

func (x lostRounds) Drain() ([]loop.ProbeRounds, bool) { return x, true }

// TestHostPorts: a port towards hosts is a direction. It is suspected by a finding that names it. It is also suspected
// if all probes that leave by it lose rounds and no others do; only these probes could measure it in detail.
func TestHostPorts(t *testing.T) {
	cfg, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEmulated(cfg, 1, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	probe := &e.Config.Probes[0]
	last := e.Config.Passed[0][len(e.Config.Passed[0])-1]
	name := e.Links.Name(int(last))
	if n := len(probe.Links); n != len(probe.Nodes) || probe.Links[n-1] != name {
		t.Fatalf("probe of the nodes %v has links %v, and leaves by %s", probe.Nodes, probe.Links, name)
	}
	node, port, ok := e.Links.End(name)
	if i, there := e.Links.Lookup(name); !ok || !there || i != int(last) || int(port) != probe.CollectorPort {
		t.Fatalf("%s: number %d, %v, port %d, %v; the plan has port %d", name, i, there, port, ok, probe.CollectorPort)
	}
	var rounds lostRounds
	for k := range e.Config.Probes {
		r := loop.ProbeRounds{Probe: int32(k), Sent: 20}
		if way := e.Config.Passed[k]; way[len(way)-1] == last {
			r.Lost = 20
		}
		rounds = append(rounds, r)
	}
	full := inference.Finding{ID: 1, Kind: inference.HighQueue, Severity: inference.Critical, Node: node, EgressIf: port,
		Element: inference.ElementOfHop(inference.HopKey{Node: node, EgressIf: port}), Text: "full"}
	for what, x := range map[string]struct {
		rounds lostRounds
		open   []inference.Finding
	}{"finding": {nil, []inference.Finding{full}}, "rounds": {rounds, nil}} {
		c := *e.Config
		c.Rounds = x.rounds
		s, err := New(&c)
		if err != nil {
			t.Fatal(err)
		}
		s.SetFindings(x.open)
		if got := s.Suspects(1e9); len(got) != 1 || got[0].Link != name {
			t.Errorf("%s: %+v, want %s", what, got, name)
		}
	}
}

// TestPathOfFlow: a finding of a flow is evidence against the directions of the path that comes with it, by interfaces where they are named.
func TestPathOfFlow(t *testing.T) {
	cfg, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEmulated(cfg, 1, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	way := e.Config.Passed[0]
	var named, bare []inference.HopKey
	for _, i := range way {
		h := inference.HopKey{Node: e.Links.ids[e.Links.graph.Node(int(i))]}
		bare = append(bare, h)
		h.EgressIf = uint32(e.Links.graph.Port(int(i)))
		named = append(named, h)
	}
	f := inference.Finding{Kind: inference.BlackHole, Severity: inference.Critical, Element: inference.Element{Kind: inference.FlowElement}}
	for want, path := range map[int][]inference.HopKey{len(way): named, len(way) - 1: bare, 0: nil} {
		f.Path = path
		if got := e.Links.Links(nil, &f); !slices.Equal(got, way[:want]) {
			t.Errorf("path %v: %v, want %v", path, got, way[:want])
		}
	}
	f.Path = []inference.HopKey{{Node: 1 << 30}, {Other: true}, {Node: named[0].Node, EgressIf: 99}, named[0]}
	if got := e.Links.Links(nil, &f); !slices.Equal(got, way[:1]) {
		t.Errorf("path %v: %v, want %v", f.Path, got, way[:1])
	}
}
