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
// # Promises
//
//		tick n                                                                                tick n+1
//		│ suspicious links      switches have       all agents             old entries          │
//		│ → plan of epoch e     entries of e        have e                 are gone             │
//		├───────────────────────┼───────────────────┼───────── grace ──────┼────────────────────┤
//		│ make: entries of e    │ move: probes of e │                      │ steady             │
//		│ beside those of e−1   │                   │ break: e−1 goes      │                    │
//		├───────────────────────┴───────────────────┴──────────────────────┴────────────────────┤
//		│ reports of e are used, those of e−1 are late and counted                              │
//
//	  - No link goes out of sight. A link with working devices and agents is covered again within a cycle. A change of
//	    attention interrupts no coverage, whatever is lost and whenever the controller crashes. When a new base plan moves
//	    a link to another agent's probe, there may be a gap between both answers.
//	  - No epochs are mixed. In one cycle the used reports of an agent carry one epoch. Others are counted.
//	  - No orphans. Once a plan is in force, switches hold its entries and no others of this controller. A switch that
//	    refuses to give one up is failed, and asked again at growing intervals. Entries of others stay.
//	  - Attention is kept. A suspicious link in detail stays so over a restart with the journal, whatever is refused, lost
//	    or late.
//	  - Nothing is guessed. After a crash or a lost answer, devices are read.
//	  - Refused whole. A plan that fails its check, or that an agent or a switch refuses, leaves the plan before in force,
//	    with the reason in the status. An agent that refuses that one too, and a switch that refuses shared entries, are
//	    left out and named.
//	  - Confirmed. A plan is in force when every expected device has it and at least one agent has confirmed it.
//	  - Bounded. At most [Config.MaxChanges] probes change in a cycle, at most [Config.Budget] hops are in detail, and
//	    tables hold two epochs. Links left out have the lowest weights, and are named.
//	  - One controller. A controller that sees another's plan, or is not primary, stands down and sends nothing.
//
// A device is up while it is connected, answers, and refuses nothing required. After a start, unknown devices are
// expected for as many cycles as there are attempts; [Down] shortens that. A removed switch keeps its entries while it is
// unreachable, or for good if the control ends before.
//
// Requests to a device must arrive in order or not at all. Streams of agents ensure that, P4Runtime does not. A switch
// that executes a write after its time limit and the following read keeps an orphan, or misses an entry, until the next
// read: after [Config.Audit] cycles at the latest, or, with 0, after the next failure there.
//
// TestExplore explores every order, loss, delay and refusal of messages between three switches, an agent and two plans,
// and a crash at any moment. With switches that acknowledge entries falsely or lose all, the promises hold after the
// next audit. TestRandom goes on in larger networks, TestOvertaken with writes behind later reads.
// TestBrokenControllers breaks the controller in thirteen ways, and the exploration finds every one.
//
// With 1,125 switches and 90 agents a tick takes 4.7 ms of processor time, and a whole change-over 12.7 ms (go test
// ./planner/control -run XXX -bench Cycle -benchmem -benchtime 40x).
//
// # Epochs
//
// [Controller.Accept] decides which reports to use. Between two ticks, reports of one epoch are used from an agent. It
// is that of a plan that begins with the first tick, otherwise of the plan in force there. The method
// [Controller.Changing] returns the time and the links of a change-over, so that its effects are not taken for a
// finding.
package control
