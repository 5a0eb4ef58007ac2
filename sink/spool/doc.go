// Package spool is a queue on disk for what a store cannot take now. Records wait in files, survive the end of the
// process, kill -9 included, and leave in the order of their arrival.
//
// # Files
//
// A directory holds segments of bounded size, named by their number, and the state:
//
//	00000000000000000001.v2.seg
//	00000000000000000002.v2.seg
//	state       what was stored and what was appended
//	lock        locked as long as a process has the spool (flock.Lock), so that two processes do not share it
//	quarantine  damaged bytes, named by segment and offset, and files that hold no record; nothing in it is ever deleted
//	*.bad       whole segments whose damaged bytes could not be copied
//	*.v2.new    a segment that is being written again; one that is found at the start is removed
//
// All numbers are big endian, all checksums are crc32c. "Before" are the totals of all records, reports and points
// that were appended before a place since the spool began. Every header holds them. What lies between two readable
// places can thus be counted exactly, whatever happened to it.
//
// A segment begins with 44 bytes, which can be missed: the first record repeats them.
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
// length counts the payload, time is that of Append in nanoseconds since 1970. The last checksum covers the header
// before it. A header has a checksum of its own so that a damaged payload does not hide the start of the next record.
//
// The state has four slots, 512 bytes apart, of which the first two and the last two are written in turn:
//
//	┌─────────────────────┬───────────────┬────────────┬─────────────────────────────────────────┬─────────────┐
//	│ "hopH" or "hopT"<4> │ generation<8> │ segment<8> │ before: records<8> reports<8> points<8> │ checksum<4> │
//	└─────────────────────┴───────────────┴────────────┴─────────────────────────────────────────┴─────────────┘
//
// Everything before "hopH" was stored, or is lost and was counted. Everything before "hopT" was appended, which shows
// when the last segment is missing. The higher generation counts. The file is overwritten in place rather than
// replaced by rename, because ext4 forces a file to the disk when it replaces another.
//
// # What survives
//
// A record that Append took is safe from a crash of the process. With Config.Sync "each" it is also safe from a crash
// of the machine. The record is then forced to the disk before Append returns. A new segment and its directory entry
// are forced before its use, and the head before a segment is removed. With "interval" a crash of the machine costs
// what was appended in the last Config.SyncInterval. With "never" it costs what the system had not written. The loss
// is counted at the next start as far as the state reached the disk.
//
// After a failed sync the content of the disk is unknown, and a later successful sync proves nothing about it. The
// segment is not written to any more. What was written to it since the last good sync is written again, to a new
// segment. Until that one can be made, these records stay in memory and are read from there, and Append refuses
// others. They are never more than one segment.
//
// A damaged payload or header costs its record. After a damaged header the spool looks for the next record: a marker
// with a good header and a good payload. Bytes that are no record are copied to the quarantine before the segment is
// removed or cut. If the copy fails, the whole segment is kept under another name. The quarantine takes at most
// Config.MaxBytes; damage beyond that is reported and not kept. The quarantine does not count towards the
// Config.MaxBytes of the spool.
//
// At the start the last segment is cut after its last good record. Bytes after it that were not appended are a write
// that a crash tore. Segments that are missing or hold no record are counted, segments under a wrong name are read in
// their order, copies are set aside. Of the other segments only the beginning is read, so that a full spool opens
// quickly. Other damage is found when it is read. When the state is damaged, records are read again and none is
// skipped. Stores that identify points are not harmed by that.
//
// A lost record that was not stored is counted once, in Stats and DrainLost, when everything before it is stored. Head
// and loss are written together, so that a restart counts neither twice. Spool.Events reports the loss as soon as it
// is found.
//
// # Version 1
//
// Programs before this version wrote segments 00000000000000000001.seg. They hold the magic "hopspol1" and records. A
// record's header has length<4b>, reports<8b>, crc32c of payload<4b> and crc32c of the header before<4b>. The place up
// to which they were stored is in "head": two slots of text, 64 bytes apart, with segment, byte and checksum. Such
// segments are read before all others, and removed when they are stored. New records are never written to them. They
// hold neither points nor totals. Records after a damaged header are found again, and the damage is reported. The
// number of reports in the damaged records is not known.
//
// Such a program does not see segments of version 2, and leaves them alone. Drain the spool before a return to it.
// Otherwise these segments wait until this version runs again, which reads both.
//
// # When it is full
//
// The oldest segment is evicted, and its records that were not stored yet are counted. When the disk refuses a write,
// Append returns the disk's error, the torn bytes are cut off, and the next Append tries again.
package spool
