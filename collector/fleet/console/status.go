package console

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

// After this long without a word a member is missing, and dead; windows that are longer count three and thirty times.
const (
	silentAfter = 15 * time.Second
	deadAfter   = 5 * time.Minute
	maxProblems = 20
	removedFor  = 24 * time.Hour // what retention removed is a problem so long
)

// NotReady returns why the page does not show the fleet yet, or "".
func (c *Console) NotReady() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.listed && c.caughtUp:
		return ""
	case len(c.problems) > 0:
		return c.trouble()
	}
	return fmt.Sprintf("reading what the page shows: %d records are left", c.behind)
}

// Line returns the status of the console in one line, for a service manager.
func (c *Console) Line() string {
	if why := c.NotReady(); why != "" {
		return why
	}
	s := c.Status()
	line := fmt.Sprintf("%d members, %.0f reports/s", len(s.Members), s.ReportsPerSecond)
	if len(s.Problems) > 0 {
		line += "; " + s.Problems[0]
	}
	return line
}

// trouble returns the problem between the console and Kafka, in a sentence.
func (c *Console) trouble() string {
	for _, what := range []string{"roster", "series"} {
		if p, ok := c.problems[what]; ok {
			return p.text
		}
	}
	return ""
}

// status is the console's state of a fleet.
type status struct {
	Start            time.Time      // of the console
	Params           *roster.Params // nil before the roster has them
	Problem          string         // why the fleet cannot be read, in a sentence; empty when it can
	MissingTopics    []string
	Records          uint64 // that were read
	Behind           uint64 // records that are there and were not read yet
	Ahead            uint64 // reports that were stored before their collectors counted them
	ReportsPerSecond float64
	Members          []Member
	Problems         []string // all of them, in sentences
}

// Member is a member of the fleet and its state.
type Member struct {
	*roster.Member
	State string
}

// Status returns the present state of fleet and console.
func (c *Console) Status() status {
	c.mu.Lock()
	c.forget()
	members := c.roster.Members()
	last, now := c.last, time.Now()
	s := status{Start: c.start, Params: c.roster.Params(), Problem: c.trouble(), MissingTopics: c.missing, Records: c.counts.records, Behind: c.behind}
	for _, what := range slices.Sorted(maps.Keys(c.problems)) {
		s.Problems = append(s.Problems, c.problems[what].text)
	}
	c.mu.Unlock()

	window, parts := time.Duration(0), 0
	if s.Params != nil {
		window, parts = s.Params.Window, s.Params.Slices
	}
	problem := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	s.Ahead = roster.Ledger(members).Ahead
	merging, waiting := false, false
	for _, m := range members {
		state := stateOf(m, window, last.missing, last.dead, now)
		s.Members = append(s.Members, Member{m, state})
		switch state {
		case roster.Missing, roster.Dead:
			problem("%s %s is %s; its last word is of %s", m.Role, m.Name, state, time.Unix(0, m.Updated).UTC().Format(time.RFC3339))
		case roster.Alive:
			for _, fault := range m.Faults {
				problem("%s %s: %s", m.Role, m.Name, names.Printable(fault))
			}
			merging = merging || m.Role == roster.Consumer
			if m.Role == roster.Collector {
				waiting = true
				s.ReportsPerSecond += m.Rate
			}
		}
	}
	if n, at := removed(members); n > 0 && now.Sub(at) < removedFor {
		problem("retention removed %d reports from Kafka before a consumer had read them, as was found at %s; keep topics longer than all consumers may be away (hopscope kafka topics)", n, at.UTC().Format(time.RFC3339))
	}
	if waiting && !merging {
		problem("no consumer runs: what collectors send stays in Kafka, and nothing is stored (hopscope consume)")
	}
	if last.absent > 0 {
		problem("the last window is without %d of %d slices", last.absent, parts)
	}
	if more := len(s.Problems) - maxProblems; more > 0 {
		s.Problems = append(s.Problems[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return s
}

// removed returns how many reports were in records that retention removed, and when that was found last.
func removed(members []*roster.Member) (n uint64, at time.Time) {
	for _, a := range roster.Accounts(members) {
		n += a.Dropped[roster.DroppedRetention]
		if found := time.Unix(0, a.Removed); a.Removed > 0 && found.After(at) {
			at = found
		}
	}
	return n, at
}

// stateOf returns the state of a member, by its own last word, and by the windows in which it is missing.
func stateOf(m *roster.Member, window time.Duration, missing, dead []string, now time.Time) string {
	silent := now.Sub(time.Unix(0, m.Updated))
	switch {
	case m.Left:
		return roster.Left
	case m.Role == roster.Collector && slices.Contains(dead, m.Name), silent > max(deadAfter, 30*window):
		return roster.Dead
	case m.Role == roster.Collector && slices.Contains(missing, m.Name), silent > max(silentAfter, 3*window):
		return roster.Missing
	}
	return roster.Alive
}

// Balances are the ledgers of all members, added up, by store.
func (c *Console) Balances() []sink.Balance {
	c.mu.Lock()
	members := c.roster.Members()
	c.mu.Unlock()
	var out []sink.Balance
	for _, b := range roster.Ledger(members).Balances {
		s := sink.Balance{Sink: b.Sink, Received: b.Received, Stored: b.Stored, InFlight: map[string]int64{}, Dropped: map[string]int64{}}
		s.Unsettled = int64(b.Received) - int64(b.Stored)
		for stage, n := range b.InFlight {
			s.InFlight[stage] = int64(n)
			s.Unsettled -= int64(n)
		}
		for stage, n := range b.Dropped {
			s.Dropped[stage] = int64(n)
			s.Unsettled -= int64(n)
		}
		out = append(out, s)
	}
	return out
}

// Registry reads the console when it is scraped.
func (c *Console) Registry() *prometheus.Registry { return metrics.Registry(Metrics, c.collect) }

// Metrics holds the metrics of a console, and of the fleet.
var (
	metricRecords   = metrics.Metric{Name: "hopscope_console_records_total", Kind: metrics.Counter, Help: "Records of the series that were read."}
	metricRefused   = metrics.Metric{Name: "hopscope_console_records_refused_total", Kind: metrics.Counter, Help: "Records of the series and of the roster that were refused."}
	metricWindows   = metrics.Metric{Name: "hopscope_console_windows_total", Kind: metrics.Counter, Help: "Windows that were handed to the page."}
	metricRevisions = metrics.Metric{Name: "hopscope_console_windows_revised_total", Kind: metrics.Counter, Help: "Corrected windows that were handed to the page."}
	metricFindings  = metrics.Metric{Name: "hopscope_console_findings_total", Kind: metrics.Counter, Help: "Findings that were handed to the page."}
	metricGaps      = metrics.Metric{Name: "hopscope_console_gaps_total", Kind: metrics.Counter, Help: "Stretches of the series that were missing or unreadable."}
	metricBehind    = metrics.Metric{Name: "hopscope_console_behind_records", Help: "Records of the series that are not read yet."}
	metricReady     = metrics.Metric{Name: "hopscope_console_ready", Help: "1 when the page shows what the fleet has published."}
	metricLastEnd   = metrics.Metric{Name: "hopscope_console_last_window_end_seconds", Help: "End of the newest window that is whole, since 1970."}
	metricMembers   = metrics.Metric{Name: "hopscope_console_members", Help: "Members of the fleet: alive, missing, dead or left.", Labels: []string{"role", "state"}}
	metricLeftOut   = metrics.NewGauge("hopscope_left_out", "What limits of the page left out, by the setting to raise, in the units of the page.", "setting")
	metricReports   = metrics.Metric{Name: "hopscope_console_fleet_reports",
		Help: "Ledger of the fleet over all runs: received = stored + in_flight + dropped.", Labels: []string{"sink", "part", "stage"}}

	Metrics = []metrics.Metric{
		metricRecords, metricRefused, metricWindows, metricRevisions, metricFindings, metricGaps, metricBehind, metricReady, metricLastEnd,
		metricMembers, metricLeftOut, metricReports,
	}
)

func (c *Console) collect(emit metrics.Emit) {
	c.mu.Lock()
	n, behind, end, page := c.counts, c.behind, c.last.end, c.page
	c.mu.Unlock()
	emit.All(
		metrics.Of(metricRecords, n.records), metrics.Of(metricRefused, n.refused), metrics.Of(metricWindows, n.windows),
		metrics.Of(metricRevisions, n.revisions), metrics.Of(metricFindings, n.findings), metrics.Of(metricGaps, n.gaps),
		metrics.Of(metricBehind, behind), metrics.Of(metricLastEnd, float64(end)/1e9), metrics.Of(metricReady, metrics.Bool(c.NotReady() == "")),
	)
	if page, ok := page.(sink.Limited); ok {
		bySetting := map[string]uint64{}
		for _, l := range page.Limits() {
			bySetting[l.Setting] += l.N
		}
		metrics.Map(emit, metricLeftOut, bySetting)
	}
	type kind struct{ role, state string }
	count := map[kind]int{}
	for _, role := range []string{roster.Collector, roster.Consumer} {
		for _, state := range []string{roster.Alive, roster.Missing, roster.Dead, roster.Left} {
			count[kind{role, state}] = 0
		}
	}
	for _, m := range c.Status().Members {
		count[kind{m.Role, m.State}]++
	}
	for k, v := range count {
		emit(metricMembers, float64(v), k.role, k.state)
	}
	for _, b := range c.Balances() {
		emit.All(metrics.Of(metricReports, b.Received, b.Sink, "received", ""), metrics.Of(metricReports, b.Stored, b.Sink, "stored", ""))
		metrics.Map(emit, metricReports, b.InFlight, b.Sink, "in_flight")
		metrics.Map(emit, metricReports, b.Dropped, b.Sink, "dropped")
	}
}
