// Package orchestrate describes which flows carry the telemetry of which interfaces. It holds the problem, the plan
// that answers it, and the check of a plan against its problem.
//
// Every interface of a [Problem] has a number of telemetry items to be collected. Every flow has room for some items in
// its packets and passes some interfaces. A [Plan] assigns interfaces to flows, with the fewest flows or with the
// smallest largest load. [Check] reads only these two. The algorithms are in planner/orchestrate/solve; a test on
// imports keeps the check independent of them.
package orchestrate
