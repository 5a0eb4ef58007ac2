package loop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// broken is a switch that does what a test says.
type broken struct {
	write func(ctx context.Context, updates []p4rt.Update) ([]error, error)
	reads int
	held  []p4.Entry
}

func (b *broken) Write(ctx context.Context, updates []p4rt.Update) ([]error, error) {
	return b.write(ctx, updates)
}

func (b *broken) Read(context.Context, ...string) ([]p4.Entry, error) {
	b.reads++
	return b.held, nil
}

// A request of unknown outcome is not answered, and one that waited longer than the controller does is not carried out
// any more. The switch is read before a write when its content is unknown, and after each write whose outcome it
// reported.
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
		b.write = func(ctx context.Context, list []p4rt.Update) ([]error, error) {
			writes++
			if writes == len(results) {
				b.held = []p4.Entry{list[0].Entry}
			}
			return results[writes-1](ctx)
		}
		s := NewInstallers(DefaultOwner, timeout, func(e control.Event) { events = append(events, fmt.Sprintf("%T", e)) }, map[string]p4rt.Installer{"s": b})
		defer s.Close()
		e := EntryOf(&p4.Entry{Table: "ports", Match: []p4.Match{p4.Number(1)}, Action: "set"}, 0)
		s.Install("s", 1, []control.Entry{e})
		s.Install("s", 2, []control.Entry{e}) // waits behind the first, until it is not waited for
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
		if b.reads != 6 {
			t.Errorf("read %d times, want once before the first four writes, and after the last two", b.reads)
		}
	})
}

// Our entries are removed from a switch, whatever their epoch, and the others stay. Nothing is written without
// permission, and a switch without entries of ours needs none.
func TestClear(t *testing.T) {
	tables := []p4.Table{{Name: "ports", Size: 8, Key: []p4.Field{{Name: "port", Kind: p4.Exact, Bits: 9}}, Actions: []p4.Action{{Name: "set"}}}}
	info, err := p4rt.NewInfo(tables)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p4rt.OpenFiles(t.TempDir()+"/s.json", info, string(DefaultOwner))
	if err != nil {
		t.Fatal(err)
	}
	var fill []p4rt.Update
	for k, owner := range []string{"hopscope", "hopscope@7", "hopscope@9", "somebody", "hopscope@x"} {
		fill = append(fill, p4rt.Update{Op: p4rt.Insert, Entry: p4.Entry{Table: "ports", Match: []p4.Match{p4.Number(uint64(k))}, Action: "set", Owner: owner}})
	}
	if errs, err := f.Write(t.Context(), fill); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	s := NewInstallers(DefaultOwner, time.Minute, func(control.Event) {}, map[string]p4rt.Installer{"s": f})
	defer s.Close()
	left := func() int {
		t.Helper()
		list, err := f.Read(t.Context(), "ports")
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(list, func(e p4.Entry) bool { return e.Default() }))
	}
	asked := 0
	refuses := errors.New("not now")
	may := func(n int) error {
		if asked++; n != 3 {
			t.Errorf("asked for %d entries, want 3", n)
		}
		if asked == 1 {
			return refuses
		}
		return nil
	}
	if _, err := s.Clear(t.Context(), "s", may); !errors.Is(err, refuses) || left() != 5 {
		t.Errorf("after %v there are %d entries, want 5", err, left())
	}
	for _, want := range []int{3, 0} {
		if n, err := s.Clear(t.Context(), "s", may); n != want || err != nil || left() != 2 {
			t.Errorf("%d entries cleared, %v, %d left; want %d, and 2", n, err, left(), want)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	if _, err := s.Clear(t.Context(), "nobody", may); err == nil {
		t.Error("a switch that is not served is cleared")
	}
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

// A probe goes to its sender and to its receiver. What agents did not report does not limit them.
func TestPlansOfAgents(t *testing.T) {
	c := &compiled{probing: &Probing{Dialect: probe.INT21, Interval: 10 * time.Microsecond, Addresses: map[string]netip.Addr{"b": netip.MustParseAddr("10.0.0.2")}}}
	route, err := srint.AppendProbe(nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	p := &control.Plan{Epoch: 3, Probes: []planner.Probe{{ID: "p", Agent: "a", Collector: "b", Nodes: []string{"a", "b"}, Ports: []int{1}, CollectorPort: 2, Route: hex.EncodeToString(route)}}}
	for name, want := range map[string]int{"a": 1, "b": 1, "c": 0} {
		q, err := c.partOf(p, name)
		if err != nil || len(q.Probes) != want || q.Epoch != 3 {
			t.Errorf("%s gets %+v, %v; want %d probes", name, q, err, want)
		}
	}
	silent := func(string) (probe.Limits, bool) { return probe.Limits{}, false }
	if err := c.check(p, []string{"a", "b", "c"}, silent); err != nil {
		t.Error(err)
	}
	reported := func(name string) (probe.Limits, bool) {
		return probe.Limits{Name: name, SendBPS: 1e9, ReceiveBPS: 1e9, ProbesPerSec: 10, Probes: 10, MTU: 1500}, true
	}
	if c.check(p, []string{"a", "b", "c"}, reported) == nil {
		t.Error("a plan beyond what agents reported is given to them")
	}
}

// If a plan adds detail to one probe, only the agents of this probe get other probes. A plan that an agent could carry
// out is refused as soon as the agent reports lower limits.
func TestPlansThatChange(t *testing.T) {
	route, err := srint.AppendProbe(nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	n := &control.Network{Agents: []string{"a", "b"}}
	for _, x := range [][2]string{{"p", "a"}, {"q", "b"}} {
		n.Probes = append(n.Probes, planner.Probe{ID: x[0], Agent: x[1], Collector: x[1], Nodes: []string{x[1], "s"}, Ports: []int{1}, CollectorPort: 2,
			Route: hex.EncodeToString(route), Links: []string{"of " + x[1]}})
	}
	most := 10
	c := &compiled{probing: &Probing{Dialect: probe.INT21, Interval: time.Millisecond}}
	n.Check = func(p *control.Plan) error {
		return c.check(p, n.Agents, func(name string) (probe.Limits, bool) {
			return probe.Limits{Name: name, SendBPS: 1e9, ReceiveBPS: 1e9, ProbesPerSec: 1e6, Probes: most, MTU: 1500}, true
		})
	}
	x, err := control.New(control.Config{Cycle: 10, Timeout: 1}, n, control.Seed{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range n.Agents {
		d := control.Device{Kind: control.Agent, Name: name}
		for _, a := range x.Step(control.Up{Device: d}) {
			if r, ok := a.(control.Read); ok {
				x.Step(control.ReadBack{Request: r.Request, Device: d})
			}
		}
	}
	now := int64(0)
	plan := func(suspects ...control.Suspect) map[string]*probe.Plan {
		t.Helper()
		now += 10
		got := map[string]*probe.Plan{}
		for _, a := range x.Step(control.Tick{Now: now, Suspects: suspects}) {
			if s, ok := a.(control.SendPlan); ok {
				if got[s.Device.Name], err = c.partOf(s.Plan, s.Device.Name); err != nil {
					t.Fatal(err)
				}
				x.Step(control.Acked{Request: s.Request, Device: s.Device})
			}
		}
		return got
	}
	first := plan()
	second := plan(control.Suspect{Link: "of b", Weight: 1})
	if len(first) != 2 || len(second) != 2 {
		t.Fatalf("%d and %d agents got a plan", len(first), len(second))
	}
	if first["b"].Probes[0].Detailed || !second["b"].Probes[0].Detailed || second["a"].Probes[0].Detailed || second["a"].Epoch != 2 || first["a"].Epoch != 1 {
		t.Errorf("%+v, then %+v", first, second)
	}
	if &first["a"].Probes[0] != &second["a"].Probes[0] {
		t.Error("the probes of an agent are made again though none of them changes")
	}
	most = 0
	if plan(); x.Target().Epoch != 2 || x.Status().Counts.Refused != 1 {
		t.Errorf("agents that send no probe any more got a plan with some: %+v", x.Status())
	}
}
