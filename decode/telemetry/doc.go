// Package telemetry reads and writes the P4.org telemetry report format, versions 0.5 (2017-11-10), 1.0 (2018-04-20)
// and 2.0 (2020-10-08). These are the headers of a node's report, before a packet or a part of one. Their content, a
// packet with or without an INT stack, is for other packages. [Inner] is its place.
//
// Readings taken where the specifications leave a choice:
//
//   - Version nibble 1 is used by 1.0 and by some senders of 0.5. The low nibble of the first byte decides. 0 to 2 is
//     the next protocol of 0.5, 4 and above the length of 1.0, 3 is neither.
//   - RepMdBits bit 0 of report 2.0 has no size in the specification: such a report is rejected. Bits 9 to 14 are
//     reserved and have 4 bytes each.
//   - The sequence number of report 2.0 is in the group header, so it numbers datagrams.
//   - A drop reason of all ones is a reason like any other; interfaces, queues and times of all ones are absent.
//
// Programs that deviate are read by switching on an [Options] field; nothing is guessed.
package telemetry
