// Package cover describes probes that together pass every link of a topology: the problem, the plan that answers it, and
// the check that a plan keeps what the problem asks.
//
// A [Problem] is a topology and what probes may do in it: which links must not be passed, how long a probe may be, where
// probes may start and end, and whether both directions of a link count. A [Plan] lists the probes by the names of nodes
// and links, so that it can be stored, compared and carried out by others. [Check] reads nothing but those names and the
// topology. It does not know the algorithms, which are in planner/cover/solve, and a test on imports keeps it so: an
// error that an algorithm makes cannot be repeated by the code that looks for it.
package cover
