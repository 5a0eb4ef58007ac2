// Package window makes windows of parts: a [Partial] is what one shard, process or fleet saw of a window, merges with others in any
// order, and has bytes (FORMAT.md). Each kind of item of a partial is a file with an entry of one table. An [Admission] bounds the
// series that begin within a day. It is pure.
package window
