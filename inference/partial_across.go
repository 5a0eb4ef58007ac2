package inference

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// Numbers are the sequence numbers of an exporter that one collector received in a window, for those who put together
// what several collectors saw: a number that is missing at one may have reached another one. They are told only where
// that is asked for (sequence.Tracker.Tell).
//
// A collector tells a sequence once, and once more for every time that it saw the exporter begin anew within the window.
type Numbers struct {
	ExporterKey
	To    uint64 // where the datagrams were sent to
	Width uint8  // bits of a number, 1 to 32
	// Part counts from 0 what the collector tells of the sequence in this window: each further part begins anew.
	Part uint32
	Anew bool // the collector took the exporter for one that counts anew, before the first of these numbers
	// Unknown says that which numbers came cannot be told, such as more than half of all that there are; there are no Runs
	// then, and First is the newest number.
	Unknown bool
	First   uint32
	Runs    []Run // ascending, with a number that did not come between two of them; offsets from First, modulo 2^Width
}

// Run is numbers that follow each other and came: all of them, or where there were too many runs to tell each of them,
// Count of them.
type Run struct {
	First, Last uint64 // with both ends
	Count       uint64
}

// Arrival is a flow that a collector saw for the first time, or again after a window without it, and its path. They are
// told only where that is asked for (shard.State.TellArrivals).
type Arrival struct {
	Time    int64
	Flow    decode.FlowKey
	PathID  uint64
	Changes uint32 // of its path that the collector saw before
	Path    []HopKey
}

// AddNumbers lists what a collector received of an exporter's numbers. It keeps nothing of n.
func (p *Partial) AddNumbers(n *Numbers) {
	p.numbers = append(p.numbers, *n)
	to := &p.numbers[len(p.numbers)-1]
	to.Runs = share(&p.runs, n.Runs)
}

// Numbers gives all that AddNumbers listed, also of partials that were merged: each tells what one collector received, and
// some may be in several of them. The list belongs to p.
func (p *Partial) Numbers() []Numbers { return p.numbers }

// AddArrival lists a flow. It keeps nothing of a.
func (p *Partial) AddArrival(a *Arrival) {
	p.arrivals = append(p.arrivals, *a)
	to := &p.arrivals[len(p.arrivals)-1]
	to.Path = share(&p.pathHops, a.Path)
}

// Arrivals gives all that AddArrival listed. The list belongs to p.
func (p *Partial) Arrivals() []Arrival { return p.arrivals }

// DropAcross forgets numbers and arrivals, which nobody needs once the partials of all collectors are put together.
func (p *Partial) DropAcross() {
	p.numbers, p.runs, p.arrivals, p.OtherArrivals = p.numbers[:0], p.runs[:0], p.arrivals[:0], 0
}

// Heard gives the exporters of which there were reports, in no order, to a function that returns whether it wants more.
func (p *Partial) Heard(yield func(ExporterKey) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed > 0 && !yield(e.ExporterKey) {
			return
		}
	}
}

// Exporters gives what was counted of each exporter, in no order. It is the memory of p: to be read, until the next call
// of a method.
func (p *Partial) Exporters() []ExporterStats { return p.exporters.items }

// Exporter gives what is known of an exporter, to be changed, or nil.
func (p *Partial) Exporter(k ExporterKey) *ExporterStats {
	if i, ok := p.exporters.index[k]; ok {
		return &p.exporters.items[i]
	}
	return nil
}

// Silent gives what is told of exporters of which there were no reports, as Heard does.
func (p *Partial) Silent(yield func(*ExporterStats) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed == 0 && !yield(e) {
			return
		}
	}
}

// Flows gives the candidates for the busiest flows, in no order. The list belongs to p; all but keys may be changed in it.
func (p *Partial) Flows() []FlowPart { return p.flows.items }

// PathChanges gives the path changes that are listed, in no order. The list belongs to p.
func (p *Partial) PathChanges() []PathChange { return p.paths }

// SetPathChanges lists these path changes instead of those that are listed. It keeps nothing of them, which may not be
// those of p.
func (p *Partial) SetPathChanges(all []PathChange) {
	p.paths = p.paths[:0]
	for i := range all {
		p.AddPath(&all[i])
	}
}

func compareNumbers(a, b *Numbers) int { return a.Compare(b) }

// Compare orders by exporter, width, destination and part; the other fields only make the order a total one.
func (n *Numbers) Compare(o *Numbers) int {
	if c := cmp.Or(n.ExporterKey.Compare(o.ExporterKey), cmp.Compare(n.Width, o.Width), cmp.Compare(n.To, o.To), cmp.Compare(n.Part, o.Part),
		cmp.Compare(n.First, o.First), compareBools(n.Anew, o.Anew), compareBools(n.Unknown, o.Unknown)); c != 0 {
		return c
	}
	return slices.CompareFunc(n.Runs, o.Runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Count, b.Count))
	})
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareArrivals is a total order.
func compareArrivals(a, b *Arrival) int {
	if c := cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.PathID, b.PathID), cmp.Compare(a.Changes, b.Changes)); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Path, b.Path, HopKey.Compare)
}
