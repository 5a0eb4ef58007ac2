package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// After this long without a word a member is missing, and dead; windows that are longer count three and thirty times.
const (
	silentAfter = 15 * time.Second
	deadAfter   = 5 * time.Minute
	maxProblems = 20
)

// notReady says why the page does not show the fleet yet, or "".
func (c *console) notReady() string {
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

// inOneLine says how the console is, for the service manager.
func (c *console) inOneLine() string {
	if why := c.notReady(); why != "" {
		return why
	}
	s := c.status()
	line := fmt.Sprintf("%d members, %.0f reports/s", len(s.Fleet.Members), s.ReportsPerSecond)
	if len(s.Problems) > 0 {
		line += "; " + s.Problems[0]
	}
	return line
}

// trouble is what is wrong between the console and Kafka, in a sentence.
func (c *console) trouble() string {
	for _, what := range []string{"roster", "series"} {
		if p, ok := c.problems[what]; ok {
			return p.text
		}
	}
	return ""
}

// status is what the page says about the fleet.
func (c *console) status() web.Status {
	c.mu.Lock()
	c.forget()
	members, p := c.roster.Members(), c.roster.Params()
	last, now := c.last, time.Now()
	f := &web.Fleet{Problem: c.trouble(), MissingTopics: c.missing, Behind: c.behind}
	var problems []string
	for _, what := range slices.Sorted(maps.Keys(c.problems)) {
		problems = append(problems, c.problems[what].text)
	}
	records := c.counts.records
	c.mu.Unlock()

	s := web.Status{Version: version(), Start: c.start, Fleet: f}
	conf := c.client.Config()
	s.Sources = []web.Source{{Kind: "kafka", Address: conf.Target(), Problem: f.Problem, Frames: records}}
	window := time.Duration(0)
	if p != nil {
		f.Name, f.Slices, window = p.Name, p.Slices, p.Window
		s.Window = window
		s.Settings = append(s.Settings, web.Setting{Name: "fleet", Value: p.Name}, web.Setting{Name: "window", Value: p.Window.String()},
			web.Setting{Name: "slices", Value: fmt.Sprint(p.Slices)})
	}
	f.Ahead = fleet.Ledger(members).Ahead
	merging, waiting := false, false
	for _, m := range members {
		row := memberRow(m, memberState(m, window, last.missing, last.dead, now))
		f.Members = append(f.Members, row)
		switch {
		case row.State == web.Missing || row.State == web.Dead:
			problems = append(problems, fmt.Sprintf("%s %s is %s; its last word is of %s", m.Role, m.Name, row.State, time.Unix(0, m.Updated).UTC().Format(time.RFC3339)))
		case row.State == web.Alive:
			for _, fault := range m.Faults {
				problems = append(problems, fmt.Sprintf("%s %s: %s", m.Role, m.Name, plain(fault, false)))
			}
		}
		merging = merging || m.Role == fleet.Consumer && row.State == web.Alive
		if m.Role == fleet.Collector && row.State == web.Alive {
			waiting = true
			s.ReportsPerSecond += m.Rate
		}
	}
	if waiting && !merging {
		problems = append(problems, "no consumer runs: what collectors send stays in Kafka, and nothing is stored (hopscope consume)")
	}
	if last.absent > 0 {
		problems = append(problems, fmt.Sprintf("the last window is without %d of %d slices", last.absent, f.Slices))
	}
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	s.Problems = problems
	return s
}

// memberState says how a member is: by its own last word, and by what windows are without.
func memberState(m *fleet.Member, window time.Duration, missing, dead []string, now time.Time) string {
	silent := now.Sub(time.Unix(0, m.Updated))
	switch {
	case m.Left:
		return web.Left
	case m.Role == fleet.Collector && slices.Contains(dead, m.Name), silent > max(deadAfter, 30*window):
		return web.Dead
	case m.Role == fleet.Collector && slices.Contains(missing, m.Name), silent > max(silentAfter, 3*window):
		return web.Missing
	}
	return web.Alive
}

func memberRow(m *fleet.Member, state string) web.Member {
	row := web.Member{
		Role: m.Role, Name: m.Name, State: state, Version: m.Version, Problems: m.Faults, StartMS: m.Start / 1e6, UpdatedMS: m.Updated / 1e6,
		WindowMS: m.Window / 1e6, ReportsPerSecond: m.Rate, SpoolBytes: m.Spool, Lag: m.Lag, Rebalances: m.Rebalances,
	}
	if len(m.Pages) > 0 {
		row.Page = m.Pages[0]
	}
	balance := m.All
	if balance == nil {
		balance = m.Run
	}
	if balance != nil {
		row.Received, row.Stored, row.InFlight, row.Dropped = balance.Received, balance.Stored, sumOf(balance.InFlight), sumOf(balance.Dropped)
	}
	for i := range m.Parts {
		a := &m.Parts[i]
		if !a.Held {
			continue
		}
		row.Partitions++
		row.Lag += a.Lag
		row.Late += a.Late
		row.Duplicates += a.Duplicates
		row.Conflicts += a.Conflicts
		row.Dropped += sumOf(a.Dropped)
		if a.Topic == fleet.Windows {
			row.Received += a.Taken
		}
	}
	return row
}

func sumOf(stages map[string]uint64) (n uint64) {
	for _, v := range stages {
		n += v
	}
	return n
}

// balances are the ledgers of all members, added up, by store.
func (c *console) balances() []sink.Balance {
	c.mu.Lock()
	members := c.roster.Members()
	c.mu.Unlock()
	var out []sink.Balance
	for _, b := range fleet.Ledger(members).Balances {
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

// registry reads the console when it is scraped.
func (c *console) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), c)
	return r
}

// What a console says of itself, and of the fleet.
var (
	consoleRecords   = collector.Metric{Name: "hopscope_console_records_total", Kind: collector.Counter, Help: "Records of the series that were read."}
	consoleRefused   = collector.Metric{Name: "hopscope_console_records_refused_total", Kind: collector.Counter, Help: "Records of the series and of the roster that were refused."}
	consoleWindows   = collector.Metric{Name: "hopscope_console_windows_total", Kind: collector.Counter, Help: "Windows that were handed to the page."}
	consoleRevisions = collector.Metric{Name: "hopscope_console_windows_revised_total", Kind: collector.Counter, Help: "Of these, windows with what came late."}
	consoleFindings  = collector.Metric{Name: "hopscope_console_findings_total", Kind: collector.Counter, Help: "Findings that were handed to the page."}
	consoleGaps      = collector.Metric{Name: "hopscope_console_gaps_total", Kind: collector.Counter, Help: "Stretches of the series that were not there, or could not be read."}
	consoleBehind    = collector.Metric{Name: "hopscope_console_behind_records", Help: "Records of the series that are there and were not read yet."}
	consoleReady     = collector.Metric{Name: "hopscope_console_ready", Help: "1 when the page shows what the fleet has told."}
	consoleLastEnd   = collector.Metric{Name: "hopscope_console_last_window_end_seconds", Help: "End of the newest window that is whole, since 1970."}
	consoleMembers   = collector.Metric{Name: "hopscope_console_members", Help: "Members of the fleet: alive, missing, dead or left.", Labels: []string{"role", "state"}}
	consoleReports   = collector.Metric{Name: "hopscope_console_fleet_reports",
		Help: "Where the reports of the whole fleet are, over all runs: received = stored + in_flight + dropped.", Labels: []string{"sink", "part", "stage"}}

	consoleMetrics = []collector.Metric{
		consoleRecords, consoleRefused, consoleWindows, consoleRevisions, consoleFindings, consoleGaps, consoleBehind, consoleReady, consoleLastEnd,
		consoleMembers, consoleReports,
	}
	consoleDescriptions = func() map[string]*prometheus.Desc {
		all := map[string]*prometheus.Desc{}
		for _, m := range consoleMetrics {
			all[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
		}
		return all
	}()
)

// Describe implements [prometheus.Collector].
func (c *console) Describe(out chan<- *prometheus.Desc) {
	for _, d := range consoleDescriptions {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *console) Collect(out chan<- prometheus.Metric) {
	emit := func(m collector.Metric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Kind == collector.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(consoleDescriptions[m.Name], kind, v, labels...)
	}
	c.mu.Lock()
	n, behind, end := c.counts, c.behind, c.last.end
	c.mu.Unlock()
	emit(consoleRecords, float64(n.records))
	emit(consoleRefused, float64(n.refused))
	emit(consoleWindows, float64(n.windows))
	emit(consoleRevisions, float64(n.revisions))
	emit(consoleFindings, float64(n.findings))
	emit(consoleGaps, float64(n.gaps))
	emit(consoleBehind, float64(behind))
	emit(consoleLastEnd, float64(end)/1e9)
	ready := 0.0
	if c.notReady() == "" {
		ready = 1
	}
	emit(consoleReady, ready)
	type kind struct{ role, state string }
	count := map[kind]int{}
	for _, role := range []string{fleet.Collector, fleet.Consumer} {
		for _, state := range []string{web.Alive, web.Missing, web.Dead, web.Left} {
			count[kind{role, state}] = 0
		}
	}
	for _, m := range c.status().Fleet.Members {
		count[kind{m.Role, m.State}]++
	}
	for k, v := range count {
		emit(consoleMembers, float64(v), k.role, k.state)
	}
	for _, b := range c.balances() {
		emit(consoleReports, float64(b.Received), b.Sink, "received", "")
		emit(consoleReports, float64(b.Stored), b.Sink, "stored", "")
		for stage, v := range b.InFlight {
			emit(consoleReports, float64(v), b.Sink, "in_flight", stage)
		}
		for stage, v := range b.Dropped {
			emit(consoleReports, float64(v), b.Sink, "dropped", stage)
		}
	}
}
