// Package pcapfile reads capture files: pcap with microseconds or nanoseconds, and pcapng, in either byte order. They
// may be plain or compressed with gzip or zstd, and come from a file, a pipe or any io.Reader.
//
// Sources: draft-ietf-opsawg-pcap-04 and draft-ietf-opsawg-pcapng-02. Where they leave a choice:
//
//   - A capture length above the file's snapshot length is accepted up to maxCapture, since common writers leave a
//     wrong snapshot length in the header. A capture length above the length on the wire is accepted, too; the frame
//     then counts as complete.
//   - Section lengths of pcapng are ignored, and so are all options but the time resolution and offset of an interface.
//     A simple packet block has no time; its frames get 0.
//   - Link types are handed over as they are in the file. Only the numbers 12 and 14, which some systems write for raw
//     IP, become [ingest.LinkRaw]. [Known] reports which ones a decoder can walk.
//   - Concatenated captures, as from cat, are one. In place of a record or block there may be the header of another
//     file, of either format, in any byte order and with another link type. Compressed captures may also be
//     concatenated if they have the same compression.
//   - The memory of zstd is bounded: streams that refer back further than 32 MiB are refused.
//
// A damaged or truncated file gives everything before the damage and then an [*Error] with the byte's offset. The
// reader does not look for the next intact record. Neither format has a mark to look for, and a guess would turn
// payload into frames.
//
// # Captures of a running collector
//
// [Follow] reads captures beside the sockets of a running collector, one worker each. The end of a capture depends on
// its kind:
//
//   - A regular file is read from its start and then followed: more may come, and an incomplete record is waited for.
//     The capture is over when the path names another file, or the file has become shorter. The next one is then read
//     from its header. Capture programs that rotate their files do so. The file and its size are looked at every
//     FollowConfig.Poll. A file that was rewritten in place, and is longer at the next look, shows it by other bytes at
//     its start or before the place of reading (markBytes). A compressed file is read once, as it is.
//   - A FIFO is opened again when its writer is gone, and the next writer begins a capture of its own. If the next
//     writer comes before the former capture was read to its end, its header shows that. Only after a writer that was
//     killed inside a record must it wait.
//   - Standard input ends.
//
// A capture ends inside a record when its writer was killed or its file replaced. It then counts as damaged once, and
// the next one is read. A capture that cannot be read any further stops its input for good: [Follow.Inputs] has the
// reason. The other inputs and their collector go on.
//
// Frames get the time at which they are handed over, because the windows of a running collector are of the time of
// receipt. To analyse a capture by its own times, replay it. A collector that restarts reads its files again from
// their start; a FIFO does not have that problem.
//
// The reader is written here rather than taken from gopacket/pcapgo. It hands out slices of a large buffer instead of
// copying every packet, and a hostile pcapng option makes pcapgo panic. The tests compare both. Files are read rather
// than mapped, at 28 ns a frame of 200 bytes instead of 21. A mapped file that is truncated kills the process.
package pcapfile
