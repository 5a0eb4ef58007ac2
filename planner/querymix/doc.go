// Package querymix describes which packets carry which queries of PINT (SIGCOMM 2020, section 3.4). It holds the
// problem, the plan that answers it, and the check of a plan against its problem.
//
// A [Problem] is a number of bits in every packet and a list of queries. Each query has the widths in which it can be
// coded and the goal of its answer. A [Plan] is a list of sets of queries that travel together, and the share of
// packets of every set. A share is a range of hashes, so that switches and collector agree without rounding. The plan
// holds dual prices, from which [Check] proves the lower bound independently. The algorithms are in
// planner/querymix/solve; a test on imports keeps the check independent of them.
//
// The number of packets until a path is known depends on the topology and on the decoder. The interface [Tracer]
// returns it. A package with a decoder implements it; this package imports none.
package querymix
