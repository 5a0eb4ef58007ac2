package main

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/sink/web"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// pagePaths returns the paths from digests for the page.
func pagePaths(ask func(n int) digest.Inferred) func(n int) web.Paths {
	return func(n int) web.Paths {
		all := ask(n)
		return web.Paths{Known: all.Known, Marked: all.Marked, Undecided: all.Undecided, Sprayed: all.Sprayed, Flows: pathFlows(all.Flows)}
	}
}

// pagePathsOf returns the paths of some flows from digests for the page.
func pagePathsOf(ask func(keys []decode.FlowKey) []digest.InferredFlow) func(keys []decode.FlowKey) []web.PathFlow {
	return func(keys []decode.FlowKey) []web.PathFlow { return pathFlows(ask(keys)) }
}

func pathFlows(flows []digest.InferredFlow) (out []web.PathFlow) {
	for _, f := range flows {
		out = append(out, web.PathFlow{FlowStats: f.FlowStats, Needed: f.Needed})
	}
	return out
}

// pageDigests returns the query plans and what came of digests for the page.
func pageDigests(of func() ([]*pint.Plan, digest.Stats)) func() *ask.Digests {
	return func() *ask.Digests {
		plans, s := of()
		d := &ask.Digests{Received: s.Digests, Unread: s.Unread, Rejected: s.Rejected, Duplicate: s.Duplicate, Unexplained: s.Unexplained, Decoded: s.Decoded, Undecided: s.Undecided}
		for _, p := range plans {
			x := ask.QueryPlan{Epoch: int(p.Epoch), Bits: p.Bits}
			for i := range p.Queries {
				x.Queries = append(x.Queries, p.Queries[i].Name)
			}
			d.Plans = append(d.Plans, x)
		}
		return d
	}
}
