// Package postman plans routes in the manner of a postman. Few trails of about equal length together walk every edge of
// a multigraph ([Net]). With depots, the edges to be walked a second time have the least weight.
//
//   - [Net.Euler] has the fewest trails possible, in O(V + E) (C. Hierholzer, Mathematische Annalen 6, 1873).
//     [Net.Balance] makes their lengths equal by local search and annealing, and [Net.Limit] cuts them to a greatest
//     length.
//   - [Net.Augment], [Net.AugmentWeighted] and [Net.AugmentDirected] repeat edges so that trails can start and end at
//     depots alone. The methods are a T-join by matching, and a flow of least cost. Each proves a bound of its choice.
//   - [Net.DFS], [Net.INTPath] and [Net.INTBalance] are published covers for network telemetry, for comparison.
//
// Trails are lists of halves, see [Net]. The package is independent of topologies and probes: a half carries a label of
// the caller. Results follow from the net and its seed. A function stop ends a search early, with the best that it has
// found.
package postman
