package steer

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4pb "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// yes are agents that take every plan.
type yes struct {
	mu   sync.Mutex
	post func(control.Event)
	has  map[string]uint32
}

func (y *yes) SendPlan(name string, r control.Request, p *probe.Plan) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.has[name] = p.Epoch
	y.post(control.Acked{Request: r, Device: control.Device{Kind: control.Agent, Name: name}})
}

func (y *yes) ReadPlan(name string, r control.Request) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.post(control.ReadBack{Request: r, Device: control.Device{Kind: control.Agent, Name: name}, Epoch: y.has[name]})
}

func (y *yes) Limits(string) (probe.Limits, bool) { return probe.Limits{}, false }

// peered is a loop around two switches with P4Runtime: one that misbehaves, and one that does not.
type peered struct {
	t       *testing.T
	loop    *loop.Loop
	journal *loop.Journal
	servers map[string]*p4rttest.Server
	loads   map[string]*int // of programs, by switch
	mu      sync.Mutex

	network  *control.Network
	assigned Assignment
}

const bad, healthy = "bad", "healthy"

// mostPorts are the entries of ours in each switch.
const mostPorts = 40

// ports are the entries that a switch is to hold.
func ports() (list []control.Entry) {
	for port := range mostPorts {
		e := mtu(uint64(port), 9000, "")
		list = append(list, loop.EntryOf(&e, 0))
	}
	return list
}

func mtu(port, bytes uint64, owner string) p4.Entry {
	return p4.Entry{Table: "egress.port_mtu", Match: []p4.Match{p4.Number(port)}, Action: "set_mtu", Params: []p4.Value{p4.Uint(bytes)}, Owner: owner}
}

func newPeered(t *testing.T, load string, fault func(*p4rttest.Server), approve, dry bool) *peered {
	t.Helper()
	return newPeeredOf(t, "srint", ports(), load, fault, approve, dry)
}

// newPeeredOf is newPeered for switches with some program and entries.
func newPeeredOf(t *testing.T, runs string, entries []control.Entry, load string, fault func(*p4rttest.Server), approve, dry bool) *peered {
	t.Helper()
	x := &peered{t: t, servers: map[string]*p4rttest.Server{}, loads: map[string]*int{bad: new(int), healthy: new(int)}}
	var list []Switch
	for _, name := range []string{bad, healthy} {
		s := p4rttest.New(0, func(*configpb.P4Info, []byte) (p4rttest.Tables, error) {
			sw, err := program.New(runs)
			if err != nil {
				return nil, err
			}
			x.mu.Lock()
			*x.loads[name]++
			x.mu.Unlock()
			return sw.Store(), nil
		})
		at, stop, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		x.servers[name] = s
		if name == bad && fault != nil {
			fault(s) // before anything connects: a program that is loaded first is one more
		}
		c := Switch{Name: name, Address: at, Plaintext: true, Program: runs}
		if name == bad {
			c.Load = load
		}
		list = append(list, c)
	}
	var err error
	if x.journal, err = loop.OpenJournal(filepath.Join(t.TempDir(), "journal"), 64<<20, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.journal.Close() })
	late := &LatePost{}
	const timeout = time.Second
	const cycle = timeout + 100*time.Millisecond
	switches, err := OpenSwitches(list, SwitchesConfig{Timeout: timeout, Log: slog.New(slog.DiscardHandler)}, late.Post)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(switches.Close)
	agents := &yes{post: late.Post, has: map[string]uint32{}}
	route, err := srint.AppendProbe(nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	probes := []planner.Probe{{ID: "p", Agent: "a", Collector: "a", Nodes: []string{bad, healthy}, Links: []string{"l"}, Route: hex.EncodeToString(route)}}
	net := &control.Network{Name: "two", Probes: probes, Agents: []string{"a"}, Switches: []string{bad, healthy},
		Entries: func(*control.Plan, string) []control.Entry { return entries }, Check: func(*control.Plan) error { return nil }}
	x.network = net
	x.loop, err = loop.New(loop.Options{
		Orchestration: x.assigned.Status, Delivery: x.assigned.Delivery,
		Control: control.Config{Cycle: int64(cycle), Timeout: int64(timeout), Attempts: 3, RetryAfter: 1, Audit: 2, Approve: approve, DryRun: dry},
		Network: net, Probing: &loop.Probing{Dialect: probe.INT21, Interval: time.Second}, Agents: agents, Switches: switches, Journal: x.journal,
	})
	if err != nil {
		t.Fatal(err)
	}
	late.To(x.loop.Post)
	x.loop.Post(control.Up{Device: control.Device{Kind: control.Agent, Name: "a"}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = x.loop.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return x
}

func (x *peered) status() loop.Status {
	x.t.Helper()
	s, err := x.loop.Status(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

func (x *peered) device(name string) control.DeviceStatus {
	for _, d := range x.status().Devices {
		if d.Device == (control.Device{Kind: control.Switch, Name: name}) {
			return d
		}
	}
	return control.DeviceStatus{}
}

// until waits for what a switch is said to be.
func (x *peered) until(what string, is func() bool) {
	x.t.Helper()
	if !testkit.Await(is) {
		x.t.Fatalf("it never came about: %s; %+v\n%s", what, x.status().Devices, x.log())
	}
}

// ready reports whether a switch is said to be ready with all of its entries.
func (x *peered) ready(name string) bool {
	d := x.device(name)
	return d.State == "ready" && d.Entries == mostPorts
}

func (x *peered) cycles(n uint64) {
	x.t.Helper()
	from := x.status().Counts.Cycles
	x.until("cycles pass", func() bool { return x.status().Counts.Cycles >= from+n })
}

func (x *peered) log() string {
	var b strings.Builder
	for _, r := range x.journal.Last(60) {
		r.Entries = nil // there is no room
		fmt.Fprintf(&b, "%+v\n", r)
	}
	return b.String()
}

// late is how often a switch, on a busy machine, did not load its program in time. The program is then loaded once
// more.
func (x *peered) late(name string) (n int) {
	for _, r := range x.journal.Last(10_000) {
		if r.What == control.TimedOut && r.Device == "switch "+name && r.Why == "load" {
			n++
		}
	}
	return n
}

// held are the entries of ours that a switch holds, and those of others, by key.
func (x *peered) held(name string) (ours, others map[string]string) {
	ours, others = map[string]string{}, map[string]string{}
	x.servers[name].Inspect(func(s p4rttest.Tables) {
		if s == nil {
			return
		}
		for _, e := range s.Read("egress.port_mtu") {
			c := loop.EntryOf(&e, 0)
			switch {
			case e.Default():
			case strings.HasPrefix(e.Owner, string(loop.DefaultOwner)):
				ours[c.Key] = c.Value
			default:
				others[c.Key] = c.Value
			}
		}
	})
	return ours, others
}

// rebuilt is the table of a switch as an auditor makes it of the journal alone.
func rebuilt(records []control.Record, name string) map[string]string {
	held := map[string]string{}
	pushed := map[control.Request]*control.Record{}
	reading := control.Request(0)
	for k := range records {
		r := &records[k]
		if r.Device != "switch "+name {
			continue
		}
		switch {
		case r.What == control.Pushed && len(r.Entries) == 0: // the program
			pushed[r.Request] = r
		case r.What == control.Pushed:
			pushed[r.Request] = r
		case r.What != control.Answered:
		case r.Found != nil:
			if (len(r.Entries) > 0 || *r.Found == 0) && reading != r.Request {
				clear(held)
			}
			reading = r.Request
			for _, e := range r.Entries {
				held[e.Key] = e.Value
			}
		case pushed[r.Request] != nil:
			did := r.Entries
			if r.Why == "" { // all of it
				if did = pushed[r.Request].Entries; len(did) == 0 {
					clear(held)
				}
			}
			for _, e := range did {
				switch {
				case e.Why != "":
				case e.Op == control.Delete:
					delete(held, e.Key)
				default:
					held[e.Key] = e.Value
				}
			}
		}
	}
	return held
}

// agrees holds what the journal and the status say of a switch against what it holds.
func (x *peered) agrees(name string) {
	x.t.Helper()
	d := x.device(name)
	ours, _ := x.held(name)
	if d.State == "ready" {
		want := map[string]string{}
		for _, e := range ports() {
			want[e.Key] = e.Value
		}
		if !maps.Equal(ours, want) {
			x.t.Errorf("%s is said to be ready, and holds %d of %d entries", name, len(ours), len(want))
		}
		if d.Entries != len(ours) {
			x.t.Errorf("%s is said to hold %d entries, and holds %d", name, d.Entries, len(ours))
		}
	} else if d.Why == "" && d.State != "down" {
		x.t.Errorf("%s is %s, and it is not said why", name, d.State)
	}
	if said := rebuilt(x.journal.Last(10_000), name); !maps.Equal(said, ours) {
		x.t.Errorf("by the journal %s holds %d entries, and it holds %d\n%s", name, len(said), len(ours), x.log())
	}
}

// counts holds the metrics of entries against what the journal says that went in and out of switches.
func (x *peered) counts() {
	x.t.Helper()
	var in, out, plans uint64
	asked := map[control.Request]control.Record{}
	metrics := x.status().Counts // before the journal, which may go on
	journal := x.journal.Last(10_000)
	for k := range journal {
		r := &journal[k]
		did := r.Entries
		switch {
		case r.What == control.Planned:
			plans++
			continue
		case r.What == control.Pushed:
			asked[r.Request] = *r
			continue
		case r.What != control.Answered || r.Found != nil || asked[r.Request].Entries == nil:
			continue
		case r.Why == "":
			did = asked[r.Request].Entries
		}
		for _, e := range did {
			switch {
			case e.Why != "" || e.Op == control.Hold:
			case e.Op == control.Delete:
				out++
			default:
				in++
			}
		}
	}
	if now := x.status().Counts; now.Installed != metrics.Installed || now.Removed != metrics.Removed {
		return // something went in meanwhile
	}
	if metrics.Installed != in || metrics.Removed != out || metrics.Plans != plans {
		x.t.Errorf("the metrics have %d entries in, %d out and %d plans, the journal %d, %d and %d\n%s", metrics.Installed, metrics.Removed, metrics.Plans, in, out, plans, x.log())
	}
}

// peers are the ways to misbehave.
var peers = []struct {
	name  string
	load  string
	fault func(s *p4rttest.Server)
	after func(x *peered) // once it was ready; nil where it misbehaves from the beginning
	state string          // that it comes to
	why   string          // said of it
	loads int             // of its program
	deaf  bool            // what it says of itself is not what it holds, which is unknown
}{
	{name: "good", state: "ready", loads: 1},
	{name: "refuses one entry", state: "failed", why: "0 of 1 entries were carried out", loads: 1, fault: func(s *p4rttest.Server) { s.Misbehave(func(f *p4rttest.Faults) { f.Reject = rejects(1) }) }},
	{name: "refuses half of them", state: "failed", why: "0 of 20 entries were carried out", loads: 1, fault: func(s *p4rttest.Server) { s.Misbehave(func(f *p4rttest.Faults) { f.Reject = rejects(20) }) }},
	{name: "refuses all", state: "failed", why: "0 of 40 entries were carried out", loads: 1, fault: func(s *p4rttest.Server) { s.Misbehave(func(f *p4rttest.Faults) { f.Reject = rejects(40) }) }},
	{name: "acknowledges and forgets", state: "failed", why: "does not hold it when it is read", loads: 1, fault: func(s *p4rttest.Server) { s.Misbehave(func(f *p4rttest.Faults) { f.Forget = true }) }},
	{name: "reads nothing back", state: "failed", why: "0 of 40 entries were carried out", loads: 1, deaf: true, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) { f.Reads = func([]*p4pb.Entity) []*p4pb.Entity { return nil } })
	}},
	{name: "reads everything twice", state: "failed", why: "the same entry twice", loads: 1, deaf: true, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) {
			f.Reads = func(l []*p4pb.Entity) []*p4pb.Entity { return append(slices.Clone(l), l...) }
		})
	}},
	{name: "reads a message of nonsense", state: "failed", why: "makes no sense", loads: 1, deaf: true, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) { f.Reads = func([]*p4pb.Entity) []*p4pb.Entity { return []*p4pb.Entity{{}} } })
	}},
	{name: "reads hundreds of entries of others", state: "ready", loads: 1, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) { f.Reads = manyOthers })
	}},
	{name: "refuses to give up an entry", state: "failed", why: "0 of 1 entries were carried out", loads: 1, after: func(x *peered) {
		x.servers[bad].Misbehave(func(f *p4rttest.Faults) {
			f.Reject = func(u *p4pb.Update) *p4pb.Error {
				if u.GetType() == p4pb.Update_DELETE {
					return &p4pb.Error{CanonicalCode: int32(codes.PermissionDenied), Message: "stays"}
				}
				return nil
			}
		})
		x.servers[bad].Inspect(func(s p4rttest.Tables) {
			if err := s.Insert(mtu(mostPorts, 9000, string(loop.DefaultOwner))); err != nil {
				x.t.Error(err)
			}
		})
	}},
	{name: "hangs", state: "silent", why: "did not answer", loads: 1, after: func(x *peered) {
		x.servers[bad].Misbehave(func(f *p4rttest.Faults) { f.Delay = time.Minute })
	}},
	{name: "is slow", state: "ready", loads: 1, fault: func(s *p4rttest.Server) { s.Misbehave(func(f *p4rttest.Faults) { f.Delay = 20 * time.Millisecond }) }},
	{name: "carries out and answers with an error", state: "ready", loads: 1, fault: func(s *p4rttest.Server) {
		once := sync.Once{}
		s.Misbehave(func(f *p4rttest.Faults) {
			f.After = func(*p4pb.WriteRequest) (err error) {
				once.Do(func() { err = status.Error(codes.Internal, "oops") })
				return err
			}
		})
	}},
	{name: "answers with a wrong number of errors", state: "failed", why: "did not answer", loads: 1, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) {
			f.Instead = func(*p4pb.WriteRequest) error {
				return p4rttest.Status([]*p4pb.Error{{CanonicalCode: int32(codes.Unknown)}})
			}
		})
	}},
	{name: "reads another cookie back", load: loadAlways, state: "failed", why: "out of service: its program was loaded 2 times", loads: 2, fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) { f.Cookie = 4711 })
	}},
	{name: "runs another program that is not to be replaced", load: loadIfEmpty, state: "down", why: "do not allow to load it", fault: func(s *p4rttest.Server) {
		s.Misbehave(func(f *p4rttest.Faults) { f.Cookie = 4711 })
		s.Preload(&configpb.P4Info{})
	}},
	{name: "runs no program and is not to get one", load: loadNever, state: "down", why: "do not allow to load it"},
	{name: "restarts with nothing", state: "ready", loads: 2, after: func(x *peered) { x.servers[bad].Restart() }},
	{name: "ends its streams", state: "ready", loads: 1, after: func(x *peered) {
		for range 3 {
			x.servers[bad].Drop()
			x.cycles(1)
		}
	}},
	{name: "loses its entries", state: "ready", loads: 1, after: func(x *peered) {
		x.servers[bad].Inspect(func(s p4rttest.Tables) {
			for port := range 7 {
				e := mtu(uint64(port), 9000, "")
				if err := s.Delete(&e); err != nil {
					x.t.Error(err)
				}
			}
		})
	}},
	{name: "has an entry of ours changed by another one", state: "ready", loads: 1, after: func(x *peered) {
		x.servers[bad].Inspect(func(s p4rttest.Tables) {
			if err := s.Modify(mtu(3, 1500, string(loop.DefaultOwner))); err != nil {
				x.t.Error(err)
			}
		})
	}},
	{name: "has a second controller for a while", state: "ready", loads: 1, after: func(x *peered) {
		gone := x.servers[bad].Demote()
		x.until("it stands down", func() bool { return x.status().Phase == control.Deposed })
		before, _ := x.held(bad)
		x.cycles(2)
		if now, _ := x.held(bad); !maps.Equal(before, now) {
			x.t.Error("it is written to while another controller has it")
		}
		gone()
		x.until("it can be written again", func() bool { return x.device(bad).State != "down" })
		if why, err := x.loop.Command(x.t.Context(), control.Command{Verb: control.Resume}); why != "" || err != nil {
			x.t.Error(why, err)
		}
	}},
}

// rejects refuses the entries of so many ports.
func rejects(n uint64) func(*p4pb.Update) *p4pb.Error {
	return func(u *p4pb.Update) *p4pb.Error {
		if m := u.GetEntity().GetTableEntry().GetMatch(); len(m) > 0 && p4.Bytes(m[0].GetExact().GetValue()).Uint64() < n {
			return &p4pb.Error{CanonicalCode: int32(codes.InvalidArgument), Message: "not here"}
		}
		return nil
	}
}

// manyOthers adds entries of others to what is read.
func manyOthers(l []*p4pb.Entity) []*p4pb.Entity {
	k := slices.IndexFunc(l, func(e *p4pb.Entity) bool {
		return len(e.GetTableEntry().GetMatch()) == 1 && e.GetTableEntry().GetMatch()[0].GetExact() != nil
	})
	if k < 0 {
		return l
	}
	for port := range 400 {
		e := proto.Clone(l[k]).(*p4pb.Entity)
		e.GetTableEntry().GetMatch()[0].GetExact().Value = []byte(p4.Uint(uint64(50 + port)))
		e.GetTableEntry().Metadata = []byte("somebody")
		l = append(l, e)
	}
	return l
}

// TestPeers has a switch misbehave in every way of the list. Journal and status match what it holds, and entries of
// others stay. A healthy switch beside it is written to once.
func TestPeers(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			x := newPeered(t, p.load, p.fault, false, false)
			x.until("the healthy one is ready", func() bool { return x.ready(healthy) })
			const other = 450 // manyOthers ends before it
			for _, s := range x.servers {
				s.Inspect(func(s p4rttest.Tables) {
					if s != nil {
						if err := s.Insert(mtu(other, 1500, "somebody")); err != nil {
							t.Error(err)
						}
					}
				})
			}
			x.servers[healthy].Writes()
			if p.after != nil {
				x.until("it is ready", func() bool { return x.ready(bad) })
				p.after(x)
			}
			x.until("it is "+p.state+", "+p.why, func() bool {
				d := x.device(bad)
				return d.State == p.state && (p.state != "ready" || x.ready(bad)) && strings.Contains(d.Why, p.why)
			})
			x.cycles(4)
			if p.state == "ready" {
				x.until("it is ready again", func() bool { return x.ready(bad) })
			}
			if n := len(x.servers[healthy].Writes()); n > 0 {
				t.Errorf("the healthy switch is written to %d more times\n%s", n, x.log())
			}
			x.mu.Lock()
			if n, late := *x.loads[bad], x.late(bad); n < p.loads || n > p.loads+late {
				t.Errorf("the program is loaded %d times, want %d, and %d of them took too long\n%s", n, p.loads, late, x.log())
			}
			x.mu.Unlock()
			x.counts()
			x.agrees(healthy)
			if !p.deaf {
				x.agrees(bad)
			} else if d := x.device(bad); d.State == "ready" {
				t.Errorf("it is ready: %+v", d)
			}
			for _, name := range []string{bad, healthy} {
				if _, others := x.held(name); len(others) != 1 && *x.loads[name] == 1 {
					t.Errorf("entries of others in %s: %v", name, others)
				}
			}
			if s := x.status(); s.InForce == 0 && s.Phase != control.Deposed {
				t.Errorf("no plan is in force: %+v", s)
			}
		})
	}
}

// TestLoadIsAnAct: no program is loaded in a dry run, in a pause, or before it is approved; and what is done is in the journal.
func TestLoadIsAnAct(t *testing.T) {
	testkit.Long(t)
	loads := func(x *peered) int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return *x.loads[bad]
	}
	emit := func(x *peered, v control.Verb) {
		t.Helper()
		if why, err := x.loop.Command(t.Context(), control.Command{Verb: v}); why != "" || err != nil {
			t.Fatal(v, why, err)
		}
	}
	pushed := func(x *peered) bool {
		return slices.ContainsFunc(x.journal.Last(1000), func(r control.Record) bool {
			return r.What == control.Pushed && r.Device == "switch "+bad && strings.HasPrefix(r.Why, "its program")
		})
	}
	for _, c := range []struct {
		name         string
		approve, dry bool
		why          string
		then         control.Verb
	}{
		{"dry run", false, true, "in a dry run or a pause", control.WetRun},
		{"approval", true, false, "waits for approval", control.Approve},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPeered(t, "", nil, c.approve, c.dry)
			x.until("it is said why it waits", func() bool { return strings.Contains(x.device(bad).Why, c.why) })
			x.cycles(3)
			if loads(x) != 0 || pushed(x) {
				t.Errorf("it is loaded %d times", loads(x))
			}
			emit(x, c.then)
			x.until("it is ready", func() bool { return x.ready(bad) })
			if loads(x) < 1 || loads(x) > 1+x.late(bad) || !pushed(x) {
				t.Errorf("it is loaded %d times\n%s", loads(x), x.log())
			}
		})
	}
	t.Run("pause", func(t *testing.T) {
		x := newPeered(t, "", nil, false, false)
		x.until("it is ready", func() bool { return x.ready(bad) })
		before := loads(x)
		emit(x, control.Pause)
		x.servers[bad].Restart()
		x.until("it is said why it waits", func() bool { return strings.Contains(x.device(bad).Why, "in a dry run or a pause") })
		x.cycles(3)
		if n := loads(x); n != before {
			t.Errorf("it is loaded %d times, %d of them before the pause", n, before)
		}
		emit(x, control.Resume)
		x.until("it is ready", func() bool { return x.ready(bad) && loads(x) > before })
	})
}
