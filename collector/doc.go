// Package collector is one process of hopscope: sources, decoders, shards, detectors and sinks, wired together.
//
//	source worker ─► decode ─► exporter tracking ─► shard queue ─► shard ─┐ window's end
//	source worker ─► decode ─► exporter tracking ─► shard queue ─► shard ─┴► merge ─► detect ─► points ─► sinks
//
// Every worker of a source decodes what it received and hands the reports to the shard that owns their flow, in
// batches. A shard is one goroutine and the only owner of its tables, so nothing on the way of a report is locked but
// the ledger and the exporter tracker, once a batch.
//
// When a shard's queue is full a live collector drops the batch and counts it; a replay waits. Behind the windows every
// sink has its own queue, and none of them can hold up a shard.
package collector
