// Package sequence finds out from the sequence numbers of an exporter's reports how many of them were lost, came twice or
// came late. It also finds how often the exporter began to count anew.
//
// Each exporter has a sequence number space of its own. The space is named by the exporter's [inference.ExporterKey]
// (address, node, hardware id), the destination of its datagrams, and the width of its numbers. The width is 32 bits,
// or 22 bits in telemetry report 2.0. The numbers of report 2.0 count datagrams, not reports, so only reports with
// FirstOfGroup take part. Telemetry report 0.5 numbers all reports of a hardware id together, but names the node in
// some of them only. Reports without a node are therefore counted with the first node that is known at their address.
// The spaces of one key are counted as one exporter.
//
// All distances are computed modulo the width, so that numbers may start again at 0 at any time. A bitmap, the record,
// remembers which of the newest numbers came:
//
//   - A number that is ahead of the newest one by at most [Config.Window] becomes the newest. The numbers that it skips
//     are provisional.
//   - A provisional number is counted as lost in three cases. It is behind the newest one by more than the wait and
//     missing for [holdFor], there is no more room for it in the record, or it is older than [settleAfter] at a cut.
//     The wait follows the disorder. It is at least [leastWait] and at most Window, and twice as long as numbers came
//     late. It is halved after [calmCuts] windows without such.
//   - A provisional number that comes is reordered. One that comes when it was counted as lost is late, and one fewer is
//     lost: the loss in one window of time can be negative. One that came already is a duplicate.
//   - The record grows, up to Window, if it would otherwise forget a missing number that is not old, while there is
//     shared memory. A number that it has forgotten is late when it comes, and stays lost. Where nothing was missing,
//     it is a duplicate.
//   - A number without a record that was received before the newest one was delayed by the collector itself. Any other
//     that is far from all others changes nothing at first. It has to be confirmed by more of them before any number
//     continues the old sequence: [confirmations] distinct numbers near each other in all. If they lie ahead by at most
//     [Config.MaxGap], the numbers between were lost. Otherwise the exporter has restarted; the loss across a restart
//     is unknown, and none is claimed. If the old sequence goes on within [returnWithin], that is no second restart.
//     Numbers that are not confirmed are late.
//   - When an exporter restarts at a number inside the record, its reports look like duplicates at first. They are taken
//     for a restart when [duplicateRun] of them come in ascending order without a new number in between.
//
// A duplicate whose datagram has the same bytes, too, is a copy, and [Tracker.ObserveLazy] marks its report (copies.go).
//
// So each number of a sequence without a restart, from the first to the newest, is in one of four groups. It came, is
// lost, is provisional, or was missed while no collector ran. This is exact as long as none comes later than Window
// numbers.
//
// A tracker has a place for a number of exporters. An exporter that has reported in several windows is trusted and
// keeps its place. Of the others, those that are heard more often displace those that are heard less.
//
// Some exporters do not count: they send the same number in every report, or numbers that never fall close to each other.
// They are not [inference.ExporterStats.Sequenced], and no loss and no duplicate is claimed for them. An exporter that
// stops counting later is noticed after [repeatLimit] equal numbers.
//
// On request ([Tracker.ReportNumbers]) a tracker also lists the numbers that came in a window, for a program that
// combines several collectors' views of an exporter. They are read from the record when the window ends, so they cost
// nothing for numbers that come in order.
//
// [Tracker.Observe] takes 10 to 20 ns. It allocates nothing but the records of new exporters, and of those in which
// numbers are missing, and memory for the first reports that wait.
package sequence
