package web

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/ask"
)

type probesAnswer struct {
	Windows []struct {
		StartMS int64 `json:"start_ms"`
		EndMS   int64 `json:"end_ms"`
		Missing []string
		LeftOut int    `json:"left_out"`
		Bound   uint64 `json:"flow_bound"`
		Probes  []struct {
			Flow    string
			Reports uint64
			Hops    []struct {
				Node     uint32
				EgressIf uint32             `json:"egress_if"`
				Latency  *ask.ProbeQuantile `json:"latency_ns"`
				Queue    *ask.ProbeQuantile `json:"queue_bytes"`
			}
		}
		Links   []ask.LinkRow
		NoLinks int `json:"links_left_out"`
	}
}

// TestProbes keeps the newest windows with their probes and no other flow, bounded, in the order of their ends. A
// window that comes again replaces the former one.
func TestProbes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxFlows = 16
	srv, err := New(cfg, sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	window := func(end int64, probes int) *sink.Window {
		w := &inference.Window{Start: (end - 1) * second, End: end * second, Reports: 1, FlowBound: 3}
		w.Flows = append(w.Flows, flowOf(1, 1000, 1, 2))
		w.Links = slices.Repeat([]inference.LinkStats{{LinkKey: inference.LinkKey{Node: 1, EgressIf: 2, Peer: 3, PeerIf: 4, Period: 5}, Count: 6, Least: -7}}, probes/2*probeLinks/20+1)
		for k := range probes {
			w.Flows = append(w.Flows, inference.FlowStats{Key: mustFlow(fmt.Sprintf("10.0.0.1:%d > 10.0.0.2:17769 udp", 49152+k)), Packets: 5, Hops: []inference.FlowHop{
				{HopKey: inference.HopKey{Node: 1, EgressIf: 2}, Latency: inference.Summary{Count: 5, P50: 10, P90: 20, P99: 30, Max: 31}},
				{HopKey: inference.HopKey{Node: 3, EgressIf: 4}},
			}})
		}
		return sink.NewWindow("test", w, nil)
	}
	for end := int64(1); end <= 20; end++ {
		if err := srv.WriteWindow(t.Context(), window(end, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.WriteWindow(t.Context(), sink.NewWindow("test", &inference.Window{Start: 20 * second, End: 21 * second}, nil)); err != nil { // findings alone
		t.Fatal(err)
	}
	var all, late probesAnswer
	get(t, srv, "/api/probes", &all)
	if n := len(all.Windows); n != probeWindows || all.Windows[0].EndMS != 13000 || all.Windows[n-1].EndMS != 20000 || all.Windows[n-1].StartMS != 19000 {
		t.Fatalf("windows %+v", all.Windows)
	}
	w := all.Windows[0]
	if len(w.Probes) != 2 || w.Bound != 3 || w.LeftOut != 0 || w.Missing != nil {
		t.Fatalf("window %+v", w)
	}
	if len(w.Links) != probeLinks/20+1 || w.Links[0] != (ask.LinkRow{Node: 1, EgressIf: 2, Peer: 3, PeerIf: 4, Period: 5, Packets: 6, Least: -7}) || w.NoLinks != 0 {
		t.Fatalf("%d links, %+v, %d left out", len(w.Links), w.Links[0], w.NoLinks)
	}
	p := w.Probes[1]
	if p.Flow != "10.0.0.1:49153 > 10.0.0.2:17769 udp" || p.Reports != 5 || len(p.Hops) != 2 {
		t.Fatalf("probe %+v", p)
	}
	get(t, srv, "/api/probes?since=19000", &late)
	if len(late.Windows) != 1 || late.Windows[0].EndMS != 20000 {
		t.Errorf("since 19000: %+v", late.Windows)
	}
	for _, w := range []*sink.Window{window(5, 1), window(19, 40)} { // one that is too old, and one that comes again
		if err := srv.ReplaceWindow(t.Context(), w, []string{"b"}); err != nil {
			t.Fatal(err)
		}
	}
	get(t, srv, "/api/probes?since=12500", &late)
	n := len(late.Windows)
	if n != probeWindows || len(late.Windows[n-2].Links) != probeLinks || late.Windows[n-2].NoLinks != 1 || len(late.Windows[n-2].Probes) != 16 || late.Windows[n-2].LeftOut != 24 || len(late.Windows[n-2].Missing) != 1 {
		t.Errorf("after a window came again: %+v", late.Windows)
	}
	if res := request(srv, http.MethodGet, "/api/probes?since=x"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("since=x: %s", res.Status)
	}
	h := p.Hops
	if h[0].Node != 1 || h[0].EgressIf != 2 || h[0].Latency == nil || *h[0].Latency != (ask.ProbeQuantile{Count: 5, P50: 10, P90: 20, P99: 30}) || h[0].Queue != nil || h[1].Latency != nil {
		t.Errorf("hops %+v", h)
	}
}
