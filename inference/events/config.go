package events

import (
	"github.com/hopscope/hopscope/inference/events/subject"
	"github.com/hopscope/hopscope/inference/events/ways"
)

// A detector is a file or a package below this one, and a line in this file. The line states its place among the others
// and the version of the state. Its settings with their defaults are in package subject.

// detectors makes all of them, in the order in which they publish their findings.
func detectors(j *subject.Journal) []detector {
	l, h := ways.NewWires(j), newHops(j)
	p := ways.NewProbed(j)
	return []detector{
		l, // first: others ask it for the node behind an interface
		ways.NewReroutes(j, l),
		newDrops(j, p), // which asks for ways of missing probes
		newOffPolicy(j),
		newInventory(j), // before the detector of strange digests, of which it explains some
		newDigests(j, l),
		newExporters(j),
		newInterfaces(j),
		p, // before the detector of probes, which asks it for ways
		newProbes(j, p),
		h,
		newFlows(j, h), // behind that of hops, whose limits it takes
		newTransits(j),
		ways.NewSilent(j),
		newFormer(j),
		newCauses(j, l, h), // last: it groups the findings of the others
	}
}

// stateVersion goes up when detectors are added or left out, and when what one of them remembers changes.
const stateVersion = 16

// oldestVersion is the oldest version that is read, so that programs of two versions can take turns. The hops of
// version 2 are of no use to the present detector: their open findings end, and hops are learnt anew. Missing before
// version 5: signs of causes and outages. Before version 6: uses of hops. Before version 8: counts of interfaces.
// Before version 10: the node with the id 0, among those with incomplete reports. Before version 11: paths of findings.
// Before version 12: whether findings rest. Before version 13: paths of probes. Before version 14, findings without a
// cause begin when they are found. Missing before version 15: contrasts of shares. Before
// version 16: ways of probes.
const oldestVersion = 2
