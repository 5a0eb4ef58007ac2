package steer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/planner/control"
)

// Settings are files that name a network, which are read again while it is steered.
type Settings interface {
	// Read returns the present contents of the files, the function to call when they are in force, and the changed keys
	// that need a restart.
	Read() (f *Files, adopt func(*Network), restart []string, err error)
	// Report logs what a reload came to.
	Report(x *Network, restart []string, log *slog.Logger)
}

// Steering is a control that runs, and reads its settings again.
type Steering struct {
	Settings Settings
	Hangup   <-chan struct{}
	Cycle    time.Duration
	Network  *Network
	Loop     *loop.Loop
	Server   *loop.Server
	Switches *Switches
	Log      *slog.Logger

	Page       *Page         // whose flows are assigned to interfaces; nil for none
	Every      time.Duration // interval of assignments; 0 for those of the files alone
	Assignment *Assignment   // of Network
	Approve    bool          // whether plans wait for approval

	Deliver time.Duration          // interval of plans of delivery; 0 for those of the files alone
	Open    func(url string) *Page // the page of a server
}

// Run reads the settings again at every hangup, and ends the connections of switches that have left the network, until ctx ends.
func (s *Steering) Run(ctx context.Context) {
	t := time.NewTicker(s.Cycle)
	defer t.Stop()
	var assign <-chan time.Time
	if s.Every > 0 && s.Page != nil {
		t := time.NewTicker(s.Every)
		defer t.Stop()
		assign = t.C
	}
	var deliver <-chan time.Time
	if s.Deliver > 0 {
		t := time.NewTicker(s.Deliver)
		defer t.Stop()
		deliver = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.letGo(ctx)
			s.keep(ctx)
			s.step(ctx)
			continue
		case <-deliver:
			if s.Network.deliverer != nil && s.mayPlan(ctx) {
				s.deliver(ctx)
			}
			continue
		case <-assign:
			if s.Network.orchestrator != nil && s.mayPlan(ctx) {
				s.orchestrate(ctx)
			}
			continue
		case <-s.Hangup:
		}
		restart, err := s.reload(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.Log.Error("settings not reloaded; network and plan stay", "error", err.Error())
			continue
		}
		s.Settings.Report(s.Network, restart, s.Log)
	}
}

// ask returns the status of the loop. It waits for a short time.
func (s *Steering) ask(ctx context.Context) (loop.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.Loop.Status(ctx)
}

// mayPlan reports whether a plan would wait for approval if it has to. The first one of a loop does not, with all entries.
func (s *Steering) mayPlan(ctx context.Context) bool {
	status, err := s.ask(ctx)
	return !s.Approve || err == nil && status.Epoch > 0
}

// reload adopts the present contents of the files, or refuses all of it.
func (s *Steering) reload(ctx context.Context) (restart []string, err error) {
	f, adopt, restart, err := s.Settings.Read()
	var x *Network
	if err == nil {
		x, err = ReadNetwork(f)
	}
	late := &LatePost{}
	var fresh map[string]*ServedSwitch
	if err == nil {
		fresh, err = s.Switches.more(f.Switches, late.Post)
	}
	if err != nil {
		s.Loop.RefuseNetwork(err.Error())
		return nil, err
	}
	err = s.Loop.Replace(ctx, loop.Replacement{Network: x.Control, Probing: x.Config.Sent, Passes: x.Config.Links.passes, First: func() { s.Network.Suspects.replace(x.Suspects) }})
	if err != nil {
		for _, c := range fresh {
			c.Close()
		}
		return nil, err
	}
	for name, c := range fresh {
		s.Switches.forget(name) // if it was only served for its cleaning
		s.Switches.served[name] = c
		s.Switches.Serve(name, c.to)
	}
	late.To(s.Loop.Post) // behind the network that they are of
	for name, c := range s.Switches.served {
		in, was := slices.Contains(x.Control.Switches, name), slices.Contains(s.Network.Control.Switches, name)
		c.SetLeft(!in)
		// It has come back before its connection was ended, so that no other event reports it.
		if in && !was && fresh[name] == nil && c.there() {
			s.Loop.Post(control.Up{Device: control.Device{Kind: control.Switch, Name: name}})
		}
	}
	s.Server.Allow(x.Control.Agents)
	x.Suspects = s.Network.Suspects // which findings go to, and which has taken the new network over
	x.orchestrator.resume(s.Network.orchestrator)
	x.deliverer.resume(s.Network.deliverer)
	s.Assignment.now.Store(x)
	s.Network = x
	adopt(x)
	return restart, nil
}

// letGo ends the connections of switches that the network has no more, when nothing of the controller is left there. One that cannot be
// reached is waited for, and cleaned when it comes back.
func (s *Steering) letGo(ctx context.Context) {
	var left []string
	for name := range s.Switches.served {
		if !slices.Contains(s.Network.Control.Switches, name) {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return
	}
	slices.Sort(left)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := s.Loop.Status(ctx)
	if err != nil || status.Phase == control.Deposed {
		return // the next time
	}
	for _, name := range left {
		d := control.Device{Kind: control.Switch, Name: name}
		if slices.ContainsFunc(status.Devices, func(x control.DeviceStatus) bool { return x.Device == d }) {
			continue // it is the controller's
		}
		x := s.Switches.served[name]
		end, err := s.clean(ctx, d, x)
		switch {
		case end:
			s.Switches.forget(name)
			if err == nil {
				s.Log.Info("switch has left the network", "switch", name)
			} else {
				s.Log.Warn("switch has left the network, and keeps its entries", "switch", name, "error", err.Error())
			}
		case ctx.Err() == nil && x.logged != err.Error():
			x.logged = err.Error()
			s.Log.Warn("switch has left the network, and keeps its entries until it can be written", "switch", name, "error", x.logged)
		}
	}
}

// clean removes the entries of this controller from a switch that has left. The result end is set if nothing more is to
// do there; the error is why they stay.
func (s *Steering) clean(ctx context.Context, d control.Device, x *ServedSwitch) (end bool, err error) {
	if !x.there() {
		state := x.client.State()
		_, other := errors.AsType[*p4rt.PipelineError](state.Problem)
		switch {
		case state.Connected && !state.Primary && state.Leader.Above(x.election):
			return true, p4rt.ErrNotPrimary // it belongs to another controller now
		case x.owes && other:
			return true, nil // its entries went with the program
		case x.owes:
			return false, cmp.Or(state.Problem, p4rt.ErrUnreachable)
		}
		// The program of a switch that has left is of no concern.
		cfg, c := s.Switches.cfg, x.settings
		c.Commit, c.Load, cfg.Log = false, loadNever, slog.New(slog.DiscardHandler)
		x.Close()
		reopened, err := cfg.Open(&c, func(control.Event) {})
		if err != nil {
			return true, err
		}
		reopened.owes, reopened.settings = true, x.settings
		s.Switches.served[d.Name] = reopened
		s.Switches.Serve(d.Name, reopened.to)
		return false, p4rt.ErrUnreachable
	}
	n, err := s.Switches.Clear(ctx, d.Name, func(entries int) error {
		return s.Loop.Push(ctx, control.Record{What: control.Pushed, Device: d.String(), Count: entries, Why: "out of it, which has left the network"})
	})
	if err == nil && n > 0 {
		err = s.Loop.Push(ctx, control.Record{What: control.Answered, Device: d.String(), Count: n, Why: "it has left the network"})
	}
	return err == nil, err
}
