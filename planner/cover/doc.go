// Package cover plans probes that together pass every link of a topology.
//
// Without depots the plan has the fewest probes there can be, max(1, odd/2) for every connected component with odd nodes
// of odd degree, in O(V + E) (INT-path: T. Pan et al., "INT-path: Towards Optimal Path Planning for In-band Network-Wide
// Telemetry", INFOCOM 2019), and with [Options.Balanced] they are about equally long. With depots the probes walk the
// fewest links twice (INT-Probe: T. Pan, X. Lin et al., "INT-probe: Lightweight In-band Network-Wide Telemetry with
// Stationary Probes", ICDCS 2021): that is a T-join with free depots, solved by matching.
//
// Beyond the papers: both directions of every link, a limit of hops, links and ports that cannot be used, two covers
// that a single failure does not blind, and new plans that keep what a failed link does not touch.
//
// The plans as published are here too, as baselines ([DFS], [Paper], [PaperBalanced], [IntBalance]). Everything is a pure function of
// the problem and a seed; time comes in as a function that says stop. Plans are validated by [planner.CheckCover],
// which shares no code with this package.
package cover
