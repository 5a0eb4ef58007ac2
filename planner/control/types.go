package control

import (
	"github.com/hopscope/hopscope/planner"
)

// Config is the configuration of a controller. Times are in nanoseconds.
type Config struct {
	Cycle    int64 // between two ticks
	Timeout  int64 // after which a request counts as lost; below Cycle
	Attempts int   // requests in a row without an answer, after which a device is no longer waited for; 3 if 0
	Grace    int64 // after the last agent has moved, before the entries of earlier epochs go

	SwitchCost float64 // of a probe that changes between basic and detailed, in hops
	Budget     float64 // hops that may be measured in detail in a round; 0 for any number
	MaxChanges int     // probes that change in a cycle; 0 for any number
	RetryAfter int     // cycles before a plan that was refused is tried again; 10 if 0
	Audit      int     // cycles between two readings of a switch that is not suspected of anything; 0 for never
	Approve    bool    // plans wait for approval; the first one, and one that only renews an epoch, do not
	DryRun     bool    // as the command

	BasicBytes, DetailedBytes int // that a hop adds to a probe; 32 and 88 if 0, those of FANT with the checksum complement
}

// Network holds the devices to steer, and the plan that covers their network.
type Network struct {
	Name     string          // for people
	Probes   []planner.Probe // the base plan: every link that is to be seen is on one
	Agents   []string        // names of the agents that send probes
	Switches []string        // names of the switches that get entries

	// Entries returns the entries that a switch has to hold for a plan. Entries of the plan's epoch are used by no
	// other plan; entries of epoch 0 are shared. It is pure. It is nil for networks in which a plan needs no entries.
	Entries func(p *Plan, sw string) []Entry

	// Check returns what is wrong with a plan before any device gets it, such as an agent's limits. It is pure, and may be nil.
	Check func(p *Plan) error
}

// Entry is a line in a table of a switch, as the controller sees it. Epoch and Key together identify it.
type Entry struct {
	Epoch uint32 `json:"epoch"` // of the plan whose probes use it; 0 for those of all plans
	Key   string `json:"key"`   // table and match, as the switch's side writes them
	Value string `json:"value"` // action and parameters, likewise
}

// Change is a change to an entry of a switch, or its outcome.
type Change struct {
	Op Op `json:"op"`
	Entry
	Why     string `json:"why,omitempty"`     // why it was not done; "" where it was
	Skipped bool   `json:"skipped,omitempty"` // it was not tried, since it may rest on one that was refused
}

// Op is the operation on an entry.
type Op string

// The kinds of changes.
const (
	Insert Op = "insert"
	Modify Op = "modify"
	Delete Op = "delete"
	Hold   Op = "hold" // it is there
)

// Suspect is a link that wants a closer look.
type Suspect struct {
	Link   string  `json:"link"`               // as the probes of the base plan name it
	Weight float64 `json:"weight"`             // how bad it is to leave it out; above 0
	Why    string  `json:"why,omitempty"`      // the evidence, in words
	Since  int64   `json:"since_ns,omitempty"` // when it became one; 0 where that is not known
}

// Suspects returns the suspicious links of a cycle.
type Suspects interface {
	Suspects(now int64) []Suspect
}

// Plan is the set of measurements of a network in one epoch. It is not changed once made.
type Plan struct {
	Epoch    uint32          `json:"epoch"`    // above that of any plan before
	Why      string          `json:"why"`      // the reason for it, in words
	Network  *Network        `json:"-"`        // that it is for
	Probes   []planner.Probe `json:"probes"`   // a network that changes in steps has not yet all of its own
	Detailed []string        `json:"detailed"` // ids of probes, sorted
	Stats    Stats           `json:"stats"`    // of all probes

	rollback bool               // made because another was refused, or commanded: it is not rolled back in its turn
	entries  map[string][]Entry // by switch, sorted by identity
	detail   map[string]bool
	members  map[string]bool // switches of the network
}

// IsDetailed reports whether a probe measures in detail.
func (p *Plan) IsDetailed(id string) bool { return p.detail[id] }

// AgentOf is the agent that sends a probe.
func AgentOf(p *planner.Probe) string {
	if p.AgentHost != "" {
		return p.AgentHost
	}
	return p.Agent
}

// Stats counts what a plan measures and its cost in a round of its probes.
//
// The model of bytes: a probe of h hops brings home h times what a hop adds, basic or detailed. Headers, and that a
// probe is carried over several links while it grows, are not counted.
type Stats struct {
	Suspicious int      `json:"suspicious"`            // links that were given
	Detailed   int      `json:"detailed"`              // probes
	LeftOut    []string `json:"left_out,omitempty"`    // suspicious links beyond the budget or the cap, lowest weight first
	NoProbe    []string `json:"on_no_probe,omitempty"` // suspicious links that no probe passes

	Hops         float64 `json:"hops"`          // of all probes
	DetailedHops float64 `json:"detailed_hops"` // of detailed ones
	HopRatio     float64 `json:"hop_ratio"`     // the one over the other
	Bytes        float64 `json:"bytes"`         // of metrics in a round
	AllDetailed  float64 `json:"all_detailed"`  // the same if all probes were detailed
	ByteRatio    float64 `json:"byte_ratio"`    // the bytes over those of the plan with all probes in detail

	Changes   int     `json:"changes"`     // probes turned on or off, and those of the base plan
	Objective float64 `json:"objective"`   // detailed hops and the cost of switching
	Bound     float64 `json:"lower_bound"` // no choice for the links that are not left out is below it
	Optimal   bool    `json:"optimal"`     // the objective is the bound
}

// Seed is the content of a journal about an earlier life: hints alone, since what devices hold is read back.
type Seed struct {
	Epoch    uint32    // the highest that was ever used
	Detailed []string  // probes that were detailed last
	Suspects []Suspect // links that were suspected last
}

// Phase is what the controller is doing.
type Phase string

// The phases.
const (
	Starting  Phase = "starting"   // nothing planned yet
	Making    Phase = "making"     // switches get the entries of the target
	Moving    Phase = "moving"     // agents get its probes
	Breaking  Phase = "breaking"   // what no plan needs any more goes
	Steady    Phase = "steady"     // every device that is up has the target and nothing else
	Deposed   Phase = "stood-down" // another controller has taken over
	NoNetwork Phase = "no-network" // there are no probes
)

// Verdict is the decision about a report.
type Verdict uint8

// The verdicts. Only Fits is to be used.
const (
	Fits  Verdict = iota
	Late          // of an earlier epoch than the one of this cycle
	Early         // of a later one
)

func (v Verdict) String() string { return [...]string{"fits", "late", "early"}[v%3] }

// Status is a picture of the controller, for people.
type Status struct {
	Phase    Phase          `json:"phase"`              // at present
	Why      string         `json:"why,omitempty"`      // of the phase, or why the last plan was refused
	Epoch    uint32         `json:"epoch"`              // of the target
	InForce  uint32         `json:"in_force"`           // of the last plan that settled, and that an agent has confirmed
	Have     int            `json:"have_in_force"`      // agents of the network that have confirmed it
	Agents   int            `json:"agents"`             // of the network
	Before   uint32         `json:"before"`             // of the one that a rollback would bring back
	Pending  *Plan          `json:"pending,omitempty"`  // that waits for approval
	Would    *Plan          `json:"would,omitempty"`    // of a dry run
	Paused   bool           `json:"paused"`             // by an operator
	DryRun   bool           `json:"dry_run"`            // plans are made and not pushed
	Network  string         `json:"network"`            // its name
	Behind   int            `json:"behind"`             // probes of the base plan that are still to change
	Stats    Stats          `json:"stats"`              // of the target
	Suspects []Suspect      `json:"suspects,omitempty"` // of the last cycle
	Devices  []DeviceStatus `json:"devices"`
	Counts   Counts         `json:"counts"` // since the start
}

// DeviceStatus is the controller's view of a device.
type DeviceStatus struct {
	Device  Device `json:"device"`
	State   string `json:"state"`                     // down, unknown, behind, ready, silent, failed
	Epoch   uint32 `json:"epoch,omitempty"`           // agents: known to be in force
	Entries int    `json:"entries,omitempty"`         // switches: that it holds
	Waits   string `json:"waits,omitempty"`           // for what
	Why     string `json:"why,omitempty"`             // the last error
	Awaits  bool   `json:"awaits_approval,omitempty"` // switches: the load of its program does
}

// Counts holds counts over the life of the controller.
type Counts struct {
	Cycles    uint64 `json:"cycles"`    // begun
	Plans     uint64 `json:"plans"`     // begun
	Refused   uint64 `json:"refused"`   // plans
	Skipped   uint64 `json:"skipped"`   // cycles that found the change-over before unfinished
	TimedOut  uint64 `json:"timed_out"` // requests without an answer in time
	Stale     uint64 `json:"stale"`     // answers that were not waited for
	Accepted  uint64 `json:"accepted"`  // reports of the epoch of their cycle ([Fits])
	Late      uint64 `json:"late"`      // reports of an earlier epoch
	Early     uint64 `json:"early"`     // reports of a later epoch
	Installed uint64 `json:"installed"` // entries
	Removed   uint64 `json:"removed"`   // entries
	Repaired  uint64 `json:"repaired"`  // entries that were gone or other than they had to be
}
