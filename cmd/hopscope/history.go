package main

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/sink/history"
)

// historyDir is the directory of the history, or "" where none is kept: that of the settings, or the folder history beside the state file
// in the directory of the first spool of series.
func historyDir(cfg *config) string {
	switch {
	case !cfg.History.Enabled:
		return ""
	case cfg.History.Dir != "":
		return cfg.History.Dir
	}
	if dir := collector.FirstSpool(cfg); dir != "" {
		return filepath.Join(dir, "history")
	}
	return ""
}

// keepHistory opens the history and makes it a writer of the collector. Where it cannot be opened, such as on a full disk, the collector runs
// without it and says so.
func (r *running) keepHistory(log *slog.Logger) {
	dir := historyDir(r.cfg)
	switch {
	case !r.cfg.History.Enabled:
		r.noHistory = "no history: set history.enabled"
		return
	case dir == "":
		r.noHistory = "no history: set history.dir, or enable a store with a spool"
		return
	}
	s, err := history.Open(r.cfg.History, history.Options{Dir: dir, Hops: r.cfg.Flows.MaxHops, Ledger: r.Balances})
	if err != nil {
		r.noHistory = "no history: " + strings.TrimPrefix(err.Error(), "history: ")
		r.historyFails = true
		if log != nil {
			log.Error("no history is kept", "dir", dir, "error", err.Error())
		}
		return
	}
	r.history = s
	r.AddWriter(s)
}

// Close releases what was opened, for a collector that is not run.
func (r *running) Close() error {
	if r.history != nil {
		_ = r.history.Close() // nothing was written
	}
	return r.Collector.Close()
}

// historyProblems adds what is wrong with the history.
func (r *running) historyProblems(problems []string) []string {
	p := ""
	if r.history != nil {
		p = r.history.Problem()
	} else if r.historyFails {
		p = r.noHistory
	}
	if p == "" {
		return problems
	}
	return append(problems[:len(problems):len(problems)], p)
}

// historyMetrics are those of the history, beside those of all collectors.
var historyMetrics = []collector.Metric{
	{Name: "hopscope_history_bytes", Help: "Bytes of the history on disk.", Kind: collector.Gauge},
	{Name: "hopscope_history_records", Help: "Records of the history: minutes, ten minutes, hours and days.", Kind: collector.Gauge},
	{Name: "hopscope_history_oldest_timestamp_seconds", Help: "Begin of the oldest record of the history; 0 without any.", Kind: collector.Gauge},
	{Name: "hopscope_history_written_total", Help: "Records written to the history.", Kind: collector.Counter},
	{Name: "hopscope_history_written_bytes_total", Help: "Bytes of records written to the history.", Kind: collector.Counter},
	{Name: "hopscope_history_lost_minutes_total", Help: "Minutes missing in the history, by errors or delays of the disk.", Kind: collector.Counter},
	{Name: "hopscope_history_lost_windows_total", Help: "Windows in minutes missing in the history.", Kind: collector.Counter},
	{Name: "hopscope_history_damaged_total", Help: "Records of the history that could not be read.", Kind: collector.Counter},
	{Name: "hopscope_history_deleted_files_total", Help: "Files of the history deleted by age or size.", Kind: collector.Counter},
	{Name: "hopscope_history_findings_left_out_total", Help: "Findings beyond the places of a minute of the history.", Kind: collector.Counter},
}

// historyCollector reads them.
type historyCollector struct{ s *history.Store }

// Describe implements prometheus.Collector.
func (c historyCollector) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, out)
}

// Collect implements prometheus.Collector.
func (c historyCollector) Collect(out chan<- prometheus.Metric) {
	s := c.s.Stats()
	records := 0
	for _, n := range s.Records {
		records += n
	}
	for i, v := range []float64{
		float64(s.Bytes), float64(records), float64(s.Oldest) / 1e9, float64(s.Written), float64(s.WrittenBytes), float64(s.LostMinutes),
		float64(s.LostWindows), float64(s.Damaged), float64(s.Deleted), float64(s.LeftOut),
	} {
		m := historyMetrics[i]
		kind := prometheus.CounterValue
		if m.Kind == collector.Gauge {
			kind = prometheus.GaugeValue
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, nil, nil), kind, v)
	}
}
