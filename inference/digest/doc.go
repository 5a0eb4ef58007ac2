// Package digest reads the PINT digests of flows: their paths, several at once where packets are spread, and the values
// of their hops. One [Reader] belongs to a shard. It keeps the content of digests by flow. It names flows by their
// slots in the shard's table, and uses no other part of that table.
//
// # Reading
//
// [Reader.Begin] begins with the digest of a report. Its [Parts] are the answers to queries of an execution plan
// (package pint). The method [Parts.Next] returns the content of each in turn: the path of the flow from now on, or
// values of hops. Their order matters, since a path decides which hop a value belongs to. State by flow that needs no
// table stays here: sketches of values (package aggregation) and the utilisation of the fullest link.
//
//	parts.go   the parts of one digest, and what the tracer of a flow (package pathtrace) makes of them
//	foreign.go digests that no path between the ends of a flow explains, and which hop spoils them
//	spray.go   flows that use several paths at once, whose digests wait for a fit (package pathmix)
//	survey.go  flows whose digests contradict the map, which are watched (package survey)
//	ids.go     flows whose packets have few ids
//
// [Reader.Cut] ends a window. It finds the paths of sprayed flows, and adds faults and errors of the map to the window.
//
// # Showing
//
// [Reader.Describe] adds the content of a flow's digests to its statistics, and [Reader.Spread] adds it to a busy flow
// of a window. The function [Inferred] lists the paths that need a look. Known paths pass from one process to the next
// by [Reader.Save] and [Reader.Resume].
//
// # Bounds
//
// Memory is bounded by the [Config]: that of paths by their models, that of sketches by their pools, and that of
// sprayed flows by SprayBytes. A flow has at most two states while plans change. [Reader.Forget] frees both when the
// flow leaves the table.
package digest
