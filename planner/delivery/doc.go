// Package delivery describes where measurement points send their data. It holds the problem, the plan that answers it,
// and the check of a plan against its problem.
//
// A [Problem] is a network of measurement points, switches and servers. It gives the free capacity of every link and
// node, the deadlines and the tolerated losses. A [Plan] gives for every point its servers, with the paths and rates to
// them. It lists the links that had to be added, and the switch configuration that follows. [Check] computes loads,
// latencies and probabilities by itself. The algorithms are in planner/delivery/solve; a test on imports keeps the
// check independent of them.
package delivery
