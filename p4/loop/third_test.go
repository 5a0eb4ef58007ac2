package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
)

// sick is a switch that takes entries, or fails in one of the ways in which switches do.
type sick struct {
	how  string // "" for healthy
	held []p4.Entry
}

func (s *sick) fail(ctx context.Context) error {
	switch s.how {
	case "hangs":
		<-ctx.Done()
		return ctx.Err()
	case "hangs for ever": // it does not even hear that it is given up
		time.Sleep(365 * 24 * time.Hour)
		return ctx.Err()
	case "unreachable":
		return p4rt.ErrUnreachable
	case "refuses":
		return errors.New("no room")
	}
	return nil
}

func (s *sick) Write(ctx context.Context, list []p4rt.Update) ([]error, error) {
	if err := s.fail(ctx); err != nil {
		return nil, err
	}
	s.held = nil
	for _, u := range list {
		s.held = append(s.held, u.Entry)
	}
	return nil, nil
}

func (s *sick) Read(ctx context.Context, _ ...string) ([]p4.Entry, error) {
	if s.how == "refuses" {
		return s.held, nil
	}
	return s.held, s.fail(ctx)
}

// One of three switches hangs, is gone or refuses, for an hour: all others have what they are asked for at once, each time.
func TestThirdOfSwitches(t *testing.T) {
	for _, how := range []string{"hangs", "unreachable", "refuses", "hangs for ever"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const switches = 9
				all, events := map[string]p4rt.Installer{}, make(chan control.Event, 100)
				for k := range switches {
					s := &sick{}
					if k%3 == 0 {
						s.how = how
					}
					all[fmt.Sprint(k)] = s
				}
				s := NewInstallers(DefaultOwner, 2*time.Second, func(e control.Event) { events <- e }, all)
				for request := range control.Request(360) {
					e := EntryOf(&p4.Entry{Table: "ports", Match: []p4.Match{p4.Number(uint64(request))}, Action: "set"}, 0)
					begun := time.Now()
					for k := range switches {
						s.Install(fmt.Sprint(k), request, []control.Entry{e})
					}
					synctest.Wait()
					acked := map[string]bool{}
					for len(events) > 0 {
						switch e := (<-events).(type) {
						case control.Acked:
							acked[e.Device.Name] = e.Request == request
						case control.Refused:
							if how != "refuses" || e.Request != request {
								t.Fatalf("%+v", e)
							}
						}
					}
					for k := range switches {
						if acked[fmt.Sprint(k)] != (k%3 != 0) {
							t.Fatalf("request %d: acknowledged by %v", request, acked)
						}
					}
					if time.Since(begun) != 0 {
						t.Fatalf("it took %v", time.Since(begun))
					}
					time.Sleep(10 * time.Second)
				}
				s.Close()
			})
		})
	}
}

// One of three agents reads nothing, so that its connection is full, refuses, or never answers. All others have every
// plan, and their answers are posted.
func TestThirdOfAgents(t *testing.T) {
	const agents, plans = 6, 40
	var names []string
	for k := range agents {
		names = append(names, fmt.Sprintf("edge-%d", k))
	}
	s := serveAgents(t, names...)
	var reading sync.WaitGroup
	streams := map[string]agentpb.Plans_FollowClient{}
	for k, name := range names {
		c, err := s.follow(t, s.by, name)
		if err != nil {
			t.Fatal(err)
		}
		say(t, c, &agentpb.Answer{Agent: name})
		if e := s.next(t); e != (control.Up{Device: control.Device{Kind: control.Agent, Name: name}}) {
			t.Fatalf("%+v", e)
		}
		streams[name] = c
		if k%3 == 0 {
			continue // it reads nothing
		}
		reading.Go(func() {
			for {
				m, err := c.Recv()
				if err != nil {
					return // the test has ended
				}
				if err := c.Send(&agentpb.Answer{Agent: name, InForce: m.GetEpoch(), About: m.GetEpoch()}); err != nil {
					return
				}
			}
		})
	}
	for n := range plans {
		p := &probe.Plan{Epoch: uint32(n + 1), Dialect: probe.INT21, Basic: 0xf000, Detailed: 0xff80}
		for id := range 1000 { // longer than what a connection takes unread
			p.Probes = append(p.Probes, probe.Probe{ID: fmt.Sprintf("probe %d of a long plan", id), Interval: time.Second, Route: make([]int, 8)})
		}
		for _, name := range names {
			s.SendPlan(name, control.Request(n), p)
		}
		waits := map[control.Acked]bool{}
		for k, name := range names {
			if k%3 != 0 {
				waits[control.Acked{Request: control.Request(n), Device: control.Device{Kind: control.Agent, Name: name}}] = true
			}
		}
		for len(waits) > 0 {
			e := s.next(t)
			acked, ok := e.(control.Acked)
			if !ok || !waits[acked] {
				t.Fatalf("plan %d: %+v, while it waits for %v", n, e, waits)
			}
			delete(waits, acked)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, name := range names {
		f := s.conns[name]
		if f == nil || (f.inForce == plans) != (k%3 != 0) || k%3 == 0 && f.next == nil {
			t.Errorf("%s: %+v: an agent that reads nothing holds up its own plans, and no other", name, f)
		}
	}
}
