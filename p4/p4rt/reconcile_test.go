package p4rt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
)

// backends are both kinds of installers.
func backends(t *testing.T) map[string]Installer {
	b := newBench(t, "intmd")
	return map[string]Installer{"p4runtime": ready(t, dial(t, b.config(t, "intmd"))), "files": newFiles(t, "intmd")}
}

// Whatever a switch holds, after a reconcile it holds the wanted entries and those of others. A second reconcile does
// nothing.
func TestReconcile(t *testing.T) {
	for name, in := range backends(t) {
		r := rand.New(rand.NewPCG(9, 10))
		for round := range 60 {
			others, want := map[string]p4.Entry{}, map[string]p4.Entry{}
			var before []Update
			for n := range uint64(12) {
				e := route(n, uint64(1+r.IntN(2)))
				switch r.IntN(4) {
				case 0: // of ours, from before
					before = append(before, Update{Insert, e})
				case 1:
					e.Owner = []string{"them", "someone", "US"}[r.IntN(3)]
					before = append(before, Update{Insert, e})
					others[e.Key()] = e
				}
			}
			if errs, err := in.Write(within(t), before); errs != nil || err != nil {
				t.Fatal(name, errs, err)
			}
			for n := range uint64(12) {
				e := route(n, uint64(1+r.IntN(2)))
				if _, theirs := others[e.Key()]; !theirs && r.IntN(2) == 0 {
					e.Owner = "us"
					want[e.Key()] = e
				}
			}
			device := p4.Entry{Table: "egress.device", Action: "set_device", Params: []p4.Value{p4.Uint(uint64(1 + round)), p4.Uint(0)}, Owner: "us"}
			want[device.Key()] = device
			var list []p4.Entry
			for _, e := range want {
				list = append(list, e)
			}
			for second := range 2 {
				got, err := Reconcile(within(t), in, list, ownedBy("us"))
				if err != nil {
					t.Fatalf("%s, round %d: %+v, %v", name, round, got, err)
				}
				if second == 1 && (got.Adopted != len(want) || got.Inserted+got.Repaired+got.Removed != 0) {
					t.Errorf("%s, round %d: again %+v", name, round, got)
				}
			}
			have, err := in.Read(within(t))
			if err != nil {
				t.Fatal(err)
			}
			var clean []Update
			n := 0
			for _, e := range have {
				w, ok := want[e.Key()]
				s, theirs := others[e.Key()]
				switch {
				case ok && !e.SameAction(&w), theirs && (!e.SameAction(&s) || e.Owner != s.Owner), !ok && !theirs && !e.Default():
					t.Errorf("%s, round %d: %v of %q", name, round, &e, e.Owner)
				case ok, theirs:
					n++
				}
				if !e.Default() {
					clean = append(clean, Update{Delete, e})
				}
			}
			if n != len(want)+len(others) {
				t.Errorf("%s, round %d: %d of %d entries", name, round, n, len(want)+len(others))
			}
			if errs, err := in.Write(within(t), clean); errs != nil || err != nil {
				t.Fatal(name, errs, err)
			}
		}
	}
}

// Where another owner has the key nothing is written; where that has the same entry there is nothing to do.
func TestForeign(t *testing.T) {
	for name, in := range backends(t) {
		theirs := route(0, 9)
		theirs.Owner = "them"
		if errs, err := in.Write(within(t), inserts(theirs)); errs != nil || err != nil {
			t.Fatal(errs, err)
		}
		got, err := Reconcile(within(t), in, []p4.Entry{route(0, 1), route(1, 1)}, ownedBy("us"))
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), `"them"`) || got.Left == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if have, err := in.Read(within(t), theirs.Table); err != nil || len(slices.DeleteFunc(have, func(e p4.Entry) bool { return e.Default() })) != 1 {
			t.Errorf("%s: %v, %v", name, have, err)
		}
		if got, err := Reconcile(within(t), in, []p4.Entry{route(0, 9)}, ownedBy("us")); err != nil || got.Adopted != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := Reconcile(within(t), in, []p4.Entry{route(1, 9), route(1, 8)}, ownedBy("us")); !errors.Is(err, errTwice) {
			t.Errorf("%s: %v", name, err)
		}
		// Without a word about whose entries are whose, what is there is repaired and nothing goes.
		if got, err := Reconcile(within(t), in, []p4.Entry{route(0, 1)}, nil); err != nil || got.Repaired != 1 || got.Removed != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A reconcile that fails half-way can be made again, whatever failed.
func TestReconcileAgain(t *testing.T) {
	b := newBench(t, "intmd")
	cfg := b.config(t, "intmd")
	cfg.batchUpdates = 3
	c := ready(t, dial(t, cfg))
	r := rand.New(rand.NewPCG(11, 12))
	for round := range 40 {
		var want []p4.Entry
		for n := range uint64(15) {
			if r.IntN(2) == 0 {
				want = append(want, route(n, uint64(1+r.IntN(3))))
			}
		}
		b.Misbehave(func(f *p4rttest.Faults) {
			*f = p4rttest.Faults{}
			lost := r.IntN(3)
			f.Reject = func(*p4pb.Update) *p4pb.Error {
				if lost == 0 && r.IntN(4) == 0 {
					return &p4pb.Error{CanonicalCode: int32(codes.Internal)}
				}
				return nil
			}
			f.After = func(m *p4pb.WriteRequest) error {
				if lost == 1 && r.IntN(3) == 0 {
					return p4rttest.Status(nil)
				}
				return nil
			}
			f.Forget = lost == 2
		})
		_, _ = Reconcile(within(t), c, want, ownedBy("us")) // it may work in spite of all
		b.Misbehave(func(f *p4rttest.Faults) { *f = p4rttest.Faults{} })
		if _, err := Reconcile(within(t), c, want, ownedBy("us")); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if n := len(b.content("ingress.forward.forwarding4")); n != len(want)+1 {
			t.Errorf("round %d: %d entries, want %d", round, n, len(want)+1)
		}
	}
}

// broken is an installer that fails at the n-th call.
type broken struct {
	Installer
	left int
}

var errBroken = errors.New("broken")

func (b *broken) Read(ctx context.Context, tables ...string) ([]p4.Entry, error) {
	if b.left--; b.left < 0 {
		return nil, errBroken
	}
	return b.Installer.Read(ctx, tables...)
}

func (b *broken) Write(ctx context.Context, updates []Update) ([]error, error) {
	if b.left--; b.left < 0 {
		return nil, errBroken
	}
	return b.Installer.Write(ctx, updates)
}

func TestReconcileBroken(t *testing.T) {
	for n := range 3 {
		if _, err := Reconcile(within(t), &broken{newFiles(t, "intmd"), n}, []p4.Entry{route(0, 1)}, nil); !errors.Is(err, errBroken) {
			t.Errorf("call %d: %v", n, err)
		}
	}
	if _, err := Reconcile(within(t), &broken{newFiles(t, "intmd"), 3}, []p4.Entry{route(0, 1)}, nil); err != nil {
		t.Error(err)
	}
}

// What the recordings of BMv2 were made with, installed over P4Runtime, makes the same frames of the same packets.
func TestRecordedOverP4Runtime(t *testing.T) {
	for _, name := range p4.Programs {
		file, err := p4.Recorded(name)
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, name)
		c := ready(t, dial(t, b.config(t, name)))
		packets, compared := 0, 0
		if testkit.Race {
			file.Groups = file.Groups[:3]
		}
		for _, g := range file.Groups {
			want, err := recorded(name, g.Commands)
			if err != nil {
				t.Fatal(err)
			}
			// Every group begins with the program alone.
			if err := c.Commit(within(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := Reconcile(within(t), c, want.entries, ownedBy("us")); err != nil {
				t.Fatalf("%s, %s: %v", name, g.Name, err)
			}
			b.mu.Lock()
			over := b.sw
			b.mu.Unlock()
			for session, port := range b.Sessions() {
				over.Mirror(session, port)
			}
			for _, p := range g.Packets {
				packets++
				var passes []program.Pass
				for _, q := range p.Passes {
					passes = append(passes, program.Pass{Instance: q.Instance, IngressPort: q.IngressPort, EgressPort: q.EgressPort, PacketLength: q.PacketLength,
						IngressTime: q.Ingress, EgressTime: q.Egress, EnqueueTime: q.Enqueued, EnqueueDepth: q.EnqueueDepth, QueueDelay: q.Queue, DequeueDepth: q.DequeueDepth})
				}
				in := program.Frame{Port: uint16(p.In.Port), Bytes: p.In.Bytes}
				a, _, errA := want.sw.Process(in, passes)
				b, _, errB := over.Process(in, passes)
				same := slices.EqualFunc(a, b, func(x, y program.Frame) bool { return x.Port == y.Port && bytes.Equal(x.Bytes, y.Bytes) })
				if !same || (errA == nil) != (errB == nil) {
					t.Errorf("%s, %s, %s:\n got %x, %v\nwant %x, %v", name, g.Name, p.Name, b, errB, a, errA)
				}
				compared += len(a)
			}
		}
		if packets < 35 || compared < 20 {
			t.Errorf("%s: %d frames of %d packets", name, compared, packets)
		}
	}
}

// replay is a switch with the tables of a recording, and the entries of these.
type replay struct {
	sw      *program.Switch
	entries []p4.Entry
}

func recorded(name string, commands []string) (*replay, error) {
	s, err := program.New(name)
	if err != nil {
		return nil, err
	}
	x := &replay{sw: s}
	for _, c := range commands {
		var session, port uint64
		switch list, logarithms := strings.CutPrefix(c, "# logarithms: "); {
		case logarithms:
			err = s.Logarithms(strings.Fields(list)...)
		case strings.HasPrefix(c, "set_queue"):
		case strings.HasPrefix(c, "mirroring_add"):
			if _, err = fmt.Sscanf(c, "mirroring_add %d %d", &session, &port); err == nil {
				x.entries = append(x.entries, p4.Entry{Table: cloneTable, Match: []p4.Match{p4.Number(session)}, Action: "clone",
					Params: []p4.Value{p4.Uint(port), p4.Uint(0)}})
			}
			err = cmp.Or(err, s.Command(c))
		default:
			err = s.Command(c)
		}
		if err != nil {
			return nil, err
		}
	}
	x.entries = append(x.entries, s.Store().Read("")...)
	return x, nil
}
