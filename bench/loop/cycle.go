package loop

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"

	configpb "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/internal/p4rttest"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/emu"
	shell "github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// cycles is how many changes of plan are measured on each network.
const cycles = 100

// CycleRow holds the durations of changes of plan. A change lasts from the suspects of a cycle until every agent has
// acknowledged that the new plan is in force.
type CycleRow struct {
	Network    string        `json:"network"`
	Nodes      int           `json:"switches"`
	Agents     int           `json:"agents"`
	Probes     int           `json:"probes"`
	Suspicious int           `json:"suspicious"` // directions of links, 3 %
	Entries    int           `json:"entries"`    // that a plan needs, in switches over P4Runtime
	Median     time.Duration `json:"median_ns"`
	Worst      time.Duration `json:"worst_ns"`
	Planning   time.Duration `json:"planning_ns"` // median of the decision alone
	Target     time.Duration `json:"target_ns"`

	// The cost of a change in the whole process, agents and switches included, until the agents had it. It is 0 if
	// unknown. Other work of the machine hardly changes it, unlike the times above.
	CPU      time.Duration `json:"processor_ns"` // median
	CPUWorst time.Duration `json:"processor_worst_ns"`
	Bytes    uint64        `json:"allocated_bytes"` // median
}

// cycleTable is the section about the time of a cycle.
type cycleTable struct {
	Section string     `json:"section"`
	Cycles  int        `json:"cycles"`
	Rows    []CycleRow `json:"rows"`
}

// runCycle measures changes of plan on a fat-tree in one process, and on a fabric whose switches hold entries over
// P4Runtime.
func runCycle(ctx context.Context, o options) (*cycleTable, error) {
	t := &cycleTable{Section: "cycle", Cycles: cycles}
	for _, c := range []struct {
		topology string
		entries  int
		target   time.Duration
	}{
		{"fat-tree:30", 0, 100 * time.Millisecond},
		{"leaf-spine:10,40", 4, 300 * time.Millisecond},
		{"leaf-spine:10,40", 20, 300 * time.Millisecond},
		{"leaf-spine:10,40", 400, 300 * time.Millisecond},
	} {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%s, %d entries a switch", c.topology, c.entries))
		}
		row, err := cycleRow(ctx, o, c.topology, c.entries, cycles)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.topology, err)
		}
		row.Target = c.target
		t.Rows = append(t.Rows, *row)
	}
	return t, nil
}

// Print writes it as text.
func (t *cycleTable) Print(w io.Writer) error {
	fmt.Fprintf(w, "From the suspects of a cycle until all agents have the new plan in force, %d changes each; the journal is synced on the way.\n\n", t.Cycles)
	for _, r := range t.Rows {
		where := "in one process"
		if r.Entries > 0 {
			where = fmt.Sprintf("%d entries over P4Runtime", r.Entries)
		}
		if _, err := fmt.Fprintf(w, "%s: %d switches, %d agents, %d probes, %d suspicious directions, %s\n  half within %v, all within %v (target %v); of this the decision takes %v\n  processor time: half within %v, all within %v; memory: half within %.1f MB\n",
			r.Network, r.Nodes, r.Agents, r.Probes, r.Suspicious, where, r.Median.Round(10*time.Microsecond), r.Worst.Round(10*time.Microsecond), r.Target, r.Planning.Round(10*time.Microsecond),
			r.CPU.Round(10*time.Microsecond), r.CPUWorst.Round(10*time.Microsecond), float64(r.Bytes)/1e6); err != nil {
			return err
		}
	}
	return nil
}

// inProcess are agents in this process, which check plans and build their frames as real ones do.
type inProcess struct {
	post   func(control.Event)
	agents map[string]*pretended
}

type pretended struct {
	plan    *probe.Plan
	numbers map[string]uint32
	limits  probe.Limits
}

func (x *inProcess) SendPlan(name string, r control.Request, p *probe.Plan) {
	a, d := x.agents[name], control.Device{Kind: control.Agent, Name: name}
	same, err := p.Follows(a.plan)
	if err == nil && !same {
		if _, err = p.Check(&a.limits); err == nil {
			_, a.numbers, err = probe.NewWork(p, name, &probe.Ends{From: loopback, To: loopback}, a.numbers)
		}
	}
	if err != nil {
		x.post(control.Refused{Request: r, Device: d, Why: err.Error()})
		return
	}
	a.plan = p
	x.post(control.Acked{Request: r, Device: d})
}

func (x *inProcess) ReadPlan(name string, r control.Request) {
	epoch := uint32(0)
	if p := x.agents[name].plan; p != nil {
		epoch = p.Epoch
	}
	x.post(control.ReadBack{Request: r, Device: control.Device{Kind: control.Agent, Name: name}, Epoch: epoch})
}

func (x *inProcess) Limits(name string) (probe.Limits, bool) { return x.agents[name].limits, true }

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// chosen are suspects that are drawn.
type chosen struct{ list []control.Suspect }

func (c *chosen) Suspects(int64) []control.Suspect { return c.list }

// cycleRow measures so many changes on one network, whose switches hold entries for every plan, or none.
func cycleRow(ctx context.Context, o options, topology string, entries, changes int) (*CycleRow, error) {
	g, err := topo.Parse(topology)
	if err != nil {
		return nil, err
	}
	n, links, err := coverBoth(g, o.Seed)
	if err != nil {
		return nil, err
	}
	row := &CycleRow{Network: topology, Nodes: g.NumNodes(), Agents: len(n.Agents), Probes: len(n.Probes), Suspicious: max(len(links)*3/100, 1)}
	dir, err := os.MkdirTemp("", "hopscope-bench-loop-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	j, err := shell.OpenJournal(filepath.Join(dir, "journal"), 64<<20, 1)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	b := &cycleBench{ctx: ctx, agents: &inProcess{agents: map[string]*pretended{}}, wake: make(chan struct{}, 1)}
	for _, name := range n.Agents {
		d := agent.DefaultConfig()
		d.Name, d.SendLimit, d.ReceiveLimit = name, 1e9, 1e9
		b.agents.agents[name] = &pretended{limits: d.Limits()}
	}
	b.agents.post = b.post
	var to *shell.Installers
	if entries > 0 {
		stop, installers, err := b.serveSwitches(g, n, entries)
		defer stop()
		if err != nil {
			return nil, err
		}
		to = installers
		row.Entries = len(n.Switches) * entries
	}
	opt := shell.Options{
		Control: control.Config{Cycle: int64(time.Hour), Timeout: int64(10 * time.Second), SwitchCost: 1, BasicBytes: 16, DetailedBytes: 48},
		Network: n, Probing: &shell.Probing{Dialect: probe.INT21, Interval: time.Second}, Agents: b.agents, Journal: j, Suspects: &b.suspects,
	}
	if to != nil {
		opt.Switches = to
	}
	opt.Now = b.now
	b.began = time.Now()
	if b.loop, err = shell.New(opt); err != nil {
		return nil, err
	}
	b.flush()
	for _, name := range n.Agents {
		b.post(control.Up{Device: control.Device{Kind: control.Agent, Name: name}})
	}
	return row, b.measure(row, changes, links, rand.New(rand.NewPCG(o.Seed, 19)))
}

// coverBoth plans probes over both directions of all links, between the edge switches, and names the directions.
func coverBoth(g *topo.Graph, seed uint64) (*control.Network, []string, error) {
	p := &cover.Problem{Graph: g, Directed: true, MaxHops: 8}
	n := &control.Network{Name: g.Name()}
	for i := range g.NumNodes() {
		if t := g.Tier(i); t == topo.Edge {
			p.Depots = append(p.Depots, i)
			n.Agents = append(n.Agents, g.NodeName(i))
		}
	}
	plan, err := solve.Plan(p, solve.Options{Seed: seed})
	if err != nil {
		return nil, nil, err
	}
	var links []string
	seen := map[string]bool{}
	n.Probes = plan.Probes
	for k := range n.Probes {
		x := &n.Probes[k]
		at, _ := g.Lookup(x.Collector)
		route, err := srint.AppendProbe(nil, append(slices.Clone(x.Ports), g.HostPort(at)))
		if err != nil {
			return nil, nil, err
		}
		x.Route, x.Links = hex.EncodeToString(route), slices.Clone(x.Links)
		for h, port := range x.Ports {
			x.Links[h] = fmt.Sprintf("%s:%d", x.Nodes[h], port)
			if !seen[x.Links[h]] {
				seen[x.Links[h]] = true
				links = append(links, x.Links[h])
			}
		}
	}
	return n, links, nil
}

// cycleBench steps a loop, on a clock whose cycles are hours long.
type cycleBench struct {
	ctx      context.Context
	loop     *shell.Loop
	agents   *inProcess
	suspects chosen
	began    time.Time
	skipped  time.Duration // that the clock was put forward
	early    []control.Event
	wake     chan struct{}
	servers  []*p4rttest.Server
}

func (b *cycleBench) now() int64 { return int64(time.Since(b.began) + b.skipped) }

// post is called by the loop's own goroutine and those of switches.
func (b *cycleBench) post(e control.Event) {
	if b.loop == nil {
		b.early = append(b.early, e)
		return
	}
	b.loop.Post(e)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *cycleBench) flush() {
	for _, e := range b.early {
		b.post(e)
	}
	b.early = nil
}

var errUnsettled = errors.New("a change of plan did not end within 30 s")

// settle steps until no device is asked for anything, so that the clock may be put forward.
func (b *cycleBench) settle() error {
	for end := time.Now().Add(30 * time.Second); ; {
		b.loop.Step(b.now())
		asked := func(d control.DeviceStatus) bool { return d.Waits != "" }
		if !slices.ContainsFunc(b.loop.StatusNow().Devices, asked) {
			return nil
		}
		if err := b.await(end); err != nil {
			return err
		}
	}
}

// await waits until something is posted, or a little.
func (b *cycleBench) await(end time.Time) error {
	select {
	case <-b.wake:
	case <-time.After(20 * time.Millisecond):
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
	if time.Now().After(end) {
		return fmt.Errorf("%w: %s", errUnsettled, b.loop.StatusNow().Phase)
	}
	return nil
}

// acked reports whether all agents have the target. Switches may still have entries to delete.
func (b *cycleBench) acked() bool {
	t := b.loop.Controller().Target()
	for _, a := range b.agents.agents {
		if t == nil || a.plan == nil || a.plan.Epoch != t.Epoch {
			return false
		}
	}
	return true
}

// measure changes the plan over and over.
func (b *cycleBench) measure(row *CycleRow, changes int, links []string, r *rand.Rand) error {
	for tries := 0; !b.acked(); tries++ { // the first plan
		if tries == 10 {
			return errUnsettled
		}
		if err := b.settle(); err != nil {
			return err
		}
		b.skipped += time.Hour
	}
	var took, planning, cpu []time.Duration
	var bytes []uint64
	for tries := 0; len(took) < changes; tries++ {
		if tries == 100*changes {
			return errors.New("other suspects do not change the plan")
		}
		b.suspects.list = nil
		for _, k := range r.Perm(len(links))[:row.Suspicious] {
			b.suspects.list = append(b.suspects.list, control.Suspect{Link: links[k], Weight: 1})
		}
		before := b.loop.Controller().Target()
		b.skipped += time.Hour
		began, spent, allocated := time.Now(), traffic.CPUTime(), allocatedBytes()
		b.loop.Step(b.now())
		if b.loop.Controller().Target() == before {
			continue // the same probes look closer
		}
		for !b.acked() {
			if err := b.await(began.Add(30 * time.Second)); err != nil {
				return err
			}
			b.loop.Step(b.now())
		}
		b.loop.Step(b.now()) // which takes the last answers
		took, planning = append(took, time.Since(began)), append(planning, b.loop.State().Planning)
		cpu, bytes = append(cpu, traffic.CPUTime()-spent), append(bytes, allocatedBytes()-allocated)
		if err := b.settle(); err != nil {
			return err
		}
		for _, s := range b.servers {
			s.Writes() // which it keeps otherwise
		}
	}
	slices.Sort(took)
	slices.Sort(planning)
	slices.Sort(cpu)
	slices.Sort(bytes)
	row.CPU, row.CPUWorst, row.Bytes = cpu[len(cpu)/2], cpu[len(cpu)-1], bytes[len(bytes)/2]
	row.Median, row.Worst, row.Planning = took[len(took)/2], took[len(took)-1], planning[len(planning)/2]
	return nil
}

// allocatedBytes is the bytes that the process has allocated so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// serveSwitches makes every node a switch with P4Runtime, in which a plan needs some entries: routes of its own epoch.
func (b *cycleBench) serveSwitches(g *topo.Graph, n *control.Network, entries int) (stop func(), _ *shell.Installers, err error) {
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	info, err := p4rt.NewInfo(emu.Tables())
	if err != nil {
		return stop, nil, err
	}
	pipeline, err := p4rt.NewPipeline(info, []byte("emulated"))
	if err != nil {
		return stop, nil, err
	}
	to := map[string]p4rt.Installer{}
	for i := range g.NumNodes() {
		s := p4rttest.New(uint64(i), func(*configpb.P4Info, []byte) (p4rttest.Tables, error) { return p4.NewStore(emu.Tables()), nil })
		b.servers = append(b.servers, s)
		address, end, err := s.Start()
		if err != nil {
			return stop, nil, err
		}
		stops = append(stops, end)
		c, err := p4rt.Dial(p4rt.Config{Address: address, Plaintext: true, Device: uint64(i), Election: p4rt.Election{Low: 1}, Pipeline: pipeline, Commit: true, Owner: string(shell.DefaultOwner)})
		if err != nil {
			return stop, nil, err
		}
		stops = append(stops, func() { _ = c.Close() })
		if err := c.Wait(b.ctx); err != nil {
			return stop, nil, err
		}
		to[g.NodeName(i)] = c
		n.Switches = append(n.Switches, g.NodeName(i))
		b.post(control.Up{Device: control.Device{Kind: control.Switch, Name: g.NodeName(i)}})
	}
	n.Entries = func(p *control.Plan, _ string) (list []control.Entry) {
		for k := range uint64(entries) {
			e := p4.Entry{Table: emu.RouteTable, Match: []p4.Match{{Value: p4.Uint(uint64(p.Epoch)<<12 | k + 1), Prefix: 32}}, Action: "forward", Params: []p4.Value{p4.Uint(1)}}
			list = append(list, shell.EntryOf(&e, p.Epoch))
		}
		return list
	}
	in := shell.NewInstallers(shell.DefaultOwner, 10*time.Second, b.post, to)
	stops = append(stops, in.Close)
	return stop, in, nil
}
