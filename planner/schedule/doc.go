// Package schedule describes when probes are sent: the problem, the plan that answers it, and the check that a plan keeps
// what the problem asks.
//
// A plan for covering gives the routes of probes. A [Problem] adds how often every link has to be seen, how many bytes a probe
// is on each link of its way, and what links and agents may carry of it. A [Plan] gives probes an interval and a phase, or
// leaves them unsent. [Check] sends the probes of one hyperperiod one after the other and watches the links. The algorithms are
// in planner/schedule/solve, and a test on imports keeps the check from seeing them.
//
// # Model
//
// Time is in slots, and a schedule repeats after the hyperperiod, which is the least common multiple of the periods of all
// links unless the problem asks for a longer one. An interval is a multiple of the base, which is the greatest common
// divisor of the periods, and divides the hyperperiod. So every period is an interval, and a schedule is exact for ever.
//
// A probe looks at all of its links in the slot in which it starts: that it is on its way for some time moves all looks at a
// link by about as much. A link is seen in time if the longest gap between two looks at it, by any probe, is no longer than its
// period.
package schedule
