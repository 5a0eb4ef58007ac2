package p4rt

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/p4"
)

// Of two controllers the one with the higher id writes, and the other one gets an error. When it goes the other takes over, and what
// it finds is what there is.
func TestTwoControllers(t *testing.T) {
	b := newBench(t, "intmd")
	states := make(chan State, 100)
	cfg := b.config(t, "intmd")
	cfg.OnState = func(s State) { states <- s }
	low := ready(t, dial(t, cfg))
	if errs, err := low.Write(within(t), inserts(route(0, 1))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	cfg = b.config(t, "intmd")
	cfg.Election = Election{High: 1}
	high := ready(t, dial(t, cfg))
	until(t, "the first one is told", func() bool { return !low.State().Primary })
	if s := low.State(); !s.Connected || s.Leader != (Election{High: 1}) || !s.Ready {
		t.Errorf("%+v", s)
	}
	errs, err := low.Write(within(t), inserts(route(1, 1)))
	if errs != nil || !errors.Is(err, ErrNotPrimary) || !strings.Contains(err.Error(), "1:0, ours 0:7") {
		t.Errorf("%v, %v", errs, err)
	}
	for what, err := range map[string]error{"packet": low.sendPacket(Packet{}), "commit": low.Commit(within(t)), "verify": low.Verify(within(t))} {
		if !errors.Is(err, ErrNotPrimary) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := low.Read(within(t), "ingress.forward.forwarding4"); err != nil || len(got) != 2 {
		t.Errorf("who is not primary may read: %v, %v", got, err)
	}
	if errs, err := high.Write(within(t), inserts(route(2, 1))); errs != nil || err != nil {
		t.Error(errs, err)
	}
	if err := high.Close(); err != nil {
		t.Error(err)
	}
	ready(t, low)
	got, err := Reconcile(within(t), low, []p4.Entry{route(0, 1)}, ownedBy("us"))
	if err != nil || got.Adopted != 1 || got.Removed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	var primary []bool
	for len(states) > 0 {
		if s := <-states; len(primary) == 0 || primary[len(primary)-1] != s.Primary {
			primary = append(primary, s.Primary)
		}
	}
	if len(primary) < 3 || !primary[len(primary)-1] {
		t.Errorf("reported %v", primary)
	}
}

// A switch that has not reported yet that another controller is primary refuses the write all the same.
func TestFenced(t *testing.T) {
	b := newBench(t, "intmd")
	c := ready(t, dial(t, b.config(t, "intmd")))
	b.Misbehave(func(f *p4rttest.Faults) { f.Greeting = func(*p4pb.StreamMessageResponse) bool { return false } })
	gone := b.Demote()
	errs, err := c.Write(within(t), inserts(route(0, 1), route(1, 1)))
	if !errors.Is(err, ErrNotPrimary) || len(errs) != 2 || !errors.Is(errs[0], ErrSkipped) {
		t.Errorf("%v, %v", errs, err)
	}
	if n := len(b.content("ingress.forward.forwarding4")); n != 1 {
		t.Errorf("%d entries", n)
	}
	b.Misbehave(func(f *p4rttest.Faults) { f.Greeting = nil })
	gone()
	ready(t, c)
}

func TestSameElection(t *testing.T) {
	b := newBench(t, "intmd")
	ready(t, dial(t, b.config(t, "intmd")))
	second := dial(t, b.config(t, "intmd"))
	until(t, "refused", func() bool { return errors.Is(second.State().Problem, ErrElection) })
	if _, err := second.Write(within(t), inserts(route(0, 1))); !errors.Is(err, ErrElection) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// A pipeline of another version is reported and left alone, until a controller commits the right one. It is noticed later as well.
func TestOtherPipeline(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.Commit = false
	c := dial(t, cfg)
	var other *PipelineError
	until(t, "told", func() bool { return errors.As(c.State().Problem, &other) })
	if !other.None || other.Want != cfg.Pipeline.Cookie {
		t.Errorf("%+v", other)
	}
	if err := c.Verify(within(t)); err != nil {
		t.Error(err)
	}
	if _, err := c.Write(within(t), inserts(route(0, 1))); !errors.As(err, &other) || !other.None {
		t.Errorf("%v", err)
	}
	if err := c.Commit(within(t)); err != nil {
		t.Fatal(err)
	}
	ready(t, c)
	b.Misbehave(func(f *p4rttest.Faults) { f.Cookie = 0x1234 })
	until(t, "noticed", func() bool { return errors.As(c.State().Problem, &other) && other.Have == 0x1234 })
	for what, err := range map[string]error{"write": second(c.Write(within(t), inserts(route(0, 1)))), "read": second(c.Read(within(t)))} {
		if !errors.As(err, &other) || other.None || other.Have != 0x1234 || !strings.Contains(err.Error(), "0x0000000000001234") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := c.Commit(within(t)); !errors.As(err, &other) {
		t.Errorf("it was committed, and the switch has another one: %v", err)
	}
	b.Misbehave(func(f *p4rttest.Faults) { f.Cookie = 0 })
	ready(t, c)

	// A program that the switch does not take.
	bad, err := NewPipeline(cfg.Pipeline.Info, []byte{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Pipeline, cfg.Election = bad, Election{High: 9}
	d := dial(t, cfg)
	until(t, "primary", func() bool { return d.State().Primary })
	var said *switchError
	if err := d.Verify(within(t)); !errors.As(err, &said) || !strings.Contains(err.Error(), "no program") {
		t.Errorf("%v", err)
	}
	if err := d.Commit(within(t)); !errors.As(err, &said) {
		t.Errorf("%v", err)
	}
	cfg.Commit, cfg.Election = true, Election{High: 10}
	e := dial(t, cfg)
	until(t, "told", func() bool {
		s := e.State()
		return s.Connected && s.Primary && !s.Ready && errors.As(s.Problem, &said)
	})
}

// counted counts ends of streams.
func counted(cfg Config) (Config, *atomic.Int32) {
	var ends atomic.Int32
	cfg.OnState = func(s State) {
		if !s.Connected && s.Problem != ErrClosed {
			ends.Add(1)
		}
	}
	return cfg, &ends
}

func second[T any](_ T, err error) error { return err }

// A switch that starts again has lost everything: it gets its program, and is reconciled.
func TestRestart(t *testing.T) {
	b := newBench(t, "intmd")
	cfg, ends := counted(b.config(t, "intmd"))
	c := ready(t, dial(t, cfg))
	want := []p4.Entry{route(0, 1), route(1, 2)}
	for n := range int32(3) {
		if got, err := Reconcile(within(t), c, want, ownedBy("us")); err != nil || got.Inserted != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		b.Restart()
		until(t, "noticed", func() bool { return ends.Load() > n })
		ready(t, c)
	}
}

// A switch that loses its program and keeps the stream gets it again as well. A follower of the states learns that it was not ready
// in between: whatever was installed is gone.
func TestUnloaded(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	var sets, breaks atomic.Int32
	cfg.OnState = func(s State) {
		switch {
		case s.Set():
			sets.Add(1)
		case sets.Load() > 0 && s.Connected:
			breaks.Add(1)
		}
	}
	c := ready(t, dial(t, cfg))
	b.Unload()
	until(t, "it has a program", func() bool { return len(b.content("")) > 0 })
	until(t, "it was told", func() bool { return breaks.Load() > 0 && sets.Load() > 1 })
	ready(t, c)
	got, err := Reconcile(within(t), c, []p4.Entry{route(0, 1)}, ownedBy("us"))
	if err != nil || got.Inserted != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A stream that ends is begun again, and what was installed stays.
func TestDropped(t *testing.T) {
	b := newBench(t, "intmd")
	cfg, ends := counted(b.config(t, "intmd"))
	c := ready(t, dial(t, cfg))
	if errs, err := c.Write(within(t), inserts(route(0, 1))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	for n := range int32(5) {
		b.Drop()
		until(t, "noticed", func() bool { return ends.Load() > n })
		ready(t, c)
	}
	if got, err := Reconcile(within(t), c, []p4.Entry{route(0, 1)}, ownedBy("us")); err != nil || got.Adopted != 1 || got.Inserted+got.Repaired+got.Removed != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A switch goes between two requests of a write. Unsent updates are not done, and the outcome of the rest is known or
// reported as unknown.
func TestGoneBetween(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.batchUpdates = 1
	c := ready(t, dial(t, cfg))
	n := 0
	b.Misbehave(func(f *p4rttest.Faults) {
		f.After = func(*p4pb.WriteRequest) error {
			if n++; n == 2 {
				go b.stop()
				select {} // the answer never comes
			}
			return nil
		}
	})
	errs, err := c.Write(within(t), inserts(route(0, 1), route(1, 1), route(2, 1)))
	if !errors.Is(err, ErrUnreachable) || len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], ErrUnknown) || !errors.Is(errs[2], ErrSkipped) {
		t.Errorf("%v, %v", errs, err)
	}
}

// What a switch says first and may not: no stream comes of it, and of the next one does.
func TestGreetings(t *testing.T) {
	for name, change := range map[string]func(m *p4pb.StreamMessageResponse) bool{
		"another device": func(m *p4pb.StreamMessageResponse) bool { m.GetArbitration().DeviceId++; return true },
		"another id": func(m *p4pb.StreamMessageResponse) bool {
			m.GetArbitration().ElectionId = &p4pb.Uint128{High: 99}
			return true
		},
		"a failure": func(m *p4pb.StreamMessageResponse) bool {
			m.GetArbitration().Status.Code = int32(codes.DataLoss)
			return true
		},
		"a packet": func(m *p4pb.StreamMessageResponse) bool {
			m.Update = &p4pb.StreamMessageResponse_Packet{Packet: &p4pb.PacketIn{Payload: []byte("x")}}
			return true
		},
		"nothing in it": func(m *p4pb.StreamMessageResponse) bool { m.Update = nil; return true },
		"nothing":       func(*p4pb.StreamMessageResponse) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "intmd")
			b.Misbehave(func(f *p4rttest.Faults) { f.Greeting = change })
			cfg := b.config(t, "intmd")
			if name == "nothing" {
				cfg.Timeout = 50 * time.Millisecond
			}
			problems := make(chan error, 1000)
			cfg.OnState = func(s State) {
				if s.Connected {
					t.Errorf("%+v", s)
				}
				problems <- s.Problem
			}
			c := dial(t, cfg)
			err := <-problems
			var answer *answerError
			if name != "nothing" && !errors.As(err, &answer) || name == "nothing" && !errors.Is(err, ErrUnreachable) {
				t.Errorf("%v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.Device++
	c := dial(t, cfg)
	until(t, "refused", func() bool { return strings.Contains(c.State().Problem.Error(), "no such device") })
}

// Lies in what is read are refused whole.
func TestLies(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.maxEntries = 50
	c := ready(t, dial(t, cfg))
	if errs, err := c.Write(within(t), inserts(route(0, 1), route(1, 1))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	entries := func(list []*p4pb.Entity) (at []int) {
		for i, x := range list {
			if !x.GetTableEntry().GetIsDefaultAction() && x.GetTableEntry() != nil {
				at = append(at, i)
			}
		}
		return at
	}
	for name, tt := range map[string]struct {
		lie  func([]*p4pb.Entity) []*p4pb.Entity
		want string
	}{
		"twice":   {func(l []*p4pb.Entity) []*p4pb.Entity { return append(l, l[entries(l)[0]]) }, "the same entry twice"},
		"nothing": {func(l []*p4pb.Entity) []*p4pb.Entity { return append(l, &p4pb.Entity{}) }, "no entry of a table"},
		"another": {func(l []*p4pb.Entity) []*p4pb.Entity { l[entries(l)[1]].GetTableEntry().TableId = 7; return l }, "table 7"},
		"endless": {func(l []*p4pb.Entity) []*p4pb.Entity {
			for n := range uint64(60) {
				e := route(n+100, 1)
				m, err := c.info.encode(&e, true)
				if err != nil {
					t.Error(err)
				}
				l = append(l, m)
			}
			return l
		}, "more than 50 entries"},
	} {
		b.Misbehave(func(f *p4rttest.Faults) { f.Reads = tt.lie })
		got, err := c.Read(within(t))
		var answer *answerError
		if got != nil || !errors.As(err, &answer) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	b.Misbehave(func(f *p4rttest.Faults) { // of a table that was not asked for
		f.Reads = func(l []*p4pb.Entity) []*p4pb.Entity {
			e := route(5, 1)
			m, _ := c.info.encode(&e, true)
			return append(l, m)
		}
	})
	if _, err := c.Read(within(t), "egress.device"); err == nil || !strings.Contains(err.Error(), "not asked for") {
		t.Errorf("%v", err)
	}
	if _, err := c.Read(within(t), "nowhere"); !errors.Is(err, p4.ErrInvalid) {
		t.Errorf("%v", err)
	}

	// A switch that says that it did, and did not; and one that reads back what was never written.
	b.Misbehave(func(f *p4rttest.Faults) { *f = p4rttest.Faults{Forget: true} })
	if _, err := Reconcile(within(t), c, []p4.Entry{route(0, 1), route(7, 1)}, ownedBy("us")); !errors.Is(err, errDiffers) || !strings.Contains(err.Error(), "2 entries") {
		t.Errorf("%v", err)
	}
	b.Misbehave(func(f *p4rttest.Faults) {
		*f = p4rttest.Faults{Reads: func(l []*p4pb.Entity) []*p4pb.Entity {
			for _, i := range entries(l) {
				l[i].GetTableEntry().GetAction().GetAction().Params[0].Value = []byte{9}
			}
			return l
		}}
	})
	if _, err := Reconcile(within(t), c, []p4.Entry{route(0, 1), route(1, 1)}, ownedBy("us")); !errors.Is(err, errDiffers) {
		t.Errorf("%v", err)
	}
	b.Misbehave(func(f *p4rttest.Faults) { *f = p4rttest.Faults{} })
	if got, err := Reconcile(within(t), c, []p4.Entry{route(0, 1), route(7, 1)}, ownedBy("us")); err != nil || got.Adopted != 1 || got.Inserted != 1 || got.Removed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
