package control

// Action is an instruction to the program that runs the controller. Actions on one device are carried out in the given
// order, each after the one before has ended. A request is carried out once or not at all, and never after a later one.
// At most one request per device waits for an answer.
type Action interface{ action() }

// SendPlan gives an agent a plan for the whole network: the agent sends the probes that name it. It answers with Acked
// or Refused.
type SendPlan struct {
	Request Request
	Device  Device
	Plan    *Plan // not to be changed
}

// Install writes entries into a switch: what is there under the same key gets the new value.
type Install struct {
	Request Request
	Device  Device
	Entries []Entry
}

// Remove removes entries from a switch. A missing entry is no error.
type Remove struct {
	Request Request
	Device  Device
	Entries []Entry
}

// Load loads the program into a switch, which empties its tables. It is answered when the switch runs it.
type Load struct {
	Request Request
	Device  Device
}

// Read reads what a device holds. An agent's answer is the epoch that it reported when this connection began.
type Read struct {
	Request Request
	Device  Device
}

// Journal is a record to be kept, before the actions that follow it in the list are done.
type Journal struct{ Record Record }

func (SendPlan) action() {}
func (Install) action()  {}
func (Remove) action()   {}
func (Load) action()     {}
func (Read) action()     {}
func (Journal) action()  {}

// Record is a line of the journal: what was pushed where, the answer, and the reason.
type Record struct {
	Time    int64    `json:"time_ns"`           // by the clock of the events
	What    What     `json:"what"`              // that it is about
	Device  string   `json:"device,omitempty"`  // kind and name, as [Device.String] writes it
	Request Request  `json:"request,omitempty"` // that was made or answered
	Epoch   uint32   `json:"epoch,omitempty"`   // of the plan
	Count   int      `json:"count,omitempty"`   // of probes or entries
	On      []string `json:"on,omitempty"`      // probes that are turned to detail; links that are suspected
	Off     []string `json:"off,omitempty"`     // and back; links that are cleared
	Left    []string `json:"left,omitempty"`    // suspicious links that get no detail
	Why     string   `json:"why,omitempty"`     // the reason, in words

	// Entries are changes to entries of a switch. A record of a push lists what is to be done, and a record of a
	// refusal what became of each entry. A record of an answer to a question lists what the switch holds and the
	// journal did not have. Above [mostChanges] entries, a request has several records.
	Entries []Change `json:"entries,omitempty"`
	Found   *int     `json:"found,omitempty"` // entries of ours that the switch was found to hold, of an answer to a question

	Unchecked bool `json:"unchecked,omitempty"` // it was read from a line without a checksum
}

// mostChanges bounds the entries of a record.
const mostChanges = 10_000

// What is the kind of a record.
type What string

// These are the kinds of records.
const (
	Planned    What = "planned"     // a plan was made and begun
	WouldPlan  What = "would-plan"  // in a dry run
	Waiting    What = "waiting"     // for approval
	Settled    What = "settled"     // every device that is up has the plan, and nothing else
	PlanFailed What = "plan-failed" // refused whole; what was in force stays
	Pushed     What = "pushed"      // a plan to an agent, entries to a switch or out of it
	Asked      What = "asked"       // what a device holds
	Answered   What = "answered"
	TimedOut   What = "timed-out"
	WentUp     What = "up"
	WentDown   What = "down"
	Commanded  What = "told" // a command
	Deposition What = "stood-down"
	NetChanged What = "network-changed"
	NetRefused What = "network-refused" // what it was stays
	Suspected  What = "suspected"       // links that deserve a closer look from now on
	Cleared    What = "cleared"         // links that do not any more
	Gap        What = "gap"             // records are missing: the journal could not be written
)
