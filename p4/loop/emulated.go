package loop

import (
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
)

// Emulated is the agents of an emulated network in the same process. Requests of the loop wait for [Emulated.Deliver],
// which the goroutine of the network calls, so that loop and network may run in two goroutines. Answers come through
// [Emulated.Answered], which is an emu.Config.OnPlan.
type Emulated struct {
	post func(control.Event)

	mu    sync.Mutex // what is below
	queue []emulatedRequest
	waits map[emu.Request]emulatedRequest
}

type emulatedRequest struct {
	name    string
	request control.Request
	plan    *probe.Plan // nil reads
	at      time.Duration
}

// NewEmulated makes the side of the agents of a network that is yet to be built. Post may be set later, before the first call.
func NewEmulated() *Emulated {
	return &Emulated{waits: map[emu.Request]emulatedRequest{}}
}

// Post sets the receiver of the agents' answers, and announces the agents to it.
func (e *Emulated) Post(post func(control.Event), agents []string) {
	e.post = post
	for _, a := range agents {
		post(control.Up{Device: control.Device{Kind: control.Agent, Name: a}})
	}
}

// SendPlan implements [Agents].
func (e *Emulated) SendPlan(name string, r control.Request, p *probe.Plan) {
	e.add(emulatedRequest{name: name, request: r, plan: p})
}

// ReadPlan implements [Agents].
func (e *Emulated) ReadPlan(name string, r control.Request) {
	e.add(emulatedRequest{name: name, request: r})
}

func (e *Emulated) add(r emulatedRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, r)
}

// Answers returns the rounds of all agents, which answer at once. Only the goroutine that runs the network may call it,
// at most every [Settle].
func (e *Emulated) Answers(n *emu.Network, agents []string) (list []Answer) {
	now := int64(n.Now())
	for _, name := range agents {
		if r, life, ok := n.AgentRounds(name); ok {
			list = append(list, Answer{agent: name, Life: life, Asked: now, Answered: now, Rounds: &r})
		}
	}
	return list
}

// Limits implements [Agents]. Those of emulated agents are asked when they get a plan.
func (e *Emulated) Limits(string) (probe.Limits, bool) { return probe.Limits{}, false }

// Deliver passes the waiting requests to the network, and drops requests that were not answered for longer than forget.
func (e *Emulated) Deliver(n *emu.Network, forget time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.queue {
		r.at = n.Now()
		if r.plan != nil {
			e.waits[n.SendPlan(r.name, r.plan)] = r
		} else {
			e.waits[n.AskPlan(r.name)] = r
		}
	}
	e.queue = e.queue[:0]
	for k, r := range e.waits {
		if n.Now()-r.at > forget {
			delete(e.waits, k)
		}
	}
}

// Answered takes an answer of the network.
func (e *Emulated) Answered(a emu.PlanAnswer) {
	e.mu.Lock()
	r, ok := e.waits[a.Request]
	delete(e.waits, a.Request)
	e.mu.Unlock()
	if !ok {
		return
	}
	d := control.Device{Kind: control.Agent, Name: r.name}
	switch {
	case r.plan == nil:
		e.post(control.ReadBack{Request: r.request, Device: d, Epoch: a.InForce})
	case a.Refused != "":
		e.post(control.Refused{Request: r.request, Device: d, Why: cut(a.Refused)})
	default:
		e.post(control.Acked{Request: r.request, Device: d})
	}
}
