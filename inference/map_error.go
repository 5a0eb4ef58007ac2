package inference

import (
	"cmp"
	"fmt"
	"math"
)

// MapErrorKind is the kind of an error of the map of nodes and links by which digests are read.
type MapErrorKind uint8

// The errors of a map.
const (
	Foreign  MapErrorKind = iota // Node writes digests between A and B and is not on the map
	Unnamed                      // a node between A and B reports that is not on the map, and digests do not give its id
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
	A, B, Node uint32 // as Kind describes; 0 where it has none
}

func (e MapError) String() string {
	switch e.Kind {
	case Foreign:
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

// Based returns the error with the ids of its nodes, which are below a base, from that base on.
func (e MapError) Based(base uint32) MapError {
	at := func(n uint32, is bool) uint32 {
		if is && n != NoNode {
			return base | n
		}
		return n
	}
	between := e.Kind != LowTTL
	return MapError{Kind: e.Kind, A: at(e.A, between), B: at(e.B, between && e.Kind != Renamed), Node: at(e.Node, e.Kind == Foreign || e.Kind == Renamed)}
}

// Compare is a total order.
func (e MapError) Compare(o MapError) int {
	return cmp.Or(cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Node, o.Node), cmp.Compare(e.A, o.A), cmp.Compare(e.B, o.B))
}
