package emu

import (
	"time"

	"github.com/hopscope/hopscope/p4/probe"
)

// Agents is the interface by which a controller sends plans to agents. As with [Switches], the methods return at once, and some
// answers never come.
type Agents interface {
	// SendPlan sends a plan, which is not changed afterwards. The agent puts it in force or refuses it.
	SendPlan(name string, p *probe.Plan) Request
	// AskPlan requests the epoch in force.
	AskPlan(name string) Request
}

var _ Agents = (*Network)(nil)

// PlanAnswer is the answer of an agent to a request.
type PlanAnswer struct {
	Request Request
	At      time.Duration // when it came to the controller
	agent   string
	InForce uint32 // epoch; 0 for none
	about   uint32 // epoch of the plan that this answers; 0 for a mere question
	Refused string // why that plan is not in force
}

// SendPlan implements [Agents].
func (n *Network) SendPlan(name string, p *probe.Plan) Request { return n.requestPlan(name, p) }

// AskPlan implements [Agents].
func (n *Network) AskPlan(name string) Request { return n.requestPlan(name, nil) }

// requestPlan sends a request to an agent, unless it gets lost. A nil plan is a mere question.
func (n *Network) requestPlan(name string, p *probe.Plan) Request {
	k := n.agentNamed(name)
	if k < 0 {
		return n.call(nil, nil, nil)
	}
	a, answer := n.agents[k], PlanAnswer{Request: n.control.last + 1, agent: name}
	return n.call(&a.Called, func() bool { return !a.stopped && n.serveAgent(&answer, a, p) }, func(at time.Duration) {
		if answer.At = at; n.cfg.OnPlan != nil {
			n.cfg.OnPlan(answer)
		}
	})
}

// serveAgent is the work of an agent when a request has reached it.
func (n *Network) serveAgent(answer *PlanAnswer, a *prober, p *probe.Plan) bool {
	if p != nil {
		answer.about = p.Epoch
		if err := n.adopt(a, p); err != nil {
			a.stats.refused++
			answer.Refused = err.Error()
		} else {
			a.stats.accepted++
		}
	}
	if a.plan != nil {
		answer.InForce = a.plan.Epoch
	}
	return true
}
