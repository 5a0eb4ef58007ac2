// Package control steers probes: which of them measure in detail, and how the network gets from one plan to the next without a
// link out of sight. Events go in and actions come out, as with a state machine of consensus; nothing here does I/O or reads a
// clock. The program that runs a [Controller] carries out the actions and reports to it what came back.
//
// # A cycle
//
// A [Tick] brings the links that are suspicious. The controller asks planner/attention/solve for the cheapest choice of
// probes that see all of them in detail, changes between basic and detailed measurement included, which is proven to be
// the cheapest. Where it is beyond the budget of detail or the cap on changes, the lightest links are left out, as few as
// can be, and named. What comes out is checked by code that shares nothing with the solver, and begun as a [Plan] with an
// epoch of its own, one above the highest that was ever seen. Where nothing changes there is no plan and no action.
//
// Another base plan comes with [NetworkChanged], such as the one that planner/cover/solve.Replan makes after a link has
// failed. It is taken over in as many cycles as the cap asks for, in an order in which no link is ever on no probe; what
// gives back the sight of a link whose probes are broken is not held back.
//
// # A change-over
//
// The controller decides by what devices hold and not by what has happened, so that it does not matter in which order
// answers come, or whether they do:
//
//   - Make. A switch gets what it lacks of the target, beside what it has for earlier epochs.
//   - Move. Once every switch that can be worked with has all of the target, agents get its probes.
//   - Break. A switch loses what neither the target needs nor any plan that an agent may still have: the one that it
//     confirmed, those that it was sent since, and one of an earlier life. The grace time leaves packets the time to arrive.
//
// Another plan is not begun before all of this is done, so that a switch holds entries of two epochs at most, but for
// those of agents that do not answer.
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
// [Controller.Accept] says which reports to use. From a tick on an agent's reports of one epoch are used until the next tick:
// of the plan that begins with it, or else of the one that is in force there. [Controller.Changing] says when there was a
// change-over and on whose links, so that it is not taken for a finding.
package control
