package ask

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/history"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// filled is a history of minutes, of which add says what is in each. A minute for which it returns nil has no window.
func filled(t *testing.T, minutes int, balances func(minute int) []sink.Balance, add func(minute int) (*window.Partial, []inference.Finding)) *Past {
	t.Helper()
	at := 0
	s, err := history.Open(history.DefaultConfig(), history.Options{Dir: t.TempDir(), Hops: 64, Ledger: func() []sink.Balance { return balances(at) }})
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
	for at = range minutes {
		p, found := add(at)
		if p == nil {
			continue
		}
		end := noon.Add(time.Duration(at+1) * time.Minute).UnixNano()
		p.Span(end-int64(time.Minute), end)
		w := p.Window(window.NoLimits())
		if err := s.AddPartial(t.Context(), &sink.Window{Window: &w, Partial: p, Findings: found}); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "the minute is written", func() bool { return s.Stats().Newest >= end })
	}
	return &Past{Store: s}
}

func values(k inference.HopKey, list ...uint64) *window.Partial {
	var p window.Partial
	for _, v := range list {
		p.Hop(k).Latency.AddValue(v)
	}
	p.Reports = uint64(len(list))
	return &p
}

func minutes(from, to int) Span {
	return Span{noon.Add(time.Duration(from) * time.Minute).UnixMilli(), noon.Add(time.Duration(to) * time.Minute).UnixMilli(), 0}
}

func noBalances(int) []sink.Balance { return nil }

// Columns without a window are null, and what a range lacks is said.
func TestGaps(t *testing.T) {
	k := inference.HopKey{Node: 7, EgressIf: 3}
	p := filled(t, 6, noBalances, func(minute int) (*window.Partial, []inference.Finding) {
		if minute == 2 || minute == 3 {
			return nil, nil
		}
		return values(k, uint64(1000*(minute+1))), nil
	})
	m, err := p.Matrix(t.Context(), minutes(-5, 6), "latency_max", "ns")
	if err != nil || len(m.Hops) != 1 || len(m.Windows) != 11 || m.Windows[10] != minutes(0, 6).To {
		t.Fatalf("%v: %+v", err, m)
	}
	for i, v := range m.Hops[0].Values {
		gap := i < 5 || i == 7 || i == 8
		if gap != (v != v) || gap != (m.Range.Columns[i] == 0) {
			t.Errorf("column %d is %v, of %d windows", i, v, m.Range.Columns[i])
		}
	}
	if want := []string{"the history begins at 2026-11-28 12:00 UTC", "2 of 6 columns are gaps: no window of that time was written"}; !slices.Equal(m.Range.Lacks, want) || m.Range.ResolutionMS != 60_000 || m.Range.Merged != 4 {
		t.Errorf("%+v", m.Range)
	}
	m, err = p.Matrix(t.Context(), minutes(-50, -40), "latency_max", "ns")
	if err != nil || len(m.Hops) != 0 || !slices.Equal(m.Range.Lacks, []string{"the history is from 2026-11-28 12:00 UTC to 2026-11-28 12:06 UTC"}) {
		t.Errorf("%v: %+v", err, m.Range)
	}
}

// The values of a list are those of all windows of the range, and not an average of columns.
func TestHops(t *testing.T) {
	slow, fast := inference.HopKey{Node: 9}, inference.HopKey{Node: 7, EgressIf: 3}
	p := filled(t, 4, noBalances, func(minute int) (*window.Partial, []inference.Finding) {
		list := []uint64{10, 20, 30}
		if minute == 1 {
			list = []uint64{50_000} // the median of medians would be 20, and their mean 12 515
		}
		w := values(fast, list...)
		w.Hop(slow).Latency.AddValue(1e6)
		return w, nil
	})
	l, err := p.Hops(t.Context(), minutes(0, 4), "latency_p99", false, func(inference.HopKey) bool { return true }, Page{Limit: 20})
	if err != nil || l.Total != 2 || l.Hops[0].Node != "9" || l.Hops[1].Node != "7" {
		t.Fatalf("%v: %+v", err, l)
	}
	h := l.Hops[1]
	if h.Count != 10 || h.Latency.P50 != 20 || math.Abs(float64(h.Latency.Max)-50_000) > 50_000/64 || *h.LatencyMin != 10 || len(h.Trend) != 4 || h.LastMS != minutes(0, 4).To {
		t.Errorf("%+v", h)
	}
	l, err = p.Hops(t.Context(), minutes(0, 4), "latency_p99", true, func(k inference.HopKey) bool { return k == fast }, Page{Limit: 20})
	if err != nil || l.Total != 1 || l.Hops[0].ID != h.ID {
		t.Errorf("%v: %+v", err, l)
	}
	a, err := p.Hop(t.Context(), minutes(0, 4), fast)
	if err != nil || len(a.Series["latency_min"]) != 4 || a.Series["latency_p50"][0] != 20 || a.Row.Latency.P50 != 20 || a.Range.Merged != 4 {
		t.Errorf("%v: %+v", err, a)
	}
	a, err = p.Hop(t.Context(), minutes(0, 4), inference.HopKey{Node: 1})
	if err != nil || len(a.Series["latency_p50"]) != 4 || a.Row.Node != "1" || a.Row.Count == a.Row.Count {
		t.Errorf("a hop that was not seen: %v: %+v", err, a)
	}
	for name, row := range a.Series {
		for _, v := range row {
			if v == v {
				t.Errorf("a hop that was not seen has %s %v", name, v)
			}
		}
	}
}

// A finding of a run that was killed before its end is known is not open for ever.
func TestFindings(t *testing.T) {
	k := inference.HopKey{Node: 7, EgressIf: 3}
	at := func(minute int) int64 { return noon.Add(time.Duration(minute) * time.Minute).UnixNano() }
	p := filled(t, 30, noBalances, func(minute int) (*window.Partial, []inference.Finding) {
		var found []inference.Finding
		add := func(id uint64, start, end int) {
			f := inference.Finding{ID: id, Kind: inference.HighLatency, Severity: inference.Warning, Node: 7, EgressIf: 3, Start: at(start), Updated: at(minute + 1), Text: "slow"}
			if end > 0 {
				f.End = at(end)
			}
			found = append(found, f)
		}
		switch minute + 1 {
		case 2:
			add(1, 2, 0)
			add(2, 2, 0)
			add(3, 2, 0)
		case 20:
			add(1, 2, 20)
		}
		return values(k, 1), found
	})
	live := func(id uint64) bool { return id == 3 }
	ids := func(list []inference.Finding) (out []uint64) {
		for _, f := range list {
			out = append(out, f.ID)
		}
		slices.Sort(out)
		return out
	}
	for _, c := range []struct {
		r           Span
		open, ended []uint64
		lacks       string
	}{
		{minutes(0, 5), []uint64{1, 2, 3}, nil, ""},
		{minutes(10, 15), []uint64{1, 3}, nil, "1 findings of earlier runs are left out"},
		{minutes(10, 25), []uint64{3}, []uint64{1}, "1 findings of earlier runs are left out"},
		{minutes(25, 30), []uint64{3}, nil, "1 findings of earlier runs are left out"},
	} {
		open, ended, about, err := p.Findings(t.Context(), c.r, live)
		if err != nil || !slices.Equal(ids(open), c.open) || !slices.Equal(ids(ended), c.ended) || !strings.HasPrefix(strings.Join(about.Lacks, ""), c.lacks) {
			t.Errorf("%v: open %v, ended %v, lacks %q (%v)", c.r, ids(open), ids(ended), about.Lacks, err)
		}
	}
}

func TestLedger(t *testing.T) {
	p := filled(t, 4, func(minute int) []sink.Balance {
		n := uint64(minute + 1)
		return []sink.Balance{{Sink: "influx", Received: 100 * n, Stored: 90 * n, Dropped: map[string]int64{"kernel": int64(5 * n)}}}
	}, func(int) (*window.Partial, []inference.Finding) { return values(inference.HopKey{}, 1), nil })
	list, about, err := p.Ledger(t.Context(), minutes(1, 3))
	if err != nil || len(list) != 1 || about.Merged != 2 {
		t.Fatalf("%v: %+v", err, list)
	}
	if b := list[0]; b.Received != 200 || b.Stored != 180 || b.Dropped["kernel"] != 10 || b.InFlight[otherTime] != 10 || b.Unsettled != 0 {
		t.Errorf("%+v", b)
	}
}

func TestParseRange(t *testing.T) {
	for _, c := range []struct {
		query string
		want  Span
		asked bool
		err   string
	}{
		{"", Span{}, false, ""},
		{"metric=count", Span{}, false, ""},
		{"from=5&to=7", Span{5, 7, 0}, true, ""},
		{"from=5", Span{5, noon.UnixMilli(), 0}, true, ""},
		{"to=7", Span{}, true, "from: \"\" is outside"},
		{"from=7&to=7", Span{}, true, "from: 7 is not before to, 7"},
		{"from=-1&to=7", Span{}, true, "from: \"-1\" is outside"},
		{"from=1&to=99999999999999999999", Span{}, true, "to: "},
		{"from=x&to=7", Span{}, true, "from: \"x\" is outside"},
	} {
		q, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		r, asked, err := ParseSpan(q, noon)
		if asked != c.asked || (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) || err == nil && r != c.want {
			t.Errorf("%q: %v %v %v", c.query, r, asked, err)
		}
	}
}

func TestNoHistory(t *testing.T) {
	var p Past
	if err := p.Err(); err == nil || p.State().Kept || p.State().Why == "" {
		t.Errorf("%v %+v", err, p.State())
	}
	p.None = "no history: set history.dir"
	if err := p.Err(); err.Error() != p.None || p.State().Why != p.None {
		t.Errorf("%v %+v", err, p.State())
	}
}
