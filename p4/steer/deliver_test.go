package steer

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/delivery"
)

// delivered is two switches with the program rft, whose reports are delivered.
type delivered struct {
	*peered
	*Steering
	o *deliverer
}

// newDelivered begins without a plan of delivery. The switch healthy sends reports.
func newDelivered(t *testing.T, approve bool) *delivered {
	t.Helper()
	x := newPeeredOf(t, rftProgram, nil, loadIfEmpty, nil, approve, false)
	if approve {
		x.until("the programs wait", func() bool { return x.device(bad).Awaits && x.device(healthy).Awaits })
		x.command(control.Approve)
	}
	x.until("the first plan of probes is in force", func() bool {
		return x.status().InForce > 0 && x.device(bad).State == "ready" && x.device(healthy).State == "ready"
	})
	cfg := p4.DefaultDeliveryConfig()
	cfg.File = filepath.Join(t.TempDir(), "rft.json")
	cfg.Servers = []p4.DeliveryHost{{Name: "near", Address: "10.0.0.1:32766", MAC: "02:00:00:00:00:01"}, {Name: "far", Address: "10.0.0.2:32766", MAC: "02:00:00:00:00:02"}}
	cfg.Points = []p4.DeliveryPoint{{Name: healthy, Address: "10.255.0.1"}}
	o := &deliverer{cfg: cfg, links: orchestrateLinks(t), tables: cfg.Tables(), switches: map[string]bool{bad: true, healthy: true}}
	x.assigned.now.Store(&Network{deliverer: o})
	return &delivered{x, &Steering{Network: &Network{Control: x.network, Config: &Config{Links: o.links, Sent: &loop.Probing{Dialect: probe.INT21, Interval: time.Second}}, deliverer: o},
		Loop: x.loop, Log: slog.New(slog.DiscardHandler), Approve: approve}, o}
}

func (x *peered) command(v control.Verb) {
	x.t.Helper()
	if why, err := x.loop.Command(x.t.Context(), control.Command{Verb: v}); why != "" || err != nil {
		x.t.Fatal(v, why, err)
	}
}

// nearPlan goes to the server behind the switch that sends reports, farPlan to the one behind the other switch.
func nearPlan() *delivery.Plan {
	return &delivery.Plan{Assignment: []delivery.Assignment{{ID: healthy + "/1", Point: healthy, Server: "near", Path: []string{healthy, "near"}, Ports: []int{400}, Tag: 1, Rate: 0.5}}}
}

func farPlan() *delivery.Plan {
	return &delivery.Plan{Assignment: []delivery.Assignment{{ID: healthy + "/2", Point: healthy, Server: "far", Path: []string{healthy, bad, "far"}, Ports: []int{3, 400}, Tag: 2, Rate: 0.25}}}
}

// carryOut gives a plan to the switches.
func (x *delivered) carryOut(p *delivery.Plan) {
	x.t.Helper()
	if err := x.begin(x.t.Context(), x.o, p); err != nil {
		x.t.Fatal(err)
	}
}

// settle waits until a plan is in force, step by step.
func (x *delivered) settle(what string) {
	x.t.Helper()
	x.until(what, func() bool { x.step(x.t.Context()); return x.status().Delivery.InForce })
}

// holds reports whether both switches hold exactly the entries of a plan.
func (x *delivered) holds(p *delivery.Plan) bool {
	x.t.Helper()
	d, err := x.o.tables.Entries(p, x.o.switches)
	if err != nil {
		x.t.Fatal(err)
	}
	for sw := range x.o.switches {
		want, have := map[string]string{}, map[string]string{}
		for _, list := range [][]p4.Entry{d.Rules[sw], d.Shares[sw]} {
			for k := range list {
				e := loop.EntryOf(&list[k], 0)
				want[e.Key] = e.Value
			}
		}
		x.servers[sw].Inspect(func(s p4rttest.Tables) {
			if s == nil {
				return
			}
			for _, e := range s.Read("") {
				if c := loop.EntryOf(&e, 0); strings.HasPrefix(e.Owner, string(loop.DefaultOwner)) {
					have[c.Key] = c.Value
				}
			}
		})
		if !maps.Equal(want, have) {
			return false
		}
	}
	return true
}

// lots returns the paths among which the switch that sends reports divides them.
func (x *delivered) lots() (list []string) {
	x.servers[healthy].Inspect(func(s p4rttest.Tables) {
		for _, e := range s.Read(p4.ShareName) {
			if !e.Default() {
				list = append(list, loop.EntryOf(&e, 0).Value)
			}
		}
	})
	return list
}

// file returns the plan in the file, nil if there is none.
func (x *delivered) file() *delivery.Plan {
	x.t.Helper()
	cfg := x.o.cfg
	cfg.Every = time.Second // there may be no file yet
	_, p, err := cfg.Read()
	if err != nil {
		x.t.Fatal(err)
	}
	return p
}

// TestDeliveryHalfRefused: a switch on the new path refuses a part of its entries. The plan is not in force, the switch that
// sends reports keeps the former path, and the status names the switch. As soon as it takes the entries, reports move.
func TestDeliveryHalfRefused(t *testing.T) {
	x := newDelivered(t, false)
	x.carryOut(nearPlan())
	x.settle("the first plan is in force")
	if !x.holds(nearPlan()) {
		t.Error("switches hold other entries than those of the first plan")
	}
	before := x.lots()
	refused := 0
	x.servers[bad].Misbehave(func(f *p4rttest.Faults) {
		f.Reject = func(u *p4pb.Update) *p4pb.Error {
			if u.GetType() == p4pb.Update_DELETE || u.GetEntity().GetTableEntry().GetPriority() != 2 {
				return nil
			}
			refused++
			return &p4pb.Error{CanonicalCode: int32(codes.Internal), Message: "no room in the pipeline"}
		}
	})
	// The rule that refuses other reports is gone, and has to be written again beside the refused one.
	x.servers[bad].Inspect(func(s p4rttest.Tables) {
		for _, e := range s.Read(p4.PathsName) {
			if !e.Default() {
				if err := s.Delete(&e); err != nil {
					t.Error(err)
				}
			}
		}
	})
	x.carryOut(farPlan())
	x.until("the switch refuses entries", func() bool { return x.device(bad).State == "failed" })
	tries := func() (n int) {
		x.servers[bad].Misbehave(func(*p4rttest.Faults) { n = refused })
		return n
	}
	for range 2 { // also while it is tried again
		n := tries()
		x.until("the switch refuses again", func() bool {
			x.step(t.Context())
			s := x.status()
			if s.Delivery.InForce || s.Delivery.Left == 0 {
				t.Fatalf("a plan of which a switch refuses a part: %+v", s.Delivery)
			}
			if state, why := s.StateOfEntries(s.Delivery.InForce, true, ""); x.device(bad).State == "failed" && (state != loop.SystemChanging || !strings.Contains(why, "no room in the pipeline")) {
				t.Fatalf("the system is %s: %s", state, why)
			}
			return tries() > n
		})
		if now := x.lots(); strings.Join(now, " ") != strings.Join(before, " ") {
			t.Fatalf("reports go over %v before the path is there, and went over %v", now, before)
		}
	}
	x.servers[bad].Misbehave(func(f *p4rttest.Faults) { f.Reject = nil })
	x.settle("the switch takes the entries")
	if !x.holds(farPlan()) {
		t.Error("switches hold other entries than those of the second plan")
	}
}

// TestDeliveryRestart: a switch that lost its program and its entries gets both again, and the plan stays.
func TestDeliveryRestart(t *testing.T) {
	x := newDelivered(t, false)
	x.carryOut(farPlan())
	x.settle("the plan is in force")
	loads := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return *x.loads[bad] + *x.loads[healthy]
	}
	for n, sw := range []string{bad, healthy} {
		before := loads()
		x.servers[sw].Restart()
		x.until("the switch is loaded again", func() bool { return loads() > before })
		x.until("the switch has its entries again", func() bool { return x.holds(farPlan()) && x.status().Delivery.InForce })
		if s := x.status().Delivery; s.Plans != 1 || s.Left != 0 {
			t.Errorf("restart %d: %+v", n, s)
		}
	}
}

// TestDeliveryWaits: a plan waits for an operator. Until then switches and file have the plan before.
func TestDeliveryWaits(t *testing.T) {
	x := newDelivered(t, true)
	waits := func(before *delivery.Plan) {
		t.Helper()
		x.until("the plan waits", func() bool { return x.status().Pending != nil })
		for range 3 {
			x.step(t.Context())
			x.cycles(1)
		}
		switch s := x.status(); {
		case s.Delivery.InForce:
			t.Errorf("a plan that waits is in force: %+v", s.Delivery)
		case before == nil && x.file() != nil, before != nil && !x.file().SameWays(before):
			t.Errorf("the file has %+v", x.file())
		case before != nil && !x.holds(before):
			t.Error("switches hold other entries than those of the plan before")
		}
	}
	x.carryOut(nearPlan())
	waits(nil)
	if _, err := os.Stat(x.o.cfg.File); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a plan that waits: %v", err)
	}
	approved := func(p *delivery.Plan) {
		t.Helper()
		x.command(control.Approve)
		x.settle("the approved plan is in force")
		x.until("the file has the approved plan", func() bool { x.step(t.Context()); now := x.file(); return now != nil && now.SameWays(p) })
		if !x.holds(p) {
			t.Error("switches hold other entries than those of the approved plan")
		}
	}
	approved(nearPlan())
	x.carryOut(farPlan())
	waits(nearPlan())
	approved(farPlan())
}

// TestDeliveryWaitsForProbes: the first plan of a loop needs no approval. Where others do, none is made to go with it.
func TestDeliveryWaitsForProbes(t *testing.T) {
	for _, approve := range []bool{true, false} {
		x := newPeeredOf(t, rftProgram, nil, loadIfEmpty, nil, approve, true) // in a dry run there is no first plan
		o := &deliverer{cfg: p4.DefaultDeliveryConfig(), links: orchestrateLinks(t), missed: map[string]int{}, silent: map[string]int64{}}
		o.cfg.Servers = []p4.DeliveryHost{{Name: "near", Page: "http://near"}}
		x.assigned.now.Store(&Network{deliverer: o})
		s := &Steering{Cycle: time.Hour, Network: &Network{Control: x.network, deliverer: o}, Loop: x.loop, Switches: &Switches{}, Log: slog.New(slog.DiscardHandler), Approve: approve, Deliver: time.Millisecond,
			Open: func(url string) *Page {
				return &Page{URL: url, Get: func(context.Context, string, any) error { return errors.New("no answer") }}
			}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		x.cycles(2)
		if !approve {
			x.until("a plan is tried", func() bool { return x.status().Delivery.Failed > 0 })
		}
		cancel()
		<-ended
		if d := x.status().Delivery; approve && d.Failed+d.Plans > 0 {
			t.Errorf("a plan before the first one: %+v", d)
		}
	}
}
