// Package sequence finds out from the sequence numbers of an exporter's reports how many of them were lost, came twice or
// came late, and how often the exporter began to count anew.
//
// Each exporter has a sequence number space of its own, which is named by its [inference.ExporterKey] (address, node,
// hardware id) and the width of its numbers: 32 bits, or 22 bits in telemetry report 2.0. The numbers of report 2.0 count
// datagrams, not reports, so that only reports with FirstOfGroup take part. Telemetry report 0.5 numbers all reports of a
// hardware id together, but names the node in some of them and not in others. Reports without a node are therefore
// counted with the first node that is known at their address.
//
// All distances are computed modulo the width, so that numbers may start again at 0 at any time. A bitmap remembers which
// of the last [Config.Window] numbers came:
//
//   - A number that is ahead of the newest one by at most Window becomes the newest. The numbers that it skips are lost.
//   - A number inside the window that is still missing fills its gap: one report fewer is lost, and one more is counted as
//     reordered. The loss in one window of time can therefore be negative, when it repairs what an earlier one claimed.
//   - A number inside the window that has been seen already is a duplicate.
//   - A number that is farther away, in either direction, changes nothing at first. It has to be confirmed by others close
//     to it, [confirmations] distinct numbers in all, that come before any number continues the old sequence. If they lie
//     ahead by at most [Config.MaxGap], what is between was lost. Otherwise the exporter has restarted; nobody can know
//     what was lost across a restart, and no loss is claimed. A number that is not confirmed came from a very late packet, and is
//     counted as reordered.
//   - When an exporter restarts at a number inside the window, its reports look like duplicates at first. They are taken
//     for a restart when [duplicateRun] of them come in ascending order without a new number in between.
//
// Some exporters do not count: they send the same number in every report, or numbers that never fall close to each other.
// They are not [inference.ExporterStats.Sequenced], and no loss and no duplicate is claimed for them. An exporter that
// stops counting later is noticed after [repeatLimit] equal numbers.
//
// [Tracker.Observe] takes 10 to 20 ns and allocates nothing, because New takes all memory at once.
package sequence
