package web

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// leaving is the end of a link by its node and port.
func leaving(node, port uint32) atlas.LinkEnd { return atlas.LinkEnd{Node: node, Port: port} }

// fabric is a k-ary fat-tree with the ports of the planner's. Ports 1 to k/2 of a pod's switch lead down and the
// others up. Port p+1 of a core switch leads to pod p. Ids count the core, then the aggregation, then the edge
// switches, from 1.
func fabric(k int) *atlas.Map {
	h := k / 2
	m := &atlas.Map{Name: fmt.Sprintf("fat-tree:%d", k)}
	add := func(n atlas.Node) uint32 {
		n.ID = uint32(len(m.Nodes) + 1)
		m.Nodes = append(m.Nodes, n)
		return n.ID
	}
	for i := range h * h {
		add(atlas.Node{Name: fmt.Sprintf("core-%d", i), Tier: "core", Plane: i/h + 1})
	}
	for i := range k * h {
		add(atlas.Node{Name: fmt.Sprintf("agg-%d-%d", i/h, i%h), Tier: "aggregation", Pod: i/h + 1})
	}
	for i := range k * h {
		add(atlas.Node{Name: fmt.Sprintf("edge-%d-%d", i/h, i%h), Tier: "edge", Pod: i/h + 1})
	}
	link := func(a, ap, b, bp int) {
		x, y := leaving(uint32(a+1), uint32(ap)), leaving(uint32(b+1), uint32(bp))
		m.Links = append(m.Links, atlas.Link{Name: fmt.Sprintf("%s:%d--%s:%d", m.Nodes[a].Name, ap, m.Nodes[b].Name, bp), A: x, B: y, Speed: 100e9})
	}
	agg, edge := h*h, h*h+k*h
	for pod := range k {
		for a := range h {
			for i := range h {
				link(edge+pod*h+i, h+a+1, agg+pod*h+a, i+1)
			}
			for i := range h {
				link(agg+pod*h+a, h+i+1, a*h+i, pod+1)
			}
		}
	}
	return m
}

// mapWindow returns a window with a value for every direction of m, except those of the quiet links. A port of every
// edge switch to a host has one, too.
func mapWindow(m *atlas.Map, seed uint64, end time.Time, quiet, hot []int) *sink.Window {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := &inference.Window{Start: end.Add(-5 * time.Second).UnixNano(), End: end.UnixNano()}
	hop := func(e atlas.LinkEnd, factor float64) {
		p50 := 2500 * math.Exp(0.4*rng.NormFloat64()) * factor
		use := min(0.98, 0.1+0.3*rng.Float64()*math.Sqrt(factor))
		w.Hops = append(w.Hops, inference.HopStats{
			HopKey: inference.HopKey{Node: e.Node, EgressIf: e.Port}, Count: 900,
			Latency:     inference.Summary{Count: 900, P50: uint64(p50), P90: uint64(1.6 * p50), P99: uint64(2.3 * p50), Max: uint64(4 * p50)},
			Queue:       inference.Summary{Count: 900, P50: uint64(200 * factor), P99: uint64(1500 * factor * factor), Max: uint64(3000 * factor)},
			Utilization: use, HasUtilization: true,
		})
		w.Reports += 900
	}
	for l, link := range m.Links {
		for k, end := range [2]atlas.LinkEnd{link.A, link.B} {
			d := 2*l + k
			if slices.Contains(quiet, d) {
				continue
			}
			factor := 1.0
			if slices.Contains(hot, d) {
				factor = 30
			}
			hop(end, factor)
		}
	}
	for _, n := range m.Nodes {
		if n.Tier == "edge" {
			hop(leaving(n.ID, 1), 1)
		}
	}
	return sink.NewWindow("here", w, nil)
}

// mapFindings are a hot hop, a congested link, a node that drops, and a silent exporter.
func mapFindings(m *atlas.Map, now time.Time, hot int) []inference.Finding {
	end := m.Links[hot/2].A
	if hot%2 == 1 {
		end = m.Links[hot/2].B
	}
	other := m.Links[len(m.Links)-1]
	node := m.Nodes[len(m.Nodes)-2].ID
	at := now.Add(-time.Minute).UnixNano()
	hop := inference.HopKey{Node: end.Node, EgressIf: end.Port}
	return []inference.Finding{
		{ID: 21, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Updated: at, Node: end.Node, EgressIf: end.Port, Element: inference.ElementOfHop(hop), Text: "p99 latency is 180 µs."},
		{ID: 22, Kind: inference.HighUtilization, Severity: inference.Warning, Start: at, Updated: at, Node: other.A.Node, EgressIf: other.A.Port,
			Element: inference.ElementOfLink(other.A.Node, other.B.Node), Text: "The link is full."},
		{ID: 23, Kind: inference.PacketDrops, Severity: inference.Warning, Start: at, Updated: at, Node: node, Element: inference.ElementOfNode(node), Text: "412 packets dropped."},
	}
}

// sceneLoop is a control with probes from edge switches to cores, and some suspects.
func sceneLoop(m *atlas.Map, suspects []int) *atlas.LoopView {
	v := &atlas.LoopView{Epoch: 7, Phase: "steady"}
	end := func(d int) atlas.LinkEnd {
		if d%2 == 0 {
			return m.Links[d/2].A
		}
		return m.Links[d/2].B
	}
	for _, d := range suspects {
		v.Suspects = append(v.Suspects, atlas.LoopSuspect{LinkEnd: end(d), Weight: 0.83, Why: "latency p99 deviates by 4.2", Since: sceneTime.UnixNano()})
	}
	h := 0 // links from one aggregation switch down, which come right before those up
	for h < len(m.Links) && m.Nodes[m.Links[h].A.Node-1].Tier == "edge" {
		h++
	}
	for l := range m.Links {
		if l/h%2 == 1 || l%(4*h) == 2*h+1 { // some links are on no probe
			continue
		}
		v.Probes = append(v.Probes, atlas.LoopProbe{
			ID: fmt.Sprintf("p%d", len(v.Probes)), Links: []atlas.LinkEnd{end(2 * l), end(2 * (l + h))},
			Detailed: slices.Contains(suspects, 2*l) || slices.Contains(suspects, 2*(l+h)),
		})
	}
	return v
}
