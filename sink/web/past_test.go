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

	"github.com/hopscope/hopscope/inference"
	part "github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	disk "github.com/hopscope/hopscope/sink/history"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// pastHops are the hops of [pastScene].
var pastHops = []inference.HopKey{{Node: 4, EgressIf: 3}, {Node: 5, EgressIf: 1}, {Node: 9, EgressIf: 2}}

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
