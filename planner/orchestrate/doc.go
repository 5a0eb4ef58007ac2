// Package orchestrate assigns interfaces with telemetry to the flows whose packets carry it away (INTO: Marques,
// Luizelli, Costa Filho, Gaspary, "An optimization-based approach for efficient network monitoring using in-band network
// telemetry", Journal of Internet Services and Applications 10:12, 2019).
//
// Concentrate asks for the fewest flows. The published heuristic gives a first plan, large-neighbourhood search improves
// it, and a bound comes with it: the Lagrangian relaxation of covering with a knapsack for every flow, with prices from
// column generation. Balance asks for the smallest largest load. The published heuristic mostly meets the trivial bound;
// where it does not, the transport relaxation gives a better one, and ejection search and a depth-first tree decide the
// levels between. Redundancy, splitting of demands and partial plans go beyond the paper and are open to both.
//
// Readings of the paper. Its covering rows sum over all flows; here over those that pass the interface. Its pseudo-code
// leaves ties open and assigns to a flow that may not exist; here ties are decided as the two heuristics say, and such
// an interface stays without a flow. A flow that is picked and carries nothing does not count. Its text has a flow
// cover both ends of a link, its numbers fit flows that cover the directions they take: Model holds both.
//
// Everything here is a function of its arguments: no clock, no I/O. A search ends when its Stop says so.
package orchestrate
