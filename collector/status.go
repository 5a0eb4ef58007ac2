package collector

import (
	"time"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/sink"
)

// Status is a collector's account of itself for operators.
type Status struct {
	Instance         string
	Start            time.Time
	Window           time.Duration
	ReportsPerSecond float64            // in the last window
	Diverted         uint64             // reports that went on to others one by one, and are in no window
	Coverage         inference.Coverage // how much was judged of the last window in which hops had records or agents probed
	Dialects         Exporters
	Recognised       []DialectSummary // exporters that their profiles did not read
	Unread           []UnreadMetric   // metrics of which nothing is counted
	IPFIX            []summary.IPFIXStatus
	Inputs           []InputStatus
	Stores           []StoreStatus
	LeftOut          []string // by limits of the settings, in this run: a sentence each, which are among the problems, too
	Problems         []string // that need an operator and keep nothing from being received or stored, a sentence each
}

// StoreStatus is one store of series.
type StoreStatus struct {
	Name, Target string
	Problem      string // why it is not ready, or empty
	Alerts       bool   // it gets alerts alone
}

// Status may be called at any time.
func (c *Collector) Status() Status {
	figures, _ := c.tally.Figures()
	clock := c.windows.ClockState()
	s := Status{Instance: c.instance, Start: c.began.Load().wall, ReportsPerSecond: figures.Rate, Diverted: figures.Diverted, Coverage: figures.Coverage, Problems: clock.Problems()}
	if p := c.names.Problem(); p != "" {
		s.Problems = append(s.Problems, p)
	}
	s.Problems = append(s.Problems, c.rivals.Problems()...)
	s.Window, s.Dialects = c.cfg.Window, c.cfg.Exporters
	s.Coverage.Window = c.cfg.Window // that of the first window, and of one in which the clock was set, is another
	s.Recognised = summary.Dialects(c.dialects())
	s.Problems = append(s.Problems, summary.DialectProblems(s.Recognised)...)
	if p := c.alerting().Problem(); p != "" {
		s.Problems = append(s.Problems, "alerts: "+p)
	}
	s.Problems = append(s.Problems, c.pipeline.InputProblems()...)
	shards, _ := c.pipeline.ShardStats()
	if p := shards.Digests.FewIDs.String(); p != "" {
		s.Problems = append(s.Problems, p)
	}
	s.LeftOut = inference.LeftOut(c.leftOut())
	s.Problems = append(s.Problems, s.LeftOut...)
	if c.ipfix != nil {
		s.IPFIX = summary.IPFIX(c.ipfix.Status(), func(a decode.Addr) string { return a.String() })
	}
	s.Inputs, s.Unread = c.pipeline.Inputs(), c.pipeline.UnreadMetrics()
	for _, st := range c.stores.All() {
		s.Stores = append(s.Stores, StoreStatus{st.Name(), st.Target, st.Problem(), st.Alerts})
	}
	return s
}

// Digests returns the query plans whose digests are read, and what became of digests until the end of the last window.
func (c *Collector) Digests() ([]*pint.Plan, digest.Stats) {
	shards, _ := c.pipeline.ShardStats()
	return c.plans, shards.Digests
}

// Standing is the record of a collector for its fleet: its identity, how far it has come, and where all its reports are.
type Standing struct {
	Name    string
	Version string // of the program
	Run     string // differs from one run to the next
	Start   time.Time

	First, Last      int64   // labels of the first and the last window that was handed over; Last is 0 before the first
	ReportsPerSecond float64 // in the last window
	Diverted         uint64  // reports that went on one by one

	WaitingBytes uint64 // in memory and in spools, for a store
	SpoolBytes   uint64 // those in spools
	SpoolReports uint64

	Balances []sink.Balance // of this run, by store; each adds up
	AllRuns  *AllRuns       // nil without a state file
	Problems []string       // a sentence each, those that keep reports from being received or stored first
}

// Standing may be called at any time. Its parts are not of one moment, but each balance is.
func (c *Collector) Standing() Standing {
	status := c.Status()
	s := Standing{
		Name: c.instance, Version: c.opt.Version, Run: c.boot, Start: status.Start,
		ReportsPerSecond: status.ReportsPerSecond, Diverted: status.Diverted,
		Balances: c.Balances(), AllRuns: c.state.AllRuns(), Problems: append(c.NotReady(), status.Problems...),
	}
	figures, _ := c.tally.Figures()
	s.First, s.Last = figures.FirstLabel, figures.LastLabel
	for _, st := range c.stores.All() {
		q := st.Stats()
		s.WaitingBytes += uint64(q.Bytes)
		if q.Spool != nil {
			s.WaitingBytes += uint64(q.Spool.UnackedBytes)
			s.SpoolBytes += uint64(q.Spool.UnackedBytes)
			s.SpoolReports += q.Spool.Reports
		}
	}
	return s
}

// NotReady returns why reports cannot be received or stored, one sentence each. It is empty when they can.
func (c *Collector) NotReady() (problems []string) {
	if !c.ready.Load() {
		problems = append(problems, "not receiving")
	}
	for _, s := range c.stores.All() {
		if p := s.Problem(); p != "" {
			problems = append(problems, s.Name()+": "+p)
		}
	}
	return problems
}

// Balances returns the ledger from the point of view of every store.
func (c *Collector) Balances() []sink.Balance { return c.ledger.Snapshot() }
