// Package spool is a queue on disk: what a store cannot take now waits in files, survives the end of the process, kill
// -9 included, and leaves in the order in which it came.
//
// # Files
//
// A directory holds segments of bounded size, named by their number, and the place up to which records were stored:
//
//	00000000000000000001.seg
//	00000000000000000002.seg
//	head    two slots of 64 bytes, written in turn: segment, byte, crc32c of both; the larger good one counts
//	lock    flock, so that two processes do not share a spool
//
// The head is overwritten in its place and not replaced by rename, because ext4 forces a file to the disk that takes
// the place of another: a record of 1 KB then goes through the spool in 340 µs and not in 11 (BenchmarkThrough). A torn
// slot leaves the other one.
//
// A segment is the magic "hopspol1" and records:
//
//	┌────────────┬─────────────┬──────────────────────┬─────────────────────┬─────────┐
//	│ length<4b> │ reports<8b> │ crc32c of payload<4b>│ crc32c of header<4b>│ payload │
//	└────────────┴─────────────┴──────────────────────┴─────────────────────┴─────────┘
//
// All numbers are big endian; length counts the payload, the header's checksum covers the 16 bytes before it. reports is
// the number of reports that the payload stands for, which is how the loss ledger stays exact over a restart. The
// header has a checksum of its own so that a damaged payload costs one record: its length can still be trusted.
//
// # What survives
//
// A record that Append took is safe from a crash of the process, and with Config.Sync "each" from a crash of the
// machine; with "interval" the machine's crash costs what was appended in the last Config.SyncInterval.
//
// At the start the last segment is cut behind its last good record: what follows is a write that a crash tore.
// Elsewhere a bad payload costs its record and a bad header the rest of its segment; both are counted. When the head
// is damaged, or the machine crashed before it reached the disk, records are read again; stores that know points by
// identity do not mind.
//
// # When it is full
//
// The oldest segment is evicted, and its records that were not stored yet are counted. When the disk refuses a write,
// Append returns the disk's error, the torn bytes are cut off, and the next Append tries again.
package spool
