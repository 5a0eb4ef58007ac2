package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	part "github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	disk "github.com/hopscope/hopscope/sink/history"
	"github.com/hopscope/hopscope/sink/web/ask"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// pastHops are the hops of [pastScene].
var pastHops = []inference.HopKey{{Node: 4, EgressIf: 3}, {Node: 5, EgressIf: 1}, {Node: 9, EgressIf: 2}}

// pastExporter loses reports while node 4 is slow.
var pastExporter = inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, 0, 4}), Node: 4}

// pastScene is a history of the 32 hours before now, a window every five minutes. Node 4 is slow for the hour that ended six hours ago, of which
// there is a finding, and the hour that ended thirteen hours ago is a gap.
func pastScene(t *testing.T, now time.Time) ask.Past {
	t.Helper()
	var counted sink.Balance
	s, err := disk.Open(disk.DefaultConfig(), disk.Options{Dir: t.TempDir(), Hops: 64, Ledger: func() []sink.Balance { return []sink.Balance{counted} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	slowFrom, slowTo := now.Add(-7*time.Hour), now.Add(-6*time.Hour)
	counted = sink.Balance{Sink: "influx"}
	for at := now.Add(-32 * time.Hour).Truncate(5 * time.Minute); at.Before(now); at = at.Add(5 * time.Minute) {
		if at.After(slowFrom.Add(-7*time.Hour)) && at.Before(slowTo.Add(-7*time.Hour)) {
			continue
		}
		var p part.Partial
		slow := at.After(slowFrom) && !at.After(slowTo)
		for i, k := range pastHops {
			latency := uint64(20_000 + 1000*i)
			if slow && i == 0 {
				latency = 2_000_000
			}
			for range 10 {
				p.Hop(k).Latency.AddValue(latency)
				p.Hop(k).Queue.AddValue(latency / 20)
			}
		}
		x := inference.ExporterStats{ExporterKey: pastExporter, Reports: 30, Last: at.UnixNano()}
		if slow {
			x.Lost = 10
			p.AddDrops(&inference.DropStats{Node: 4, Count: 2})
		}
		p.AddExporters([]inference.ExporterStats{x, {ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, 0, 5}), Node: 5}, Reports: 10, Last: at.UnixNano()}})
		p.AddInterface(&inference.InterfaceStats{Node: 4, Counters: decode.Counters{Interface: 3, Has: decode.CountInPackets | decode.CountInErrors, InPackets: 100, InErrors: 1}, Samples: 1})
		p.AddInterface(&inference.InterfaceStats{Node: 5, Counters: decode.Counters{Interface: 1, Has: decode.CountInPackets, InPackets: 100}, Samples: 1})
		p.AddProbes(4, &decode.FlowKey{Src: pastExporter.Addr, Dst: decode.AddrFrom4([]byte{10, 0, 0, 5}), Proto: 17, SrcPort: 862, DstPort: 862, IPVersion: 4}, &decode.ProbeCounts{Sent: 20, Received: 19, Missed: 1})
		p.Span(at.Add(-10*time.Second).UnixNano(), at.UnixNano())
		p.Reports = 30
		var found []inference.Finding
		f := inference.Finding{ID: 0xabc, Kind: inference.HighLatency, Severity: inference.Critical, Start: slowFrom.UnixNano(), Updated: at.UnixNano(), Node: 4, EgressIf: 3,
			Element: inference.ElementOfHop(pastHops[0]), Value: 2e6, Baseline: 20e3, Text: "p99 latency 2 ms, usually 20 µs"}
		if slow && !at.Add(-5*time.Minute).After(slowFrom) {
			found = append(found, f)
		} else if slow && at.Add(5*time.Minute).After(slowTo) {
			f.End = at.UnixNano()
			found = append(found, f)
		}
		counted.Received, counted.Stored = counted.Received+30, counted.Stored+30
		w := p.Window(part.NoLimits())
		if err := s.AddPartial(t.Context(), &sink.Window{Window: &w, Partial: &p, Findings: found}); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the record is written", func() bool { return s.Stats().Newest >= at.UnixNano() })
	}
	return ask.Past{Store: s}
}

// What the API answers of a range comes out of the history, with its resolution, and so do refusals.
func TestPast(t *testing.T) {
	deps := sceneDeps(sceneTime)
	srv, err := New(DefaultConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	none := askFor[struct{ Error string }](t, srv, "/api/windows?from=1&to=2", http.StatusNotFound)
	if st := askFor[statusAnswer](t, srv, "/api/status", http.StatusOK); !strings.HasPrefix(none.Error, "no history") || st.History.Kept || st.History.Why != none.Error {
		t.Errorf("without a history: %q, %+v", none.Error, st.History)
	}
	now := sceneTime.Truncate(time.Hour)
	deps.Past = pastScene(t, now)
	if srv, err = New(DefaultConfig(), deps); err != nil {
		t.Fatal(err)
	}
	if st := askFor[statusAnswer](t, srv, "/api/status", http.StatusOK); !st.History.Kept || st.History.OldestMS > now.Add(-31*time.Hour).UnixMilli() || st.History.Bytes == 0 {
		t.Errorf("%+v", st.History)
	}
	last := func(d time.Duration) string {
		return "from=" + strconv.FormatInt(now.Add(-d).UnixMilli(), 10) + "&to=" + strconv.FormatInt(now.UnixMilli(), 10)
	}
	for _, c := range []struct {
		length     time.Duration
		columns    int
		resolution time.Duration
	}{{time.Hour, 60, time.Minute}, {24 * time.Hour, 144, 10 * time.Minute}, {7 * 24 * time.Hour, 168, time.Hour}} {
		m := askFor[struct {
			Windows []int64
			Hops    []struct{ Values []*float64 }
			Range   ask.Range
		}](t, srv, "/api/windows?"+last(c.length), http.StatusOK)
		if len(m.Windows) != c.columns || len(m.Hops) != 3 || len(m.Hops[0].Values) != c.columns || m.Range.ResolutionMS != c.resolution.Milliseconds() || len(m.Range.Columns) != c.columns {
			t.Errorf("%v: %d columns, %d hops, %+v", c.length, len(m.Windows), len(m.Hops), m.Range)
		}
		for i, n := range m.Range.Columns {
			if gap := m.Hops[0].Values[i] == nil; gap != (n == 0) {
				t.Errorf("%v: column %d of %d windows is a gap: %v", c.length, i, n, gap)
			}
		}
	}
	hops := askFor[struct {
		Total int
		Hops  []struct {
			Node    string
			Latency struct{ P50, Max *float64 } `json:"latency_ns"`
		}
		Range ask.Range
	}](t, srv, "/api/hops?limit=1&"+last(8*time.Hour), http.StatusOK)
	if hops.Total != 3 || len(hops.Hops) != 1 || hops.Hops[0].Node != "4" || *hops.Hops[0].Latency.Max < 1.9e6 || *hops.Hops[0].Latency.P50 > 21e3 || hops.Range.Merged < 90 {
		t.Errorf("%+v", hops)
	}
	// The day before: node 4 was not slow then, and that is what it is sorted by.
	type compared struct {
		Hops []struct {
			Node    string
			Changes map[string]*float64
		}
		Interfaces, Exporters, Paths []struct{ Changes map[string]*float64 }
		Range                        ask.Range
	}
	const day = "&compare=86400000"
	than := askFor[compared](t, srv, "/api/hops?sort=latency_p99_change&"+last(8*time.Hour)+day, http.StatusOK)
	if was := than.Range.Compared; was == nil || was.Merged < 80 || was.Gone != 0 || was.ToMS != than.Range.ToMS-86400000 || len(than.Hops) != 3 || than.Hops[0].Node != "4" || *than.Hops[0].Changes["latency_p99"] < 1.9e6 || *than.Hops[1].Changes["latency_p99"] != 0 {
		t.Errorf("%+v, %+v", than, than.Range.Compared)
	}
	if than = askFor[compared](t, srv, "/api/hops?order=asc&sort=latency_p99_change&"+last(8*time.Hour)+day, http.StatusOK); than.Hops[2].Node != "4" {
		t.Errorf("the other way round: %+v", than.Hops)
	}
	for path, column := range map[string]string{"exporters": "lost", "interfaces": "in_packets", "probed": "sent"} {
		got := askFor[compared](t, srv, "/api/"+path+"?sort="+column+"_change&"+last(8*time.Hour)+day, http.StatusOK)
		rows := append(append(got.Exporters, got.Interfaces...), got.Paths...)
		if len(rows) == 0 || rows[0].Changes[column] == nil || column == "lost" && *rows[0].Changes[column] != 120 {
			t.Errorf("%s: %+v", path, rows)
		}
	}
	// Before the history began nothing is known, and no difference is made up.
	than = askFor[compared](t, srv, "/api/hops?"+last(8*time.Hour)+"&compare=864000000", http.StatusOK)
	if was := than.Range.Compared; was == nil || was.Merged != 0 || len(was.Lacks) == 0 || than.Hops[0].Changes != nil {
		t.Errorf("%+v, %+v", than, was)
	}
	for _, query := range []string{"sort=latency_p99_change", "compare=86400000", "sort=latency_p99_change&" + last(time.Hour), "compare=-1&" + last(time.Hour), "compare=4000000000000&" + last(time.Hour)} {
		askFor[struct{ Error string }](t, srv, "/api/hops?"+query, http.StatusBadRequest)
	}
	hop := askFor[struct {
		Series map[string][]*float64
		Range  ask.Range
	}](t, srv, "/api/hop?node=4:3&"+last(24*time.Hour), http.StatusOK)
	if len(hop.Series["latency_min"]) != 144 || len(hop.Series["queue_p99"]) != 144 {
		t.Errorf("%d columns", len(hop.Series["latency_min"]))
	}
	hop = askFor[struct {
		Series map[string][]*float64
		Range  ask.Range
	}](t, srv, "/api/hop?node=77&"+last(24*time.Hour), http.StatusOK)
	if row := hop.Series["latency_min"]; len(row) != 144 || slices.ContainsFunc(row, func(v *float64) bool { return v != nil }) {
		t.Errorf("a hop without reports in the range: %v", row)
	}
	for _, query := range []string{"from=5&to=5", "from=-3", "to=5", "from=x&to=9"} {
		askFor[struct{}](t, srv, "/api/hops?"+query, http.StatusBadRequest)
	}
	all := askFor[struct {
		Open, Ended []ask.Finding
		Range       json.RawMessage
	}](t, srv, "/api/findings?"+last(24*time.Hour), http.StatusOK)
	if len(all.Open) != 0 || len(all.Ended) != 1 || all.Ended[0].Headline == "" || all.Range == nil {
		t.Errorf("%+v", all)
	}
	ledger := askFor[ledgerEvent](t, srv, "/api/ledger?"+last(time.Hour), http.StatusOK)
	if len(ledger.Balances) != 1 || ledger.Balances[0].Received != 11*30 && ledger.Balances[0].Received != 12*30 {
		t.Errorf("%+v", ledger)
	}
}

// Tables and the map of a range are sums over it, filtered and sorted as those of the present; of flows nothing is kept, and the answer says
// so.
func TestPastTables(t *testing.T) {
	now := sceneTime.Truncate(time.Hour)
	deps := sceneDeps(now)
	deps.Past = pastScene(t, now)
	deps.Map = func() *atlas.Map { return pastMap }
	srv, err := New(DefaultConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	between := func(from, to time.Duration) string {
		return "from=" + strconv.FormatInt(now.Add(-from).UnixMilli(), 10) + "&to=" + strconv.FormatInt(now.Add(-to).UnixMilli(), 10)
	}
	calm, slow := between(5*time.Hour, 4*time.Hour), between(8*time.Hour, 5*time.Hour)
	type table struct {
		Total      int
		Exporters  []ask.ExporterRow
		Interfaces []ask.InterfaceRow
		Flows      []ask.FlowRow
		Range      ask.Range
	}
	x := askFor[table](t, srv, "/api/exporters?"+slow, http.StatusOK)
	if x.Total != 2 || x.Exporters[0].Address != "10.0.0.4" || x.Exporters[0].Lost != 120 || x.Exporters[0].Reports != 30*36 || x.Exporters[1].Lost != 0 || x.Exporters[0].LastMS == 0 || x.Range.Merged != 36 {
		t.Errorf("exporters %+v", x)
	}
	if x = askFor[table](t, srv, "/api/exporters?q=10.0.0.5&"+calm, http.StatusOK); x.Total != 1 || x.Exporters[0].Node != "5" || x.Exporters[0].Reports != 10*12 {
		t.Errorf("exporters of a calm hour %+v", x)
	}
	x = askFor[table](t, srv, "/api/interfaces?"+calm, http.StatusOK)
	if x.Total != 2 || x.Interfaces[0].Node != "4" || *x.Interfaces[0].InErrors != 12 || *x.Interfaces[0].InPackets != 1200 || x.Interfaces[1].InErrors != nil || x.Range.Merged != 12 {
		t.Errorf("interfaces %+v", x)
	}
	if x = askFor[table](t, srv, "/api/interfaces?sort=interface&order=desc&limit=1&"+calm, http.StatusOK); x.Total != 2 || len(x.Interfaces) != 1 || x.Interfaces[0].Node != "5" {
		t.Errorf("interfaces from the last %+v", x)
	}
	probed := askFor[struct {
		Total int
		Paths []struct{ Sent, Received, Lost int }
		Range ask.Range
	}](t, srv, "/api/probed?"+calm, http.StatusOK)
	if probed.Total != 1 || probed.Paths[0].Sent != 240 || probed.Paths[0].Received != 228 || probed.Paths[0].Lost != 12 {
		t.Errorf("probes %+v", probed)
	}
	x = askFor[table](t, srv, "/api/flows?"+calm, http.StatusOK)
	if x.Total != 0 || x.Flows == nil || !strings.Contains(strings.Join(x.Range.Lacks, "; "), "no flows") {
		t.Errorf("flows %+v", x)
	}
	for query, worst := range map[string]float64{calm: 21e3, slow: 1.9e6} {
		m := askFor[stateAnswer](t, srv, "/api/map/state?metric=latency_max&"+query, http.StatusOK)
		if got := m.Values[0]; len(m.Values) != 2 || (got >= 1.9e6) != (worst >= 1.9e6) || (len(m.Drops) == 1) != (query == slow) || (len(m.Findings) == 1) != (query == slow) || m.Range == nil || m.Range.Merged == 0 || m.Loop != nil {
			t.Errorf("map of %s: %+v", query, m)
		}
	}
	for _, path := range []string{"exporters", "interfaces", "probed", "flows", "map/state"} {
		askFor[struct{}](t, srv, "/api/"+path+"?from=9&to=5", http.StatusBadRequest)
	}
	srv.deps.Past = ask.Past{}
	askFor[struct{}](t, srv, "/api/exporters?"+calm, http.StatusNotFound)
}

// pastMap has the link of the slow hop.
var pastMap = &atlas.Map{Name: "past", Nodes: []atlas.Node{{ID: 4, Name: "a"}, {ID: 5, Name: "b"}},
	Links: []atlas.Link{{Name: "a-b", A: atlas.LinkEnd{Node: 4, Port: 3}, B: atlas.LinkEnd{Node: 5, Port: 1}}}}

// askFor asks for JSON and requires a status.
func askFor[T any](t *testing.T, srv *Server, target string, status int) (v T) {
	t.Helper()
	res := request(srv, http.MethodGet, target)
	if res.StatusCode != status {
		t.Fatalf("%s answers %s", target, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return v
}
