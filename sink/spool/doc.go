// Package spool is a queue on disk: what a store cannot take now waits in files, survives the end of the process, kill
// -9 included, and leaves in the order in which it came.
//
// # Files
//
// A directory holds segments of bounded size, named by their number, and the state:
//
//	00000000000000000001.v2.seg
//	00000000000000000002.v2.seg
//	state       what was stored and what was appended
//	lock        flock, or LockFileEx on Windows, so that two processes do not share a spool
//	quarantine  damaged bytes, named by segment and offset, and files that hold no record; nothing in it is ever deleted
//	*.bad       whole segments whose damaged bytes could not be copied
//	*.v2.new    a segment that is being written again; one that is found at the start is removed
//
// All numbers are big endian, all checksums are crc32c. "Before" are the totals of all records, reports and points that
// were appended before a place since the spool began. They are in every header, so that what lies between two places
// that are readable can be counted exactly, whatever has become of it.
//
// A segment begins with 44 bytes, which can be missed: the first record says the same.
//
//	┌───────────────┬───────────┬─────────────────────────────────────────┬─────────────┐
//	│ "hopspol2"<8> │ number<8> │ before: records<8> reports<8> points<8> │ checksum<4> │
//	└───────────────┴───────────┴─────────────────────────────────────────┴─────────────┘
//
// Records follow, each with a header of 64 bytes:
//
//	┌──────────────────┬───────────┬─────────────────────────────────────────┬────────────┬───────────┬─────────┬─────────────────────┬─────────────┬─────────┐
//	│ f5 'h' 'R' 02<4> │ length<4> │ before: records<8> reports<8> points<8> │ reports<8> │ points<8> │ time<8> │ payload checksum<4> │ checksum<4> │ payload │
//	└──────────────────┴───────────┴─────────────────────────────────────────┴────────────┴───────────┴─────────┴─────────────────────┴─────────────┴─────────┘
//
// length counts the payload, time is that of Append in nanoseconds since 1970, and the last checksum covers the header
// before it. A header has a checksum of its own so that a damaged payload does not cost the way to the next record.
//
// The state has four slots, 512 bytes apart, of which the first two and the last two are written in turn:
//
//	┌─────────────────────┬───────────────┬────────────┬─────────────────────────────────────────┬─────────────┐
//	│ "hopH" or "hopT"<4> │ generation<8> │ segment<8> │ before: records<8> reports<8> points<8> │ checksum<4> │
//	└─────────────────────┴───────────────┴────────────┴─────────────────────────────────────────┴─────────────┘
//
// Everything before "hopH" was stored, or is gone and was counted; everything before "hopT" was appended, which is how
// it is known that the last segment is missing. The higher generation counts. The file is overwritten in its place and
// not replaced by rename, because ext4 forces a file to the disk that takes the place of another.
//
// # What survives
//
// A record that Append took is safe from a crash of the process, and with Config.Sync "each" from a crash of the
// machine: the record is forced to the disk before Append returns, a new segment and its entry in the directory before
// it is used, and the head before a segment is removed. With "interval" a crash of the machine costs what was appended
// in the last Config.SyncInterval, and with "never" whatever the system had not written. What a crash cost is counted
// at the next start as far as the state reached the disk.
//
// When a sync fails it is unknown what is on the disk, and a later one that succeeds says nothing about it. The segment is
// written to no more, and what was written to it since the last good sync is written again, to a new segment. Until one can be
// made these records stay in memory, are read from there, and Append refuses others; they are never more than one segment.
//
// A damaged payload or header costs its record. Behind a damaged header the next record is looked for: a marker with a good
// header and a good payload. Bytes that are no record are copied to the quarantine before the segment is removed or cut. If that
// fails the whole segment is kept under another name. The quarantine takes no more than Config.MaxBytes; beyond that damage is
// reported and not kept. It does not count for Config.MaxBytes itself.
//
// At the start the last segment is cut behind its last good record: what follows and was not appended is a write that a
// crash tore. Segments that are missing or hold no record are counted, segments under a wrong name are read in their
// order, copies are set aside. Of the other segments only the beginning is read, so that a full spool opens quickly;
// other damage is found when its turn comes. When the state is damaged records are read again, and none is passed
// over; stores that know points by identity do not mind.
//
// What is gone and was not stored is counted once, in Stats and DrainLost, when everything before it is stored: head and loss are
// written at once, so that a restart counts neither twice. Spool.Events reports it as soon as it is found.
//
// # Version 1
//
// Programs before this version wrote segments 00000000000000000001.seg: the magic "hopspol1" and records with a header of
// length<4b>, reports<8b>, crc32c of payload<4b> and crc32c of the header before<4b>. The place up to which they were stored is
// in "head": two slots of text, 64 bytes apart, with segment, byte and checksum. Such segments are read before all others, and
// removed when they are stored; new records are never written to them. They say neither points nor totals. So records behind a
// damaged header are found again, and those that the damage hit are reported. How many reports these stood for is not known.
//
// Such a program does not see segments of version 2, and leaves them alone: drain the spool before going back to it, or
// what waits there waits until this version runs again, which reads both.
//
// # When it is full
//
// The oldest segment is evicted, and its records that were not stored yet are counted. When the disk refuses a write,
// Append returns the disk's error, the torn bytes are cut off, and the next Append tries again.
package spool
