// Package jsonl writes series and findings as JSON lines, to standard output or to a file that is rotated.
//
// # A line
//
// Every point is one JSON object on a line of its own:
//
//	{"measurement":"hop","time":"2026-11-22T01:00:10.000000000Z","tags":{"egress_if":"3","instance":"collector-1","node":"17"},"fields":{"count":12,"latency_p50":1800}}
//
// [sink.AllSeries] lists measurements, tags and fields, which come in its order. Findings are the measurement
// event. The form is chosen for readers without a schema:
//
//   - Tags and fields are objects of their own, because a key can be both: the node of a flow's hop is a field, that of
//     a hop is a tag.
//   - The time is that of the point, in UTC. It always has nine digits after the second, so that times sort as text. It
//     is a text because most JSON readers round a number of nanoseconds.
//   - Tags are text. Integers are written with all their digits. A float always has a point or an exponent, so that
//     readers that infer types see a float. A field without a value is absent. So is one that is not finite; [Stats]
//     counts these.
//   - Text is UTF-8, and invalid bytes become U+FFFD. The only line break of a line is its last byte.
//
// [AppendPoint] writes a point without reflection and without an allocation.
//
// # A file
//
// Lines are appended to Config.Path. A file is put aside before a write that would make it longer than
// Config.RotateBytes. So is it with the first write of a new Config.RotateInterval. It is then renamed after the
// moment of the rename, in UTC.
//
//	series.jsonl                                  is written to
//	series-20261122T010000.000123456Z.jsonl       was put aside last
//	series-20261122T000000.000098765Z.jsonl
//
// Names sort in the order in which they were made, also when the clock is set back, and none is used twice. The
// youngest Config.KeepFiles files are kept. A file belongs to one process, which locks it. When another program moves
// or removes it, as logrotate does, the next write begins a new one.
//
// # What survives
//
// Write returns nil once the lines are on the disk: written whole and, unless Config.Sync is false, forced to it. When
// a write fails, for example because the disk is full, the file is cut back to its former end. So a batch that is
// tried again is there once, and no half line is in the middle of a file.
//
// A process or machine that dies in the middle of a write leaves some lines of a batch that was not confirmed. The
// last of them may be torn. The next run puts a file with a torn end aside and begins a new one. The torn line thus
// stays the last of its file. From a spool the batch is then written again, and its first lines are there twice.
// Measurement, tags and time are the identity of a point, as in every store. Of several lines of one point the one
// with the highest field revision counts, or else the last. After the clock was set back, windows are written again
// with more in them.
//
// # Standard output
//
// The path "-", which YAML wants in quotes, is standard output. This package does not force it to a disk: that is up
// to the program behind it. To a pipe, lines are written in pieces of at most 4096 bytes, each of whole lines; only a
// longer line is divided. The system does not tear these pieces or mix them with what others write there. When a write
// failed in the middle, the next try of the same batch goes on from there. Another batch finishes the torn line first.
//
// When the reader of a pipe is gone, Write returns a [sink.RetryError] with Config set, and the process goes on. A
// spool then keeps what comes, and the program logs the reason.
package jsonl
