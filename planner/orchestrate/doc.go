// Package orchestrate describes which flows carry the telemetry of which interfaces: the problem, the plan that answers
// it, and the check that a plan keeps what the problem asks.
//
// Every interface of a [Problem] has a number of telemetry items to be collected, and every flow has room for some items
// in its packets and passes some interfaces. A [Plan] assigns interfaces to flows, with the fewest flows or with the
// smallest largest load. [Check] reads the two and nothing else. The algorithms are in planner/orchestrate/solve, and a
// test on imports keeps the check from seeing them.
package orchestrate
