// Package solve chooses the execution plan of PINT: which packets carry which queries. The paper (SIGCOMM 2020, section
// 3.4) defines such a plan as a probability distribution over sets of queries that fit into the bits of a packet. It
// makes one by hand (section 6.4). Here the plan is optimal, and proven to be.
//
// In its width, a query q needs a mean of N(q) packets that carry it until its answer. A hash of the id chooses
// packets, independently of what they carry. On a share x(q) of all packets it therefore needs exactly N(q)/x(q)
// packets of its flow (Wald's equation). The plan minimises the largest ratio of N/x to the goal of its query. The goal
// is what the query asks for, or else what it would need on all packets. Among such plans it minimises the second
// largest ratio, and so on, so that no bits stay unused that could help a query. No share is below the frequency that
// its query asks for.
//
// For given widths this is a linear programme with a variable for every set of queries that fits. The simplex method
// solves it; its columns come from a knapsack over bits, so that sets are never enumerated. Branch and bound chooses the
// widths, over the relaxation in which a query may travel in several widths. The dual prices bound every other plan, and
// are part of the result.
//
// # Readings of the paper
//
//   - A query is on at least one packet in 2²⁰; a plan leaves none out.
//   - A query has one width in all its sets, since a flow's decoder has one coding. Sets are chosen independently of
//     writers.
//   - A partial plan holds as much of the frequencies as possible. Queries without room are left out one by one, which
//     proves left_out_lower_bound.
//   - The frequency is a least share of all packets, not of a flow's.
package solve
