// Package world judges the findings of hopscope in an independent emulated network. It has a small packet simulator,
// writers of reports, and scenarios with their truth. It shares no code with the emulated network of p4/emu.
//
// # Model
//
// Sampled packets walk through ports. The other traffic of a port is a load. Between two sampled packets a port's
// work follows Lindley's recursion with random arrivals and sizes, so that the queue is that of the load. Gaps that
// are much longer than a queue remembers begin with a draw from the stationary law. Loads follow from the flows that
// are routed over a port, and from a load of its own. Reports are made by an encoder that was written from
// descriptions of the formats (encode.go), not from decoders here.
//
// # Truth
//
// A [Scenario] is a text of a few lines: the network, its reports, the events, and the elements that may be named.
// Names of nodes, numbers of nodes and interfaces, flows and loads differ by seed. The judge runs the program's own
// decoders, shards and detectors in virtual time. It reads the list of open causes in the order of the page.
//
// A cause is false if its element is healthy. Healthy elements may not be named, and no event of the simulator
// touches them in a kind that fits (loads that changed, flows that moved). Causes that are marked as learning do not
// count, for or against.
//
// # Scenarios
//
// Scenarios are short texts in folder scenarios:
//
//	about a leaf loses 10 % of what goes to one host, behind its last observer of the fabric
//	kind loss at a host
//	half tune
//	reports int21 drops=0
//	at 0 for 30 loss leaf2.1 rate=10%
//	truth host leaf2.1
//	known 2
//	severity any
//
// Windows have ten seconds, 380 are quiet before, and settings are the defaults. Half of the scenarios may be tuned
// on (--half tune); the others are only reported (--half report).
//
//   - A fault is right if an element of its truth comes first among the open causes, and stays there in at least half of
//     the following windows. Of several faults each has to be in the list.
//   - A benign change must bring no critical finding about the network: sinks that sample, policers, batches, NAT,
//     rewritten identifications, deploys, drained links, new levels, maintenance. Some runs have a real loss beside them.
//   - A finding is false if its element is healthy and what happens does not touch it. One that names the node of a
//     failing host port, or all lines of a bundle, is neither right nor false.
//
// Known limits: a loss beside sinks that begin to report one packet in ten is first in 3 of 6 runs (--scenario
// benign-sink-samples-all+real --seed 1001 --seeds 6, tuned on). Beside sinks that report one flow of three or ten it
// is first in 4 of 6 (benign-sink-samples-flows and benign-sink-samples-few-flows, --seed 9801 --seeds 3, tuned on).
package world
