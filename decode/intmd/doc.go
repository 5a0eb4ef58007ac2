// Package intmd reads and writes INT within packets, by the dataplane specifications 0.5 (2017-12-11), 1.0
// (2018-04-20), 2.0 (2020-02-14) and 2.1 (2020-11-11). It covers INT-MD headers and stacks, and the INT-MX header of
// 2.1.
//
// The caller finds the INT in a packet, because its marks differ by domain. The decoder reads one shim, the header
// behind it and the stack. The stack becomes the hops of a report, first hop of the path first.
//
// Readings taken where the specifications leave a choice:
//
//   - 2.0 and 2.1 share a version number and, for INT-MD, the layout; both are [decode.V21].
//   - Domain specific words are only skipped if [Options.Domains] has the number of those of the source alone.
//     Otherwise the stack is rejected. A number guessed from a remainder turns words into hops.
//   - A destination header (type 2) has no defined contents. It is skipped by its length and its bytes are kept.
//   - A checksum complement may have any value in all of its 32 bits.
//
// Programs that deviate are read by switching on an [Options] field; nothing is guessed.
package intmd
