package loop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/table"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// broken is a switch that does what a test says.
type broken struct {
	write func(ctx context.Context, updates []p4rt.Update) ([]error, error)
	reads int
}

func (b *broken) Write(ctx context.Context, updates []p4rt.Update) ([]error, error) {
	return b.write(ctx, updates)
}

func (b *broken) Read(context.Context, ...string) ([]table.Entry, error) {
	b.reads++
	return nil, nil
}

// A request of which nobody knows whether it was carried out is not answered, one that waited longer than the controller does is
// not carried out any more, and after everything that did not work as a whole the switch is read before it is written to again.
func TestInstallersOfBrokenSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		writes, events := 0, []string{}
		b := &broken{}
		results := []func(ctx context.Context) ([]error, error){
			func(ctx context.Context) ([]error, error) { <-ctx.Done(); return nil, ctx.Err() },
			func(context.Context) ([]error, error) { return []error{p4rt.ErrUnknown}, nil },
			func(context.Context) ([]error, error) { return nil, p4rt.ErrUnreachable },
			func(context.Context) ([]error, error) { return []error{errors.New("no room")}, nil },
			func(context.Context) ([]error, error) { return nil, nil },
		}
		b.write = func(ctx context.Context, _ []p4rt.Update) ([]error, error) {
			writes++
			return results[writes-1](ctx)
		}
		s := NewInstallers(DefaultOwner, timeout, func(e control.Event) { events = append(events, fmt.Sprintf("%T", e)) }, map[string]p4rt.Installer{"s": b})
		defer s.Close()
		e := EntryOf(&table.Entry{Table: "ports", Match: []table.Match{table.Number(1)}, Action: "set"}, 0)
		s.Install("s", 1, []control.Entry{e})
		s.Install("s", 2, []control.Entry{e}) // waits behind the first, until nobody waits for it
		synctest.Wait()
		time.Sleep(2 * timeout)
		synctest.Wait()
		if writes != 1 || len(events) != 0 {
			t.Fatalf("%d writes, posted %v", writes, events)
		}
		for k := range results[1:] {
			s.Install("s", control.Request(3+k), []control.Entry{e})
			synctest.Wait()
		}
		if want := "[control.Refused control.Acked]"; fmt.Sprint(events) != want {
			t.Errorf("posted %v, want %s", events, want)
		}
		if b.reads != 5 {
			t.Errorf("read %d times, want once before each write", b.reads)
		}
	})
}

// Cycles that were slept over do not come again.
func TestLoopSleeps(t *testing.T) {
	x := newEmulated(t, 7, nil)
	for _, now := range []time.Duration{0, 10*cycle + cycle/2, 10*cycle + cycle/2 + 1, 11 * cycle} {
		x.loop.Step(int64(now))
	}
	if n := x.loop.StatusNow().Counts.Cycles; n != 3 {
		t.Errorf("%d cycles, want 3: the first, one for those slept over, and one in its time", n)
	}
}

// A probe goes to who sends it and to who takes it back. What agents did not tell does not limit them.
func TestPlansOfAgents(t *testing.T) {
	c := &compiled{probing: &Probing{Dialect: agent.INT21, Interval: 10 * time.Microsecond, Addresses: map[string]netip.Addr{"b": netip.MustParseAddr("10.0.0.2")}}}
	route, err := srint.AppendProbe(nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	p := &control.Plan{Epoch: 3, Probes: []planner.Probe{{ID: "p", Agent: "a", Collector: "b", Nodes: []string{"a", "b"}, Ports: []int{1}, CollectorPort: 2, Route: hex.EncodeToString(route)}}}
	for name, want := range map[string]int{"a": 1, "b": 1, "c": 0} {
		q, err := c.of(p, name)
		if err != nil || len(q.Probes) != want || q.Epoch != 3 {
			t.Errorf("%s gets %+v, %v; want %d probes", name, q, err, want)
		}
	}
	silent := func(string) (agent.Limits, bool) { return agent.Limits{}, false }
	if err := c.check(p, []string{"a", "b", "c"}, silent); err != nil {
		t.Error(err)
	}
	told := func(name string) (agent.Limits, bool) {
		return agent.Limits{Name: name, SendBPS: 1e9, ReceiveBPS: 1e9, ProbesPerSec: 10, Probes: 10, MTU: 1500}, true
	}
	if c.check(p, []string{"a", "b", "c"}, told) == nil {
		t.Error("a plan beyond what agents told is given to them")
	}
}
