// Package window makes windows of parts. A [Partial] is a mergeable summary of one window, from one shard, process or
// fleet. It merges with others in any order, and has an encoding (FORMAT.md). Each kind of item of a partial is a file
// with an entry of one table. An [Admission] bounds the series that begin within a day. It is pure.
package window
