package window

import (
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Admission bounds what stores have to index: the number of series that begin within a day (UTC). There are bounds for
// hops, places of hops without a node id, paths of probes, nodes, flows and exporters. A place in a table that is
// taken, left and taken again is three series to a store. When the day's places are gone, new items are folded into one
// that is called other, until the day ends. Items of the last hour of a day keep their places in the next. The zero
// value admits nothing.
type Admission struct {
	day                           int64
	hops                          places[inference.HopKey]
	nodes                         places[uint32]
	flows                         places[decode.FlowKey]
	exporters                     places[inference.ExporterKey]
	nameless                      places[inference.NamelessKey] // in no state: a run begins with none
	probes                        places[inference.ProbeKey]    // likewise
	foldedHops, foldedFlows, rest uint64
}

// AdmissionLimits are the numbers of series that begin within a day.
type AdmissionLimits struct{ Hops, Flows, Exporters int }

// mostProbePlaces are the paths of probes that begin series of their own within a day.
const mostProbePlaces = 16 * maxProbes

// NewAdmission makes room for what a day admits.
func NewAdmission(l AdmissionLimits) *Admission {
	return &Admission{
		hops: newPlaces[inference.HopKey](l.Hops), nodes: newPlaces[uint32](l.Hops),
		flows: newPlaces[decode.FlowKey](l.Flows), exporters: newPlaces[inference.ExporterKey](l.Exporters),
		nameless: newPlaces[inference.NamelessKey](min(l.Hops, maxNameless)), probes: newPlaces[inference.ProbeKey](min(l.Hops, mostProbePlaces)),
	}
}

// Fold folds the hops of p that are not admitted into the hop other. It folds places of hops without a node id and
// paths of probes into the ones of no place. End is that of the window.
func (a *Admission) Fold(p *Partial, end int64) {
	a.begin(end)
	for i := 0; i < len(p.hops.items); {
		k := p.hops.items[i].HopKey
		if k.Other || a.hops.admit(k, end) {
			i++
			continue
		}
		n := p.foldHop(i)
		p.OtherHops += n
		a.foldedHops += n
	}
	for i := 0; i < len(p.nameless.items); {
		k := p.nameless.items[i].NamelessKey
		if k == (inference.NamelessKey{}) || a.nameless.admit(k, end) {
			i++
			continue
		}
		a.foldedHops += p.foldNameless(i)
	}
	for i := 0; i < len(p.probes.items); {
		k := p.probes.items[i].ProbeKey
		if k == (inference.ProbeKey{}) || a.probes.admit(k, end) {
			i++
			continue
		}
		p.foldProbes(i)
		a.rest++
	}
}

// foldHop merges the i-th hop into the hop other, puts the last one into its place, and returns its number of records.
func (p *Partial) foldHop(i int) uint64 {
	to := p.Hop(inference.HopKey{Other: true}) // which may move all items
	items := p.hops.items
	h, last := &items[i], len(items)-1
	n := h.Latency.Count() + h.NoLatency
	to.merge(h)
	h.reset()
	delete(p.hops.index, h.HopKey)
	if i != last {
		items[i], items[last] = items[last], items[i]
		p.hops.index[items[i].HopKey] = int32(i)
	}
	p.hops.items = items[:last]
	return n
}

// Mark marks what of a window and of its findings has no series of its own.
func (a *Admission) Mark(w *inference.Window, findings []inference.Finding) {
	a.begin(w.End)
	for i := range w.Flows {
		f := &w.Flows[i]
		f.Folded = !a.flows.admit(f.Key, w.End)
		a.countFlow(f.Folded)
	}
	for i := range w.Paths {
		c := &w.Paths[i]
		c.Folded = !a.flows.admit(c.Flow, w.End)
		a.countFlow(c.Folded)
	}
	for i := range w.Exporters {
		e := &w.Exporters[i]
		e.Folded = !a.exporters.admit(e.ExporterKey, w.End)
		a.count(e.Folded)
	}
	for i := range w.Interfaces {
		x := &w.Interfaces[i]
		x.Folded = !a.hops.admit(x.Key(), w.End) // an interface and its hop take one place
		a.count(x.Folded)
	}
	for i := range findings {
		f := &findings[i]
		f.Folded = f.Node != 0 && !a.nodes.admit(f.Node, w.End)
		a.count(f.Folded)
	}
}

func (a *Admission) countFlow(folded bool) {
	if folded {
		a.foldedFlows++
	}
}

func (a *Admission) count(folded bool) {
	if folded {
		a.rest++
	}
}

// Folded returns the numbers of hop records, of rows of flows, and of rows of exporters, interfaces and findings that
// were folded.
func (a *Admission) Folded() (hops, flows, rest uint64) { return a.foldedHops, a.foldedFlows, a.rest }

// begin begins the day of a window, unless it has begun. A clock that was set back does not make room.
func (a *Admission) begin(end int64) {
	day := end / int64(24*time.Hour)
	if day <= a.day {
		return
	}
	a.day = day
	before := end - int64(time.Hour)
	a.hops.forget(before)
	a.nodes.forget(before)
	a.flows.forget(before)
	a.exporters.forget(before)
	a.nameless.forget(before)
	a.probes.forget(before)
}

// places is a bounded set, with the times at which its members were seen last.
type places[K comparable] struct {
	max  int
	seen map[K]int64
}

func newPlaces[K comparable](n int) places[K] { return places[K]{max: n, seen: map[K]int64{}} }

func (p *places[K]) admit(k K, now int64) bool {
	if _, known := p.seen[k]; !known && len(p.seen) >= p.max {
		return false
	}
	p.seen[k] = now
	return true
}

func (p *places[K]) forget(before int64) {
	for k, at := range p.seen {
		if at < before {
			delete(p.seen, k)
		}
	}
}
