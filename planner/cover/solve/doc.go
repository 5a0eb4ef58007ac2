// Package solve plans probes that together pass every link of a topology.
//
// Without depots the plan has the fewest probes that there can be, which are max(1, k/2) for a connected component with k
// nodes of odd degree. It takes O(V + E) steps (INT-path: T. Pan et al., "INT-path: Towards Optimal Path Planning for
// In-band Network-Wide Telemetry", INFOCOM 2019). With [Options.Balanced] the probes are about equally long. With depots
// the probes pass as few links as possible a second time (INT-Probe: T. Pan, X. Lin et al., "INT-probe: Lightweight
// In-band Network-Wide Telemetry with Stationary Probes", ICDCS 2021). This is a T-join in which depots may have any
// degree, and it is solved by matching.
//
// Several things go beyond the papers: covers of both directions of every link, a limit on the hops of a probe, links and
// ports that must not be used, and two covers that a single failure does not blind at once. [Replan] makes a new plan
// after a failure and keeps every probe that the failure does not touch.
//
// The plans as published are here too, so that they can be compared ([DFS], [Paper], [PaperBalanced], [IntBalance]).
// Every function is pure: the result follows from the problem, the options and the seed, and time comes in as a function
// that says when to stop. [cover.Check] validates the plans and shares no code with this package.
package solve
