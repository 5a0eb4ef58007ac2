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
// The paper can be read in several ways. Its covering rows sum over all flows; here they sum over the flows that pass
// the interface. Its pseudo-code may take any of several equal candidates; here the first in order is taken. It may
// assign an interface to a flow that does not exist; here that interface stays without a flow. A flow that was picked
// but carries nothing does not count. According to its text a flow covers both ends of a link. Its numbers fit flows
// that cover only the directions that they take; [orchestrate.Model] can do either.
//
// Every function depends only on its arguments: there is no clock and no I/O. A search ends when its Stop function
// returns true.
package solve
