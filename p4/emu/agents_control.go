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
	// AskPlan asks which epoch is in force.
	AskPlan(name string) Request
}

var _ Agents = (*Network)(nil)

// PlanAnswer is the answer of an agent to a request.
type PlanAnswer struct {
	Request Request
	At      time.Duration // when it came to the controller
	Agent   string
	InForce uint32 // epoch; 0 for none
	About   uint32 // epoch of the plan that this answers; 0 where the controller only asked
	Refused string // why that plan is not in force
}

// planRequest is one that is under way, or its answer.
type planRequest struct {
	timer  int32
	agent  int
	plan   *probe.Plan // nil only asks
	done   bool        // by the agent
	answer PlanAnswer
}

// SendPlan implements [Agents].
func (n *Network) SendPlan(name string, p *probe.Plan) Request { return n.requestPlan(name, p) }

// AskPlan implements [Agents].
func (n *Network) AskPlan(name string) Request { return n.requestPlan(name, nil) }

// requestPlan sends a request off, unless it gets lost. What holds of requests to switches holds of these: the controller sends
// one after the other, and those to one agent, and its answers, keep their order.
func (n *Network) requestPlan(name string, p *probe.Plan) Request {
	c := &n.control
	c.last++
	c.stats.Requests++
	k := n.agentNamed(name)
	if k < 0 { // no agent is there to answer
		c.stats.RequestsLost++
		return c.last
	}
	leaves := max(n.now, c.idle)
	c.idle = leaves + int64(n.cfg.ControlGap)
	a := n.agents[k]
	at := max(leaves+n.controlDelay(), a.reached)
	if c.lose(n.cfg.ControlLoss) {
		c.stats.RequestsLost++
		return c.last
	}
	a.reached = at
	i := int32(len(c.plans))
	if s := len(c.sparePlans); s > 0 {
		i, c.sparePlans = c.sparePlans[s-1], c.sparePlans[:s-1]
	} else {
		c.plans = append(c.plans, planRequest{timer: n.timer(timerPlan, int(i))})
	}
	r := &c.plans[i]
	*r = planRequest{timer: r.timer, agent: k, plan: p, answer: PlanAnswer{Request: c.last, Agent: name}}
	n.events.add(at, r.timer)
	return c.last
}

// planEvent happens when a request reaches its agent, and when the answer reaches the controller.
func (n *Network) planEvent(i int) {
	c := &n.control
	r := &c.plans[i]
	a := n.agents[r.agent]
	free := func() {
		*r = planRequest{timer: r.timer}
		c.sparePlans = append(c.sparePlans, int32(i))
	}
	if r.done {
		c.stats.Answers++
		answer := r.answer
		answer.At = n.Now()
		free()
		if n.cfg.OnPlan != nil {
			n.cfg.OnPlan(answer)
		}
		return
	}
	r.done = true
	if a.stopped { // no agent is there
		c.stats.RequestsLost++
		free()
		return
	}
	n.serveAgent(r, a)
	if c.lose(n.cfg.ControlLoss) {
		c.stats.AnswersLost++
		free()
		return
	}
	a.answered = max(n.now+n.controlDelay(), a.answered)
	n.events.add(a.answered, r.timer)
}

// serveAgent is what an agent does when a request has reached it.
func (n *Network) serveAgent(r *planRequest, a *prober) {
	if r.plan != nil {
		r.answer.About = r.plan.Epoch
		if err := n.adopt(a, r.plan); err != nil {
			a.stats.Refused++
			r.answer.Refused = err.Error()
		} else {
			a.stats.Accepted++
		}
	}
	if a.plan != nil {
		r.answer.InForce = a.plan.Epoch
	}
}
