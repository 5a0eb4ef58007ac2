package steer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/p4/loop"
)

const (
	askStandby = 2 * time.Second // the longest wait for which control is in charge
	mostMember = 100             // bytes of a name that are shown
)

// Standby is a control of a fleet while another one is in charge. It reads its settings again, and reports why it steers nothing.
type Standby struct {
	InCharge func(ctx context.Context) (name string, term uint64, err error) // the name may be any text; term 0 is none yet
	Settings Settings
	Last     func() *Network // that of the settings before
	Hangup   <-chan struct{}
	Log      *slog.Logger

	Own      atomic.Uint64 // the last term of this control, 0 for none
	Steers   atomic.Bool   // it is in charge, and does not stand by
	Steering chan struct{} // hangups while it steers, with room for one
	refused  atomic.Pointer[string]
}

// Run reads the settings again at every hangup while another control is in charge, so that an error in them is logged
// before a takeover. Hangups while this one steers go to Steering.
func (s *Standby) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Hangup:
		}
		if s.Steers.Load() {
			select {
			case s.Steering <- struct{}{}:
			default: // one is enough
			}
			continue
		}
		x, restart, err := s.adopt()
		s.refuse(err)
		if err == nil {
			s.Settings.Report(x, restart, s.Log)
		}
	}
}

// adopt reads the network of the settings and adopts it, or changes nothing.
func (s *Standby) adopt() (x *Network, restart []string, err error) {
	f, adopt, restart, err := s.Settings.Read()
	if err == nil {
		x, err = ReadNetwork(f)
	}
	if err != nil {
		return nil, nil, err
	}
	adopt(x)
	return x, restart, nil
}

// Reread reads the settings again after a time in charge, and keeps what is wrong with them.
func (s *Standby) Reread() {
	_, _, err := s.adopt()
	s.refuse(err)
}

// refuse keeps why the settings were refused; nil is that they were adopted.
func (s *Standby) refuse(err error) (why string) {
	if err != nil {
		why = err.Error()
		s.Log.Error("settings not reloaded; this control would go on with those before", "error", why)
	}
	s.refused.Store(&why)
	return why
}

// Network is the network to steer from now on. It is that of the settings, or the last one where these are refused,
// with the reason. The controller of a new term has no state of earlier ones.
func (s *Standby) Network() (x *Network, refused string, err error) {
	x, _, err = s.adopt()
	if refused = s.refuse(err); err != nil {
		x = s.Last()
	}
	x, err = x.anew()
	return x, refused, err
}

// Now returns which control is in charge, within at most [askStandby].
func (s *Standby) Now(ctx context.Context) loop.Standby {
	x := s.inCharge(ctx)
	if why := s.refused.Load(); why != nil {
		x.Refused = *why
	}
	return x
}

func (s *Standby) inCharge(ctx context.Context) loop.Standby {
	ctx, cancel := context.WithTimeout(ctx, askStandby)
	defer cancel()
	name, term, err := s.InCharge(ctx)
	switch {
	case err != nil:
		return loop.Standby{Why: "this control stands by, and cannot read which one is in charge: " + err.Error()}
	case term == 0:
		return loop.Standby{Why: "this control stands by, and none has been in charge yet"}
	case term <= s.Own.Load():
		return loop.Standby{Why: "this control is not in charge any more, and none has taken over yet"}
	}
	name = names.Printable(strings.ToValidUTF8(name[:min(len(name), mostMember)], "")) // every writer of the topic can choose it
	return loop.Standby{Why: fmt.Sprintf("this control stands by: %s is in charge (term %d)", name, term), InCharge: name, Term: term}
}
