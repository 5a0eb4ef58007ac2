// Package solve assigns the telemetry of interfaces to the flows whose packets carry it away (INTO: Marques, Luizelli,
// Costa Filho, Gaspary, "An optimization-based approach for efficient network monitoring using in-band network
// telemetry", Journal of Internet Services and Applications 10:12, 2019).
//
// The objective [orchestrate.Concentrate] asks for the fewest flows. The published heuristic gives a first plan, and
// large-neighbourhood search improves it. A lower bound comes with the plan. It is the Lagrangian relaxation of a
// covering problem with a knapsack for every flow, whose prices come from column generation. The objective
// [orchestrate.Balance] asks for the smallest largest load. The published heuristic mostly meets the trivial bound.
// Where it does not, the transport relaxation gives a better bound, and ejection search and a depth-first tree decide
// the levels between. A search tree decides Concentrate up to 150 interfaces. Redundancy, splitting of demands and partial
// plans go beyond the paper and work with both objectives. Splitting makes Balance a sequence of maximum flows, which is
// exact. Redundancy counts an interface once per copy, on different flows. A partial plan first decides what is left out:
// by a maximum flow with splitting, else by local search, a Lagrangian bound and the tree.
//
// Every function depends only on its arguments: there is no clock and no I/O. A search ends when its Stop function
// returns true.
//
// # Readings of the paper
//
//   - Its rows of coverage sum over all flows; here over those that pass the interface.
//   - Ties follow section 4; further ties take the first in order.
//   - Its Balance may assign a flow that does not exist; here the interface stays without one. A chosen flow that
//     carries nothing does not count.
//   - Its text has flows cover both ends of every link (--model both-sides). Its numbers fit directions and an
//     endpoint at every node: 2 × links + 2 × nodes interfaces, parallel links as one (--model directed).
//   - Paths have the fewest hops.
//   - Freshness is the mean number of hops that items are carried before their report (section 5.2.5), at the last
//     assigned interface. With both-sides a link counts twice.
//   - The text has 90 % as an example of the percentile of the capacity κ, and neither header nor item size; the
//     defaults are an Ethernet MTU, the header of INT-MD and items of 4 bytes. The text leaves redundancy and splitting to future work.
package solve
