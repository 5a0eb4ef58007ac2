package inference

// MergeWithin is [Partial.Merge] for a partial that others are added to again and again: p does not grow beyond the
// limits. What p knows already is added to in full. Of what is new to it, the busiest flows are taken as long as there is
// room, and the rest is folded as a shard with full tables does it: hops into the hop called other, exporters into the one
// with no address, and flows, path changes, drops and faults are counted. Sums over all hops and over all exporters are
// those of Merge.
func (p *Partial) MergeWithin(q *Partial, most Limits) {
	p.Span(q.Start, q.End)
	p.Reports += q.Reports
	p.FlowCount += q.FlowCount
	p.FlowBound = max(p.FlowBound, q.FlowBound)
	p.OtherHops += q.OtherHops
	p.OtherPaths += q.OtherPaths
	p.OtherDrops += q.OtherDrops
	p.OtherFlows += q.OtherFlows
	for i := range q.hops.items {
		h := &q.hops.items[i]
		k := h.HopKey
		if !p.hops.room(k, most.Hops) && !k.Other {
			k = HopKey{Other: true}
			p.OtherHops += h.Latency.Count() + h.NoLatency
		}
		p.Hop(k).merge(h)
	}
	for _, i := range sorted(&p.order, q.flows.items, compareBusiest) {
		f := &q.flows.items[i]
		if p.flows.room(f.Key, most.Flows) {
			p.AddFlow(f)
		} else {
			p.FlowBound = max(p.FlowBound, f.Packets)
		}
	}
	for n, i := range sorted(&p.order, q.paths, comparePaths) {
		if len(p.paths) >= most.Paths {
			p.OtherPaths += uint64(len(q.paths) - n)
			break
		}
		p.AddPath(&q.paths[i])
	}
	for _, i := range sorted(&p.order, q.drops.items, compareDrops) {
		d := &q.drops.items[i]
		if p.drops.room(dropKey{d.Node, d.Reason}, most.Drops) {
			p.AddDrops(d)
		} else {
			p.OtherDrops += d.Count
		}
	}
	for _, i := range sorted(&p.order, q.faults.items, firstFaults) {
		d := &q.faults.items[i]
		if p.faults.room(faultKey{d.Fault, d.Flow}, most.Faults) {
			p.AddFault(d)
		} else {
			p.OtherFlows += d.Count
		}
	}
	for i := range q.exporters.items {
		e := q.exporters.items[i]
		if !p.exporters.room(e.ExporterKey, most.Exporters) {
			e.ExporterKey = ExporterKey{}
		}
		p.AddExporters([]ExporterStats{e})
	}
	for _, i := range sorted(&p.order, q.numbers, compareNumbers) {
		if len(p.numbers) < most.Numbers {
			p.AddNumbers(&q.numbers[i])
		}
	}
	p.OtherArrivals += q.OtherArrivals
	for _, i := range sorted(&p.order, q.arrivals, compareArrivals) {
		if len(p.arrivals) < most.Arrivals {
			p.AddArrival(&q.arrivals[i])
		} else {
			p.OtherArrivals++
		}
	}
	for _, i := range sorted(&p.order, q.deviations, compareDeviations) {
		if len(p.deviations) < most.Deviations {
			p.AddDeviation(&q.deviations[i])
		}
	}
	for _, i := range sorted(&p.order, q.spreads.items, compareSpreads) {
		x := &q.spreads.items[i]
		if _, listed := p.flows.index[x.Flow]; listed && p.spreads.room(x.Flow, most.Flows) {
			p.AddSpread(x)
		}
	}
	for _, i := range sorted(&p.order, q.strays.items, (*Stray).order) {
		if s := &q.strays.items[i]; p.strays.room(s.StrayKey, most.Paths) {
			p.AddStray(s)
		}
	}
}

// room reports whether the item of a key is there, or would not be one too many.
func (l *keyed[K, V]) room(k K, most int) bool {
	_, known := l.index[k]
	return known || len(l.items) < most
}
