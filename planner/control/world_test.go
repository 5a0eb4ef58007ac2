package control

import (
	"fmt"
	"slices"
)

// world is a controller and the network that it steers: devices, and what is on its way to them and back. Requests to a
// device arrive in order, or not at all.
type world struct {
	c     *Controller
	cfg   Config
	net   *Network
	nodes []node // as the controller's devices are sorted: agents, switches
	bad   []Suspect

	covered []bool // by link, now or at some time since its devices came up
	links   []string

	bounds          // what may still happen
	single   single // how the next switch treats single entries
	ticked   int
	lastTick int64
	attends  bool // what is suspicious was in detail in some plan of an agent

	moved bool   // a device has, since it was last looked at
	shock bool   // a device has just lost what it had
	alike bool   // the switches are, to the probes
	twist *twist // breaks the controller, for tests of the exploration
	trail *trail

	lives, steps        int // counted
	plans, refusedPlans uint64
}

// count adds what the controller counted in its life.
func (w *world) count() {
	w.lives++
	w.plans, w.refusedPlans = w.plans+w.c.counts.Plans, w.refusedPlans+w.c.counts.Refused
}

// trail is what has happened.
type trail struct {
	before *trail
	what   string
}

func (w *world) note(what string) { w.trail = &trail{w.trail, what} }

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	return t.before.String() + "\n\t" + t.what
}

// node is a device as it is.
type node struct {
	Device
	does, says, rises, forgets string // for the trail

	connected bool // the controller was notified
	weak      bool // it was not waited for, and no plan has settled since
	requests  []request
	answers   []Event

	plan     *Plan    // of an agent
	atStart  uint32   // epoch that it named when the connection began
	had      []uint32 // epochs that it ever had
	accepted uint32   // epoch of its reports in this cycle

	entries []Entry // of a switch
	forgot  bool    // it acknowledged entries that it does not hold, and the controller does not know
	room    int     // entries that it has room for, 0 for any number
	excused bool    // its content is unknown: it was out of reach when it left the network
}

type request struct {
	Action
	id   Request
	lost bool // its sender is gone: it is carried out, and the answer goes nowhere
}

// single says how a switch treats the entries of one request: the one at a place, or all of them.
type single struct {
	how string // "" for as it should
	at  int
}

// The ways. A switch that forgets is found out by the reading that follows each write, one that forgets unseen by a later one.
const (
	refusesOne   = "refuses one"
	forgets      = "forgets"
	forgetsLater = "acknowledges, and forgets"
)

const (
	cycle   = 1000
	timeout = 400
	grace   = 100
)

// newWorld starts with a controller that knows nothing. Every device waits to be announced.
func newWorld(cfg Config, net *Network) *world {
	w := &world{cfg: cfg, net: net}
	for _, a := range slices.Sorted(slices.Values(net.Agents)) {
		w.nodes = append(w.nodes, node{Device: Device{Agent, a}})
	}
	for _, s := range slices.Sorted(slices.Values(net.Switches)) {
		w.nodes = append(w.nodes, node{Device: Device{Switch, s}})
	}
	for k := range w.nodes {
		w.nodes[k].call()
	}
	w.link(net)
	w.start(Seed{})
	return w
}

// link lists the links of a network's probes.
func (w *world) link(net *Network) {
	was := map[string]bool{}
	for k, l := range w.links {
		was[l] = w.covered[k]
	}
	w.links, w.moved = nil, true
	for k := range net.Probes {
		w.links = append(w.links, net.Probes[k].Links...)
	}
	w.links = union(w.links, nil)
	w.covered = make([]bool, len(w.links))
	for k, l := range w.links {
		w.covered[k] = was[l]
	}
}

// call gives a node the words of the trail.
func (n *node) call() {
	d := n.String()
	n.does, n.says, n.rises, n.forgets = d+" does what it was asked", d+" has answered", d+" is connected", "a message to or from "+d+" is lost"
}

func (w *world) start(seed Seed) {
	c, err := New(w.cfg, w.net, seed)
	if err != nil {
		panic(err)
	}
	w.c = c
	c.now = w.lastTick
	for k := range w.nodes {
		n := &w.nodes[k]
		n.connected, n.answers, n.accepted = false, nil, 0
	}
}

func (w *world) clone() *world {
	v := *w
	c := *w.c
	c.devices, c.known = slices.Clone(c.devices), slices.Clone(c.known)
	v.c = &c
	v.nodes = slices.Clone(w.nodes)
	v.covered = slices.Clone(w.covered)
	return &v
}

func (w *world) node(d Device) *node {
	for k := range w.nodes {
		if w.nodes[k].Device == d {
			return &w.nodes[k]
		}
	}
	return nil
}

// emit hands the controller an event, and puts what it wants on its way.
func (w *world) emit(e Event) {
	if w.twist != nil && w.twist.events != nil {
		e = w.twist.events(w, e)
	}
	w.steps++
	actions := w.c.Step(e)
	if w.twist != nil && w.twist.actions != nil {
		actions = w.twist.actions(w, actions)
	}
	for _, a := range actions {
		w.post(a)
	}
}

func (w *world) post(a Action) {
	d, id, ok := Device{}, Request(0), true
	switch a := a.(type) {
	case SendPlan:
		d, id = a.Device, a.Request
	case Install:
		d, id = a.Device, a.Request
	case Remove:
		d, id = a.Device, a.Request
	case Read:
		d, id = a.Device, a.Request
	default:
		ok = false
	}
	if n := w.node(d); ok && n != nil && n.connected {
		n.requests = append(slices.Clone(n.requests), request{a, id, false})
	}
}

// carryOut does the first request at a device.
func (w *world) carryOut(n *node, refuse bool) {
	w.moved = true
	r := n.requests[0]
	if w.trail = (&trail{w.trail, n.does}); refuse {
		w.note("and refuses")
	}
	n.requests = slices.Clone(n.requests[1:])
	answer := Event(Acked{r.id, n.Device})
	switch a := r.Action.(type) {
	case SendPlan:
		switch {
		case refuse:
			answer = Refused{Request: r.id, Device: n.Device, Why: "beyond its limits"}
		case a.Plan.Epoch < n.epoch() || a.Plan.Epoch == n.epoch() && a.Plan != n.plan && !same(a.Plan, n.plan):
			answer = Refused{Request: r.id, Device: n.Device, Why: "there is a later plan"}
		default:
			n.plan = a.Plan
			if !slices.Contains(n.had, a.Plan.Epoch) {
				n.had = append(slices.Clone(n.had), a.Plan.Epoch)
			}
		}
	case Install:
		todo := a.Entries
		var did []Change
		switch w.single.how {
		case refusesOne:
			did, todo = changes(Insert, todo), slices.Delete(slices.Clone(todo), w.single.at, w.single.at+1)
			did[w.single.at].Why = "not here"
		case forgets:
			did, todo = changes(Insert, todo), nil
			for k := range did {
				did[k].Why = "forgotten"
			}
		case forgetsLater:
			n.forgot, todo = true, nil
		}
		if n.room > 0 {
			for len(todo) > 0 && len(with(n.entries, todo)) > n.room {
				todo, refuse = todo[:len(todo)-1], true
			}
		} else if refuse {
			todo = todo[:len(todo)/2]
		}
		n.entries = with(n.entries, todo)
		if w.single.how != "" {
			w.note(fmt.Sprintf("and %s (%d)", w.single.how, w.single.at))
		}
		if did != nil {
			answer = Refused{Request: r.id, Device: n.Device, Why: w.single.how, Did: did}
		} else if refuse {
			answer = Refused{Request: r.id, Device: n.Device, Why: "table full"}
		}
	case Remove:
		todo := a.Entries
		if w.single.how == refusesOne {
			did := changes(Delete, todo)
			did[w.single.at].Why = "not here"
			todo = slices.Delete(slices.Clone(todo), w.single.at, w.single.at+1)
			w.note(fmt.Sprintf("and %s (%d)", w.single.how, w.single.at))
			answer = Refused{Request: r.id, Device: n.Device, Why: w.single.how, Did: did}
		}
		n.entries = without(n.entries, todo)
	case Read:
		if n.Kind == Agent {
			answer = ReadBack{Request: r.id, Device: n.Device, Epoch: n.atStart}
		} else {
			answer = ReadBack{Request: r.id, Device: n.Device, Entries: n.entries}
		}
	}
	if !r.lost {
		n.answers = append(slices.Clone(n.answers), answer)
	}
}

func (n *node) epoch() uint32 {
	if n.plan == nil {
		return 0
	}
	return n.plan.Epoch
}

// answer gives the controller the first answer of a device.
func (w *world) answer(n *node) {
	w.note(n.says)
	e := n.answers[0]
	n.answers = slices.Clone(n.answers[1:])
	w.emit(e)
}

// connect announces a device to the controller.
func (w *world) connect(n *node) {
	w.note(n.rises)
	n.connected = true
	if n.Kind == Agent {
		for len(n.requests) > 0 { // an agent has one stream: what came over the last one is done by now
			w.carryOut(n, false)
		}
		n.answers, n.atStart = nil, n.epoch()
	}
	w.emit(Up{n.Device})
}

// crash ends the controller, and begins with a new one. What is on its way to switches may still arrive.
func (w *world) crash(arrives bool) { w.end("the controller crashes", arrives, Seed{}) }

// restart is a crash after which the journal is there: with the highest epoch, and what was in detail.
func (w *world) restart(arrives bool) {
	seed := Seed{Epoch: w.c.last, Suspects: w.c.suspects}
	if t := w.c.target; t != nil {
		seed.Detailed = t.Detailed
	} else {
		seed.Detailed = w.c.seed.Detailed
	}
	w.end("the controller restarts with its journal", arrives, seed)
}

func (w *world) end(what string, arrives bool, seed Seed) {
	w.note(what + map[bool]string{true: ", and what it sent arrives", false: ", and what it sent is lost"}[arrives])
	for k := range w.nodes {
		n := &w.nodes[k]
		rs := slices.Clone(n.requests)
		for i := range rs {
			rs[i].lost = true
		}
		if !arrives {
			rs = nil
		}
		n.requests = rs
		n.accepted = 0
	}
	w.count()
	w.start(seed)
}

// lose has a switch forget all that it holds of this controller, and keep its connection.
func (w *world) lose(n *node) {
	w.note(n.String() + " forgets what it holds")
	n.entries, n.forgot, w.moved = nil, true, true
}

func (w *world) tick(packets bool) {
	w.note("a cycle begins")
	w.ticked++
	w.lastTick += cycle
	for k := range w.nodes {
		n := &w.nodes[k]
		if packets && n.Kind == Agent && n.plan != nil {
			w.c.Accept(n.Name, n.epoch())
		}
		n.accepted = 0
	}
	var suspects []Suspect
	if w.ticked >= 2 {
		suspects = w.bad
	}
	w.emit(Tick{Now: w.lastTick, Suspects: suspects})
}

// rest takes one step without any further fault, and says whether it was a tick.
func (w *world) rest() (tick bool) {
	for k := range w.nodes {
		n := &w.nodes[k]
		switch {
		case !n.connected && w.c.find(n.Device) != nil:
			w.connect(n)
			return false
		case len(n.requests) > 0:
			w.carryOut(n, false)
			return false
		case len(n.answers) > 0:
			w.answer(n)
			return false
		}
	}
	if at, ok := w.c.Next(); ok && at < w.lastTick+cycle {
		w.emit(Wake{at})
		return false
	}
	w.tick(true)
	return true
}

// twist makes of a controller a broken one: it changes its events and its actions.
type twist struct {
	name    string
	finds   string // what is wrong then
	events  func(w *world, e Event) Event
	actions func(w *world, actions []Action) []Action
}
