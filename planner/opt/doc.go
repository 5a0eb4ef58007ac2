// Package opt holds the algorithms of planning that know no plan: a heap, shortest paths, lists by key, disjoint sets, a matching, a
// transport, knapsacks, a linear programme and random numbers; package postman has routes over all edges of a graph. It imports no other
// package of hopscope.
//
// Results are the same on every machine: ties are broken by a written rule, and nothing depends on the order of a map.
package opt
