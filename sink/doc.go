// Package sink is where results leave: points of series and findings, to stores and to people.
//
// A sink never stops capture. Each hangs off a bounded [Queue]; what happens when that is full is the queue's one
// written policy, and it is counted in the [Ledger].
package sink
