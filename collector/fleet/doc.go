// Package fleet consumes what the collectors of a fleet publish: it merges the windows of all of them, writes points to
// stores, and publishes the whole. A [Consumer] is a member of a group; each partition that the group gives to it has a
// worker of its own:
//
//   - of topic windows: a slice of everything there is. The worker merges what the collectors saw of its hops and
//     exporters, writes their points, and publishes the merged slice in topic series.
//   - of topic series: there is one, and the consumer that has it is the owner. It puts the slices together, lets the detectors see the
//     window, and writes points of what needs all of it: flows, path changes, findings.
//
// # Exactly once
//
// What a worker knows is a function of the records that it has read. It keeps a checkpoint of that in topic state, with the
// offset from which to go on. It does so only when every store and the brokers have confirmed all that came of these records
// before. A consumer that takes a partition over goes on from the last checkpoint, and makes of the records behind it what its
// predecessor made: the same points, which take each other's place, and the same records, of which each counts once. Nothing
// depends on which consumer was first, so that a consumer that does not know yet that it lost a partition does no harm.
package fleet
