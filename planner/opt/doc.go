// Package opt holds the algorithms that are independent of plans. They are a heap, shortest paths, lists by key,
// disjoint sets, a matching, a transport, knapsacks, a linear programme and random numbers. Package postman has routes
// over all edges of a graph. No other package of hopscope is imported.
//
// Results are the same on every machine: ties are broken by a written rule, and nothing depends on the order of a map.
package opt
