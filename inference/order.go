package inference

import (
	"cmp"
	"slices"
)

// comparePaths orders path changes by time, then by flow and by how often the flow had changed. The rest of the fields
// only makes the order a total one.
func comparePaths(a, b *PathChange) int {
	if c := cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.Changes, b.Changes),
		cmp.Compare(a.PathID, b.PathID), cmp.Compare(a.Packets, b.Packets)); c != 0 {
		return c
	}
	return cmp.Or(slices.CompareFunc(a.From, b.From, HopKey.Compare), slices.CompareFunc(a.To, b.To, HopKey.Compare))
}

// compareBusiest orders flows by reports, the busiest first, and by key where they have the same number.
func compareBusiest(a, b *FlowPart) int {
	return cmp.Or(cmp.Compare(b.Packets, a.Packets), a.Key.Compare(&b.Key))
}

func compareDrops(a, b *DropStats) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
}

func compareFaults(a, b *DigestFault) int {
	return cmp.Or(cmp.Compare(a.Fault, b.Fault), a.Flow.Compare(&b.Flow))
}

// firstFaults orders faults by the time of their first digest: of a list that overflows, what came first stays.
func firstFaults(a, b *DigestFault) int {
	return cmp.Or(cmp.Compare(a.First, b.First), compareFaults(a, b))
}
