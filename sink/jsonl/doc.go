// Package jsonl writes series and findings as JSON lines, to standard output or to a file that is rotated.
//
// # A line
//
// Every point is one JSON object on a line of its own:
//
//	{"measurement":"hop","time":"2026-11-22T01:00:10.000000000Z","tags":{"egress_if":"3","instance":"collector-1","node":"17"},"fields":{"count":12,"latency_p50":1800}}
//
// [sink.AllSeries] says which measurements, tags and fields there are; they come in its order. Findings are the measurement
// event. The form is chosen for readers without a schema:
//
//   - Tags and fields are objects of their own, because a key can be both: the node of a flow's hop is a field, that of
//     a hop is a tag.
//   - The time is that of the point, in UTC. It always has nine digits behind the second, so that times sort as text, and
//     it is a text because a number of nanoseconds is more than most JSON readers hold without rounding.
//   - Tags are text. Integers are written with all their digits; a float always has a point or an exponent, so that
//     readers which infer types see a float. A field without a value is absent, and so is one that is not finite, which
//     [Stats] counts.
//   - Text is UTF-8. What is not becomes U+FFFD. A line never holds a line break but its last byte.
//
// [AppendPoint] writes a point without reflection and without an allocation.
//
// # A file
//
// Lines are appended to Config.Path. Before a write that would make it longer than Config.RotateBytes, and with the first
// write of a new Config.RotateInterval, the file is put aside: it is renamed after the moment at which that happens, in UTC.
//
//	series.jsonl                                  is written to
//	series-20261122T010000.000123456Z.jsonl       was put aside last
//	series-20261122T000000.000098765Z.jsonl
//
// Names sort as they were made, also when the clock is set back, and none is used twice. The Config.KeepFiles youngest are kept.
// A file belongs to one process, which locks it. When another program moves it away, as logrotate does, or removes it, the next
// write begins a new one.
//
// # What survives
//
// Write returns nil once the lines are on the disk: written whole and, unless Config.Sync is false, forced to it. When a
// write fails, because the disk is full for example, the file is cut back to where it ended before. So a batch that is
// tried again is there once, and no half line is in the middle of a file.
//
// A process or machine that dies in the middle of a write leaves some lines of a batch that was not confirmed, the last
// of which may be torn. The next run puts a file with a torn end aside and begins a new one, so that the torn line stays
// the last of its file. From a spool the batch is then written again, and its first lines are there twice. Measurement,
// tags and time are the identity of a point, as in every store. Of several lines of one point that with the highest field
// revision counts, or else the last: after the clock was set back, windows are written again with more in them.
//
// # Standard output
//
// The path "-", which YAML wants in quotes, is standard output. It is not forced to any disk: that is up to the program it is
// redirected to. To a pipe, lines are written in pieces of at most 4096 bytes that end with a line wherever a line is not
// longer. The system does not tear these or mix them with what others write there. A write that failed in the middle goes on
// where it ended when the same batch is tried again; when another one comes, the torn line is finished first.
//
// A reader that has gone is an error that may pass with [sink.RetryError.Config] set, and not the end of the process: a
// spool then keeps what comes, and the program says why.
package jsonl
