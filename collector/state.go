package collector

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/shard"
)

// Summary tells what the run saw so far, with the given numbers of flows and hops. After the end of the run it is
// exact; before it, the open window is missing.
func (c *Collector) Summary(flows, hops int) Summary {
	t := c.pipeline.totals()
	s := Summary{
		Reports: t.Reports, Malformed: t.Bad, ByFormat: t.ByFormat, ByKind: t.ByKind, MalformedReasons: t.Malformed,
		Flows: []FlowSummary{}, Hops: []HopSummary{}, Findings: []FindingSummary{},
	}
	s.Names = c.Names()
	if len(t.Malformed) == 0 {
		s.MalformedReasons = nil
	}
	var busiest []inference.FlowStats
	var digests shard.DigestStats
	var mu sync.Mutex
	c.pipeline.visit(func(q *shardQueue) {
		flows, st := q.state.Flows(flows), q.state.Stats()
		mu.Lock()
		defer mu.Unlock()
		busiest = append(busiest, flows...)
		s.FlowCount += st.Flows
		digests.Add(st.Digests)
	})
	if digests.Digests > 0 {
		s.Digests = &digests
	}
	slices.SortFunc(busiest, func(a, b inference.FlowStats) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Key.Compare(&b.Key))
	})
	for i := range busiest[:min(flows, len(busiest))] {
		s.Flows = append(s.Flows, flowSummary(&busiest[i]))
	}

	s.Dialects = dialectSummaries(c.dialectFindings())
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	all := c.totals.Hops()
	s.HopCount = len(all)
	slices.SortStableFunc(all, func(a, b inference.HopStats) int {
		return cmp.Or(cmp.Compare(b.Latency.P99, a.Latency.P99), cmp.Compare(b.Queue.P99, a.Queue.P99))
	})
	for i := range all[:min(hops, len(all))] {
		h := &all[i]
		s.Hops = append(s.Hops, HopSummary{NodeID: h.Node, EgressIf: h.EgressIf, Other: h.Other, Reports: h.Count,
			Latency: quantiles(&h.Latency), Queue: quantiles(&h.Queue)})
	}
	s.Exporters, s.OtherExporters = c.exporters.list()
	for _, f := range c.findings {
		s.Findings = append(s.Findings, findingSummary(&f))
	}
	slices.SortFunc(s.Findings, func(a, b FindingSummary) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	balances := c.ledger.Snapshot()
	s.Ledger.Balance = balances[0]
	if len(balances) > 1 {
		s.Ledger.Sinks = balances
	}
	s.Ledger.AllRuns = c.allRuns()
	s.Seconds = time.Duration(c.read().mono - c.began).Seconds()
	if s.Seconds > 0 {
		s.ReportsPerSecond = float64(s.Reports) / s.Seconds
	}
	return s
}
