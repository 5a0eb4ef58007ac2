package collector

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/shard"
)

// Summary returns what the run saw so far, with the given numbers of flows and hops. After the end of the run it is exact; before it,
// the open window is missing.
func (c *Collector) Summary(flows, hops int) Summary {
	t := c.pipeline.Totals()
	s := Summary{
		Reports: t.Reports, Malformed: t.Bad, ByFormat: t.ByFormat, ByKind: t.ByKind, MalformedReasons: t.Malformed,
		Flows: []FlowSummary{}, Hops: []HopSummary{}, Findings: []FindingSummary{},
	}
	s.Names = c.Names()
	if len(t.Malformed) == 0 {
		s.MalformedReasons = nil
	}
	var busiest []inference.FlowStats
	var digests digest.Stats
	var mu sync.Mutex
	c.pipeline.Visit(func(x *shard.State) {
		flows, st := x.Flows(flows), x.Stats()
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
		s.Flows = append(s.Flows, summary.FlowOf(&busiest[i]))
	}

	s.Dialects = summary.Dialects(c.dialects())
	remarks := c.pipeline.Remarks.List()
	s.Remarks = summary.Remarks(remarks)
	s.CutFrames = c.cutFrames(remarks)
	c.tally.Fill(&s, hops)
	balances := c.ledger.Snapshot()
	s.Ledger.Balance = balances[0]
	if len(balances) > 1 {
		s.Ledger.Sinks = balances
	}
	s.Ledger.AllRuns = c.state.AllRuns()
	s.Seconds = c.ran().Seconds()
	if s.Seconds > 0 {
		s.ReportsPerSecond = float64(s.Reports) / s.Seconds
	}
	return s
}

// cutFrames counts the frames that captures hold in part, if any report ends there or is behind the cut.
func (c *Collector) cutFrames(remarks []guess.Remark) (n uint64) {
	cut := c.ledger.Snapshot()[0].Dropped[DroppedCut.String()] > 0
	if !cut && !slices.ContainsFunc(remarks, func(m guess.Remark) bool { return m.What == decode.RemarkShort }) {
		return 0
	}
	for _, s := range c.opt.Sources {
		if s.Name == "capture" || s.Name == "pcap" {
			n += s.Stats().Truncated
		}
	}
	return n
}

// ran is for how long the run has lasted.
func (c *Collector) ran() time.Duration {
	_, mono := c.opt.Now()
	return mono - c.began.Load().mono
}

// dialects returns all findings about senders that their profiles did not read.
func (c *Collector) dialects() []guess.Finding {
	list := slices.Clone(c.opt.Recognised)
	for _, f := range c.pipeline.Dialects.Findings() {
		if !slices.ContainsFunc(c.opt.Recognised, func(o guess.Finding) bool { return o.Src == f.Src && o.GRE == f.GRE }) {
			list = append(list, f)
		}
	}
	return list
}

// Inferred returns the paths of flows by their digests, with the n of them that need a look most. It asks the owners of all flows.
func (c *Collector) Inferred(n int) (out digest.Inferred) {
	var mu sync.Mutex
	c.pipeline.Visit(func(x *shard.State) {
		part := x.Inferred(n)
		mu.Lock()
		defer mu.Unlock()
		out.Add(&part, n)
	})
	return out
}

// InferredOf returns the paths of some flows by their digests, in no order and without those that have none.
func (c *Collector) InferredOf(keys []decode.FlowKey) (out []digest.InferredFlow) {
	var mu sync.Mutex
	c.pipeline.Visit(func(x *shard.State) {
		part := x.InferredOf(keys)
		mu.Lock()
		defer mu.Unlock()
		out = append(out, part...)
	})
	return out
}
