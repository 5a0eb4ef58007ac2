package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// Agents carries plans to agents. Its methods are called by the loop, return at once, and their answers are posted later.
type Agents interface {
	SendPlan(name string, r control.Request, p *probe.Plan)
	ReadPlan(name string, r control.Request)
	// Limits returns those of an agent, as far as it reported them.
	Limits(name string) (probe.Limits, bool)
}

// Switches does the same for entries.
type Switches interface {
	Install(name string, r control.Request, entries []control.Entry)
	Remove(name string, r control.Request, entries []control.Entry)
	ReadEntries(name string, r control.Request)
	Load(name string, r control.Request) // the program
}

// Options are the parts of a loop.
type Options struct {
	Control  control.Config
	Network  *control.Network // whose Check the loop sets, unless it has one
	Probing  *Probing
	Agents   Agents
	Switches Switches // nil where the network has none
	Journal  *Journal // nil for none
	Seed     control.Seed
	Suspects control.Suspects // nil for none
	Rounds   *Rounds          // fed by surveys, for the status; nil for none
	// Fence is called before anything is pushed in a round, with the plan that devices are to have then, nil before
	// there is one. After an error nothing of the round leaves. It may take some time, during which the loop stands
	// still. A nil Fence lets everything leave.
	Fence func(p *control.Plan) error
	// Orchestration returns the status of the assignment of flows to interfaces, by what switches hold. It is nil without
	// an assignment.
	Orchestration func(held *Held) *Orchestration
	Delivery      func(held *Held) *p4.DeliveryStatus // the same for the delivery of reports
	Log           *slog.Logger
	Now           func() int64 // ns since 1970, by a clock that does not go back; nil for the machine's
}

// Loop is a controller that runs.
type Loop struct {
	o        Options
	c        *control.Controller
	plans    *compiled
	nextTick int64

	mu    sync.Mutex // what is below
	inbox []any      // control.Event, or func() in the loop's goroutine
	wake  chan struct{}

	out   []control.Action // of the round
	state State

	held      bool             // the controller was notified that nothing leaves
	kept      []control.Record // records that could not be written, without those of actions that did not leave either
	lost      int              // records that it did not take and never will
	suspected map[string]bool  // links, as the journal has them
}

// mostKept bounds the records that are kept for a journal that cannot be written.
const mostKept = 10_000

// State is the state of the loop itself.
type State struct {
	Began    int64         `json:"began_ns,omitempty"`   // when the last plan was begun
	Acked    int64         `json:"acked_ns,omitempty"`   // when every device that is up had it; 0 before
	Epoch    uint32        `json:"epoch,omitempty"`      // of that plan
	Planning time.Duration `json:"planning_ns"`          // that the last cycle took to decide
	Journal  string        `json:"journal,omitempty"`    // why the journal cannot be written
	Fence    string        `json:"fence,omitempty"`      // why the fleet lets nothing leave
	Dropped  uint64        `json:"dropped_actions"`      // because of either
	Steps    uint64        `json:"steps"`                // rounds
	Refusal  string        `json:"answer,omitempty"`     // to the last command: why it was not obeyed
	TickTime int64         `json:"last_cycle,omitempty"` // when the last cycle began

	Networks        uint64 `json:"networks"`                  // that were taken over while it ran
	NetworksRefused uint64 `json:"networks_refused"`          // and that were not
	NetworkRefused  string `json:"network_refused,omitempty"` // why the last one was not; "" after one that was
}

// New makes a loop to which the state of all devices is unknown.
func New(o Options) (*Loop, error) {
	if o.Now == nil {
		base := time.Now()
		wall := base.UnixNano()
		o.Now = func() int64 { return wall + int64(time.Since(base)) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop{o: o, plans: &compiled{}, wake: make(chan struct{}, 1), suspected: map[string]bool{}}
	for _, x := range o.Seed.Suspects {
		l.suspected[x.Link] = true
	}
	l.adoptNetwork(o.Network)
	l.plans.adopt(o.Network, o.Probing, nil)
	var err error
	if l.c, err = control.New(o.Control, o.Network, o.Seed); err != nil {
		return nil, err
	}
	l.nextTick = o.Now()
	return l, nil
}

// adoptNetwork sets the check of plans of a network.
func (l *Loop) adoptNetwork(n *control.Network) {
	if n != nil && n.Check == nil {
		n.Check = func(p *control.Plan) error { return l.plans.check(p, n.Agents, l.o.Agents.Limits) }
	}
}

// Post hands an event to the loop. It may be called from anywhere, and returns at once.
func (l *Loop) Post(e control.Event) { l.post(e) }

// Replacement is another network for a loop that runs.
type Replacement struct {
	Network *control.Network // whose Check the loop sets, unless it has one
	Probing *Probing
	Passes  func(p *planner.Probe) bool // whether a probe of a plan before can take its way; nil for all of them
	First   func()                      // called in the goroutine of the loop before it follows; nil for nothing
}

// Replace switches the loop to another network. A network of which any part fails its check is refused whole with the
// reason, and the old one stays. Probes are checked as they are sent. Other errors are errStopped.
func (l *Loop) Replace(ctx context.Context, r Replacement) error {
	done := make(chan error, 1)
	l.post(func() {
		err := l.replace(&r)
		if err != nil {
			l.refuseNetwork(err.Error())
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStopped
	}
}

func (l *Loop) replace(r *Replacement) error {
	if err := r.Network.Validate(); err != nil {
		return err
	}
	trial := compiled{probing: r.Probing}
	if err := trial.check(&control.Plan{Epoch: 1, Network: r.Network, Probes: r.Network.Probes}, r.Network.Agents, l.o.Agents.Limits); err != nil {
		return err
	}
	if r.First != nil {
		r.First()
	}
	l.adoptNetwork(r.Network)
	l.plans.adopt(r.Network, r.Probing, l.c.Target())
	l.give(control.NetworkChanged{Network: r.Network, Broken: r.broken(l.c.Target())})
	l.state.Networks++
	l.state.NetworkRefused = ""
	return nil
}

// broken are the probes of a plan that no longer pass. The plan, and not the network before, is asked: on its way to that one, it may still
// have probes of an earlier one.
func (r *Replacement) broken(p *control.Plan) (ids []string) {
	if p == nil || r.Passes == nil {
		return nil
	}
	for k := range p.Probes {
		if !r.Passes(&p.Probes[k]) {
			ids = append(ids, p.Probes[k].ID)
		}
	}
	return ids
}

// RefuseNetwork notes why another network was not given to the loop.
func (l *Loop) RefuseNetwork(why string) { l.post(func() { l.refuseNetwork(why) }) }

func (l *Loop) refuseNetwork(why string) {
	l.state.NetworksRefused++
	l.state.NetworkRefused = cut(why)
	l.out = append(l.out, control.Journal{Record: control.Record{Time: l.o.Now(), What: control.NetRefused, Why: cut(why)}})
}

// Push asks whether an action outside a plan may be sent. It has to be in the journal first, and is refused where
// another controller is in charge.
func (l *Loop) Push(ctx context.Context, r control.Record) error {
	done := make(chan error, 1)
	l.post(func() { done <- l.push(r) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStopped
	}
}

func (l *Loop) push(r control.Record) error {
	if l.c.Phase() == control.Deposed {
		return errors.New("another controller is in charge")
	}
	r.Time = l.o.Now()
	if err := l.o.Journal.Append([]control.Record{r}); err != nil {
		return fmt.Errorf("the journal cannot be written: %w", err)
	}
	if l.o.Fence != nil {
		return l.o.Fence(l.c.Target())
	}
	return nil
}

func (l *Loop) post(what any) {
	l.mu.Lock()
	l.inbox = append(l.inbox, what)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Step processes posted events, advances time to now, and carries out what follows. It is for callers that run the loop
// without Run.
func (l *Loop) Step(now int64) {
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	l.state.Steps++
	l.give(control.Wake{Now: now})
	var asked []func()
	for _, x := range inbox {
		switch x := x.(type) {
		case control.Event:
			l.give(x)
		case func():
			x()
		case question:
			asked = append(asked, x)
		}
	}
	if now >= l.nextTick {
		l.tick(now)
	}
	l.carry()
	l.note(now)
	for _, answer := range asked {
		answer()
	}
}

// question is a function that is called at the end of a round.
type question func()

// tick begins a cycle.
func (l *Loop) tick(now int64) {
	cycle := l.o.Control.Cycle
	l.nextTick += (now-l.nextTick)/cycle*cycle + cycle // cycles that were slept over do not come again
	var suspects []control.Suspect
	if l.o.Suspects != nil {
		suspects = l.o.Suspects.Suspects(now)
	}
	l.noteSuspects(now, suspects)
	if l.held {
		l.retry(now)
	}
	began := time.Now()
	stop := func() bool { return time.Since(began) > time.Duration(cycle)/4 }
	l.give(control.Tick{Now: now, Suspects: suspects, Stop: stop})
	l.state.TickTime, l.state.Planning = now, time.Since(began)
}

// give passes an event to the controller, and keeps the resulting actions.
func (l *Loop) give(e control.Event) { l.out = append(l.out, l.c.Step(e)...) }

// noteSuspects records the links that are suspected from now on, and those that are not any more. They are evidence for a control to come.
func (l *Loop) noteSuspects(now int64, list []control.Suspect) {
	is := make(map[string]bool, len(list))
	for k := range list {
		x := &list[k]
		if is[x.Link] = true; !l.suspected[x.Link] {
			l.out = append(l.out, control.Journal{Record: control.Record{Time: now, What: control.Suspected, On: []string{x.Link}, Why: cut(x.Why)}})
		}
	}
	var off []string
	for link := range l.suspected {
		if !is[link] {
			off = append(off, link)
		}
	}
	if slices.Sort(off); len(off) > 0 {
		l.out = append(l.out, control.Journal{Record: control.Record{Time: now, What: control.Cleared, Off: off}})
	}
	l.suspected = is
}

// carry writes the records of a round and hands over its actions.
func (l *Loop) carry() {
	out := l.out
	l.out = l.out[:0:0]
	records := make([]control.Record, 0, len(out))
	for _, a := range out {
		if j, ok := a.(control.Journal); ok {
			records = append(records, j.Record)
			l.logRecord(&j.Record)
		}
	}
	if err := l.write(records); err != nil {
		l.hold(out, err)
		return
	}
	if err := l.fenced(out); err != nil {
		l.hold(out, err)
		return
	}
	for _, a := range out {
		l.do(a)
	}
}

// write passes records to the journal. While it cannot be written they wait for [Loop.retry].
func (l *Loop) write(records []control.Record) error {
	if l.state.Journal != "" {
		l.keep(records)
		return errors.New(l.state.Journal)
	}
	err := l.o.Journal.Append(records)
	if err != nil {
		l.o.Log.Error("the journal cannot be written: nothing is pushed until it can", "error", err.Error())
		l.state.Journal = err.Error()
		l.keep(records)
	}
	return err
}

// keep keeps records for a journal that can be written again, without those of what is not done.
func (l *Loop) keep(records []control.Record) {
	for _, r := range records {
		if r.What == control.Pushed || r.What == control.Asked || len(l.kept) == mostKept {
			l.lost++
			continue
		}
		l.kept = append(l.kept, r)
	}
}

// hold reports to the controller that actions of a round have not left, and that none will.
func (l *Loop) hold(out []control.Action, why error) {
	var unsent []control.Request
	for _, a := range out {
		if r := requestOf(a); r != 0 {
			unsent = append(unsent, r)
			l.state.Dropped++
		}
	}
	l.held = true
	l.give(control.Held{Why: why.Error(), Unsent: unsent})
}

// retry lets actions leave once the journal takes a record, and the fleet confirms that this control is in charge.
func (l *Loop) retry(now int64) {
	if l.state.Journal != "" {
		gap := control.Record{Time: now, What: control.Gap, Count: l.lost, Why: "the journal could not be written, and nothing was pushed: " + l.state.Journal}
		if err := l.o.Journal.Append(append([]control.Record{gap}, l.kept...)); err != nil {
			l.state.Journal = err.Error()
			return
		}
		l.o.Log.Info("the journal can be written again")
		l.state.Journal, l.kept, l.lost = "", nil, 0
	}
	if l.confirm() == nil {
		l.held = false
		l.give(control.Held{})
	}
}

// fenced returns why nothing of a round may leave, nil where it may. Reading is always allowed.
func (l *Loop) fenced(out []control.Action) error {
	if !slices.ContainsFunc(out, pushes) {
		return nil
	}
	return l.confirm()
}

// confirm calls the fence.
func (l *Loop) confirm() error {
	if l.o.Fence == nil {
		return nil
	}
	if err := l.o.Fence(l.c.Target()); err != nil {
		if l.state.Fence == "" {
			l.o.Log.Error("the fleet does not confirm that this controller is in charge: nothing is pushed until it does", "error", err.Error())
		}
		l.state.Fence = err.Error()
		return err
	}
	if l.state.Fence != "" {
		l.o.Log.Info("the fleet confirms that this controller is in charge")
		l.state.Fence = ""
	}
	return nil
}

// requestOf is the number of an action's request to a device, 0 for none.
func requestOf(a control.Action) control.Request {
	switch a := a.(type) {
	case control.SendPlan:
		return a.Request
	case control.Read:
		return a.Request
	case control.Install:
		return a.Request
	case control.Remove:
		return a.Request
	case control.Load:
		return a.Request
	}
	return 0
}

// pushes reports whether an action changes what a device has.
func pushes(a control.Action) bool {
	switch a.(type) {
	case control.SendPlan, control.Install, control.Remove, control.Load:
		return true
	}
	return false
}

// do hands an action over.
func (l *Loop) do(a control.Action) {
	switch a := a.(type) {
	case control.SendPlan:
		p, err := l.plans.partOf(a.Plan, a.Device.Name)
		if err != nil { // its check has let it pass, unless it is one of a network before
			l.Post(control.Refused{Request: a.Request, Device: a.Device, Why: err.Error()})
			return
		}
		l.o.Agents.SendPlan(a.Device.Name, a.Request, p)
	case control.Read:
		if a.Device.Kind == control.Agent {
			l.o.Agents.ReadPlan(a.Device.Name, a.Request)
		} else if l.o.Switches != nil {
			l.o.Switches.ReadEntries(a.Device.Name, a.Request)
		}
	case control.Load:
		if l.o.Switches != nil {
			l.o.Switches.Load(a.Device.Name, a.Request)
		}
	case control.Install:
		if l.o.Switches != nil {
			l.o.Switches.Install(a.Device.Name, a.Request, a.Entries)
		}
	case control.Remove:
		if l.o.Switches != nil {
			l.o.Switches.Remove(a.Device.Name, a.Request, a.Entries)
		}
	}
}

// logRecord writes to the log what an operator wants to see without asking.
func (l *Loop) logRecord(r *control.Record) {
	log := l.o.Log
	switch r.What {
	case control.Planned:
		log.Info("plan", "epoch", r.Epoch, "on", len(r.On), "off", len(r.Off), "left_out", len(r.Left), "why", r.Why)
	case control.Waiting:
		log.Warn("a plan waits for approval", "epoch", r.Epoch, "why", r.Why)
	case control.PlanFailed:
		log.Error("plan refused; the one before stays in force", "epoch", r.Epoch, "error", r.Why)
	case control.WentDown:
		log.Warn("device disconnected", "device", r.Device, "error", r.Why)
	case control.Deposition:
		log.Error("another controller has taken over; this one stands down", "error", r.Why)
	case control.Commanded:
		l.state.Refusal = r.Why
		log.Info("command", "what", r.Why)
	}
}

// note follows the last change-over.
func (l *Loop) note(now int64) {
	p := l.c.Target()
	switch {
	case p == nil:
	case p.Epoch != l.state.Epoch:
		l.state.Epoch, l.state.Began, l.state.Acked = p.Epoch, now, 0
	}
	if p != nil && l.state.Acked == 0 && l.c.InForce() == p {
		l.state.Acked = now
	}
}

// Due returns when the loop is to step although nothing was posted.
func (l *Loop) Due() int64 {
	if at, ok := l.c.Next(); ok {
		return min(at, l.nextTick)
	}
	return l.nextTick
}

// Run steps until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		now := l.o.Now()
		l.Step(now)
		l.mu.Lock()
		more := len(l.inbox) > 0
		l.mu.Unlock()
		if more {
			continue
		}
		t := time.NewTimer(time.Duration(max(l.Due()-l.o.Now(), int64(time.Millisecond))))
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-t.C:
		}
		t.Stop()
	}
	return nil
}

// errStopped is the error of a loop that does not run.
var errStopped = fmt.Errorf("the loop does not answer")

// Ask runs a function in the goroutine of the loop, after earlier posts and their effects. The function must not retain
// the controller. After an error it may still run later, so its outputs must not be read then.
func (l *Loop) Ask(ctx context.Context, f func(c *control.Controller, s *State)) error {
	done := make(chan struct{})
	l.post(question(func() { f(l.c, &l.state); close(done) }))
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errStopped
	}
}

// Controller and State may be called only in the goroutine that steps the loop; others call Ask.
func (l *Loop) Controller() *control.Controller { return l.c }

// State returns the state of the loop itself.
func (l *Loop) State() State { return l.state }
