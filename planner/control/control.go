package control

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Controller is the state of the loop. It is used by one goroutine at a time.
type Controller struct {
	cfg  Config
	seed Seed
	net  *Network

	now      int64
	lastTick int64
	request  Request
	devices  []device // by kind and name
	version  uint64   // of the wanted state of devices
	kept     keep     // as of that version

	target      *Plan // the wanted plan; nil for no entries of this controller
	inForce     *Plan // the last target that settled
	before      *Plan // and the one before it
	pending     *Plan // waits for approval
	would       *Plan // of a dry run
	latest      latest
	known       []*Plan
	first       uint32 // lowest epoch that this life has given
	last        uint32 // highest epoch that was ever seen
	highestHeld uint32 // highest epoch that a device of this life had

	broken     []string // probes of the network before that no longer pass
	refusal    refusal
	trial      Device // that refused a plan like the target: it is to take it before any other changes; without a name for none
	paused     bool
	dry        bool
	deposedBy  string // why another controller is in charge
	held       string // why nothing leaves
	settled    bool
	tableFull  bool // a switch has refused entries of the first plan
	graceUntil int64
	waitsGrace bool
	change     change
	suspects   []Suspect
	counts     Counts

	index      *index          // of the probes that were planned for last
	members    map[string]bool // the switches of the network
	only       int             // device of which alone something has changed, or -1
	unsteadyAt int             // devices that were waited for last
	unmadeAt   int

	out []Action
}

// latest holds the results of the last cycle for a target that stays: other links may be left out.
type latest struct {
	plan  *Plan
	stats Stats
}

// refusal is the last plan that was refused.
type refusal struct {
	plan  *Plan
	why   string
	until uint64 // cycles
	at    Device // that refused it, without a name where none did
	times int    // in a row
}

// change is the last change-over.
type change struct {
	links    []string
	from, to int64 // to is 0 while it lasts
}

// New makes a controller to which the state of all devices is unknown. All devices are down until an event changes
// that.
func New(cfg Config, network *Network, seed Seed) (*Controller, error) {
	switch {
	case cfg.Cycle <= 0 || cfg.Timeout <= 0 || cfg.Timeout >= cfg.Cycle:
		return nil, fmt.Errorf("control: the time limit of a request is %d ns, and must be above 0 and below a cycle, %d ns", cfg.Timeout, cfg.Cycle)
	case cfg.Grace < 0 || cfg.Attempts < 0 || cfg.RetryAfter < 0 || cfg.Audit < 0 || cfg.MaxChanges < 0:
		return nil, errors.New("control: the grace time and the numbers of attempts, of cycles and of changes are 0 or above")
	case !(cfg.Budget >= 0) || !(cfg.SwitchCost >= 0 && cfg.SwitchCost <= 1e12):
		return nil, fmt.Errorf("control: a budget of %v hops and a cost of %v for a change: both are numbers of 0 or above", cfg.Budget, cfg.SwitchCost)
	case cfg.BasicBytes < 0 || cfg.DetailedBytes < 0:
		return nil, errors.New("control: a hop does not add less than 0 bytes")
	case seed.Epoch == math.MaxUint32:
		return nil, errors.New("control: the journal knows the last epoch that there is: move it away, what devices have is read back in any case")
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 3
	}
	if cfg.RetryAfter == 0 {
		cfg.RetryAfter = 10
	}
	cfg.BasicBytes, cfg.DetailedBytes = cmp.Or(cfg.BasicBytes, 32), cmp.Or(cfg.DetailedBytes, 88)
	if cfg.Budget == 0 {
		cfg.Budget = math.Inf(1)
	}
	if err := network.validate(); err != nil {
		return nil, err
	}
	c := &Controller{cfg: cfg, seed: seed, net: network, last: seed.Epoch, dry: cfg.DryRun, version: 1}
	c.adopt(network)
	return c, nil
}

// Validate returns what cannot be steered.
func (n *Network) Validate() error { return n.validate() }

func (n *Network) validate() error {
	if n == nil {
		return errors.New("control: there is no network")
	}
	for _, list := range [...][]string{n.Agents, n.Switches} {
		sorted := slices.Sorted(slices.Values(list))
		for k, name := range sorted {
			if name == "" || k > 0 && sorted[k-1] == name {
				return fmt.Errorf("control: a device has no name, or %q is there twice", name)
			}
		}
	}
	ids := make(map[string]bool, len(n.Probes))
	for k := range n.Probes {
		p := &n.Probes[k]
		if p.ID == "" || ids[p.ID] {
			return fmt.Errorf("control: the id %q is empty, or of two probes", p.ID)
		}
		if slices.Contains(p.Links, "") {
			return fmt.Errorf("control: probe %q passes a link without a name", p.ID)
		}
		if a := AgentOf(p); !slices.Contains(n.Agents, a) {
			return fmt.Errorf("control: probe %q is sent by %q, which is no agent", p.ID, a)
		}
		ids[p.ID] = true
	}
	return nil
}

// Step takes an event and returns the actions that follow, in order.
func (c *Controller) Step(e Event) []Action {
	c.out, c.only = nil, -1
	switch e := e.(type) {
	case Tick:
		c.tick(e)
	case Wake:
		c.advance(e.Now)
	case NetworkChanged:
		c.networkChanged(e)
	case Up:
		c.up(e.Device)
	case Down:
		c.down(e)
	case Acked:
		c.acked(e)
	case Refused:
		c.refused(e)
	case ReadBack:
		c.readBack(e)
	case Superseded:
		c.depose(e.Why)
	case Program:
		c.program(e)
	case Held:
		c.hold(e)
	case Command:
		c.command(e)
	}
	c.drive()
	return c.out
}

// advance lets time pass, and gives up overdue requests.
func (c *Controller) advance(now int64) {
	c.now = max(c.now, now)
	for k := range c.devices {
		d := &c.devices[k]
		if d.waits == nothing || c.now < d.deadline {
			continue
		}
		c.counts.TimedOut++
		c.record(Record{What: TimedOut, Device: d.String(), Request: d.request, Why: d.waits.String()})
		did := d.waits
		d.waits, d.batch, d.sent = nothing, nil, nil
		d.retry = d.retry && !d.silent // once a cycle
		if d.Kind == Switch {
			d.known = false // whether it was done is only known from the switch
			if did == installing || did == removing {
				d.fruitless++
			}
		}
		if d.attempts++; d.attempts >= c.cfg.Attempts {
			d.silent = true
		}
	}
}

// Next returns when the controller wants to be woken. It is false where time alone changes nothing.
func (c *Controller) Next() (int64, bool) {
	next := int64(math.MaxInt64)
	for k := range c.devices {
		if d := &c.devices[k]; d.waits != nothing {
			next = min(next, d.deadline)
		}
	}
	if c.waitsGrace {
		next = min(next, max(c.graceUntil, c.now))
	}
	return next, next != math.MaxInt64
}

// tick begins a cycle.
func (c *Controller) tick(e Tick) {
	c.advance(e.Now)
	c.lastTick = c.now
	c.counts.Cycles++
	c.suspects = e.Suspects
	if c.deposedBy != "" {
		return
	}
	began := c.target
	c.settle()
	c.plan(e)
	for k := range c.devices {
		d := &c.devices[k]
		d.retry = d.silent || d.failed != "" && (d.retry || c.counts.Cycles >= d.retryAt)
		if d.Kind == Agent {
			d.expectNow(c.target, began != c.target)
		} else if a := uint64(c.cfg.Audit); a > 0 && (c.counts.Cycles+uint64(k))%a == 0 && d.ready() && d.waits == nothing && c.held == "" {
			c.ask(d)
		}
	}
}

// recordEntries is record, in several lines where there are many entries.
func (c *Controller) recordEntries(r Record) {
	all := r.Entries
	for len(all) > mostChanges {
		r.Entries, all = all[:mostChanges], all[mostChanges:]
		c.record(r)
	}
	r.Entries = all
	c.record(r)
}

// record adds a line to the journal.
func (c *Controller) record(r Record) {
	r.Time = c.now
	c.out = append(c.out, Journal{r})
}

// device is the controller's view of a device. Its slices are replaced and never written to.
type device struct {
	Device
	up        bool
	known     bool // its state is known; it is read once the device is up
	heard     bool // that it is up or down
	leaving   bool // no longer part of the network
	silent    bool // does not answer, and is not waited for
	retry     bool // in this cycle, though silent or failed
	failed    string
	surplus   bool   // it refused a removal: it is waited for
	retryAt   uint64 // cycle
	refusals  int    // in a row
	fruitless int    // consecutive changes of a switch without an outcome
	attempts  int

	waits    operation
	request  Request
	deadline int64
	batch    []Entry // being installed or removed
	sent     *Plan   // being given to an agent
	had      uint32  // mayHave before that

	// Of an agent.
	met     bool   // by this controller
	inForce uint32 // by its own word
	foreign bool   // that plan is not of this life
	mayHave uint32 // highest epoch that it was sent, and that it did not refuse
	expect  uint32 // epoch whose reports are used in this cycle
	seen    uint32 // epoch of its packets in this cycle

	// Of a switch.
	program             string // why it has to be loaded with its program, "" where it has not
	mayLoad             bool
	approved, announced bool // the loading of it
	loads               int  // tries
	have                []Entry
	journaled           bool   // its state is in the journal
	checked             uint64 // version at which there was nothing to do
	clean               bool   // as of that version
	made                bool   // has all of the target, as of that version
}

// operation is the kind of a request.
type operation uint8

const (
	nothing operation = iota
	reading
	sending
	installing
	removing
	loading
)

func (o operation) String() string {
	return [...]string{"", "read", "plan", "install", "remove", "load"}[o]
}

// live reports whether change-overs wait for a device.
func (d *device) live() bool { return d.up && !d.silent && (d.failed == "" || d.surplus) }

// ready reports whether a device can be worked with.
func (d *device) ready() bool { return d.known && (d.live() || d.retry) }

func (a Device) compare(b Device) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// find returns a device, or nil.
func (c *Controller) find(x Device) *device {
	if k := c.at(x); k >= 0 {
		return &c.devices[k]
	}
	return nil
}

// at is the place of a device, or -1.
func (c *Controller) at(x Device) int {
	low, high := 0, len(c.devices)
	for low < high {
		switch k := int(uint(low+high) >> 1); c.devices[k].compare(x) {
		case 0:
			return k
		case -1:
			low = k + 1
		default:
			high = k
		}
	}
	return -1
}

// adopt makes the devices those of a network. Devices that are gone from it stay until they hold nothing of this controller.
func (c *Controller) adopt(n *Network) {
	old := c.devices
	c.devices = nil
	for k := range old {
		d := old[k]
		d.leaving, d.checked = true, 0
		c.devices = append(c.devices, d)
	}
	for kind, names := range [...][]string{Agent: n.Agents, Switch: n.Switches} {
		for _, name := range names {
			c.devices = append(c.devices, device{Device: Device{Kind(kind), name}})
		}
	}
	// Present devices come first, so that they stay where there are two.
	slices.SortStableFunc(c.devices, func(a, b device) int { return a.compare(b.Device) })
	kept := c.devices[:0]
	for _, d := range c.devices {
		if n := len(kept); n > 0 && kept[n-1].Device == d.Device {
			kept[n-1].leaving = false
			continue
		}
		kept = append(kept, d)
	}
	c.devices = kept
	c.members = make(map[string]bool, len(n.Switches))
	for _, name := range n.Switches {
		c.members[name] = true
	}
}
