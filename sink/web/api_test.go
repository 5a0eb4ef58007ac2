package web

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// newSceneServer has the scene in memory and no socket.
func newSceneServer(t *testing.T) *Server {
	t.Helper()
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(7, 20, 4)
	s.fill(srv, sceneWindows, sceneTime)
	emit(srv, s.findings(sceneTime))
	return srv
}

// request asks the handler without a socket.
func request(srv *Server, method, target string, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:8080"
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	srv.Handler().ServeHTTP(w, r)
	return w.Result()
}

// get asks for a path and reads the answer's JSON into v.
func get(t *testing.T, srv *Server, path string, v any) {
	t.Helper()
	res := request(srv, http.MethodGet, path)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	keep := "no-store"
	if path == "/api/map" { // is asked for again only when it is another
		keep = "no-cache"
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Cache-Control") != keep {
		t.Fatalf("GET %s: %s %v\n%.300s", path, res.Status, res.Header, body)
	}
	if err := json.Unmarshal(body, v); err != nil {
		t.Fatalf("GET %s: %v\n%.300s", path, err, body)
	}
}

func TestAPI(t *testing.T) {
	srv := newSceneServer(t)

	var status struct {
		Version  string           `json:"version"`
		WindowMS int64            `json:"window_ms"`
		Windows  int              `json:"windows"`
		Sources  []Source         `json:"sources"`
		Kept     map[string]int   `json:"kept"`
		Findings ask.FindingCount `json:"findings"`
	}
	get(t, srv, "/api/status", &status)
	if status.Version != "v0.1.0" || status.WindowMS != 5000 || status.Windows != sceneWindows || status.Kept["hops"] != 80 || status.Kept["flows"] != 26 ||
		status.Kept["exporters"] != 20 || status.Findings != (ask.FindingCount{Open: 3, Worst: "critical"}) || len(status.Sources) != 1 || status.Sources[0].Address != "127.0.0.1:32766" {
		t.Errorf("status: %+v", status)
	}

	type matrix struct {
		Metric, Unit string
		Windows      []int64
		Reports      []uint64
		Hops         []struct {
			ID       uint64
			Node     string
			EgressIf string `json:"egress_if"`
			Values   []*float64
		}
	}
	var m matrix
	get(t, srv, "/api/windows?metric=queue_p99", &m)
	if m.Metric != "queue_p99" || m.Unit != "B" || len(m.Windows) != sceneWindows || len(m.Reports) != sceneWindows || len(m.Hops) != 80 {
		t.Fatalf("matrix: %s %s, %d windows, %d hops", m.Metric, m.Unit, len(m.Windows), len(m.Hops))
	}
	if last := m.Windows[sceneWindows-1]; last != sceneTime.UnixMilli() || !slices.IsSorted(m.Windows) {
		t.Errorf("last window ends at %d, want %d", last, sceneTime.UnixMilli())
	}
	var last inference.HopKey
	for i, h := range m.Hops {
		if len(h.Values) != sceneWindows {
			t.Fatalf("hop %s→%s has %d values", h.Node, h.EgressIf, len(h.Values))
		}
		key, err := inference.ParseHop(h.Node + ":" + h.EgressIf)
		if err != nil {
			t.Error(err)
		}
		if i > 0 && last.Compare(key) >= 0 {
			t.Errorf("hop %s before %s", last, key)
		}
		last = key
		for w, v := range h.Values {
			if gone := h.Node == "9" && w >= sceneGapFrom && w < sceneGapTo; (v == nil) != gone {
				t.Errorf("hop %s→%s, window %d: %v", h.Node, h.EgressIf, w, v)
			}
		}
	}
	var tail matrix
	get(t, srv, "/api/windows?metric=queue_p99&since="+jsonNumber(m.Windows[sceneWindows-3]), &tail)
	if !slices.Equal(tail.Windows, m.Windows[sceneWindows-2:]) || *tail.Hops[5].Values[1] != *m.Hops[5].Values[sceneWindows-1] || tail.Hops[5].ID != m.Hops[5].ID {
		t.Errorf("since the third last: windows %v", tail.Windows)
	}

	var hops struct {
		Total int
		Hops  []struct {
			Node      string
			EgressIf  string  `json:"egress_if"`
			Worst     float64 `json:"worst"`
			LatencyNS struct{ P50, P90, P99, Max float64 }
			Trend     []*float64
		}
	}
	get(t, srv, "/api/hops?limit=7&offset=2&sort=latency_p50", &hops)
	if hops.Total != 80 || len(hops.Hops) != 7 || len(hops.Hops[0].Trend) != sceneWindows {
		t.Errorf("hops: %d of %d", len(hops.Hops), hops.Total)
	}
	if !slices.IsSortedFunc(hops.Hops, func(a, b struct {
		Node      string
		EgressIf  string  `json:"egress_if"`
		Worst     float64 `json:"worst"`
		LatencyNS struct{ P50, P90, P99, Max float64 }
		Trend     []*float64
	}) int {
		return int(b.Worst - a.Worst)
	}) {
		t.Error("hops are not sorted by the worst median")
	}
	get(t, srv, "/api/hops?limit=1", &hops)
	if h := hops.Hops[0]; h.Node != "4" || h.EgressIf != "3" {
		t.Errorf("slowest hop is %s→%s, want 4→3", h.Node, h.EgressIf)
	}

	var hop struct {
		Windows []int64
		Series  map[string][]*float64
	}
	get(t, srv, "/api/hop?node=4&egress_if=3", &hop)
	if len(hop.Series) != int(numMetrics) || len(hop.Series["latency_p99"]) != len(hop.Windows) || *hop.Series["tx_utilization_max"][0] > 1 {
		t.Errorf("hop: %d series", len(hop.Series))
	}

	var flows struct {
		Total int
		Flows []flowRowJSON
	}
	get(t, srv, "/api/flows?limit=3", &flows)
	if flows.Total != 26 || len(flows.Flows) != 3 || flows.Flows[0].Packets < flows.Flows[1].Packets {
		t.Errorf("flows: %+v", flows)
	}
	var flow struct {
		Positions []struct{ Node string }
		Changes   []ask.ChangeRow
	}
	get(t, srv, "/api/flow?key="+url.QueryEscape(flows.Flows[1].Key), &flow)
	if len(flow.Positions) != 5 || len(flow.Changes) != 1 {
		t.Errorf("flow: %+v", flow)
	}

	var found struct{ Open, Ended []ask.Finding }
	get(t, srv, "/api/findings", &found)
	if len(found.Open) != 3 || len(found.Ended) != 3 || found.Open[0].Severity != "critical" || found.Open[0].ID != inference.FormatID(11) || found.Ended[0].Kind != "path-change" {
		t.Errorf("findings: %+v", found)
	}

	var exporters ask.ExporterList
	get(t, srv, "/api/exporters?limit=2", &exporters)
	if exporters.Total != 20 || len(exporters.Exporters) != 2 || exporters.Exporters[0].Node != "17" || !exporters.Exporters[0].Silent || exporters.Exporters[1].Node != "5" {
		t.Errorf("exporters: %+v", exporters)
	}

	var l ledgerEvent
	get(t, srv, "/api/ledger", &l)
	if len(l.Balances) != 2 || l.Balances[0].Dropped["malformed"] != 17 {
		t.Errorf("ledger: %+v", l)
	}
}

type flowRowJSON struct {
	Key     string
	Packets float64
}

func jsonNumber(n int64) string {
	b, err := json.Marshal(n)
	if err != nil {
		return ""
	}
	return string(b)
}

// An empty collector answers lists, never null.
func TestAPIEmpty(t *testing.T) {
	srv, err := New(DefaultConfig(), Deps{Status: func() Status { return Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/api/windows":   `{"metric":"latency_p99","unit":"ns","windows":[],"reports":[],"hops":[]}`,
		"/api/hops":      `{"sort":"latency_p99","total":0,"recent_windows":12,"hops":[]}`,
		"/api/flows":     `{"total":0,"recent_windows":12,"flows":[]}`,
		"/api/exporters": `{"total":0,"recent_windows":12,"idle_windows":3,"exporters":[]}`,
		"/api/findings":  `{"ended":[],"open":[]}`,
		"/api/names":     `{"nodes":[],"hosts":[],"drop_reasons":{}}`,
	} {
		res := request(srv, http.MethodGet, path)
		body, _ := io.ReadAll(res.Body) // of a recorder
		if string(body) != want {
			t.Errorf("GET %s: %s\nwant %s", path, body, want)
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if res := request(srv, http.MethodGet, path); res.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s without a handler: %s", path, res.Status)
		}
	}
	for _, path := range []string{"/api/status", "/api/ledger"} {
		body, _ := io.ReadAll(request(srv, http.MethodGet, path).Body) // of a recorder
		if strings.Contains(string(body), "null") {
			t.Errorf("GET %s: %s", path, body)
		}
	}
}

func TestAPIRefuses(t *testing.T) {
	srv := newSceneServer(t)
	for path, want := range map[string]int{
		"/api/windows?metric=latency":             400,
		"/api/windows?since=x":                    400,
		"/api/windows?since=99999999999999999999": 400,
		"/api/windows?since=9223372036854775807":  200,
		"/api/hops?limit=0":                       400,
		"/api/hops?limit=201":                     400,
		"/api/hops?offset=-1":                     400,
		"/api/hops?offset=1000":                   200,
		"/api/hops?sort=%00":                      400,
		"/api/hop":                                400,
		"/api/hop?node=99&egress_if=1":            404,
		"/api/hop?node=x":                         400,
		"/api/hop?node=4&egress_if=x":             400,
		"/api/flow":                               400,
		"/api/flow?key=none":                      400,
		"/api/flow?key=1.2.3.4:5>6.7.8.9:10/17":   404,
		"/api/exporters?limit=x":                  400,
		"/api/nothing":                            404,
		"/login.html":                             404,
		"/login-failed.html":                      404,
		"/dist/app.js":                            404,
		"/app.js":                                 200,
	} {
		res := request(srv, http.MethodGet, path)
		if res.StatusCode != want {
			t.Errorf("GET %s: %s, want %d", path, res.Status, want)
		}
		if want >= 400 {
			var e struct{ Error string }
			if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.Error == "" {
				t.Errorf("GET %s: no reason given (%v)", path, err)
			}
		}
	}
}

// The matrix comes packed to clients on other machines that can unpack it, with the same content.
func TestMatrixPacked(t *testing.T) {
	srv := newSceneServer(t)
	plain := srv.history.appendMatrix(nil, latencyP99, -1)
	for _, c := range []struct {
		remote, accept string
		packed         bool
	}{
		{"192.0.2.1:999", "gzip, deflate, br", true}, {"192.0.2.1:999", "", false}, {"192.0.2.1:999", "br", false}, {"192.0.2.1:999", "gzip;q=0", false},
		{"127.0.0.1:999", "gzip", false}, {"[::1]:999", "gzip", false},
	} {
		res := request(srv, http.MethodGet, "/api/windows", func(r *http.Request) {
			r.RemoteAddr = c.remote
			r.Header.Set("Accept-Encoding", c.accept)
		})
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.packed {
			t.Errorf("%s accepts %q: packed %v, want %v", c.remote, c.accept, got, c.packed)
		}
		body := io.Reader(res.Body)
		if c.packed {
			z, err := gzip.NewReader(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != string(plain) {
			t.Errorf("%s accepts %q: %d bytes, want %d (%v)", c.remote, c.accept, len(got), len(plain), err)
		}
	}
}

func TestMountedHandlers(t *testing.T) {
	srv := newSceneServer(t)
	for path, want := range map[string]string{"/metrics": "hopscope_up 1\n", "/healthz": "ok\n", "/readyz": "ok\n"} {
		body, _ := io.ReadAll(request(srv, http.MethodGet, path).Body) // of a recorder
		if string(body) != want {
			t.Errorf("GET %s: %q, want %q", path, body, want)
		}
	}
}

// The API returns any text of a finding as plain text that is not too long.
func FuzzFindingText(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Add(strings.Repeat("é", maxText))
	f.Fuzz(func(t *testing.T, s string) {
		fs := findings{max: 1, all: map[uint64]inference.Finding{}}
		kept := fs.keep(inference.Finding{Text: s})
		b, err := json.Marshal(ask.NewFinding(&kept, nil))
		if err != nil {
			t.Fatalf("text %q: %v", s, err)
		}
		if strings.ContainsAny(string(b), "<>&\u2028\u2029\u202e\x00\x1b") {
			t.Fatalf("text %q is given as %s: markup or an invisible character is not escaped", s, b)
		}
		var got ask.Finding
		if err := json.Unmarshal(b, &got); err != nil || got.Text != kept.Text || !utf8.ValidString(got.Text) {
			t.Fatalf("text %q is given as %s and read back as %q, %v", s, b, got.Text, err)
		}
		// A character that is replaced may take three bytes where it took one.
		if len(got.Text) > 3*(maxText+len("…")) {
			t.Fatalf("a text of %d bytes is given in %d bytes", len(s), len(got.Text))
		}
	})
}

// Hostile texts pass through the API as they are, only their invisible characters are replaced.
func TestHostileTexts(t *testing.T) {
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		t.Fatal(err)
	}
	var list []inference.Finding
	for i, h := range hostile {
		list = append(list, inference.Finding{ID: uint64(i), Kind: inference.PacketDrops, Start: int64(i) * second, Text: h})
	}
	emit(srv, list)
	var found struct{ Open []ask.Finding }
	get(t, srv, "/api/findings", &found)
	if len(found.Open) != len(hostile) {
		t.Fatalf("%d findings, want %d", len(found.Open), len(hostile))
	}
	replaced := strings.NewReplacer("\u202e", "\uFFFD", "\u2028", "\uFFFD", "\x00", "\uFFFD", "\x1b", "\uFFFD", "\xff\xfe", "\uFFFD")
	for _, f := range found.Open {
		id, err := inference.ParseID(f.ID)
		if err != nil || id >= uint64(len(hostile)) {
			t.Fatalf("finding %+v: %v", f, err)
		}
		if want := replaced.Replace(hostile[id]); f.Text != want {
			t.Errorf("%q is given as %q, want %q", hostile[id], f.Text, want)
		}
	}
}

func TestFindingNames(t *testing.T) {
	fs := findings{max: 1, all: map[uint64]inference.Finding{}}
	kept := fs.keep(inference.Finding{ID: 1<<64 - 1, Kind: inference.ExporterLoss, Severity: inference.Warning, Start: 5e9, Node: 7, HWID: 2,
		Exporter: decode.AddrFrom4([]byte{192, 0, 2, 1}), Text: strings.Repeat("é", maxText)})
	f := ask.NewFinding(&kept, nil)
	if f.ID != "ffffffffffffffff" || f.Exporter != "192.0.2.1" || f.HWID != "2" || f.Node != "7" || f.EgressIf != "" || f.UpdatedMS != 5000 || f.EndMS != 0 {
		t.Errorf("%+v", f)
	}
	if len(f.Text) > maxText+8 || !strings.HasSuffix(f.Text, "…") {
		t.Errorf("text has %d bytes, want about %d", len(f.Text), maxText)
	}
	if f := ask.NewFinding(&inference.Finding{ID: 11, Kind: inference.HighLatency, Node: 0, EgressIf: 0}, nil); f.Node != "0" || f.EgressIf != "0" || f.ID != "000000000000000b" {
		t.Errorf("hop 0 of node 0: %+v", f)
	}
	b, err := json.Marshal(ask.NewFinding(&inference.Finding{ID: 12, Kind: inference.HighLatency, Node: 7, EgressIf: 3, Element: inference.ElementOfLink(9, 7),
		Cause: 11, Evidence: 2, Learning: true, Statistic: "p99 latency"}, nil))
	const want = `{"id":"000000000000000c","kind":"high-latency","severity":"info","start_ms":0,"updated_ms":0,"end_ms":0,"node":"7",` +
		`"value":0,"baseline":0,"text":"","headline":"p99 latency on link node 7 – node 9: 0 ns, usually 0 ns","element":{"kind":"link","node":7,"peer":9,"text":"link 7–9"},"cause":"000000000000000b","evidence":2,` +
		`"learning":true,"statistic":"p99 latency"}`
	if err != nil || string(b) != want {
		t.Errorf("evidence is given as\n%s, %v; want\n%s", b, err, want)
	}
}

// Every form in which a hop or a flow is written anywhere is one by which the API can be asked for it.
func TestKeyForms(t *testing.T) {
	srv := newSceneServer(t)
	write(srv, sink.NewWindow("here", &inference.Window{End: sceneTime.UnixNano(), Hops: []inference.HopStats{
		{HopKey: inference.HopKey{Node: 7}, Count: 1}, {HopKey: inference.HopKey{Other: true}, Count: 1},
	}}, nil))
	key := inference.HopKey{Node: 4, EgressIf: 3}
	for _, c := range []struct{ query, node, egressIf string }{
		{"node=4&egress_if=3", "4", "3"},
		{"node=" + key.String(), "4", "3"},
		{"node=" + url.QueryEscape(key.Place()), "4", "3"},
		{"node=7", "7", "0"}, {"node=7&egress_if=0", "7", "0"}, {"node=7:0", "7", "0"},
		{"node=other", "other", "other"}, {"node=other&egress_if=other", "other", "other"},
	} {
		var hop struct {
			Hop struct {
				Node     string
				EgressIf string `json:"egress_if"`
			}
		}
		get(t, srv, "/api/hop?"+c.query, &hop)
		if hop.Hop.Node != c.node || hop.Hop.EgressIf != c.egressIf {
			t.Errorf("%s: hop %s, %s, want %s, %s", c.query, hop.Hop.Node, hop.Hop.EgressIf, c.node, c.egressIf)
		}
	}
	for _, text := range []string{
		"10.1.1.2:32865 > 10.3.0.3:5201 tcp", "10.1.1.2:32865 > 10.3.0.3:5201/6", "10.1.1.2:32865>10.3.0.3:5201 TCP", "10.1.1.2:32865 > 10.3.0.3:5201 proto 6",
	} {
		var flow struct {
			Flow flowRowJSON
		}
		get(t, srv, "/api/flow?key="+url.QueryEscape(text), &flow)
		if flow.Flow.Key != "10.1.1.2:32865 > 10.3.0.3:5201 tcp" {
			t.Errorf("%s: flow %q", text, flow.Flow.Key)
		}
		var flows struct {
			Total int
			Flows []flowRowJSON
		}
		get(t, srv, "/api/flows?q="+url.QueryEscape(text), &flows)
		if flows.Total != 1 || flows.Flows[0].Key != flow.Flow.Key {
			t.Errorf("flows like %s: %+v", text, flows)
		}
	}
	var through, node struct{ Total int }
	get(t, srv, "/api/flows?q="+key.String(), &through)
	get(t, srv, "/api/flows?q=4&limit=200", &node)
	if through.Total == 0 || through.Total > node.Total {
		t.Errorf("%d flows go through hop %s, %d have a 4 in their text or path", through.Total, key, node.Total)
	}
}

// A request for what there is not, or cannot be, is answered with what would be right.
func TestKeyErrors(t *testing.T) {
	srv := newSceneServer(t)
	for path, want := range map[string]string{
		"/api/hop":                                    "node: required, as in node=7:3",
		"/api/hop?node=99:1":                          "no hop 99:1 in the kept windows; it is written as in 7:3",
		"/api/hop?node=4:3&egress_if=3":               `"4:3:3" is no hop such as 7:3`,
		"/api/hop?node=leaf&egress_if=1":              `"leaf:1" is no hop such as 7:3`,
		"/api/hop?node=other&egress_if=1":             `"other:1" is no hop such as 7:3`,
		"/api/flow":                                   `key: required, as in "10.0.0.1:80 > 10.0.0.2:5001 tcp"`,
		"/api/flow?key=1.2.3.4:5>6.7.8.9:10/17":       `no flow 1.2.3.4:5 > 6.7.8.9:10 udp in the kept windows; it is written as in "10.0.0.1:80 > 10.0.0.2:5001 tcp"`,
		"/api/flow?key=none":                          `"none" is no flow such as "10.0.0.1:80 > 10.0.0.2:5001 tcp": there is no >`,
		"/api/flow?key=" + strings.Repeat("x", 1<<12): "… is no flow",
	} {
		var e struct{ Error string }
		if err := json.NewDecoder(request(srv, http.MethodGet, path).Body).Decode(&e); err != nil {
			t.Errorf("GET %.60s: %v", path, err)
		}
		if !strings.Contains(strings.ReplaceAll(e.Error, "…\"", "…"), want) || len(e.Error) > 400 {
			t.Errorf("GET %.60s: %s\nwant %s", path, e.Error, want)
		}
	}
}

func TestFindingsBound(t *testing.T) {
	fs := findings{max: 4, all: map[uint64]inference.Finding{}}
	put := func(id uint64, sev inference.Severity, start, end int64) {
		fs.keep(inference.Finding{ID: id, Kind: inference.HighQueue, Severity: sev, Start: start * second, End: end * second})
	}
	put(1, inference.Critical, 1, 0)
	put(2, inference.Info, 2, 0)
	put(3, inference.Critical, 3, 9)
	put(4, inference.Critical, 4, 8)
	put(5, inference.Warning, 5, 0) // 4 ended first
	put(6, inference.Warning, 6, 0) // 3 ended
	put(7, inference.Info, 7, 0)    // 2 is the least severe and oldest
	put(7, inference.Critical, 7, 0)
	open, ended := fs.list()
	var ids []string
	for _, f := range open {
		ids = append(ids, strconv.FormatUint(f.ID, 10))
	}
	if got := strings.Join(ids, " "); got != "7 1 6 5" || len(ended) != 0 || fs.evicted != 3 || fs.openEvicted != 1 {
		t.Errorf("open %s, %d ended, %d evicted, %d of them open; want 7 1 6 5, 0, 3, 1", got, len(ended), fs.evicted, fs.openEvicted)
	}
	for id := range uint64(40) { // ten times as many as there are places
		put(100+id, inference.Critical, 8, 0)
	}
	if open, _ := fs.list(); len(open) != 4 || fs.evicted != 43 || fs.openEvicted != 41 {
		t.Errorf("%d open, %d evicted, %d of them open; want 4, 43, 41", len(open), fs.evicted, fs.openEvicted)
	}
}

// A hop has in its last window whether its baseline is known.
func TestAPILearning(t *testing.T) {
	srv := serve(t, DefaultConfig(), sceneDeps(sceneTime))
	window := func(end int64, learning bool) {
		s := inference.Summary{Count: 1, P50: 1, P99: 2}
		write(srv, sink.NewWindow("here", &inference.Window{End: end * 1e9, Hops: []inference.HopStats{
			{HopKey: inference.HopKey{Node: 1}, Count: 1, Latency: s, Learning: learning}, {HopKey: inference.HopKey{Node: 2}, Count: 1, Latency: s}}}, nil))
	}
	learning := func() (out []bool) {
		var list struct{ Hops []ask.HopRow }
		get(t, srv, "/api/hops?sort=node", &list)
		for _, h := range list.Hops {
			out = append(out, h.Learning)
		}
		return out
	}
	window(10, true)
	if got := learning(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("young: %v", got)
	}
	window(20, false)
	window(15, true) // too late to be heard
	window(10, true) // once more
	if got := learning(); !slices.Equal(got, []bool{false, false}) {
		t.Errorf("old: %v", got)
	}
}

// A finding about a hop names its interface, and the page has words for every kind.
func TestFindingKinds(t *testing.T) {
	words, err := os.ReadFile("ui/src/marks.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range inference.Kinds() {
		if !strings.Contains(strings.ReplaceAll(string(words), `"`, ""), "\n  "+k.String()+": ") {
			t.Errorf("the page has no words for %s", k)
		}
	}
	for _, k := range []inference.Kind{inference.HighLatency, inference.LowLatency, inference.HighQueue, inference.HighUtilization, inference.LowUtilization,
		inference.StuckValues, inference.HopSilence} {
		h := inference.HopKey{Node: 7, EgressIf: 3}
		if got := ask.NewFinding(&inference.Finding{Kind: k, Node: 7, EgressIf: 3, Element: inference.ElementOfHop(h)}, nil); got.Node != "7" || got.EgressIf != "3" {
			t.Errorf("%s: node %q, interface %q", k, got.Node, got.EgressIf)
		}
	}
}
