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
//   - Make. A switch gets the missing entries of the target, beside those of earlier epochs.
//   - Move. Once every available switch has all of the target, agents get its probes.
//   - Break. A switch loses entries that neither the target needs nor any plan that an agent may still have. Such
//     plans are the one that the agent confirmed, those that it was sent since, and one of an earlier life. A grace
//     time lets packets under way arrive first.
//
// No other plan begins before all of this is done. A switch therefore holds entries of two epochs at most, except those
// for agents that do not answer.
//
// A device has at most one pending request, and its answer names the request. An answer after its time limit changes
// nothing. The content of a switch is then unknown, and the switch is read; an agent is sent the same plan again. A
// device that has failed to answer [Config.Attempts] times in a row is asked once a cycle, and no longer waited for. A
// device that refuses a required entry or plan is treated the same way, every [Config.RetryAfter] cycles.
//
// # Refusals
//
// A plan is adopted whole or not at all. If it fails its check, no device gets it. If a switch refuses an entry, no
// agent has the plan yet: the written entries are removed, and the plan in force stays. If an agent refuses the plan,
// others may have adopted it: all get the former plan under a new epoch. The same plan is not tried again for
// RetryAfter cycles.
//
// # After a crash
//
// A new controller reads the entries of switches and the epochs of agents. It begins with a plan of an epoch above all
// of these. Entries that it finds stay until that plan is in force, except where a table has no room. Then it removes
// its own entries that no plan needs; it never sees those of others.
//
// An agent that this controller had before may have a plan that this controller never sent. It then follows another
// controller. This one stands down, as it does with [Superseded], and does nothing until it is asked to resume.
//
// # Epochs
//
// [Controller.Accept] decides which reports to use. Between two ticks, reports of one epoch are used from an agent. It
// is that of a plan that begins with the first tick, otherwise of the plan in force there. The method
// [Controller.Changing] returns the time and the links of a change-over, so that its effects are not taken for a
// finding.
package control
