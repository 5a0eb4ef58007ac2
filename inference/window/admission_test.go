package window

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// One sender that makes up new nodes, flows and addresses in every window makes no more series in a day than the limits
// allow. The first ones keep theirs, and no count is lost.
func TestAdmission(t *testing.T) {
	limits := AdmissionLimits{Hops: 40, Flows: 30, Exporters: 20}
	a := NewAdmission(limits)
	const windows = 3 * 8640
	type day struct {
		hops      map[inference.HopKey]bool
		flows     map[decode.FlowKey]bool
		exporters map[inference.ExporterKey]bool
		nodes     map[uint32]bool
		places    map[inference.NamelessKey]bool
	}
	days := map[int64]*day{}
	var p Partial
	for w := range int64(windows) {
		end := (w + 1) * int64(10*time.Second)
		d := days[end/int64(24*time.Hour)]
		if d == nil {
			d = &day{map[inference.HopKey]bool{}, map[decode.FlowKey]bool{}, map[inference.ExporterKey]bool{}, map[uint32]bool{}, map[inference.NamelessKey]bool{}}
			days[end/int64(24*time.Hour)] = d
		}
		p.Reset()
		p.Span(end-int64(10*time.Second), end)
		steady, made := inference.HopKey{Node: 1}, inference.HopKey{Node: uint32(1000 + w), EgressIf: 7}
		p.Hop(made).Latency.AddN(3, 2)
		p.Hop(steady).Latency.AddN(3, 5)
		p.Hop(inference.HopKey{Node: made.Node, EgressIf: 8}).NoLatency = 4
		p.AddFlow(&FlowPart{Key: decode.FlowKey{SrcPort: 1}, Packets: 9, Path: []inference.HopKey{steady}})
		p.AddFlow(&FlowPart{Key: decode.FlowKey{SrcPort: uint16(w), DstPort: uint16(w >> 16)}, Packets: 1})
		p.AddExporters([]inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: 1}, Reports: 1}, {ExporterKey: inference.ExporterKey{Node: uint32(w)}, Reports: 1}})
		for _, from := range []decode.Addr{{15: 1}, {0: 1, 14: byte(w >> 8), 15: byte(w)}} {
			p.AddNameless(from, 1+int(w>>16), &decode.DefaultUnits, &decode.Hop{Has: decode.HopLatency, Latency: 3})
		}
		a.Fold(&p, end)
		win := p.Window(Limits{Hops: 100, Flows: 100})
		records := uint64(0)
		for _, s := range win.Nameless {
			records += s.Count
			if s.Position != 0 {
				d.places[s.NamelessKey] = true
			} else if (s.NamelessKey != inference.NamelessKey{}) {
				t.Fatalf("window %d: %+v", w, s)
			}
		}
		if steady := (inference.NamelessKey{Exporter: decode.Addr{15: 1}, Position: 1}); records != 2 || !slices.ContainsFunc(win.Nameless, func(s inference.NamelessStats) bool { return s.NamelessKey == steady }) {
			t.Fatalf("window %d: hops without a node id %+v", w, win.Nameless)
		}
		findings := []inference.Finding{{Node: 1}, {Node: made.Node}, {}}
		a.Mark(&win, findings)
		records = 0
		for _, h := range win.Hops {
			records += h.Count
			if !h.Other {
				d.hops[h.HopKey] = true
			}
		}
		if records != 11 {
			t.Fatalf("window %d: %d hop records, want 11", w, records)
		}
		if win.Hops[0].HopKey != steady || win.Hops[0].Count != 5 {
			t.Fatalf("window %d: the steady hop is not there: %+v", w, win.Hops)
		}
		for _, f := range win.Flows {
			if !f.Folded {
				d.flows[f.Key] = true
			} else if f.Key.SrcPort == 1 && f.Key.DstPort == 0 {
				t.Fatalf("window %d: the steady flow is folded", w)
			}
		}
		for _, e := range win.Exporters {
			if !e.Folded {
				d.exporters[e.ExporterKey] = true
			} else if e.Node == 1 {
				t.Fatalf("window %d: the steady exporter is folded", w)
			}
		}
		for _, f := range findings {
			if !f.Folded {
				d.nodes[f.Node] = true
			}
		}
		if findings[0].Folded || findings[2].Folded {
			t.Fatalf("window %d: findings of a steady node or of none are folded", w)
		}
	}
	for n, d := range days {
		if len(d.hops) > limits.Hops || len(d.flows) > limits.Flows || len(d.exporters) > limits.Exporters || len(d.nodes) > limits.Hops+1 || len(d.places) > limits.Hops {
			t.Errorf("day %d has series of %d hops, %d flows, %d exporters, %d places and findings of %d nodes", n, len(d.hops), len(d.flows), len(d.exporters), len(d.places), len(d.nodes))
		}
		if n == 1 && len(d.hops) < limits.Hops {
			t.Errorf("day %d admits %d new hops of %d", n, len(d.hops), limits.Hops)
		}
	}
	if hops, flows, rest := a.Folded(); hops == 0 || flows == 0 || rest == 0 {
		t.Errorf("folded: %d hop records, %d flows, %d others", hops, flows, rest)
	}
}

// A clock that is set back by a day makes no room for other series.
func TestAdmissionClockBack(t *testing.T) {
	a := NewAdmission(AdmissionLimits{Hops: 1})
	day := int64(24 * time.Hour)
	for i, end := range []int64{10 * day, 9 * day, 10*day + 1, 10*day + day/2} {
		var p Partial
		p.Hop(inference.HopKey{Node: uint32(i + 1)}).NoLatency = 1
		a.Fold(&p, end)
		w := p.Window(Limits{})
		if got := w.Hops[0].Other; got != (i > 0) {
			t.Errorf("hop of window %d: folded is %v", i, got)
		}
	}
}
