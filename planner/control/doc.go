// Package control steers probes. It decides which of them measure in detail, and how the network gets from one plan to
// the next without a link out of sight. Like a consensus state machine it takes events and returns actions, without I/O
// or a clock. The program that runs a [Controller] carries out the actions and passes the answers back as events.
//
// # A cycle
//
// A [Tick] brings the suspicious links. The controller asks planner/attention/solve for the cheapest choice of probes
// that see all of them in detail. The cost includes changes between basic and detailed measurement, and the choice is
// proven to be the cheapest. Where it exceeds the budget of detail or the cap on changes, the lightest links are left
// out, as few as possible, and named. Code independent of the solver checks the result. It begins as a [Plan] with an
// epoch of its own, one above the highest ever seen. Where nothing changes there is no plan and no action.
//
// [NetworkChanged] brings another base plan, such as the one that planner/cover/solve.Replan makes after a link has
// failed. The controller takes it over in as many cycles as the cap asks for. The order of the steps leaves no link
// without a probe. Steps that restore the sight of a link whose probes are broken are exempt from the cap.
//
// # A change-over
//
// The controller decides by what devices hold and not by past events, so that neither the order nor the loss of answers
// matters:
//
//   - Make. A switch gets what it lacks of the target, beside what it has for earlier epochs.
//   - Move. Once every switch that can be worked with has all of the target, agents get its probes.
//   - Break. A switch loses what neither the target needs nor any plan that an agent may still have: the one that it
//     confirmed, those that it was sent since, and one of an earlier life. The grace time leaves packets the time to arrive.
//
// No other plan begins before all of this is done. A switch therefore holds entries of two epochs at most, except those
// for agents that do not answer.
//
// There is one request at a device at a time, and its answer names it. An answer that comes after its time limit changes
// nothing. What a switch holds then is unknown, and it is read; an agent is sent the same plan again. A device that has not
// answered [Config.Attempts] times in a row is asked once a cycle, and not waited for. So is one that refuses what it must
// have, every [Config.RetryAfter] cycles.
//
// # Refusals
//
// A plan is taken whole or not at all. Where it fails its check, no device gets it. Where a switch refuses an entry, no agent
// has the plan yet: what was written goes, and what is in force stays. Where an agent refuses the plan, others may have taken
// it: all get what was in force before, under a new epoch. The same plan is not tried again for RetryAfter cycles.
//
// # After a crash
//
// A new controller knows nothing, and asks: switches for their entries, agents for their epochs. It begins with a plan of an
// epoch above all of these. What it finds stays until that plan is in force, except where a table has no room. Entries of this
// controller that no plan needs are removed then; those of others were never shown to it.
//
// An agent with a plan that this controller never sent, where it had known the agent before, has another controller. This one
// stands down then, as it does with [Superseded], and does nothing before it is asked to resume.
//
// # Epochs
//
// [Controller.Accept] decides which reports to use. Between two ticks, reports of one epoch are used from an agent. It
// is that of a plan that begins with the first tick, otherwise of the plan in force there. The method
// [Controller.Changing] returns the time and the links of a change-over, so that its effects are not taken for a
// finding.
package control
