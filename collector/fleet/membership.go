package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/ingest/retry"
)

// How often a member writes how it is, and for how long it waits for a fleet at its start.
const (
	writeEvery = 2 * time.Second
	awaitFleet = 30 * time.Second
)

// rosterTable is the compacted topic that holds the members of a fleet.
type rosterTable interface {
	Topic() string
	Refresh(ctx context.Context) (changed []string, err error)
	All() map[string][]byte
	Put(ctx context.Context, key string, value []byte) (appended time.Time, err error)
}

// MembershipOptions are the dependencies of a Membership.
type MembershipOptions struct {
	ID, Version string
	Log         *slog.Logger
	Roster      rosterTable
	Lasting     func(err error) bool   // reports whether an error of the roster needs an operator
	Status      func(m *roster.Member) // fills in how the consumer is; called once it runs
	Now         func() time.Time       // the wall clock; nil reads the machine's
}

// Membership is a consumer's place in the roster of its fleet. It waits for the fleet, and compares the parameters
// that all members have in common. It writes the status of the consumer every two seconds, and compares the clock of
// this machine with that of the brokers.
type Membership struct {
	opt    MembershipOptions
	boot   uint64
	start  time.Time
	params roster.Params
	beats  atomic.Uint64

	mu       sync.Mutex
	expected []fleet.Expected
	redraws  map[string]uint64 // by collector, to be written
	trouble  string            // with the roster
	clock    time.Duration     // by which this machine is ahead of the brokers
}

// NewMembership makes a Membership. It is not in the roster yet.
func NewMembership(opt MembershipOptions) *Membership {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Membership{opt: opt, boot: rand.Uint64(), start: opt.Now(), redraws: map[string]uint64{}}
}

// Start returns the time at which the member was made.
func (c *Membership) Start() time.Time { return c.start }

// Beats counts the rounds of Follow.
func (c *Membership) Beats() uint64 { return c.beats.Load() }

// Clock is by how much the clock of this machine is ahead of that of the brokers, at least.
func (c *Membership) Clock() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock
}

// Trouble is why the roster cannot be read or written, or "".
func (c *Membership) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// MismatchError is a consumer whose settings do not fit into its fleet.
type MismatchError struct {
	fleet   string
	differs []string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("this consumer does not fit into the fleet %s: %s", e.fleet, strings.Join(e.differs, "; "))
}

// Join waits for the fleet, compares the parameters, and returns those that its members have in common. Function mine
// returns the parameters of this member's settings.
func (c *Membership) Join(ctx context.Context, mine func(p *roster.Params) roster.Params) (roster.Params, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitFleet)
	defer cancel()
	logged := false
	for {
		p, err := c.readRoster(ctx)
		switch {
		case err == nil && p != nil:
			own := mine(p)
			if differs := p.Differences(&own); len(differs) > 0 {
				return *p, &MismatchError{p.Name, differs}
			}
			c.params = *p
			// Its own clock ends windows, so it has to be that of the others.
			return *p, c.write(ctx, nil, false)
		case err == nil:
			err = fmt.Errorf("%s does not say what the members of the fleet have in common; say it with: hopscope kafka topics create", c.opt.Roster.Topic())
		}
		if c.opt.Lasting(err) {
			return roster.Params{}, err
		}
		if !logged {
			c.opt.Log.Warn("waiting for the fleet", "error", err.Error())
			logged = true
		}
		if !retry.Sleep(ctx, 500*time.Millisecond) {
			return roster.Params{}, err
		}
	}
}

// readRoster reads the members, and returns the parameters that they have in common, nil if no member has published them.
func (c *Membership) readRoster(ctx context.Context) (*roster.Params, error) {
	if _, err := c.opt.Roster.Refresh(ctx); err != nil {
		return nil, err
	}
	var r roster.Roster
	for key, value := range c.opt.Roster.All() {
		if err := r.Add(key, value); err != nil {
			c.opt.Log.Debug("a record of the roster is passed over", "error", err.Error())
		}
	}
	expected := r.Expected()
	c.mu.Lock()
	c.expected = expected
	c.mu.Unlock()
	return r.Params(), nil
}

// Expected returns the collectors that the roster names.
func (c *Membership) Expected() []fleet.Expected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expected
}

// Redraw notifies a collector through the roster that its run exists twice. It returns at once.
func (c *Membership) Redraw(name string, boot uint64) {
	c.mu.Lock()
	c.redraws[name] = boot
	c.mu.Unlock()
}

// clockCosts is the consequence of a clock that is off too far.
const clockCosts = "it would end windows at the wrong time"

// write writes to the roster how the consumer is, and holds the clock against that of the brokers.
func (c *Membership) write(ctx context.Context, status func(m *roster.Member), left bool) error {
	m := roster.Member{
		Role: roster.Consumer, Name: c.opt.ID, Boot: c.boot, Version: c.opt.Version, Start: c.start.UnixNano(), Updated: c.opt.Now().UnixNano(), Left: left,
	}
	if status != nil {
		status(&m)
	}
	before := c.opt.Now()
	appended, err := c.opt.Roster.Put(ctx, roster.MemberKey(roster.Consumer, c.opt.ID), m.Append(nil))
	after := c.opt.Now()
	if err != nil {
		return err
	}
	if appended.IsZero() {
		return nil
	}
	// It was written between the two, so the clock is off by this at least.
	off := time.Duration(0)
	switch {
	case before.After(appended):
		off = before.Sub(appended)
	case after.Before(appended):
		off = after.Sub(appended)
	}
	c.mu.Lock()
	c.clock = off
	c.mu.Unlock()
	if fleet.ClockOff(off, c.params.Window) {
		return &fleet.ClockError{Off: off, Window: c.params.Window, Costs: clockCosts}
	}
	return nil
}

// Follow keeps the roster until ctx ends. It returns an error that does not pass, such as a clock that is wrong.
func (c *Membership) Follow(ctx context.Context) error {
	failed := 0
	for retry.Sleep(ctx, min(writeEvery, max(c.params.Window, 200*time.Millisecond))) {
		c.beats.Add(1)
		p, err := c.readRoster(ctx)
		if err == nil && p != nil {
			if differs := p.Differences(&c.params); len(differs) > 0 {
				return fmt.Errorf("the fleet has changed: %s; start this consumer again with its settings", strings.Join(differs, "; "))
			}
		}
		if err == nil {
			err = c.writeRedraws(ctx)
		}
		if err == nil {
			err = c.write(ctx, c.opt.Status, false)
		}
		c.mu.Lock()
		before := c.trouble
		c.trouble = ""
		if err != nil && ctx.Err() == nil {
			c.trouble = err.Error()
		}
		trouble := c.trouble
		c.mu.Unlock()
		if trouble != "" && before == "" {
			c.opt.Log.Warn("the roster of the fleet is out of reach", "error", trouble)
		}
		if errors.As(err, new(*fleet.ClockError)) {
			if failed++; failed >= 3 { // once may be a moment in which the machine stood still
				return err
			}
		} else {
			failed = 0
		}
	}
	return nil
}

func (c *Membership) writeRedraws(ctx context.Context) error {
	c.mu.Lock()
	todo := c.redraws
	c.redraws = map[string]uint64{}
	c.mu.Unlock()
	for name, boot := range todo {
		value, err := json.Marshal(roster.Redraw{Boot: boot})
		if err == nil && roster.CheckName(name) == nil {
			_, err = c.opt.Roster.Put(ctx, roster.RedrawKey(name), value)
		}
		if err != nil {
			c.Redraw(name, boot)
			return err
		}
	}
	return nil
}

// Leave writes to the roster that the consumer has ended. A clock that is wrong is of no interest then.
func (c *Membership) Leave(ctx context.Context) error {
	if err := c.write(ctx, c.opt.Status, true); !errors.As(err, new(*fleet.ClockError)) {
		return err
	}
	return nil
}

// OneLine shortens a text, which may have several lines, for the faults of a member.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
