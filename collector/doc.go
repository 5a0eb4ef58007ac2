// Package collector is the engine of hopscope: it turns frames of sources into windows and findings, and hands them to their
// receivers. A program embeds it and hands it its sources, stores and writers; the engine knows none of them by name.
//
//	source worker ─► decode ─► sequence numbers ─► queue ─► shard ─┐ window's end
//	source worker ─► decode ─► sequence numbers ─► queue ─► shard ─┴► merge ─► detectors ─► writers
//
// The work is done by packages whose arrows go one way: pipeline takes frames to the shards, windows ends windows, stores and
// alerts hand them on, ledger and summary count, exporters, digests and settings are what is read of settings. This package
// makes them, runs them, and has the names under which programs know their types.
//
// # The path of a report
//
// Every worker of a source decodes what it received, has the sequence numbers of the exporters followed, and hands the
// reports to the shards that own their flows, in batches. A shard is one goroutine and the only owner of its tables, so
// that no report is locked. A batch takes a fixed number of locks: those of the ledger, of the list of free batches, of
// the queue of each shard that its reports go to, and of each group of exporters that they come from.
//
// When the queue of a shard is full, what comes from a live source is dropped and counted, and a source that can wait is
// made to wait. Behind the windows every store has a queue of its own, with a spool behind it if the settings say so, and
// none of them can hold up a shard.
//
// # The path of a window
//
// A window ends by the clock, or in a replay by the time stamps of the capture ([Policy]). Each shard hands over what it saw,
// the parts are merged, the detectors look at the result, and it goes to every [sink.WindowWriter] together with the findings
// that it brought. Windows share no memory with the engine: the receiver of one may keep it.
//
// A live collector ends every window, also one in which nothing came. A replay does not make up windows for a gap in its
// capture beyond three, which let the detectors see the silence.
//
// # The ledger
//
// [Ledger] knows where every report is: received = stored + in flight + dropped, at every moment and for every store.
//
// # How a source or a store is added
//
// It is a package with a Config, and one field in the settings struct of the program: [OpenSources] and [OpenStores] find
// the fields whose types have the methods that a source or a store must have. Settings, metrics, ledger, readiness, page
// and log follow from the key of the field. CONTRIBUTING.md walks through it.
package collector
