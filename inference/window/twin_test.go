package window

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// twin keeps what partials are given as it is, and makes a window of it with maps alone.
type twin struct {
	start, end                                    int64
	reports, flows, bound                         uint64
	otherHops, otherPaths, otherDrops, otherFlows uint64
	hops                                          []hopSeen
	parts                                         []FlowPart
	paths                                         []inference.PathChange
	drops                                         []inference.DropStats
	faults                                        []inference.DigestFault
	exporters                                     []inference.ExporterStats
}

type hopSeen struct {
	key            inference.HopKey
	latency, queue []uint64
	none           uint64
	utilization    float64
	utilized       bool
}

// emit makes up a part of a window and adds it to both.
func (w *twin) emit(p *Partial, rng *rand.Rand) {
	key := func() inference.HopKey { return inference.HopKey{Node: rng.Uint32N(3), EgressIf: rng.Uint32N(2)} }
	path := func() (out []inference.HopKey) {
		for range rng.IntN(3) {
			out = append(out, key())
		}
		return out
	}
	values := func() (out []uint64) {
		for range rng.IntN(4) {
			out = append(out, rng.Uint64N(1<<20))
		}
		return out
	}
	at := func() int64 { return 100 + rng.Int64N(4) }
	if rng.IntN(4) > 0 {
		start, end := 90+rng.Int64N(5), 200+rng.Int64N(5)
		p.Span(start, end)
		if w.end == 0 {
			w.start = start
		}
		w.start, w.end = min(w.start, start), max(w.end, end)
	}
	count := func(to ...*uint64) {
		n := rng.Uint64N(5)
		for _, c := range to {
			*c += n
		}
	}
	count(&p.Reports, &w.reports)
	count(&p.FlowCount, &w.flows)
	count(&p.OtherHops, &w.otherHops)
	count(&p.OtherPaths, &w.otherPaths)
	count(&p.OtherDrops, &w.otherDrops)
	count(&p.OtherFlows, &w.otherFlows)
	p.FlowBound = max(p.FlowBound, rng.Uint64N(5))
	w.bound = max(w.bound, p.FlowBound)
	for range rng.IntN(6) {
		h := hopSeen{key: key(), latency: values(), queue: values(), none: rng.Uint64N(3), utilization: float64(rng.IntN(3)), utilized: rng.IntN(2) == 0}
		if rng.IntN(8) == 0 {
			h.key = inference.HopKey{Other: true}
		}
		w.hops = append(w.hops, h)
		to := p.Hop(h.key)
		for _, v := range h.latency {
			to.Latency.AddValue(v)
		}
		for _, v := range h.queue {
			to.Queue.AddValue(v)
		}
		to.NoLatency += h.none
		if h.utilized {
			to.Utilization, to.HasUtilization = max(to.Utilization, h.utilization), true
		}
	}
	for range rng.IntN(6) {
		f := FlowPart{Key: flowKey(rng.Uint32N(5)), Packets: 1 + rng.Uint64N(3), PathID: rng.Uint64N(2), Changes: rng.Uint32N(2),
			Partial: rng.IntN(2) == 0, Last: at(), Path: path()}
		for range rng.IntN(3) {
			h := f.Hop(key())
			for _, v := range values() {
				h.Latency.AddValue(v)
				h.Queue.AddValue(v / 3)
			}
		}
		w.parts = append(w.parts, f)
		p.AddFlow(&f)
	}
	for range rng.IntN(4) {
		c := inference.PathChange{Time: at(), Flow: flowKey(rng.Uint32N(2)), From: path(), To: path(), PathID: rng.Uint64N(2), Changes: rng.Uint32N(2), Packets: rng.Uint64N(2)}
		w.paths = append(w.paths, c)
		p.AddPath(&c)

		d := inference.DropStats{Node: rng.Uint32N(2), Reason: uint8(rng.IntN(2)), Count: rng.Uint64N(3), Last: at(), Flow: flowKey(rng.Uint32N(3))}
		w.drops = append(w.drops, d)
		p.AddDrops(&d)

		first := at()
		q := inference.DigestFault{Flow: flowKey(rng.Uint32N(3)), Fault: inference.Fault(rng.IntN(2)), Node: rng.Uint32N(3), Count: rng.Uint64N(3), First: first, Last: max(first, at())}
		w.faults = append(w.faults, q)
		p.AddFault(&q)

		e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: rng.Uint32N(2), HWID: uint8(rng.IntN(2))}, Reports: rng.Uint64N(3), Events: rng.Uint64N(3),
			Lost: rng.Int64N(5) - 2, Duplicated: rng.Uint64N(3), Reordered: rng.Uint64N(3), Restarts: rng.Uint64N(3), Malformed: rng.Uint64N(3),
			Provisional: rng.Uint64N(3), Late: rng.Uint64N(3), Down: rng.Uint64N(3),
			Last: at(), Sequenced: rng.IntN(3) == 0}
		w.exporters = append(w.exporters, e)
		p.AddExporters([]inference.ExporterStats{e})
	}
}

// window makes the window that the documentation of Partial and of Window promises.
func (w *twin) window(keep Limits) inference.Window {
	out := inference.Window{
		Start: w.start, End: w.end, Reports: w.reports, FlowCount: int(w.flows), FlowBound: w.bound,
		OtherHops: w.otherHops, OtherPaths: w.otherPaths, OtherDrops: w.otherDrops, OtherFlows: w.otherFlows,
		Hops: []inference.HopStats{},
	}

	hops := map[inference.HopKey][]hopSeen{}
	for _, h := range w.hops {
		hops[h.key] = append(hops[h.key], h)
	}
	for k, seen := range hops {
		var latency, queue quantile.Histogram
		s := inference.HopStats{HopKey: k}
		for _, h := range seen {
			for _, v := range h.latency {
				latency.AddValue(v)
			}
			for _, v := range h.queue {
				queue.AddValue(v)
			}
			s.Count += h.none + uint64(len(h.latency))
			if h.utilized {
				s.Utilization, s.HasUtilization = max(s.Utilization, h.utilization), true
			}
		}
		s.Latency, s.Queue = summary(&latency), summary(&queue)
		out.Hops = append(out.Hops, s)
	}
	slices.SortFunc(out.Hops, func(a, b inference.HopStats) int { return a.HopKey.Compare(b.HopKey) })

	flows := map[any][]FlowPart{}
	for _, f := range w.parts {
		flows[f.Key] = append(flows[f.Key], f)
	}
	for _, seen := range flows {
		last, packets := seen[0], uint64(0)
		for _, f := range seen {
			packets += f.Packets
			partial := func(f *FlowPart) int {
				if f.Partial {
					return 0
				}
				return 1
			}
			if cmp.Or(cmp.Compare(f.Last, last.Last), cmp.Compare(f.Changes, last.Changes), cmp.Compare(f.PathID, last.PathID),
				cmp.Compare(partial(&f), partial(&last)), slices.CompareFunc(f.Path, last.Path, inference.HopKey.Compare)) > 0 {
				last = f
			}
		}
		s := inference.FlowStats{Key: last.Key, Packets: packets, PathID: last.PathID, Changes: last.Changes, Partial: last.Partial, Last: last.Last, Hops: []inference.FlowHop{}}
		for _, k := range last.Path {
			var all HopSketch
			for _, f := range seen {
				for i := range f.Hops {
					if f.Hops[i].HopKey == k {
						all.merge(&f.Hops[i])
					}
				}
			}
			s.Hops = append(s.Hops, inference.FlowHop{HopKey: k, Latency: summary(&all.Latency), Queue: summary(&all.Queue)})
		}
		out.Flows = append(out.Flows, s)
	}
	slices.SortFunc(out.Flows, func(a, b inference.FlowStats) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Key.Compare(&b.Key))
	})
	if len(out.Flows) > keep.Flows {
		out.FlowBound = max(out.FlowBound, out.Flows[keep.Flows].Packets)
		out.Flows = out.Flows[:keep.Flows]
	}

	out.Paths = slices.Clone(w.paths)
	slices.SortFunc(out.Paths, func(a, b inference.PathChange) int { return comparePaths(&a, &b) })
	if n := len(out.Paths); n > keep.Paths {
		out.OtherPaths += uint64(n - keep.Paths)
		out.Paths = out.Paths[:keep.Paths]
	}

	drops := map[dropKey]inference.DropStats{}
	for _, d := range w.drops {
		k := dropKey{d.Node, d.Reason}
		s, known := drops[k]
		count := s.Count + d.Count
		if !known || cmp.Or(cmp.Compare(d.Last, s.Last), d.Flow.Compare(&s.Flow)) > 0 {
			s = d
		}
		s.Count = count
		drops[k] = s
	}
	for _, d := range drops {
		out.Drops = append(out.Drops, d)
	}
	slices.SortFunc(out.Drops, func(a, b inference.DropStats) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
	})
	for _, d := range out.Drops[min(keep.Drops, len(out.Drops)):] {
		out.OtherDrops += d.Count
	}
	out.Drops = out.Drops[:min(keep.Drops, len(out.Drops))]

	faults := map[faultKey]inference.DigestFault{}
	for _, d := range w.faults {
		k := faultKey{d.Fault, d.Flow}
		s, known := faults[k]
		if !known {
			s = inference.DigestFault{Flow: d.Flow, Fault: d.Fault, First: d.First}
		}
		s.Count, s.First = s.Count+d.Count, min(s.First, d.First)
		if !known || cmp.Or(cmp.Compare(d.Last, s.Last), cmp.Compare(d.Node, s.Node)) > 0 {
			s.Last, s.Node = d.Last, d.Node
		}
		faults[k] = s
	}
	for _, d := range faults {
		out.Digests = append(out.Digests, d)
	}
	byKey := func(a, b inference.DigestFault) int {
		return cmp.Or(cmp.Compare(a.Fault, b.Fault), a.Flow.Compare(&b.Flow))
	}
	slices.SortFunc(out.Digests, func(a, b inference.DigestFault) int { return cmp.Or(cmp.Compare(a.First, b.First), byKey(a, b)) })
	for _, d := range out.Digests[min(keep.Faults, len(out.Digests)):] {
		out.OtherFlows += d.Count
	}
	out.Digests = out.Digests[:min(keep.Faults, len(out.Digests))]
	slices.SortFunc(out.Digests, byKey)

	exporters := map[inference.ExporterKey]inference.ExporterStats{}
	for _, e := range w.exporters {
		s := exporters[e.ExporterKey]
		s.ExporterKey = e.ExporterKey
		s.Reports, s.Events, s.Lost = s.Reports+e.Reports, s.Events+e.Events, s.Lost+e.Lost
		s.Duplicated, s.Reordered, s.Restarts = s.Duplicated+e.Duplicated, s.Reordered+e.Reordered, s.Restarts+e.Restarts
		s.Provisional, s.Late, s.Down = s.Provisional+e.Provisional, s.Late+e.Late, s.Down+e.Down
		s.Malformed, s.Last, s.Sequenced = s.Malformed+e.Malformed, max(s.Last, e.Last), s.Sequenced || e.Sequenced
		exporters[e.ExporterKey] = s
	}
	for _, e := range exporters {
		out.Exporters = append(out.Exporters, e)
	}
	slices.SortFunc(out.Exporters, func(a, b inference.ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) })
	return out
}

// emptyAsNil makes lists alike that are empty in one way or the other.
func emptyAsNil(w *inference.Window) {
	none := func(v reflect.Value) {
		if v.Kind() == reflect.Slice && v.Len() == 0 {
			v.SetZero()
		}
	}
	v := reflect.ValueOf(w).Elem()
	for i := range v.NumField() {
		none(v.Field(i))
	}
	for i := range w.Flows {
		none(reflect.ValueOf(&w.Flows[i].Hops).Elem())
	}
	for i := range w.Paths {
		none(reflect.ValueOf(&w.Paths[i].From).Elem())
		none(reflect.ValueOf(&w.Paths[i].To).Elem())
	}
}

// TestMergeTwin merges partials with few keys, some of which were used before or come as bytes. It compares their
// window with one that is made with maps, of the input of the partials.
func TestMergeTwin(t *testing.T) {
	pool := make([]Partial, 6)
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		keep := Limits{Flows: rng.IntN(6), Paths: rng.IntN(8), Drops: rng.IntN(5), Faults: rng.IntN(7)}
		var w twin
		parts := pool[:1+rng.IntN(len(pool))]
		for i := range parts {
			parts[i].Reset()
			w.emit(&parts[i], rng)
		}
		all := &parts[0]
		for i := range parts[1:] {
			q := &parts[i+1]
			if rng.IntN(3) == 0 {
				q = read(t, encode(t, q))
			}
			all.Merge(q)
			q.Reset() // nothing of it may have been kept
			fill(q, rng)
		}
		got, want := all.Window(keep), w.window(keep)
		emptyAsNil(&got)
		emptyAsNil(&want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, %+v: window\n%+v\nwant\n%+v", seed, keep, got, want)
		}
	}
}
