// Package collector is the engine of hopscope. It turns frames of sources into windows and findings, and hands them to
// their receivers. A program embeds it and passes its sources, stores and writers; the engine knows none of them by
// name.
//
//	source worker ─► decode ─► sequence numbers ─► queue ─► shard ─┐ window's end
//	source worker ─► decode ─► sequence numbers ─► queue ─► shard ─┴► merge ─► detectors ─► writers
//
// The imports of its packages go one way. Package pipeline takes frames to the shards, windows ends windows, stores
// and alerts hand them on, and ledger and summary count. Packages exporters, digests and settings read the settings.
// This package creates and runs these parts, and has the names under which programs know their types.
//
// # The path of a report
//
// Every worker of a source decodes what it received and passes it to the tracking of sequence numbers. It then hands
// the reports, in batches, to the shards that own their flows. A shard is one goroutine and the only owner of its
// tables, so no report needs a lock. A batch takes a fixed number of locks: those of the ledger and of the list of
// free batches. It also takes one for each shard's queue and each group of exporters of its reports.
//
// When the queue of a shard is full, a source that can wait waits. Reports of a live source are dropped and counted.
// Behind the windows every store has a queue of its own, with a spool behind it if the settings say so. No store can
// thus hold up a shard.
//
// # The path of a window
//
// A window ends by the clock, or in a replay by the time stamps of the capture ([Policy]). Each shard hands over its
// part, the parts are merged, and the detectors evaluate the result. It then goes to every [sink.WindowWriter] with
// the findings from it. Windows share no memory with the engine: the receiver of one may keep it.
//
// A live collector ends every window, also an empty one. A replay ends at most three windows for a gap in its capture,
// which let the detectors see the silence.
//
// # The ledger
//
// [Ledger] holds the place of every report: received = stored + in flight + dropped, at every moment and for every
// store.
//
// # How a source or a store is added
//
// A source or store is a package with a Config, and one field in the settings struct of the program. Functions
// [OpenSources] and [OpenStores] find the fields whose types have the methods of a source or a store. Settings,
// metrics, ledger, readiness, page and log follow from the key of the field. CONTRIBUTING.md walks through it.
package collector
