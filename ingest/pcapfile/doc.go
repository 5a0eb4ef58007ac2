// Package pcapfile reads capture files: pcap with microseconds or nanoseconds and pcapng, both in either byte order,
// plain or compressed with gzip, from a file, a pipe or any io.Reader.
//
// Sources: draft-ietf-opsawg-pcap-04 and draft-ietf-opsawg-pcapng-02. Where they leave a choice:
//
//   - A capture length above the file's snapshot length is accepted up to [MaxCapture], since common writers leave a
//     wrong snapshot length in the header. A capture length above the length on the wire is accepted, too; the frame
//     then counts as complete.
//   - Section lengths of pcapng are ignored, and so are all options but the time resolution and offset of an interface.
//     A simple packet block has no time; its frames get 0.
//   - Link types are handed over as they are in the file; only the numbers 12 and 14, which some systems write for
//     raw IP, become [ingest.LinkRaw]. [Known] says which ones a decoder can walk.
//
// A damaged or truncated file gives everything before the damage and then an [*Error] that names the byte. There is
// no attempt to find the next intact record: neither format has a mark to look for, and a guess would turn payload
// into frames.
//
// Own reader over gopacket/pcapgo, because it hands out slices of a large buffer instead of copying every packet, and
// because a hostile pcapng option makes pcapgo panic. The tests hold both against each other. Reads over a mapped file:
// 28 ns a frame of 200 bytes instead of 21, but a mapped file that somebody truncates kills the process.
package pcapfile
