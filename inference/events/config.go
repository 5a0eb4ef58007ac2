package events

import (
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// A detector is a file of its own, or a package below this one, and what this file says of it: its place among the others, and the
// version of the state. Its settings with their defaults are in package subject.

// detectors makes all of them, in the order in which they publish their findings.
func detectors(j *subject.Journal) []detector {
	l, h := ways.NewWires(j), newHops(j)
	return []detector{
		l, // first: others ask it what is behind an interface
		ways.NewReroutes(j, l),
		newDrops(j),
		newOffPolicy(j),
		newInventory(j), // before the detector of strange digests, of which it explains some
		newDigests(j, l),
		newExporters(j),
		newInterfaces(j),
		newProbes(j),
		h,
		newFlows(j, h), // behind that of hops, whose limits it takes
		newTransits(j),
		ways.NewSilent(j),
		newFormer(j),
		newCauses(j, l, h), // last: it groups the findings of the others
	}
}

// stateVersion goes up when detectors are added or left out, and when what one of them remembers changes.
const stateVersion = 14

// oldestVersion is the oldest one that is read, so that programs of two versions can take turns. What version 2 remembered of
// hops is of no use to the present detector: its open findings end, and hops are learnt anew. Before version 5 there are no signs of causes and no outages, before version 6 no uses of hops, before version 8 no counts of interfaces; before version 10 the node with the id 0, among those whose reports are not complete, is none; before version 11 findings have no paths, before version 12 they do not say
// whether they rest, before version 13 there are no paths of probes, and before version 14 findings without a cause begin when they are found.
const oldestVersion = 2
