package web

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// stateAnswer is an [ask.MapState] as it is read: null is no number.
type stateAnswer struct {
	ask.MapState
	Values values `json:"values"`
	Nodes  values `json:"nodes"`
}

type values []float64

func (v *values) UnmarshalJSON(b []byte) error {
	var list []*float64
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*v = nil
	for _, p := range list {
		if p == nil {
			p = new(float64)
			*p = math.NaN()
		}
		*v = append(*v, *p)
	}
	return nil
}

func stateOfMap(t *testing.T, srv *Server, query string) (s stateAnswer) {
	t.Helper()
	get(t, srv, "/api/map/state"+query, &s)
	return s
}

// The map of a fabric has its rows, every direction its value, and findings their places.
func TestMapOfFabric(t *testing.T) {
	m := fabric(4)
	deps := sceneDeps(sceneTime)
	deps.Map = func() *atlas.Map { return m }
	srv := serve(t, DefaultConfig(), deps)
	write(srv, mapWindow(m, 1, sceneTime, []int{10, 11, 20}, []int{6}))
	emit(srv, mapFindings(m, sceneTime, 6))
	var doc atlas.Document
	get(t, srv, "/api/map", &doc)
	if doc.Source != "topology" || doc.Layout != atlas.Tiers || len(doc.Nodes) != 20 || len(doc.Links) != 32 || doc.Version == "" {
		t.Fatalf("source %q, layout %q, %d nodes, %d links, version %q", doc.Source, doc.Layout, len(doc.Nodes), len(doc.Links), doc.Version)
	}
	for _, n := range doc.Nodes {
		if want := map[string]float64{"core": 0, "aggregation": 1, "edge": 2}[n.Tier]; n.Y != want {
			t.Errorf("%s stands in row %v, want %v", n.Name, n.Y, want)
		}
	}
	for i, a := range doc.Nodes {
		for _, b := range doc.Nodes[:i] {
			if a.Y == b.Y && math.Abs(a.X-b.X) < 0.99 {
				t.Errorf("%s and %s are %v apart", a.Name, b.Name, math.Abs(a.X-b.X))
			}
			if a.Tier == "edge" && b.Tier == "edge" && a.Pod > b.Pod && a.X <= b.X {
				t.Errorf("pod %d stands left of pod %d", a.Pod, b.Pod)
			}
		}
	}
	s := stateOfMap(t, srv, "")
	if s.Version != doc.Version || s.Unit != "ns" || len(s.Values) != 64 || s.EndMS != sceneTime.UnixMilli() {
		t.Fatalf("%+v", s)
	}
	for d, v := range s.Values {
		if quiet := d == 10 || d == 11 || d == 20; (v != v) != quiet {
			t.Errorf("direction %d: %v", d, v)
		}
	}
	for i, v := range s.Nodes { // the hop to a host is on no link
		if (v == v) != (doc.Nodes[i].Tier == "edge") {
			t.Errorf("%s: %v of its own", doc.Nodes[i].Name, v)
		}
	}
	if s.Egress != nil {
		t.Errorf("other interfaces: %v", s.Egress)
	}
	last, node := len(m.Links)-1, 18
	want := []atlas.FindingDoc{
		{ID: "0000000000000015", Severity: "critical", Links: []int{6}},
		{ID: "0000000000000017", Severity: "warning", Node: &node},
		{ID: "0000000000000016", Severity: "warning", Links: []int{2 * last, 2*last + 1}},
	}
	if !reflect.DeepEqual(s.Findings, want) {
		t.Errorf("findings: %+v", s.Findings)
	}
	if s.Loop != nil {
		t.Error("there is a loop where nobody gives one")
	}
	if u := stateOfMap(t, srv, "?metric=tx_utilization_max"); u.Unit != "ratio" || !(u.Values[0] > 0 && u.Values[0] < 1) {
		t.Errorf("link use: %v %v", u.Unit, u.Values[0])
	}
	for path, want := range map[string]int{"/api/map/state?metric=colour": http.StatusBadRequest, "/api/map/probes": http.StatusNotFound} {
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	// Values older than some windows are none.
	for i := range latestWindows {
		write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.Add(time.Duration(i+1) * time.Second).UnixNano(), Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 999}}}}, nil))
	}
	for d, v := range stateOfMap(t, srv, "").Values {
		if v == v {
			t.Fatalf("direction %d still has %v", d, v)
		}
	}
}

// Interfaces of reports need not be the ports of the topology: the next hop shows where a hop leads.
func TestMapOtherInterfaces(t *testing.T) {
	m := &atlas.Map{Nodes: []atlas.Node{{ID: 1}, {ID: 2}, {ID: 3}}, Links: []atlas.Link{
		{A: leaving(1, 1), B: leaving(2, 1)}, {A: leaving(1, 2), B: leaving(3, 1)}, {A: leaving(1, 3), B: leaving(3, 2)},
	}}
	deps := sceneDeps(sceneTime)
	deps.Map = func() *atlas.Map { return m }
	srv := serve(t, DefaultConfig(), deps)
	hop := func(node, egress uint32, p99 uint64) inference.HopStats {
		return inference.HopStats{HopKey: inference.HopKey{Node: node, EgressIf: egress}, Count: 1, Latency: inference.Summary{Count: 1, P99: p99}}
	}
	flow := func(key string, egress, next uint32) inference.FlowStats {
		return inference.FlowStats{Key: mustFlow(key), Packets: 1, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 1, EgressIf: egress}}, {HopKey: inference.HopKey{Node: next, EgressIf: 9}}}}
	}
	w := &inference.Window{End: sceneTime.UnixNano(),
		Hops: []inference.HopStats{hop(1, 501, 100), hop(1, 502, 200), hop(1, 503, 300), hop(1, 1, 50)},
		Flows: []inference.FlowStats{
			flow("10.0.0.1:1 > 10.0.0.2:1 tcp", 501, 2), flow("10.0.0.1:2 > 10.0.0.2:1 tcp", 502, 3), flow("10.0.0.1:3 > 10.0.0.2:1 tcp", 503, 3),
		}}
	write(srv, sink.NewWindow("here", w, nil))
	s := stateOfMap(t, srv, "")
	if s.Values[0] != 100 || s.Values[2] != 200 || s.Values[4] != 300 || s.Nodes[0] != 50 {
		t.Errorf("values %v, of nodes %v", s.Values, s.Nodes)
	}
	if want := map[string]uint32{"0": 501, "2": 502, "4": 503}; !reflect.DeepEqual(s.Egress, want) {
		t.Errorf("interfaces %v, want %v", s.Egress, want)
	}
	emit(srv, []inference.Finding{{ID: 5, Kind: inference.HighLatency, Severity: inference.Warning, Start: 1, Node: 1, EgressIf: 503, Element: inference.ElementOfHop(inference.HopKey{Node: 1, EgressIf: 503})}})
	if f := stateOfMap(t, srv, "").Findings; len(f) != 1 || !reflect.DeepEqual(f[0].Links, []int{4}) {
		t.Errorf("%+v", f)
	}
}

// Without a topology the links are those that flows show, and forgotten with the windows that showed them.
func TestMapOfFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.HistoryWindows = 10
	srv := serve(t, cfg, sceneDeps(sceneTime))
	var doc atlas.Document
	get(t, srv, "/api/map", &doc)
	if doc.Source != "" || doc.Version != "" || len(doc.Nodes) != 0 {
		t.Errorf("before any report: %+v", doc)
	}
	path := func(hops ...inference.HopKey) inference.FlowStats {
		f := inference.FlowStats{Key: mustFlow("10.0.0.1:1 > 10.0.0.2:1 tcp"), Packets: 1}
		for _, h := range hops {
			f.Hops = append(f.Hops, inference.FlowHop{HopKey: h})
		}
		return f
	}
	guessed := path(inference.HopKey{Node: 1, EgressIf: 1}, inference.HopKey{Node: 77})
	guessed.Hops[1].Inferred = true
	cut := path(inference.HopKey{Node: 1, EgressIf: 1}, inference.HopKey{Node: 78})
	cut.Partial = true
	write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.UnixNano(), Flows: []inference.FlowStats{
		path(inference.HopKey{Node: 1, EgressIf: 4}, inference.HopKey{Node: 2, EgressIf: 6}, inference.HopKey{Node: 3}),
		path(inference.HopKey{Node: 2, EgressIf: 5}, inference.HopKey{Node: 1, EgressIf: 9}), guessed, cut,
	}}, nil))
	get(t, srv, "/api/map", &doc)
	if doc.Source != "flows" || doc.Layout != atlas.Force || len(doc.Nodes) != 3 || len(doc.Links) != 2 || joined(&doc, 0) != [4]uint32{1, 4, 2, 5} || joined(&doc, 1) != [4]uint32{2, 6, 3, 0} {
		t.Errorf("%+v", doc)
	}
	for i := range 12 {
		write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.Add(time.Duration(i+1) * time.Second).UnixNano(), Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 1}}}}, nil))
	}
	var later atlas.Document
	get(t, srv, "/api/map", &later)
	if len(later.Links) != 0 || later.Version == doc.Version {
		t.Errorf("after all windows that showed them: %+v", later)
	}
}

// joined is the two ends of link i, each as node and interface.
func joined(doc *atlas.Document, i int) [4]uint32 {
	l := &doc.Links[i]
	return [4]uint32{l.A, l.AIf, l.B, l.BIf}
}

// A flood of neighbours stays within bounds.
func TestMapBounds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxHops = 16
	srv := serve(t, cfg, sceneDeps(sceneTime))
	for n := range 200 {
		w := &inference.Window{End: sceneTime.Add(time.Duration(n) * time.Second).UnixNano()}
		for i := range 50 {
			id := uint32(1000*n + i)
			w.Flows = append(w.Flows, inference.FlowStats{Key: mustFlow("10.0.0.1:1 > 10.0.0.2:1 tcp"), Packets: 1, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: id, EgressIf: 1}}, {HopKey: inference.HopKey{Node: id + 1}}}})
			w.Drops = append(w.Drops, inference.DropStats{Node: id, Count: 1})
		}
		write(srv, sink.NewWindow("here", w, nil))
	}
	h := srv.history
	if h.links.Len() > 16 || len(h.drops.all) > 16 {
		t.Errorf("%d neighbours and %d nodes with drops", h.links.Len(), len(h.drops.all))
	}
}

// A browser asks for a map once, and gets a large one packed.
func TestMapIsKept(t *testing.T) {
	m := fabric(16)
	deps := sceneDeps(sceneTime)
	deps.Map = func() *atlas.Map { return m }
	srv := serve(t, DefaultConfig(), deps)
	ask := func(tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/map", nil)
		r.RemoteAddr = "192.0.2.1:999"
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		return w
	}
	w := ask("")
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc atlas.Document
	if err := json.NewDecoder(z).Decode(&doc); err != nil || len(doc.Links) != 2048 {
		t.Fatalf("%v, %d links", err, len(doc.Links))
	}
	tag := w.Header().Get("ETag")
	if second := ask(tag); second.Code != http.StatusNotModified || second.Body.Len() != 0 {
		t.Errorf("the same map again: %d with %d bytes", second.Code, second.Body.Len())
	}
	m = fabric(14)
	if other := ask(tag); other.Code != http.StatusOK || other.Header().Get("ETag") == tag {
		t.Errorf("another map: %d, tag %s", other.Code, other.Header().Get("ETag"))
	}
}

// TestTags: an answer that a client has is not sent again, and another one is.
func TestTags(t *testing.T) {
	srv := serve(t, DefaultConfig(), sceneDeps(sceneTime))
	ask := func(method, path, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
		r.Header["If-None-Match"] = strings.Split(tag, "\n") // lines of the header
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/api/v1/hops", "/api/findings", "/api/v1/windows", "/api/whoami", "/api/map"} {
		first := ask(http.MethodGet, path, "")
		tag := first.Header().Get("ETag")
		if first.Code != http.StatusOK || len(tag) < 10 || first.Body.Len() == 0 {
			t.Fatalf("%s: %d, tag %s, %d bytes", path, first.Code, tag, first.Body.Len())
		}
		for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "\"other\"\n" + tag, "*"} {
			w := ask(http.MethodGet, path, known)
			if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != tag || w.Header().Get("Content-Length") != "" {
				t.Errorf("%s again, with If-None-Match %s: %d, %d bytes, header %v", path, known, w.Code, w.Body.Len(), w.Header())
			}
		}
		for _, known := range []string{`"other"`, tag[1 : len(tag)-1], tag[:len(tag)-1], `"other` + tag + `"`} {
			if w := ask(http.MethodGet, path, known); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
				t.Errorf("%s with If-None-Match %s: %d, %d bytes", path, known, w.Code, w.Body.Len())
			}
		}
		if w := ask(http.MethodHead, path, tag); w.Code != http.StatusNotModified {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
	if w := ask(http.MethodGet, "/api/v1/hops?limit=x", "*"); w.Code != http.StatusBadRequest || w.Header().Get("ETag") != "" {
		t.Errorf("a refusal: %d, header %v", w.Code, w.Header())
	}
	if a, b := ask(http.MethodGet, "/api/v1/hops", ""), ask(http.MethodGet, "/api/v1/windows", ""); a.Header().Get("ETag") == b.Header().Get("ETag") {
		t.Errorf("two answers have tag %s", a.Header().Get("ETag"))
	}
}

// The view of the control is given by the numbers of the map.
func TestMapLoop(t *testing.T) {
	m := fabric(4)
	view := sceneLoop(m, []int{6, 13})
	view.Suspects = append(view.Suspects, atlas.LoopSuspect{LinkEnd: leaving(999, 1)})
	view.Probes[0].Links = append(view.Probes[0].Links, leaving(999, 1))
	view.Probes[0].ID = hostile[0] + "\u202e"
	deps := sceneDeps(sceneTime)
	deps.Map = func() *atlas.Map { return m }
	deps.Loop = func() *atlas.LoopView { return view }
	srv := serve(t, DefaultConfig(), deps)
	l := stateOfMap(t, srv, "").Loop
	if l == nil || l.Epoch != 7 || l.Phase != "steady" || l.Probes != 12 || l.Detailed != 1 || len(l.Suspects) != 2 || l.Suspects[1].Link != 13 || l.Suspects[0].Weight != 0.83 {
		t.Fatalf("%+v", l)
	}
	var page struct {
		Version, Map string
		Total        int
		Probes       []atlas.ProbeDoc
	}
	get(t, srv, "/api/map/probes?offset=0&limit=5", &page)
	if page.Version != l.Version || page.Total != 12 || len(page.Probes) != 5 || !reflect.DeepEqual(page.Probes[0].Links, []int{0, 4, -1}) {
		t.Errorf("%+v", page)
	}
	get(t, srv, "/api/map/probes?offset=10", &page)
	if len(page.Probes) != 2 {
		t.Errorf("the last page has %d", len(page.Probes))
	}
	other := *view
	other.Probes = append([]atlas.LoopProbe(nil), view.Probes...)
	other.Probes[3].Detailed = true
	before := view.Version()
	if view = &other; view.Version() == before {
		t.Error("another plan has the same version")
	}
}
