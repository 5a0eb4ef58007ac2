// Package cover describes probes that together pass every link of a topology. It holds the problem, the plan that
// answers it, and the check of a plan against its problem.
//
// A [Problem] is a topology with the limits of probes in it. These are unusable links, the longest probe, the nodes
// where probes may start and end, and whether both directions of a link count. A [Plan] lists the probes by the names
// of nodes and links. Others can store, compare and carry it out. The check, [Check], reads only those names and the
// topology. A test on imports keeps it independent of the algorithms in planner/cover/solve, so that it cannot repeat
// their errors.
package cover
