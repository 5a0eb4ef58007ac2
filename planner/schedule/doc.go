// Package schedule describes when probes are sent. It holds the problem, the plan that answers it, and the check of a
// plan against its problem.
//
// A plan for covering gives the routes of probes. A [Problem] adds how often every link has to be seen, and the bytes
// of a probe on each link of its way. It also has the limits of links and agents. A [Plan] gives probes an interval and
// a phase, or leaves them unsent. The check, [Check], sends the probes of one hyperperiod one after the other and
// watches the links. The algorithms are in planner/schedule/solve; a test on imports keeps the check independent of
// them.
//
// # Model
//
// Time is in slots, and a schedule repeats after the hyperperiod. That is the least common multiple of the periods of
// all links, unless the problem asks for a longer one. The base is the greatest common divisor of the periods. An
// interval is a multiple of the base and divides the hyperperiod. So every period is an interval, and a schedule is
// exact for ever.
//
// A probe sees all of its links in the slot in which it starts. Its travel time delays all looks at a link by about as
// much. A link is seen in time if the longest gap between two looks at it, by any probe, is at most its period.
package schedule
