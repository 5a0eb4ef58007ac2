package steer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// Term is the time in which one control of a fleet is in charge.
type Term interface {
	Number() uint64
	Epoch() uint32                                            // the highest that was written in any term
	Plan() []byte                                             // that of the term before, nil for none
	Put(ctx context.Context, epoch uint32, plan []byte) error // fails where the term is over
	Holds(ctx context.Context) error                          // fails where the term is over
}

// Charge fences a loop by the term of its control. Nil is a control without a fleet, which is always in charge.
type Charge struct {
	Term    Term
	Topic   string // of the plans, for display
	MaxPlan int    // bytes of a plan that Term keeps
	Lost    error  // the cause of the end of a context by the end of the term

	number uint64 // of the term as the loop began, which may grow
	put    uint32 // epoch that was written last
}

// NewCharge returns the charge of a term as it is now.
func NewCharge(c Charge) *Charge {
	c.number = c.Term.Number()
	return &c
}

// chargePlan is the part of a plan that the log keeps. Its probes are those of the files, except for the choice of
// detail.
type chargePlan struct {
	Network  string   `json:"network"`
	Why      string   `json:"why"`
	Detailed []string `json:"detailed"`
}

// Seed adds the plan of the term before to what the journal of this control has.
func (c *Charge) Seed(s control.Seed, network string, log *slog.Logger) control.Seed {
	if c == nil {
		return s
	}
	s.Epoch = max(s.Epoch, c.Term.Epoch())
	if b := c.Term.Plan(); b != nil {
		var p chargePlan
		err := json.Unmarshal(b, &p)
		if err != nil {
			log.Warn("the detailed probes of the control before are not known", "topic", c.Topic, "error", err.Error())
		}
		s.Detailed = p.Detailed
		if err == nil && p.Network != network {
			log.Warn("the control before had another network; that of the files here comes in its place", "before", names.Printable(p.Network), "network", network)
		}
	}
	return s
}

// Election is the election id of the term at switches.
func (c *Charge) Election() uint64 {
	if c == nil {
		return 0
	}
	return c.number
}

// Fence writes each plan to the log before any part of it leaves, and checks the term before anything else leaves.
func (c *Charge) Fence(ctx context.Context) func(p *control.Plan) error {
	if c == nil {
		return nil
	}
	return func(p *control.Plan) error {
		if p == nil || p.Epoch == c.put {
			return c.Term.Holds(ctx)
		}
		record := chargePlan{p.Network.Name, p.Why, p.Detailed}
		b, err := json.Marshal(&record)
		if err == nil && len(b) > c.MaxPlan { // the list of detailed probes is a hint for the next one
			record.Detailed = nil
			b, err = json.Marshal(&record)
		}
		if err == nil {
			err = c.Term.Put(ctx, p.Epoch, b)
		}
		if err == nil {
			c.put = p.Epoch
		}
		return err
	}
}

// Depose posts to the loop the reason for the end of a term, and returns err.
func (c *Charge) Depose(ctx context.Context, l *loop.Loop, err error) error {
	if cause := context.Cause(ctx); c != nil && errors.Is(cause, c.Lost) {
		l.Post(control.Superseded{Why: cause.Error()})
		l.Step(time.Now().UnixNano())
	}
	return err
}
