package web

import (
	"context"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// sprayedFlow uses five paths at once, two more of which one is used, and has digests that fit none of them.
func sprayedFlow(key string) PathFlow {
	f := inference.FlowStats{Key: mustFlow(key), Digests: 2000, Share: 0.4, Confidence: 0.99, Unexplained: 0.02,
		Hops:        []inference.FlowHop{{HopKey: inference.HopKey{Node: 17}, Confidence: 0.99}, {HopKey: inference.HopKey{Node: 100}, Confidence: 0.99}},
		Inseparable: []inference.FlowPaths{{Paths: [][]uint32{{17, 200}, {17, 201}}, Share: 0.1}}}
	for i := range uint32(4) {
		f.Others = append(f.Others, inference.FlowPath{Nodes: []uint32{17, 101 + i}, Share: 0.12, Confidence: 0.99})
	}
	return PathFlow{FlowStats: f}
}

// scenePaths returns three flows with digests. One is undecided, one has a marked hop, and one is certain, with
// frequent lengths of a queue.
func scenePaths(int) Paths {
	hop := func(node uint32, confidence float64) inference.FlowHop {
		return inference.FlowHop{HopKey: inference.HopKey{Node: node}, Confidence: confidence}
	}
	marked := hop(22, 0.6)
	marked.Inferred = true
	queued := hop(19, 1)
	queued.Frequent = []inference.FrequentValue{{Value: 12_000, Least: .6, Most: .66}, {Value: 0, Least: .2, Most: .2}}
	return Paths{Known: 412, Marked: 1, Undecided: 12, Flows: []PathFlow{
		{FlowStats: inference.FlowStats{Key: mustFlow("10.1.0.1:80 > 10.2.0.1:5001 tcp"), Partial: true, Digests: 9,
			Hops: []inference.FlowHop{hop(17, 0), {Unknown: true}, {Unknown: true}}}, Needed: 5},
		{FlowStats: inference.FlowStats{Key: mustFlow("10.1.0.2:80 > 10.2.0.1:5001 tcp"), Digests: 7, Confidence: 0.6,
			Hops: []inference.FlowHop{hop(17, 0.999), marked}}},
		{FlowStats: inference.FlowStats{Key: mustFlow("10.1.0.3:80 > 10.2.0.1:5001 tcp"), Digests: 44, Confidence: 0.9999999, Others: []inference.FlowPath{{Nodes: []uint32{17, 20}, Confidence: 0.9}},
			Path: inference.PathValue{Of: "sum of latency", Summary: inference.Summary{Count: 44, P50: 20_000, P99: 31_000}}, Frequent: "queue", Hops: []inference.FlowHop{hop(17, 1), queued}}},
	}}
}

// The API returns what digests say, and asks for it no more often than every other second.
func TestAPIPaths(t *testing.T) {
	synctest.Test(t, testAPIPaths) // what is asked for how often goes by its time
}

func testAPIPaths(t *testing.T) {
	now := time.Now()
	deps, asked := sceneDeps(now), atomic.Int64{}
	deps.Paths = func(n int) Paths {
		asked.Add(1)
		return scenePaths(n)
	}
	srv := serve(t, DefaultConfig(), deps)
	var list ask.PathList
	for range 3 {
		get(t, srv, "/api/paths", &list)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times for three answers", asked.Load())
	}
	if list.Known != 412 || list.Undecided != 12 || len(list.Flows) != 3 || list.Flows[0].Complete || list.Flows[0].Needed != 5 || list.Flows[0].Hops[1].Node != "" ||
		!list.Flows[1].Hops[1].Marked || list.Flows[1].Hops[1].Confidence != 0.6 || list.Flows[2].Others != 1 ||
		list.Flows[2].Whole == nil || *list.Flows[2].Whole != (ask.WholePath{Of: "sum of latency", Digests: 44, P50: 20_000, P99: 31_000}) || list.Flows[2].Frequent != "queue" || !slices.Equal(list.Flows[2].Hops[1].Frequent, []ask.FrequentValue{{Value: 12_000, Least: .6, Most: .66}, {Value: 0, Least: .2, Most: .2}}) {
		t.Errorf("%+v", list)
	}
	get(t, serve(t, DefaultConfig(), sceneDeps(now)), "/api/paths", &list)
	if list.Known != 0 || len(list.Flows) != 0 {
		t.Errorf("without digests: %+v", list)
	}
}

// A flow that uses several paths at once has all of them, where paths from digests are listed and where its one path is shown.
func TestAPISeveralPaths(t *testing.T) {
	const key = "10.1.0.4:80 > 10.2.0.1:5001 tcp"
	deps := sceneDeps(sceneTime)
	deps.Paths = func(int) Paths { return Paths{Sprayed: 1, Flows: []PathFlow{sprayedFlow(key)}} }
	deps.PathsOf = func(keys []decode.FlowKey) (out []PathFlow) {
		for _, k := range keys {
			f := PathFlow{FlowStats: inference.FlowStats{Key: k}} // one path, and digests agree
			if k == mustFlow(key) {
				f = sprayedFlow(key)
			}
			out = append(out, f)
		}
		return out
	}
	srv := serve(t, DefaultConfig(), deps)
	hops := []inference.FlowHop{{HopKey: inference.HopKey{Node: 17}}, {HopKey: inference.HopKey{Node: 100}}}
	write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.UnixNano(), Flows: []inference.FlowStats{
		{Key: mustFlow(key), Packets: 9, Hops: hops}, {Key: mustFlow("10.1.0.5:80 > 10.2.0.1:5001 tcp"), Packets: 8, Hops: hops}}}, nil))
	holds := func(what string, f *ask.PathRow) {
		t.Helper()
		if f == nil || !f.Sprayed || f.Share != 0.4 || len(f.Hops) != 2 || len(f.OtherPaths) != 4 || f.OtherPaths[3].Nodes[1] != "104" || f.OtherPaths[3].Share != 0.12 ||
			len(f.Inseparable) != 1 || f.Inseparable[0].Paths[1][1] != "201" || f.Unexplained != 0.02 {
			t.Errorf("%s: %+v", what, f)
		}
	}
	var list ask.PathList
	get(t, srv, "/api/paths", &list)
	if list.Sprayed != 1 || len(list.Flows) != 1 {
		t.Fatalf("%+v", list)
	}
	holds("paths", &list.Flows[0])
	var flows struct{ Flows []flowRow }
	get(t, srv, "/api/flows", &flows)
	holds("flows", flows.Flows[0].Several)
	if flows.Flows[1].Several != nil {
		t.Errorf("a flow with one path: %+v", flows.Flows[1].Several)
	}
	var one struct{ Flow flowRow }
	get(t, srv, "/api/flow?key="+url.QueryEscape(key), &one)
	holds("flow", one.Flow.Several)
}

// A page that has windows and no tracer, such as a console, shows the last window of a flow.
func TestAPISeveralPathsOfWindows(t *testing.T) {
	const key = "10.1.0.4:80 > 10.2.0.1:5001 tcp"
	deps := sceneDeps(sceneTime)
	deps.Paths, deps.PathsOf = nil, nil
	srv := serve(t, DefaultConfig(), deps)
	hops := []inference.FlowHop{{HopKey: inference.HopKey{Node: 17}}, {HopKey: inference.HopKey{Node: 100}}}
	sprayed := sprayedFlow(key).FlowStats
	sprayed.Packets, sprayed.Hops = 9, hops
	window := func(after time.Duration, f inference.FlowStats) {
		write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.Add(after).UnixNano(), Flows: []inference.FlowStats{f}}, nil))
	}
	of := func() *ask.PathRow {
		var flows struct{ Flows []flowRow }
		get(t, srv, "/api/flows?q="+url.QueryEscape(key), &flows)
		var one struct{ Flow flowRow }
		get(t, srv, "/api/flow?key="+url.QueryEscape(key), &one)
		if len(flows.Flows) != 1 || !reflect.DeepEqual(flows.Flows[0].Several, one.Flow.Several) {
			t.Fatalf("%+v, but %+v", flows.Flows, one.Flow.Several)
		}
		return one.Flow.Several
	}
	window(0, sprayed)
	if f := of(); f == nil || !f.Sprayed || f.Share != 0.4 || len(f.OtherPaths) != 4 || len(f.Inseparable) != 1 || f.Unexplained != 0.02 {
		t.Errorf("%+v", f)
	}
	window(10*time.Second, inference.FlowStats{Key: mustFlow(key), Packets: 9, Hops: hops})
	if f := of(); f != nil {
		t.Errorf("it has one path again: %+v", f)
	}
}

// testPagePaths opens the page of a collector that reads digests, with an inventory that is wrong.
func testPagePaths(t *testing.T, parent context.Context) {
	now := time.Now().Truncate(time.Second)
	deps := sceneDeps(now)
	deps.Paths = func(n int) Paths {
		p := scenePaths(n)
		p.Sprayed, p.Flows = 1, append(p.Flows, sprayedFlow("10.1.0.4:80 > 10.2.0.1:5001 tcp"))
		return p
	}
	deps.PathsOf = func(keys []decode.FlowKey) []PathFlow { return []PathFlow{sprayedFlow(keys[0].String())} }
	srv := serve(t, DefaultConfig(), deps)
	s := newScene(7, 20, 4)
	s.fill(srv, 20, now)
	const text = "node 914 speaks between 17 and 22 and is not in the topology: 12 flows from 9 addresses (3072 digests) say so"
	emit(srv, []inference.Finding{{ID: 77, Kind: inference.InventoryError, Severity: inference.Warning, Start: now.UnixNano(), Updated: now.UnixNano(),
		Element: inference.ElementOfNode(914), Node: 914, Value: 12, Text: text}})
	emit(srv, []inference.Finding{
		{ID: 78, Kind: inference.HighQueue, Severity: inference.Critical, Start: now.UnixNano(), Updated: now.UnixNano(), Node: 17, EgressIf: 1, Evidence: 1, Learning: true,
			Element: inference.ElementOfLink(17, 18), Text: "link 17–18 is congested"},
		{ID: 79, Kind: inference.HighLatency, Severity: inference.Warning, Start: now.UnixNano(), Updated: now.UnixNano(), Node: 17, EgressIf: 1, Cause: 78,
			Element: inference.ElementOfHop(inference.HopKey{Node: 17, EgressIf: 1}), Text: "latency of node 17 interface 1: p99 4ms over 900 packets, usually 12µs"},
	})
	young := s.window(sceneWindows, now.Add(s.length))
	for i := range young.Hops {
		young.Hops[i].Learning = young.Hops[i].Node > 3
	}
	write(srv, young)
	b := openTab(t, parent, srv)
	b.open(t, srv)
	if got := eval[int](t, b, `[...document.querySelectorAll(".hops-data .learning")].filter((e) => !e.hidden && e.offsetWidth > 0 && e.title).length`); got == 0 {
		t.Error("no hop in the list is marked as learning")
	}
	b.wait(t, `[...document.querySelectorAll(".finding-place")].some((e) => e.textContent === "Link 17 – 18")`)
	if got := b.text(t, ".finding-text"); got != "link 17–18 is congested (What is normal here is still being learnt.)" {
		t.Errorf("the cause says %q", got)
	}
	b.picture(t, "learning")
	b.wait(t, `document.querySelectorAll(".paths-data tbody tr").length === 4 && document.querySelectorAll("#paths-errors li").length === 1`)
	if got := b.text(t, "#paths-title") + ": " + b.text(t, "#paths-note"); got != "Paths from digests: 412 paths known, 1 with marked hops · 12 undecided · 1 over several paths at once" {
		t.Errorf("paths: %q", got)
	}
	if got := b.text(t, "#paths-errors li"); got != text {
		t.Errorf("error of the inventory: %q", got)
	}
	for i, want := range []string{
		"10.1.0.1:80 > 10.2.0.1:5001 tcp 17 ? ? undecided 9 about 5",
		"10.1.0.2:80 > 10.2.0.1:5001 tcp 17 (22) 60.0 % 7",
		"10.1.0.3:80 > 10.2.0.1:5001 tcp 17 19 12 kB in 66.0 % also seen 17 20 sum of latency: p50 20 µs, p99 31 µs over 44 digests > 99.99 % 44",
		"10.1.0.4:80 > 10.2.0.1:5001 tcp 40.0 % 17 100 12.0 % 17 101 12.0 % 17 102 12.0 % 17 103 and 4 more 99.0 % 2,000",
	} {
		if got := strings.Join(strings.Fields(b.text(t, `.paths-data tbody tr:nth-child(`+string(rune('1'+i))+`)`)), " "); got != want {
			t.Errorf("flow %d: %q, want %q", i+1, got, want)
		}
	}
	if got := eval[string](t, b, `document.querySelector(".inferred-path .marked").title`); got != "follows from the topology; no digest of its own confirms it, right with 60.0\u202f%" {
		t.Errorf("a marked hop says %q", got)
	}
	if got, want := eval[string](t, b, `document.querySelector(".inferred-path .often").title`), "Queue lengths that come most often, with the share of digests: 12\u202fkB in 66.0\u202f%, 0\u202fB in 20.0\u202f%"; got != want {
		t.Errorf("frequent values: %q, want %q", got, want)
	}
	b.wait(t, `[...document.querySelectorAll(".several")].some((p) => !p.hidden && p.textContent.includes("7 paths at once; this one: 40"))`)
	eval[bool](t, b, `(document.querySelector("#paths").scrollIntoView(), true)`)
	b.picture(t, "paths")
	b.size(t, 390, 844)
	eval[bool](t, b, `(document.querySelector("#paths").scrollIntoView(), true)`)
	b.picture(t, "paths-phone")
	b.size(t, 1280, 800)
	// The page of a collector without digests has no such section.
	plain := serve(t, DefaultConfig(), sceneDeps(now))
	newScene(7, 20, 4).fill(plain, 20, now)
	c := openTab(t, parent, plain)
	c.open(t, plain)
	if !eval[bool](t, c, `document.querySelector("#paths").hidden && document.querySelector("#nav-paths").hidden`) {
		t.Error("a collector without digests shows paths from digests")
	}
	b.check(t)
	c.check(t)
}

// open navigates to the page of a server and waits for its content.
func (b *browser) open(t *testing.T, srv *Server) {
	t.Helper()
	b.do(t, chromedp.Navigate(srv.URL()))
	b.wait(t, loaded)
}
