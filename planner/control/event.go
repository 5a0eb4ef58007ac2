package control

import "fmt"

// Kind is the kind of a device. An agent may have the name of the switch that it sits behind.
type Kind uint8

// The kinds of devices.
const (
	Agent  Kind = iota // sends probes
	Switch             // holds entries
)

func (k Kind) String() string { return [...]string{"agent", "switch"}[k&1] }

// Device names one that the controller steers.
type Device struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (d Device) String() string { return d.Kind.String() + " " + d.Name }

// MarshalText writes a kind by its name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads it.
func (k *Kind) UnmarshalText(b []byte) error {
	switch string(b) {
	case Agent.String():
		*k = Agent
	case Switch.String():
		*k = Switch
	default:
		return fmt.Errorf("%.20q is no kind of device", b)
	}
	return nil
}

// Request numbers what a device is asked for, from 1 in the life of a controller. Answers name it. An answer whose
// request is no longer waited for changes nothing.
type Request uint64

// Event is something that happened. Times are nanoseconds of any one clock that does not go back.
type Event interface{ event() }

// Tick begins a cycle: the links that are suspicious now, and perhaps another plan.
type Tick struct {
	Now      int64       // time of the event
	Suspects []Suspect   // all of the cycle
	Stop     func() bool // ends the search for the best choice of probes; nil for never
}

// Wake reports that time has passed. The program that runs the controller sends one at [Controller.Next].
type Wake struct{ Now int64 }

// NetworkChanged replaces the network: another base plan, other devices. The next cycle begins to follow it.
type NetworkChanged struct {
	Network *Network
	Broken  []string // ids of probes of the network before that no longer pass
}

// Up reports that a device can be reached, over a new connection. Its state is unknown until it was read back.
type Up struct{ Device Device }

// Down reports that a device cannot be reached, and that no request on its way to it will be answered.
type Down struct {
	Device Device
	Why    string // the error, for people
}

// Acked answers SendPlan, Install and Remove: it was done, all of it.
type Acked struct {
	Request Request
	Device  Device
}

// Refused answers a request that was not carried out, or only in part. An entry was rejected, a table is full, a plan
// exceeds an agent's limits, or the switch has another pipeline. An agent that refuses a plan keeps the one before.
type Refused struct {
	Request Request
	Device  Device
	Why     string   // the error, for people
	Did     []Change // outcome of each entry; nil if unknown
}

// Program reports that a switch is unusable, since it does not run the expected program. Without a reason, that is
// over.
type Program struct {
	Device Device
	Why    string // the reason; "" where that is over
	Load   bool   // the settings allow to load it
}

// ReadBack answers Read with the state of the device. Agents return the epoch of the plan in force, 0 for none.
// Switches return the entries of this controller, and leave out those of others.
type ReadBack struct {
	Request Request
	Device  Device
	Epoch   uint32  // agents
	Entries []Entry // switches
}

// Superseded reports that another controller has taken over, according to a device or the fleet. This one stands down
// until it is resumed.
type Superseded struct{ Why string }

// Held reports that no request leaves until further notice, and which ones have not left. That is no fault of the
// devices. Without a reason, requests from now on leave again.
type Held struct {
	Why    string    // the reason; "" where requests leave again
	Unsent []Request // that have not left
}

// Command is a command of an operator.
type Command struct {
	Verb   Verb
	Epoch  uint32 // of the plan that is approved, as Status.Pending has it; 0 for whichever waits
	Author string // for the journal
}

// Verb is the operation of a command.
type Verb string

// The verbs.
const (
	Pause    Verb = "pause"    // no other plan is begun; what was begun is finished, and what is in force is kept up
	Resume   Verb = "resume"   // ends a pause, and begins anew with loading programs; after standing down everything is read back first
	Approve  Verb = "approve"  // begins the plan that waits, and the loading of programs that does
	Reject   Verb = "reject"   // forgets the plan that waits
	Rollback Verb = "rollback" // the plan before, under a new epoch, and a pause
	DryRun   Verb = "dry-run"  // plans are made and journalled, and sent to no device
	WetRun   Verb = "wet-run"  // ends a dry run
)

func (Tick) event()           {}
func (Wake) event()           {}
func (NetworkChanged) event() {}
func (Up) event()             {}
func (Down) event()           {}
func (Acked) event()          {}
func (Refused) event()        {}
func (ReadBack) event()       {}
func (Superseded) event()     {}
func (Program) event()        {}
func (Held) event()           {}
func (Command) event()        {}
