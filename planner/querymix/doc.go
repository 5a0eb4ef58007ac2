// Package querymix chooses the execution plan of PINT: which packets carry which queries. The paper (SIGCOMM 2020,
// sections 3.4 and 4.4) defines it as a probability distribution over sets of queries that fit into the bits of a packet,
// and makes it by hand; here it is the best one, proven.
//
// A query q needs N(q) packets that carry it until its answer, on average, in the width that it has. On a share x(q) of
// all packets it needs N(q)/x(q) packets of its flow, exactly: packets are chosen by a hash of their id, independently of
// what they tell (Wald's equation). The plan minimises the largest N/x over goals, the goal being what the query says it
// wants, or what it would need on all packets; among those plans the second largest, and so on, so that bits are never
// left unused that could help anyone. Shares are at least the frequencies that queries ask for.
//
// For given widths this is a linear programme with a variable for every set of queries that fits. It is solved by the
// simplex method; columns come from a knapsack over bits, so that sets are never enumerated. Widths are chosen by
// branch and bound, over the relaxation in which a query may travel in several widths. The dual prices bound every other
// plan, and are part of the result.
package querymix
