package loop

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
)

// fixed are suspects that a test names.
type fixed struct{ list []control.Suspect }

func (f *fixed) Suspects(int64) []control.Suspect { return f.list }

// onEmulated is a loop around the agents of an emulated fat-tree, on virtual time.
type onEmulated struct {
	net      *emu.Network
	loop     *Loop
	agents   *Emulated
	suspects fixed
	names    []string
	probing  *Probing
	network  *control.Network
	accepted [3]uint64 // probes, by verdict
}

const (
	cycle = time.Second
	step  = 5 * time.Millisecond
)

// newEmulated builds one with a depot at every edge switch.
func newEmulated(t *testing.T, seed uint64, edit func(*emu.Config, *control.Config)) *onEmulated {
	t.Helper()
	x := &onEmulated{agents: NewEmulated()}
	cfg := emu.DefaultConfig()
	cfg.ControlDelay, cfg.ControlJitter = 5*time.Millisecond, 5*time.Millisecond
	for pod := range 4 {
		for e := range 2 {
			x.names = append(x.names, fmt.Sprintf("edge-%d-%d", pod, e))
			cfg.Agents = append(cfg.Agents, emu.Agent{Switch: x.names[len(x.names)-1]})
		}
	}
	cfg.OnPlan = x.agents.Answered
	cfg.OnProbe = func(_ string, a *probe.Arrival) {
		from := x.names[(int(a.Source[1])<<8|int(a.Source[2]))%len(x.names)] // hosts are numbered by their edge switch
		x.accepted[x.loop.Controller().Accept(from, a.Epoch)]++
	}
	steer := control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond), Grace: int64(100 * time.Millisecond)}
	if edit != nil {
		edit(&cfg, &steer)
	}
	var err error
	if x.net, err = emu.New(cfg, seed); err != nil {
		t.Fatal(err)
	}
	plan, c, err := scenario.CoverPlan(x.net, 1, probe.INT21, 100*time.Millisecond, 8, seed)
	if err != nil {
		t.Fatal(err)
	}
	x.network = &control.Network{Name: cfg.Topology, Probes: c.Probes, Agents: x.names}
	x.probing = &Probing{Dialect: probe.INT21, Interval: 100 * time.Millisecond, Addresses: Addresses(plan)}
	x.start(t, steer, nil)
	return x
}

// start begins a life of the controller.
func (x *onEmulated) start(t *testing.T, steer control.Config, j *Journal) {
	t.Helper()
	n := *x.network
	n.Check = nil
	l, err := New(Options{
		Control: steer, Network: &n, Probing: x.probing, Agents: x.agents, Journal: j, Seed: j.Seed(), Suspects: &x.suspects,
		Now: func() int64 { return int64(x.net.Now()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	x.loop = l
	x.agents.Post(l.Post, x.names)
}

// run lets time pass.
func (x *onEmulated) run(d time.Duration) {
	for end := x.net.Now() + d; x.net.Now() < end; {
		x.loop.Step(int64(x.net.Now()))
		x.agents.Deliver(x.net, 10*cycle)
		x.net.Run(x.net.Now()+step, func(emu.Datagram) {})
	}
	x.loop.Step(int64(x.net.Now()))
}

// detailed are the probes that look closer at the agents, by what these hold.
func (x *onEmulated) detailed() (ids []string, epochs map[uint32]int) {
	epochs = map[uint32]int{}
	for _, a := range x.names {
		p := x.net.AgentPlan(a)
		if p == nil {
			epochs[0]++
			continue
		}
		epochs[p.Epoch]++
		for _, q := range p.Probes {
			if q.Detailed && q.Agent == a {
				ids = append(ids, q.ID)
			}
		}
	}
	return ids, epochs
}

// A suspected link is on a detailed probe within a cycle and a change-over, and on none once it is cleared. All agents
// move together, and no probe of another epoch is used.
func TestLoopFollowsSuspects(t *testing.T) {
	x := newEmulated(t, 1, nil)
	x.run(2 * cycle)
	if ids, epochs := x.detailed(); len(ids) != 0 || len(epochs) != 1 || epochs[1] != len(x.names) {
		t.Fatalf("at first: detailed %v, epochs %v, %+v", ids, epochs, x.loop.StatusNow())
	}
	link := x.network.Probes[0].Links[1]
	x.suspects.list = []control.Suspect{{Link: link, Weight: 1, Why: "a test"}}
	x.run(cycle + 200*time.Millisecond)
	ids, epochs := x.detailed()
	if len(ids) == 0 || len(epochs) != 1 || epochs[2] != len(x.names) {
		t.Fatalf("suspected: detailed %v, epochs %v", ids, epochs)
	}
	covers := func(ids []string) bool {
		for _, p := range x.network.Probes {
			if slices.Contains(ids, p.ID) && slices.Contains(p.Links, link) {
				return true
			}
		}
		return false
	}
	if s := x.loop.StatusNow(); !covers(ids) || s.Links[link] == nil || !s.Links[link].Detailed || !s.Links[link].Suspect || s.Detailed != len(ids) {
		t.Errorf("link %s is on none of %v: %+v", link, ids, s.Links[link])
	}
	x.suspects.list = nil
	x.run(2 * cycle)
	if ids, epochs := x.detailed(); len(ids) != 0 || epochs[3] != len(x.names) {
		t.Errorf("well again: detailed %v, epochs %v", ids, epochs)
	}
	if x.accepted[control.Fits] < 100 || x.accepted[control.Early] > 0 {
		t.Errorf("probes by verdict: %v", x.accepted)
	}
}

// The control channel loses every fifth message, agents end and start: in the end all of them have the last plan. A controller that
// was killed goes on above the epochs that it reads back and its journal knows.
func TestLoopSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var steer control.Config
	x := newEmulated(t, 2, func(e *emu.Config, c *control.Config) {
		e.ControlLoss = .2
		steer = *c
	})
	j, err := OpenJournal(path, 20_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	x.start(t, steer, j)
	x.suspects.list = []control.Suspect{{Link: x.network.Probes[3].Links[0], Weight: 1}}
	x.run(20 * cycle)
	before := x.loop.StatusNow()
	if ids, epochs := x.detailed(); len(ids) == 0 || len(epochs) != 1 || before.Phase != control.Steady {
		t.Fatalf("detailed %v, epochs %v, %+v", ids, epochs, before)
	}
	x.net.StopAgent("edge-2-0")
	x.loop.Post(control.Down{Device: control.Device{Kind: control.Agent, Name: "edge-2-0"}, Why: "a test"})
	x.suspects.list = nil
	x.run(10 * cycle)
	if ids, _ := x.detailed(); len(ids) != 0 {
		t.Errorf("without an agent: detailed %v", ids)
	}
	x.net.StartAgent("edge-2-0")
	// The controller is killed, and another one begins with the journal alone.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = OpenJournal(path, 20_000, 2); err != nil {
		t.Fatal(err)
	}
	epoch := x.loop.StatusNow().Epoch
	if got := j.Seed().Epoch; got != epoch {
		t.Errorf("the journal knows of epoch %d, want %d", got, epoch)
	}
	x.start(t, steer, j)
	x.run(15 * cycle)
	after := x.loop.StatusNow()
	if ids, epochs := x.detailed(); len(ids) != 0 || len(epochs) != 1 || epochs[after.Epoch] != len(x.names) || after.Epoch <= epoch || after.Phase != control.Steady {
		t.Errorf("after a restart: detailed %v, epochs %v, before %d, %+v", ids, epochs, epoch, after)
	}
	if len(j.Last(1_000_000)) < 100 {
		t.Errorf("the journal has %d records", len(j.Last(1_000_000)))
	}
}

// A plan that an agent's limits do not allow is refused whole, and the reason returned; an unknown dialect as well.
func TestLoopChecksPlans(t *testing.T) {
	x := newEmulated(t, 3, nil)
	x.probing.Interval = 20 * time.Microsecond
	x.start(t, control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond)}, nil)
	x.run(3 * cycle)
	if _, epochs := x.detailed(); epochs[0] != len(x.names) {
		t.Errorf("agents adopted %v", epochs)
	}
	x.probing.Interval = time.Nanosecond
	x.start(t, control.Config{Cycle: int64(cycle), Timeout: int64(300 * time.Millisecond)}, nil)
	x.run(3 * cycle)
	if s := x.loop.StatusNow(); s.Counts.Refused == 0 || s.Why == "" {
		t.Errorf("%+v", s)
	}
}

// While the fleet does not confirm that a controller is in charge, the controller sends nothing. Afterwards the delayed
// actions are pushed, each plan after it was asked for.
func TestLoopFenced(t *testing.T) {
	x := newEmulated(t, 3, nil)
	open, asked := false, []uint32{}
	x.loop.o.Fence = func(p *control.Plan) error {
		if p == nil {
			t.Error("something is pushed before there is a plan")
		} else if n := len(asked); n == 0 || asked[n-1] != p.Epoch {
			asked = append(asked, p.Epoch)
		}
		if !open {
			return errors.New("nobody answers")
		}
		return nil
	}
	x.run(5 * cycle)
	if _, epochs := x.detailed(); epochs[0] != len(x.names) || x.loop.State().Fence != "nobody answers" || x.loop.State().Dropped == 0 {
		t.Errorf("agents hold the epochs %v, and the state is %+v", epochs, x.loop.State())
	}
	open = true
	x.run(20 * cycle)
	if _, epochs := x.detailed(); len(epochs) != 1 || epochs[0] != 0 || x.loop.State().Fence != "" {
		t.Errorf("agents hold the epochs %v, and the state is %+v", epochs, x.loop.State())
	}
	x.suspects.list = []control.Suspect{{Link: x.network.Probes[0].Links[0], Weight: 1}}
	x.run(3 * cycle)
	_, epochs := x.detailed()
	last := asked[len(asked)-1]
	if len(asked) < 2 || epochs[last] != len(x.names) {
		t.Errorf("the fleet was asked for %v, and agents hold %v", asked, epochs)
	}
}
