package main

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/sink/web"
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
