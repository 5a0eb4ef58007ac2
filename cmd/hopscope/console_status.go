package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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
				problems = append(problems, fmt.Sprintf("%s %s: %s", m.Role, m.Name, fault))
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

func consoleDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("hopscope_console_"+name, help, labels, nil)
}

var (
	consoleRecords   = consoleDesc("records_total", "Records of the series that were read.")
	consoleRefused   = consoleDesc("records_refused_total", "Records of the series and of the roster that were refused.")
	consoleWindows   = consoleDesc("windows_total", "Windows that were handed to the page.")
	consoleRevisions = consoleDesc("windows_revised_total", "Of these, windows that were told again with what came late.")
	consoleFindings  = consoleDesc("findings_total", "Findings that were handed to the page.")
	consoleGaps      = consoleDesc("gaps_total", "Stretches of the series that were not there or could not be read.")
	consoleBehind    = consoleDesc("behind_records", "Records of the series that are there and were not read yet.")
	consoleReady     = consoleDesc("ready", "1 when the page shows what the fleet has told.")
	consoleMembers   = consoleDesc("members", "Members of the fleet.", "role", "state")
	consoleReports   = consoleDesc("fleet_reports", "Where the reports of the whole fleet are, over all runs: received = stored + in flight + dropped.", "sink", "part", "stage")
	consoleLastEnd   = consoleDesc("last_window_end_seconds", "End of the newest window that was whole.")
)

// Describe implements [prometheus.Collector].
func (c *console) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		consoleRecords, consoleRefused, consoleWindows, consoleRevisions, consoleFindings, consoleGaps, consoleBehind, consoleReady, consoleMembers,
		consoleReports, consoleLastEnd,
	} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *console) Collect(out chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.mu.Lock()
	n, behind, end := c.counts, c.behind, c.last.end
	c.mu.Unlock()
	counter(consoleRecords, n.records)
	counter(consoleRefused, n.refused)
	counter(consoleWindows, n.windows)
	counter(consoleRevisions, n.revisions)
	counter(consoleFindings, n.findings)
	counter(consoleGaps, n.gaps)
	gauge(consoleBehind, float64(behind))
	gauge(consoleLastEnd, float64(end)/1e9)
	ready := 0.0
	if c.notReady() == "" {
		ready = 1
	}
	gauge(consoleReady, ready)
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
		gauge(consoleMembers, float64(v), k.role, k.state)
	}
	for _, b := range c.balances() {
		gauge(consoleReports, float64(b.Received), b.Sink, "received", "")
		gauge(consoleReports, float64(b.Stored), b.Sink, "stored", "")
		for stage, v := range b.InFlight {
			gauge(consoleReports, float64(v), b.Sink, "in_flight", stage)
		}
		for stage, v := range b.Dropped {
			gauge(consoleReports, float64(v), b.Sink, "dropped", stage)
		}
	}
}
