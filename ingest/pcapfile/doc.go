// Package pcapfile reads capture files: pcap with microseconds or nanoseconds and pcapng, both in either byte order,
// plain or compressed with gzip or zstd, from a file, a pipe or any io.Reader.
//
// Sources: draft-ietf-opsawg-pcap-04 and draft-ietf-opsawg-pcapng-02. Where they leave a choice:
//
//   - A capture length above the file's snapshot length is accepted up to maxCapture, since common writers leave a
//     wrong snapshot length in the header. A capture length above the length on the wire is accepted, too; the frame
//     then counts as complete.
//   - Section lengths of pcapng are ignored, and so are all options but the time resolution and offset of an interface.
//     A simple packet block has no time; its frames get 0.
//   - Link types are handed over as they are in the file; only the numbers 12 and 14, which some systems write for
//     raw IP, become [ingest.LinkRaw]. [Known] says which ones a decoder can walk.
//   - Captures that were written one after the other, as with cat, are one: where a record or block is expected, the header
//     of another file may stand, of either format, in any byte order and with another link type. So may compressed ones
//     that have the same compression.
//   - What zstd may take is bounded: streams that refer back further than 32 MiB are refused.
//
// A damaged or truncated file gives everything before the damage and then an [*Error] that names the byte. There is
// no attempt to find the next intact record: neither format has a mark to look for, and a guess would turn payload
// into frames.
//
// # Captures of a running collector
//
// [Follow] reads captures beside the sockets of a running collector, one worker each. What it does at the end of one
// depends on what it is:
//
//   - A regular file is read from its start and then followed: more of it may come, and a record of which only a part is there is
//     waited for. When the path names another file, or the file has become shorter, the capture is over and the next one is read
//     from its header. Capture programs do so that rotate their files. What is looked at is the file and its size, every
//     FollowConfig.Poll; a file that is rewritten in place and longer than before at the next look is not noticed. A compressed
//     file is read once, as it is.
//   - A FIFO is opened again when its writer has gone, and the next writer begins a capture of its own. A next writer
//     that comes before the last one was read to its end is noticed by its header; only after a writer that was killed
//     inside of a record it has to wait.
//   - Standard input ends.
//
// A capture that ends inside of a record because its writer was killed or its file replaced counts as damaged once, and
// the next one is read. One that cannot be read on stops its input for good: [Follow.Inputs] says why, and the other
// inputs and their collector go on.
//
// Frames get the time at which they are handed over, not that of the capture, since the windows of a running collector
// are of the time of receipt. To analyse a capture by its own times, replay it. A collector that starts again reads its
// files from their start again; a FIFO does not have that problem.
//
// Own reader over gopacket/pcapgo, because it hands out slices of a large buffer instead of copying every packet, and because a
// hostile pcapng option makes pcapgo panic. The tests hold both against each other. Reads over a mapped file: 28 ns a frame of
// 200 bytes instead of 21, but a mapped file that is truncated kills the process.
package pcapfile
