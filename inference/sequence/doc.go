// Package sequence counts what each exporter lost, sent twice, sent late or restarted, from the sequence numbers of its
// reports.
//
// A sequence number space belongs to an [inference.ExporterKey] (address, node, hardware id) and to the width of its
// numbers: 32 bits, or 22 for telemetry report 2.0, whose numbers count datagrams and not reports (so only reports
// with FirstOfGroup take part). Telemetry report 0.5 names its node in some reports and not in others, while it numbers
// them together, per hardware id of a source address; reports without a node therefore count with the first node that
// is known at their address.
//
// All distances are modulo the width, so that a wrap is nothing special. A bitmap remembers which of the last
// [Config.Window] numbers came:
//
//   - A number ahead by at most Window moves the head; the numbers that it skips are lost.
//   - A number in the window that is missing fills its gap: one less lost, one reordered. Lost can therefore be
//     negative in a window of time that repairs what an earlier one reported.
//   - A number in the window that was seen is a duplicate.
//   - A number farther away, in either direction, changes nothing until others around it confirm it ([confirmations]
//     distinct numbers, before any number continues the old sequence). Then it is a loss when it is ahead by at most
//     [Config.MaxGap], and otherwise a restart: what was lost across a restart nobody can know, and nothing is claimed.
//     Unconfirmed it was a very late packet, and counts as reordered.
//   - A restart that lands inside of the window looks like duplicates. It is taken for one when [duplicateRun] of them
//     come in ascending order without a new number in between.
//
// An exporter whose number never changes does not count (a field dialect sends 0 in every report), nor does one whose
// numbers never fall close to each other. Such exporters are not [inference.ExporterStats.Sequenced] and no loss or
// duplicate is claimed for them. An exporter that stops counting later is noticed after [repeatLimit] equal numbers.
//
// Observe costs 10 to 20 ns and allocates nothing; all memory is taken by New.
package sequence
