package p4rt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4"
)

// A switch without a program gets it. It then has the written entries, whether numbers come padded or not.
func TestWriteAndRead(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, name := range []string{"srint", "intmd", "pint"} {
		b := newBench(t, name)
		c := ready(t, dial(t, b.config(t, name)))
		var want []p4.Entry
		keys := map[string]bool{}
		for _, tt := range c.info.Tables() {
			for range min(20, tt.Size) {
				e := drawEntry(r, &tt)
				if len(tt.Key) == 0 {
					e.Match = nil // a default action
				}
				if e.Owner = "us"; tt.Name == cloneTable {
					e.Match[0] = p4.Number(uint64(100 + r.IntN(100)))
				}
				if !keys[e.Key()] {
					keys[e.Key()] = true
					want = append(want, e)
				}
			}
		}
		if errs, err := c.Write(within(t), inserts(want...)); errs != nil || err != nil {
			t.Fatalf("%s: %v, %v", name, errs, err)
		}
		for _, padded := range []bool{false, true} {
			b.Misbehave(func(f *p4rttest.Faults) { f.Padded, f.Opaque = padded, padded })
			got, err := c.Read(within(t))
			if err != nil {
				t.Fatal(err)
			}
			have := map[string]p4.Entry{}
			for _, e := range got {
				have[e.Key()] = e
			}
			for _, e := range want {
				if !reflect.DeepEqual(have[e.Key()], e) {
					t.Errorf("%s: read %+v, want %+v", name, have[e.Key()], e)
				}
				delete(have, e.Key())
			}
			for _, e := range have {
				if !e.Default() {
					t.Errorf("%s: nobody wrote %v", name, &e)
				}
			}
		}
		one, err := c.Read(within(t), want[0].Table)
		if err != nil || len(one) == 0 || slices.ContainsFunc(one, func(e p4.Entry) bool { return e.Table != want[0].Table }) {
			t.Errorf("%s: of one table: %v, %v", name, one, err)
		}
		var updates []Update
		for _, e := range want {
			updates = append(updates, Update{Delete, e})
		}
		if errs, err := c.Write(within(t), updates); errs != nil || err != nil {
			t.Fatalf("%s: %v, %v", name, errs, err)
		}
		if got, err := c.Read(within(t)); err != nil || slices.ContainsFunc(got, func(e p4.Entry) bool { return !e.Default() }) {
			t.Errorf("%s: left %v, %v", name, got, err)
		}
	}
}

// Entries that depend on others are in a later request, because a switch may carry out the updates of a request in any
// order. Removals go in the reverse order. Requests are no larger than asked for.
func TestOrder(t *testing.T) {
	b := newBench(t, "pint")
	cfg := b.config(t, "pint")
	cfg.batchUpdates, cfg.batchBytes = 5, 400
	c := ready(t, dial(t, cfg))
	num := p4.Number
	plan := p4.Entry{Table: "egress.plan", Match: []p4.Match{num(9)}, Action: "set_plan", Params: []p4.Value{p4.Uint(1), p4.Uint(0)}}
	flow := slices.Repeat([]p4.Match{p4.Masked(0, 0)}, 5)
	watch := p4.Entry{Table: "ingress.watch", Match: flow, Priority: 1, Action: "carry", Params: []p4.Value{p4.Uint(1), p4.Uint(9), p4.Uint(0)}}
	session := p4.Entry{Table: cloneTable, Match: []p4.Match{num(100)}, Action: "clone", Params: []p4.Value{p4.Uint(5), p4.Uint(0)}}
	list := []p4.Entry{watch, plan, session}
	for i := range uint64(12) {
		list = append(list, p4.Entry{Table: "egress.pint_replace", Match: []p4.Match{num(i + 1)}, Action: "at_most", Params: []p4.Value{p4.Uint(i)}})
	}
	tables := func() (names []string) {
		for _, m := range b.Writes() {
			size := 0
			level := map[int]bool{}
			for _, u := range m.GetUpdates() {
				name := cloneTable
				if x := u.GetEntity().GetTableEntry(); x != nil {
					name = c.info.byID[x.GetTableId()].Name
				}
				level[c.info.order[name]] = true
				size += len(u.String())
				if n := len(names); n == 0 || names[n-1] != name {
					names = append(names, name)
				}
			}
			if len(m.GetUpdates()) > 5 || len(level) != 1 {
				t.Errorf("a request of %d updates, of %d levels", len(m.GetUpdates()), len(level))
			}
		}
		return names
	}
	if errs, err := c.Write(within(t), inserts(list...)); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	want := []string{cloneTable, "egress.pint_replace", "egress.plan", "ingress.watch"}
	if got := tables(); !slices.Equal(got, want) {
		t.Errorf("written: %v", got)
	}
	var gone []Update
	for _, e := range list {
		gone = append(gone, Update{Delete, e})
	}
	if errs, err := c.Write(within(t), gone); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	slices.Reverse(want)
	if got := tables(); !slices.Equal(got, want) {
		t.Errorf("taken out: %v", got)
	}
	// New ones are there before old ones go.
	if errs, err := c.Write(within(t), inserts(plan)); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	b.Writes()
	if errs, err := c.Write(within(t), append([]Update{{Delete, plan}}, inserts(watch)...)); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	if got := tables(); !slices.Equal(got, []string{"ingress.watch", "egress.plan"}) {
		t.Errorf("changed: %v", got)
	}
	b.Writes()
	if _, err := c.Write(within(t), nil); err != nil || len(b.Writes()) != 0 {
		t.Errorf("nothing was written: %v", err)
	}
}

// An update that is refused keeps what rests on it from being tried, and nothing else. All others are distinguished.
func TestRejected(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.batchUpdates = 2
	c := ready(t, dial(t, cfg))
	watch := p4.Entry{Table: "ingress.watch", Match: slices.Repeat([]p4.Match{p4.Masked(0, 0)}, 5), Priority: 1, Action: "NoAction"}
	b.Misbehave(func(f *p4rttest.Faults) {
		f.Reject = func(u *p4pb.Update) *p4pb.Error {
			if m := u.GetEntity().GetTableEntry().GetMatch(); len(m) == 1 && bytes.Equal(m[0].GetLpm().GetValue(), []byte{10, 0, 1, 0}) {
				return &p4pb.Error{CanonicalCode: int32(codes.Unknown), Space: "ALL-sswitch-p4org", Code: 42, Message: strings.Repeat("no room in hardware ", 1000)}
			}
			return nil
		}
	})
	errs, err := c.Write(within(t), append(inserts(watch), inserts(route(0, 1), route(1, 1), route(2, 1), route(3, 1))...))
	if err != nil || len(errs) != 5 || !errors.Is(errs[0], ErrSkipped) || errs[1] != nil || errs[3] != nil || errs[4] != nil {
		t.Fatalf("%v, %v", errs, err)
	}
	var said *switchError
	if !errors.As(errs[2], &said) || said.Code != codes.Unknown || said.Number != 42 || said.Space != "ALL-sswitch-p4org" || len(errs[2].Error()) > 500 {
		t.Errorf("%v", errs[2])
	}
	if got := b.content("ingress.forward.forwarding4"); len(got) != 4 { // and the default action
		t.Errorf("%v", got)
	}
	b.Misbehave(func(f *p4rttest.Faults) { f.Reject = nil })
	for _, tt := range []struct {
		u    Update
		want error
	}{
		{Update{Insert, route(0, 1)}, p4.ErrExists}, {Update{Modify, route(9, 1)}, p4.ErrNotFound}, {Update{Delete, route(9, 1)}, p4.ErrNotFound},
		{Update{Modify, route(0, 4)}, nil},
	} {
		errs, err := c.Write(within(t), []Update{tt.u})
		if err != nil || tt.want == nil && errs != nil || tt.want != nil && !errors.Is(errs[0], tt.want) {
			t.Errorf("%v: %v, %v, want %v", &tt.u.Entry, errs, err, tt.want)
		}
	}
	// What is wrong in itself is not sent, and nothing with it.
	b.Writes()
	for _, tt := range []struct {
		list []Update
		want error
	}{
		{append(inserts(route(20, 1)), Update{Delete, route(20, 9)}), errTwice},
		{inserts(route(20, 1), route(21, 999)), p4.ErrInvalid},
		{append(inserts(route(20, 1)), Update{Op(9), route(21, 1)}), p4.ErrInvalid},
		{inserts(route(20, 1), p4.Entry{Table: "nowhere"}), p4.ErrInvalid},
	} {
		errs, err := c.Write(within(t), tt.list)
		if err != nil || !errors.Is(errs[0], ErrSkipped) || !errors.Is(errs[1], tt.want) {
			t.Errorf("%v, %v, want %v", errs, err, tt.want)
		}
	}
	if n := len(b.Writes()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestTableFull(t *testing.T) {
	b := newBench(t, "pint")
	c := ready(t, dial(t, b.config(t, "pint")))
	plan := func(epoch uint64) p4.Entry {
		return p4.Entry{Table: "egress.plan", Match: []p4.Match{p4.Number(epoch)}, Action: "set_plan", Params: []p4.Value{p4.Uint(1), p4.Uint(0)}}
	}
	if errs, err := c.Write(within(t), inserts(plan(1), plan(2), plan(3), plan(4))); errs != nil || err != nil {
		t.Fatal(errs, err)
	}
	for _, opaque := range []bool{false, true} { // BMv2 does not say why, and the entries are counted
		b.Misbehave(func(f *p4rttest.Faults) { f.Opaque = opaque })
		errs, err := c.Write(within(t), inserts(plan(5)))
		var said *switchError
		if err != nil || len(errs) != 1 || !errors.As(errs[0], &said) || !errors.Is(errs[0], p4.ErrFull) || (said.Code == codes.Unknown) != opaque {
			t.Errorf("%v, %v", errs, err)
		}
	}
	b.Misbehave(func(f *p4rttest.Faults) { // refused for no reason that is given, and there is room
		f.Reject = func(*p4pb.Update) *p4pb.Error { return &p4pb.Error{CanonicalCode: int32(codes.Unknown)} }
	})
	if errs, err := c.Write(within(t), inserts(route(1, 1), route(2, 1))); err != nil || errors.Is(errs[0], p4.ErrFull) || errors.Is(errs[1], p4.ErrFull) {
		t.Errorf("%v, %v", errs, err)
	}
}

// Some answers to writes are invalid. The outcome is then unknown, and never taken for success.
func TestWriteGarbage(t *testing.T) {
	b := newBench(t, "intmd")
	c := ready(t, dial(t, b.config(t, "intmd")))
	none, what := &p4pb.Error{}, &p4pb.Error{CanonicalCode: int32(codes.NotFound)}
	for name, tt := range map[string]struct {
		say     error
		unknown bool // what became of the updates
		want    error
	}{
		"too few errors":     {p4rttest.Status([]*p4pb.Error{what}), true, &answerError{}},
		"too many":           {p4rttest.Status([]*p4pb.Error{what, none, none}), true, &answerError{}},
		"none is one":        {p4rttest.Status([]*p4pb.Error{none, none}), true, &answerError{}},
		"no errors":          {status.Error(codes.Unknown, "something"), true, &switchError{}},
		"not an error":       {withDetails(t, &p4pb.WriteResponse{}, &p4pb.WriteResponse{}), true, &answerError{}},
		"broken":             {withBroken(t), true, &answerError{}},
		"too large a number": {p4rttest.Status([]*p4pb.Error{{CanonicalCode: 99999}, none}), false, nil},
		"not primary":        {status.Error(codes.PermissionDenied, "Not primary"), false, ErrNotPrimary},
		"no program":         {status.Error(codes.FailedPrecondition, "No forwarding pipeline config set"), false, &PipelineError{}},
		"gone":               {status.Error(codes.Unavailable, "going down"), true, ErrUnreachable},
	} {
		b.Misbehave(func(f *p4rttest.Faults) { f.Instead = func(*p4pb.WriteRequest) error { return tt.say } })
		ready(t, c)
		errs, err := c.Write(within(t), inserts(route(0, 1), route(1, 1)))
		switch target := tt.want.(type) {
		case nil:
			var said *switchError
			if err != nil || errs[1] != nil || !errors.As(errs[0], &said) {
				t.Errorf("%s: %v, %v", name, errs, err)
			}
			continue
		case *answerError:
			if !errors.As(err, &target) {
				t.Errorf("%s: %v", name, err)
			}
		case *switchError:
			if !errors.As(err, &target) {
				t.Errorf("%s: %v", name, err)
			}
		case *PipelineError:
			if !errors.As(err, &target) || !target.None {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, e := range errs {
			if want := map[bool]error{true: ErrUnknown, false: ErrSkipped}[tt.unknown]; !errors.Is(e, want) {
				t.Errorf("%s: %v, want %v", name, e, want)
			}
		}
		if len(errs) != 2 {
			t.Errorf("%s: %v", name, errs)
		}
	}
	// One update may be refused in the status itself.
	b.Misbehave(func(f *p4rttest.Faults) {
		f.Instead = func(*p4pb.WriteRequest) error { return status.Error(codes.InvalidArgument, "cannot read it") }
	})
	if errs, err := c.Write(within(t), inserts(route(0, 1))); err != nil || len(errs) != 1 || !errors.Is(errs[0], p4.ErrInvalid) {
		t.Errorf("%v, %v", errs, err)
	}
}

func withDetails(t *testing.T, m ...*p4pb.WriteResponse) error {
	s := status.New(codes.Unknown, "")
	p := s.Proto()
	for _, x := range m {
		a, err := anypb.New(x)
		if err != nil {
			t.Fatal(err)
		}
		p.Details = append(p.Details, a)
	}
	return status.ErrorProto(p)
}

func withBroken(*testing.T) error {
	p := status.New(codes.Unknown, "").Proto()
	for range 2 {
		p.Details = append(p.Details, &anypb.Any{TypeUrl: "type.googleapis.com/p4.v1.Error", Value: []byte{0xff, 0xff}})
	}
	return status.ErrorProto(p)
}

// A switch that does not answer costs no more than the timeout, and what it did is not known.
func TestSlow(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.checkEvery, cfg.Timeout = time.Hour, 500*time.Millisecond
	cfg.batchUpdates = 1
	c := ready(t, dial(t, cfg))
	b.Misbehave(func(f *p4rttest.Faults) { f.Delay = time.Hour })
	errs, err := c.Write(within(t), inserts(route(0, 1), route(1, 1)))
	if !errors.Is(err, ErrUnreachable) || len(errs) != 2 || !errors.Is(errs[0], ErrUnknown) || !errors.Is(errs[1], ErrSkipped) {
		t.Errorf("%v, %v", errs, err)
	}
	if _, err := c.Read(within(t)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Read(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	// A write behind one that takes long waits no longer than it may.
	c.writing <- struct{}{}
	if errs, err := c.Write(ctx, inserts(route(0, 1))); errs != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", errs, err)
	}
	<-c.writing
}

// A switch takes entries, and its answer is lost: reading shows it.
func TestAnswerLost(t *testing.T) {
	b := newBench(t, "intmd")
	c := ready(t, dial(t, b.config(t, "intmd")))
	b.Misbehave(func(f *p4rttest.Faults) {
		f.After = func(*p4pb.WriteRequest) error { return status.Error(codes.Unavailable, "reset") }
	})
	if errs, err := c.Write(within(t), inserts(route(5, 1))); !errors.Is(err, ErrUnreachable) || !errors.Is(errs[0], ErrUnknown) {
		t.Errorf("%v, %v", errs, err)
	}
	b.Misbehave(func(f *p4rttest.Faults) { f.After = nil })
	got, err := Reconcile(within(t), c, []p4.Entry{route(5, 1)}, ownedBy("us"))
	if err != nil || got.Adopted != 1 || got.Inserted != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A switch that stops answering while no request is open is noticed, and is back by itself.
func TestSilent(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.Timeout = 500 * time.Millisecond
	c := ready(t, dial(t, cfg))
	b.Misbehave(func(f *p4rttest.Faults) { f.Delay = time.Hour })
	until(t, "noticed", func() bool { return !c.State().Connected })
	if _, err := c.Write(within(t), inserts(route(0, 1))); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	b.Misbehave(func(f *p4rttest.Faults) { f.Delay = 0 })
	ready(t, c)
}

func TestUnreachable(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.Address = testkit.FreeAddr(t) // without a listener
	c := dial(t, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := c.Wait(ctx); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	if errs, err := c.Write(within(t), inserts(route(0, 1))); errs != nil || !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v, %v", errs, err)
	}
	if _, err := c.Read(within(t)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	if err := c.sendPacket(Packet{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	// It comes up later, at the same address.
	_, stop, err := b.StartAt(cfg.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ready(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := c.Wait(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
