// Package sink holds the outputs: points of series and findings go to stores and to receivers.
//
// A sink never stops capture. Each store hangs off a bounded [Queue]; what happens when that is full is the queue's one written
// policy, and its [Account] counts it:
//
//	window ──► Put ──► memory ──────────────► Writer     without a spool
//	window ──► Put ──► memory ──► spool ────► Writer     with one: a store that is away costs disk, not data
//
// A [Writer] stores batches and reports whether an error may pass; it neither waits nor retries. Writing a point twice
// changes nothing, so the queue repeats what it is not sure of.
//
// Every sink receives a [Window] with its findings. Stores of series take its points, which are made once; [AllSeries]
// says of each series how it is described and how its points are made.
package sink
