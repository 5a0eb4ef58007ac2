// Package solve chooses the execution plan of PINT: which packets carry which queries. The paper (SIGCOMM 2020, section
// 3.4) defines such a plan as a probability distribution over the sets of queries that fit into the bits of a packet.
// It makes one by hand (section 6.4). Here it is the best plan there is, and proven to be.
//
// In the width that it has, a query q needs N(q) packets that carry it until its answer, on average. On a share x(q) of all
// packets it needs exactly N(q)/x(q) packets of its flow, because packets are chosen by a hash of their id, independently of
// what they carry (Wald's equation). The plan minimises the largest ratio of N/x to the goal of its query. The goal is what the
// query asks for, or else what it would need on all packets. Among the plans that do so it minimises the second largest ratio,
// and so on, so that no bits stay unused that could help a query. No share is below the frequency that its query asks for.
//
// For given widths this is a linear programme with a variable for every set of queries that fits. The simplex method
// solves it; its columns come from a knapsack over bits, so that sets are never enumerated. Branch and bound chooses the
// widths, over the relaxation in which a query may travel in several widths. The dual prices bound every other plan, and
// are part of the result.
package solve
