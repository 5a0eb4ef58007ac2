package inference

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// MapErrorKind says what can be wrong with the map of nodes and links that digests are read by.
type MapErrorKind uint8

// The errors of a map.
const (
	Stranger MapErrorKind = iota // Node speaks between A and B and is not on the map
	Unnamed                      // somebody speaks between A and B who is not on the map, and digests do not tell the id
	Renamed                      // the node that the map calls A calls itself Node
	Swapped                      // A and B stand in each other's place
	Unlinked                     // packets go from A to B or back, and the map has no such link
	LowTTL                       // senders begin with the TTL Node, so that hop numbers are shifted
	NumMapErrors
)

// NoNode stands for a neighbour that a node at the end of a path does not have.
const NoNode uint32 = math.MaxUint32

// MapError is something that can be wrong with the map.
type MapError struct {
	Kind       MapErrorKind
	A, B, Node uint32 // what Kind says; 0 what it does not speak of
}

func (e MapError) String() string {
	switch e.Kind {
	case Stranger:
		return fmt.Sprintf("node %d speaks %s and is not in the topology", e.Node, e.place())
	case Unnamed:
		return fmt.Sprintf("an unknown node speaks %s", e.place())
	case Renamed:
		return fmt.Sprintf("node %d calls itself %d", e.A, e.Node)
	case Swapped:
		return fmt.Sprintf("nodes %d and %d look swapped", e.A, e.B)
	case Unlinked:
		return fmt.Sprintf("link %d–%d is used and not in the topology", e.A, e.B)
	case LowTTL:
		return fmt.Sprintf("senders start with TTL %d", e.Node)
	}
	return fmt.Sprintf("map error %d", e.Kind)
}

// place names the neighbours of a node.
func (e MapError) place() string {
	switch {
	case e.A == NoNode:
		return fmt.Sprintf("next to %d", e.B)
	case e.B == NoNode:
		return fmt.Sprintf("next to %d", e.A)
	}
	return fmt.Sprintf("between %d and %d", e.A, e.B)
}

// Based gives the error with the ids of its nodes, which are below a base, from that base on.
func (e MapError) Based(base uint32) MapError {
	at := func(n uint32, is bool) uint32 {
		if is && n != NoNode {
			return base | n
		}
		return n
	}
	between := e.Kind != LowTTL
	return MapError{Kind: e.Kind, A: at(e.A, between), B: at(e.B, between && e.Kind != Renamed), Node: at(e.Node, e.Kind == Stranger || e.Kind == Renamed)}
}

// Compare is a total order.
func (e MapError) Compare(o MapError) int {
	return cmp.Or(cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Node, o.Node), cmp.Compare(e.A, o.A), cmp.Compare(e.B, o.B))
}

// Deviation is a flow whose digests contradict the map, and all errors of the map, each in its order, that would explain that.
type Deviation struct {
	Flow    decode.FlowKey
	Ingress uint32 // the node at the first hop; NoNode if it is not known
	Digests uint64 // that were looked at
	Last    int64  // time of the latest of them
	Errors  []MapError
}

// MaxMapErrors is how many errors a Deviation lists at most.
const MaxMapErrors = 16

// compareDeviations is a total order, by flow first; of the same flow the one that was looked at last comes first.
func compareDeviations(a, b *Deviation) int {
	if c := cmp.Or(a.Flow.Compare(&b.Flow), cmp.Compare(b.Last, a.Last), cmp.Compare(b.Digests, a.Digests), cmp.Compare(a.Ingress, b.Ingress)); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Errors, b.Errors, MapError.Compare)
}

// AddDeviation lists a flow whose digests contradict the map. The errors are copied.
func (p *Partial) AddDeviation(d *Deviation) {
	p.deviations = append(p.deviations, *d)
	to := &p.deviations[len(p.deviations)-1]
	to.Errors = share(&p.mapErrors, d.Errors)
}

// listDeviations gives the first flows of the list, each once, and how many more there are.
func (p *Partial) listDeviations(limit int) (list []Deviation, other uint64) {
	order := make([]*Deviation, len(p.deviations))
	for i := range p.deviations {
		order[i] = &p.deviations[i]
	}
	slices.SortFunc(order, compareDeviations)
	order = slices.CompactFunc(order, func(a, b *Deviation) bool { return a.Flow == b.Flow })
	for i, d := range order {
		if i == limit {
			return list, uint64(len(order) - limit)
		}
		c := *d
		c.Errors = append([]MapError(nil), d.Errors...)
		list = append(list, c)
	}
	return list, 0
}

func (w *writer) deviation(d *Deviation) {
	w.flow(&d.Flow)
	w.uint(uint64(d.Ingress))
	w.uint(d.Digests)
	w.time(d.Last)
	w.uint(uint64(len(d.Errors)))
	for _, e := range d.Errors {
		w.b = append(w.b, byte(e.Kind))
		w.uint(uint64(e.Node))
		w.uint(uint64(e.A))
		w.uint(uint64(e.B))
	}
}

func (p *Partial) readDeviation(r *reader) {
	at := r.at
	d := Deviation{Flow: r.flow("deviation flow"), Ingress: r.id("deviation ingress"), Digests: r.uint("deviation digests"), Last: r.time("deviation time")}
	from := len(p.mapErrors)
	for n := r.count("map errors", MaxMapErrors, 4); n > 0 && r.err == nil; n-- {
		at := r.at
		e := MapError{Kind: MapErrorKind(r.byte("map error")), Node: r.id("map error node"), A: r.id("map error node"), B: r.id("map error node")}
		last := len(p.mapErrors) - 1
		if r.ordered("map error", at, e.Kind < NumMapErrors && (last < from || p.mapErrors[last].Compare(e) < 0)) {
			p.mapErrors = append(p.mapErrors, e)
		}
	}
	d.Errors = p.mapErrors[from:len(p.mapErrors):len(p.mapErrors)]
	if n := len(p.deviations); r.ordered("deviation", at, n == 0 || compareDeviations(&p.deviations[n-1], &d) <= 0) {
		p.deviations = append(p.deviations, d)
	}
}
