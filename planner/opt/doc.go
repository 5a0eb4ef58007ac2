// Package opt holds the algorithms that several families of plans need: a heap, shortest paths, lists by key, disjoint sets and matchings;
// package postman has routes over all edges of a graph. It knows nothing of networks or plans, and imports no other package of hopscope.
//
// Results are the same on every machine: ties are broken by a written rule, and nothing depends on the order of a map.
package opt
