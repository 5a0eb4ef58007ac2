package control

import (
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
)

// index holds what every cycle needs of a list of probes. It is made once for a list, which is never changed.
type index struct {
	probes []planner.Probe
	traces []attention.Trace
	at     map[string]int32 // by id
	links  []string         // sorted
	start  []int32          // by probe, into on
	on     []int32          // links
}

func newIndex(probes []planner.Probe) *index {
	x := &index{probes: probes, traces: make([]attention.Trace, len(probes)), at: make(map[string]int32, len(probes)), start: make([]int32, 1, len(probes)+1)}
	hops := 0
	for k := range probes {
		p := &probes[k]
		x.traces[k] = attention.Trace{ID: p.ID, Cost: hopsOf(p), Links: p.Links}
		x.at[p.ID] = int32(k)
		hops += len(p.Links)
	}
	number := make(map[string]int32)
	for k := range probes {
		for _, l := range probes[k].Links {
			if _, ok := number[l]; !ok {
				number[l] = 0
				x.links = append(x.links, l)
			}
		}
	}
	slices.Sort(x.links)
	for n, l := range x.links {
		number[l] = int32(n)
	}
	x.on = make([]int32, 0, hops)
	for k := range probes {
		for _, l := range probes[k].Links {
			x.on = append(x.on, number[l])
		}
		x.start = append(x.start, int32(len(x.on)))
	}
	return x
}

// hopsOf is the number of switches that add a block to a probe. It counts the last switch, although the line from there
// to the host is no link of the probe.
func hopsOf(p *planner.Probe) float64 { return float64(max(len(p.Nodes), len(p.Links))) }

// sameList reports whether two lists of probes are one.
func sameList(a, b []planner.Probe) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// indexOf gives the index of a list of probes.
func (c *Controller) indexOf(probes []planner.Probe) *index {
	if c.index == nil || !sameList(c.index.probes, probes) {
		c.index = newIndex(probes)
	}
	return c.index
}

// linksOf are the links on which some probes are, by id, sorted.
func (x *index) linksOf(lists ...[]string) (links []string) {
	touched := make([]bool, len(x.links))
	n := 0
	for _, list := range lists {
		for _, id := range list {
			k, ok := x.at[id]
			if !ok {
				continue
			}
			for _, l := range x.on[x.start[k]:x.start[k+1]] {
				if !touched[l] {
					touched[l] = true
					n++
				}
			}
		}
	}
	links = make([]string, 0, n)
	for l, yes := range touched {
		if yes {
			links = append(links, x.links[l])
		}
	}
	return links
}
