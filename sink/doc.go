// Package sink is where results leave: points of series and findings, to stores and to people.
//
// A sink never stops capture. Each hangs off a bounded [Queue]; what happens when that is full is the queue's one
// written policy, and it is counted in the [Ledger]:
//
//	window ──► Put ──► memory ──────────────► Writer     without a spool
//	window ──► Put ──► memory ──► spool ────► Writer     with one: a store that is away costs disk, not data
//
// A [Writer] stores batches and says whether an error may pass; it neither waits nor retries. Writing a point twice
// changes nothing, so the queue repeats what it is not sure of.
//
// [AllSeries] lists what is stored. Points, the reference of the series and the shipped dashboard are held against it.
package sink
