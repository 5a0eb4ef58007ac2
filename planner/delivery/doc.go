// Package delivery describes where measurement points send their data: the problem, the plan that answers it, and the
// check that a plan keeps what the problem asks.
//
// A [Problem] is a network of measurement points, switches and servers, with what every link and node has free, how long
// data may take and how much of it may be lost. A [Plan] gives for every point the servers that it sends to, over which
// paths and at which rates. It has the links that had to be added, and the configuration of the switches that follows
// from it. [Check] adds up loads, latencies and probabilities by itself. The algorithms are in planner/delivery/solve,
// and a test on imports keeps the check from seeing them.
package delivery
