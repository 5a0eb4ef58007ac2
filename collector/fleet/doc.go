// Package fleet consumes what the collectors of a fleet publish. It merges the windows of all of them, writes points
// to stores, and publishes the result. A [Consumer] is a member of a group. Each partition that the group assigns to
// it has a worker of its own:
//
//   - of topic windows: a slice of everything there is. The worker merges what the collectors saw of its hops and
//     exporters, writes their points, and publishes the merged slice in topic series.
//   - of topic series: there is one, and the consumer that has it is the owner. It puts the slices together, lets the detectors see the
//     window, and writes points of what needs all of it: flows, path changes, findings.
//
// # Exactly once
//
// The state of a worker is a function of the records that it has read. The worker keeps a checkpoint of that in topic
// state, with the offset from which to go on. It writes one only when every store and the brokers have confirmed all
// results of the records before. A consumer that takes a partition over goes on from the last checkpoint. From the
// later records it makes the same points and records as its predecessor. The points replace each other, and each
// record counts once. No result depends on which consumer was first. A consumer that does not know yet that it lost a
// partition therefore does no harm.
package fleet
