package digest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/plain"
)

// table is a table of flows that does with the parts of digests what a shard does, in the simplest way, and bounds
// nothing.
type table struct {
	d     *Reader
	slots map[decode.FlowKey]uint32
	flows []tableFlow
	open  window.Partial
}

type tableFlow struct {
	inference.FlowStats
	inWindow uint64
}

func newTable(t *testing.T, c Config) *table {
	t.Helper()
	d, err := New(c, 1<<12, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &table{d: d, slots: map[decode.FlowKey]uint32{}}
}

// newPlanTable follows plans of the given epochs, or one of epoch 7, in a ring of 40 nodes. Tests set the ends of a
// flow as its destination port.
func newPlanTable(t *testing.T, change func(c *Config), epochs ...uint8) (s *table, plans []*pint.Plan, nodes []uint32, links [][2]int32) {
	t.Helper()
	nodes, links = plain.Ring(40)
	if epochs == nil {
		epochs = []uint8{7}
	}
	c := Config{Values: aggregation.DefaultConfig(), Ends: func(k *decode.FlowKey) (ingress, egress uint16) { return k.DstPort >> 8, k.DstPort & 0xff }}
	c.Values.Hops = 4096
	for _, epoch := range epochs {
		p := plain.DigestPlan(t, epoch)
		m, err := prior.NewModel(prior.Config{Scheme: p.Queries[0].Scheme, Nodes: nodes, Links: links, Ends: [][]int32{{0}, {3, 9}}})
		if err != nil {
			t.Fatal(err)
		}
		load, err := aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), p.Queries[2].Code)
		if err != nil {
			t.Fatal(err)
		}
		c.Plans = append(c.Plans, Plan{Plan: p, Models: []*prior.Model{m, nil, nil}, Loads: []*aggregation.LoadTracker{nil, nil, load}})
		plans = append(plans, p)
	}
	if change != nil {
		change(&c)
	}
	return newTable(t, c), plans, nodes, links
}

// update reads the digests of reports.
func (s *table) update(reports ...*decode.Report) {
	for _, r := range reports {
		slot, known := s.slots[r.Flow]
		if !known {
			slot = uint32(len(s.flows))
			s.slots[r.Flow] = slot
			s.flows = append(s.flows, tableFlow{FlowStats: inference.FlowStats{Key: r.Flow}})
		}
		f := &s.flows[slot]
		f.Packets++
		f.inWindow++
		f.Last = max(f.Last, r.Time)
		var part Parts
		for s.d.Begin(&part, slot, r); part.Next(f.PathID, &s.open); {
			if part.Path != nil {
				s.setPath(slot, r.Time, part.Path)
			}
			if len(f.Hops) != int(r.Digest.Hops) {
				continue
			}
			for i := range part.Values {
				v := &part.Values[i]
				if h := s.open.Hop(f.Hops[v.Hop-1].HopKey); v.Field == decode.HopLatency {
					h.Latency.AddValue(uint64(v.Value))
				} else {
					h.NoLatency++
				}
			}
		}
	}
}

func (s *table) setPath(slot uint32, at int64, nodes []decode.Hop) {
	f, id := &s.flows[slot], inference.PathID(nodes)
	from := keys(f.Hops)
	f.Hops = nil
	for i := range nodes {
		f.Hops = append(f.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: nodes[i].NodeID}})
	}
	if f.PathID != 0 && f.PathID != id {
		f.Changes++
		s.open.AddPath(&inference.PathChange{Time: at, Flow: f.Key, PathID: id, Changes: f.Changes, From: from, To: keys(f.Hops)})
	}
	f.PathID = id
}

func keys(hops []inference.FlowHop) (list []inference.HopKey) {
	for i := range hops {
		list = append(list, hops[i].HopKey)
	}
	return list
}

// stats returns all flows with the content of their digests, those with most packets first.
func (s *table) stats() (list []inference.FlowStats) {
	for slot := range s.flows {
		list = append(list, s.describe(uint32(slot)))
	}
	slices.SortFunc(list, func(a, b inference.FlowStats) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Key.Compare(&b.Key))
	})
	return list
}

func (s *table) describe(slot uint32) inference.FlowStats {
	f := s.flows[slot].FlowStats
	f.Hops = slices.Clone(f.Hops)
	s.d.Describe(slot, &f)
	return f
}

// inferred returns the paths of flows, the first n of them.
func (s *table) inferred(n int) (out Inferred) {
	for slot := range s.flows {
		if s.d.Traces(uint32(slot)) {
			f := s.d.Infer(uint32(slot), s.describe(uint32(slot)))
			out.AddFlow(&f, n)
		}
	}
	out.Trim(n)
	return out
}

// cut ends a window, with all flows that it saw.
func (s *table) cut() *window.Partial {
	s.d.Cut(&s.open, s.setPath)
	for slot := range s.flows {
		f := &s.flows[slot]
		if f.inWindow == 0 {
			continue
		}
		part := window.FlowPart{Key: f.Key, Packets: f.inWindow, PathID: f.PathID, Changes: f.Changes, Last: f.Last, Path: keys(f.Hops)}
		s.d.Spread(uint32(slot), &part, &s.open, 64)
		for _, k := range part.Path {
			part.Hop(k)
		}
		s.open.AddFlow(&part)
		f.inWindow = 0
	}
	p := s.open
	s.open = window.Partial{}
	return &p
}

// window is cut as what is published.
func (s *table) window() inference.Window { return s.cut().Window(window.NoLimits()) }

// forget takes a flow out of the table.
func (s *table) forget(key decode.FlowKey) {
	slot := s.slots[key]
	s.d.Forget(slot)
	s.flows[slot] = tableFlow{FlowStats: inference.FlowStats{Key: key}}
}

func flowPath(f *inference.FlowStats) (path []uint32) {
	for i := range f.Hops {
		path = append(path, f.Hops[i].Node)
	}
	return path
}
