package steer

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/planner/cover"
)

// plannedRun collects what the agents of an emulated network report of the probes of a plan, in windows.
type plannedRun struct {
	t        *testing.T
	net      *emu.Network
	plan     *probe.Plan
	cover    *cover.Plan
	window   time.Duration
	detector *events.Detector
	state    *shard.State
	reader   *demux.Decoder
	start    time.Time
	last     inference.Window
}

// plannedCut is when the direction of a link begins to lose all packets, and for how long.
const plannedCut, plannedFor = 60 * time.Second, 60 * time.Second

// newPlannedRun makes a network with an agent at each edge switch. The direction between two switches that a draw names,
// if any, loses all packets for a time.
func newPlannedRun(t *testing.T, seed uint64, length time.Duration, cut bool) (r *plannedRun, from, to string) {
	t.Helper()
	cfg := emu.DefaultConfig()
	cfg.Flows, cfg.PacketRate = 0, 0
	for pod := range 4 {
		for e := range 2 {
			cfg.Agents = append(cfg.Agents, emu.Agent{Switch: "edge-" + strconv.Itoa(pod) + "-" + strconv.Itoa(e)})
		}
	}
	bare, err := emu.New(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	if cut {
		g, rng := bare.Graph(), rand.New(rand.NewPCG(seed, 31))
		i := rng.IntN(g.NumInterfaces())
		for g.Peer(i) < 0 {
			i = rng.IntN(g.NumInterfaces())
		}
		from, to = g.NodeName(g.Node(i)), g.NodeName(g.Neighbor(i))
		cfg.Script = []emu.Fault{{Kind: emu.LosePackets, At: plannedCut, For: plannedFor, Node: from, Peer: to, Value: 1}}
	}
	n, err := emu.New(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	shards := shard.DefaultConfig()
	shards.MemoryBytes = 16 << 20
	auto, ok := demux.Lookup("auto")
	if !ok {
		t.Fatal("there is no profile auto")
	}
	r = &plannedRun{t: t, net: n, window: length, detector: events.New(events.DefaultConfig()), state: shard.New(shards, 1), reader: demux.New(auto), start: cfg.Epoch}
	r.plan, r.cover = r.planOf(1, seed)
	return r, from, to
}

func (r *plannedRun) planOf(epoch uint32, seed uint64) (*probe.Plan, *cover.Plan) {
	p, c, err := scenario.CoverPlan(r.net, epoch, probe.INT21, 100*time.Millisecond, 8, seed)
	if err != nil {
		r.t.Fatal(err)
	}
	return p, c
}

func (r *plannedRun) adopt(p *probe.Plan) {
	for _, a := range r.net.Config().Agents {
		r.net.SendPlan(a.Switch, p)
	}
}

// step runs one window, and returns the findings about paths of probes and lost packets.
func (r *plannedRun) step() (list []inference.Finding) {
	var b decode.Batch
	from := r.net.Now()
	r.net.Run(from+r.window, func(d emu.Datagram) {
		if d.Probe {
			return
		}
		b.Reset()
		r.reader.Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, r.start.Add(d.At).UnixNano())
		for i := range b.Reports {
			if err := b.Reports[i].Error(); err != nil {
				r.t.Fatal(err)
			}
		}
		r.state.Update(b.Reports)
	})
	c := r.state.Cut(r.start.Add(r.net.Now()).UnixNano())
	var p window.Partial
	c.AddTo(&p)
	p.Start, p.End = r.start.Add(from).UnixNano(), r.start.Add(r.net.Now()).UnixNano()
	r.state.Recycle(c)
	r.last = p.Window(window.NoLimits())
	for _, f := range r.detector.Step(&r.last) {
		if f.Kind == inference.ProbeLoss || f.Kind == inference.ProbeCorruption || f.Kind == inference.PacketLoss {
			list = append(list, f)
		}
	}
	return list
}

// pathOf is the path of a probe in series and findings.
func (r *plannedRun) pathOf(x *probe.Probe) inference.ProbeKey {
	address := func(name string) decode.Addr {
		at, _ := r.net.Graph().Lookup(name)
		_, a := r.net.AgentHost(at)
		return decode.AddrFrom(a)
	}
	number, err := strconv.Atoi(strings.TrimLeft(x.ID, "abcdefghijklmnopqrstuvwxyz-"))
	if err != nil {
		r.t.Fatalf("probe %q has no number: %v", x.ID, err)
	}
	return inference.ProbeKey{From: address(x.Agent), To: address(x.Collector), Path: uint32(number), Epoch: r.plan.Epoch}
}

// crosses reports whether a probe passes a direction of a link.
func (r *plannedRun) crosses(k int, from, to string) bool {
	nodes := r.cover.Probes[k].Nodes
	for i := 1; i < len(nodes); i++ {
		if nodes[i-1] == from && nodes[i] == to {
			return true
		}
	}
	return false
}

// between reports whether an element is the link between two switches.
func (r *plannedRun) between(e inference.Element, a, b string) bool {
	of := func(name string) uint32 {
		at, _ := r.net.Graph().Lookup(name)
		return r.net.NodeID(at)
	}
	return e.Kind == inference.LinkElement && (e.Node == of(a) && e.Peer == of(b) || e.Node == of(b) && e.Peer == of(a))
}

// TestPlannedPaths: the paths of a plan over a direction of a link that loses everything are series and findings, each
// with its number, and no other path is accused. If a link is named, it is that one. That holds for windows that are shorter than what reports wait, too.
func TestPlannedPaths(t *testing.T) {
	t.Parallel()
	for k := range testkit.Rounds(8, 60) {
		seed, length := testkit.Seed(t)+uint64(k), []time.Duration{time.Second, 10 * time.Second}[k%2]
		r, from, to := newPlannedRun(t, seed, length, true)
		r.adopt(r.plan)
		accused := map[string]bool{}
		for r.net.Now() < plannedCut+plannedFor {
			for _, f := range r.step() {
				if r.net.Now() <= plannedCut {
					t.Fatalf("seed %d, %v: %+v", seed, r.net.Now(), f)
				}
				if f.Kind == inference.PacketLoss && !r.between(f.Element, from, to) {
					t.Errorf("seed %d, cut %s to %s: %v: %s", seed, from, to, f.Element, f.Text)
				}
				if f.Kind == inference.ProbeLoss && f.Evidence == 0 {
					name, _, _ := strings.Cut(f.Text, " lost ")
					accused[name] = true
					if !strings.Contains(f.Text, "the path is one of the plan of epoch 1") {
						t.Errorf("seed %d: %s", seed, f.Text)
					}
				}
			}
			if r.net.Now() < 20*time.Second {
				continue
			}
			for i := range r.plan.Probes {
				k := r.pathOf(&r.plan.Probes[i])
				at := slices.IndexFunc(r.last.Probes, func(s inference.ProbeStats) bool { return s.ProbeKey == k })
				if at < 0 {
					t.Fatalf("seed %d, %v: no %v in the series", seed, r.net.Now(), k)
				}
				s, over := &r.last.Probes[at], r.net.Now() > plannedCut && r.crosses(i, from, to)
				if over && r.net.Now() <= plannedCut+10*time.Second+length {
					continue // from some of these rounds on it loses all
				}
				if over != (s.Received == 0 && s.Lost() > 0) || over == (s.Received > 0 && s.Lost() == 0) {
					t.Fatalf("seed %d, %v, cut %s to %s: %+v", seed, r.net.Now(), from, to, s)
				}
			}
		}
		over := 0
		for i := range r.plan.Probes {
			k := r.pathOf(&r.plan.Probes[i])
			if crosses := r.crosses(i, from, to); crosses != accused[k.String()] {
				t.Errorf("seed %d, cut %s to %s: %v crosses it %v and is accused %v: %v", seed, from, to, k, crosses, accused[k.String()], accused)
			} else if crosses {
				over++
				delete(accused, k.String())
			}
		}
		if over == 0 || len(accused) > 0 {
			t.Errorf("seed %d, cut %s to %s: %d paths over it, and besides %v", seed, from, to, over, accused)
		}
	}
}

// TestPlannedChanges: no path of a healthy network is accused, whenever and at whichever agents plans come, are taken
// back, or programs end and start.
func TestPlannedChanges(t *testing.T) {
	t.Parallel()
	for k := range testkit.Rounds(8, 60) {
		seed, length := testkit.Seed(t)+uint64(k), []time.Duration{time.Second, 10 * time.Second}[k%2]
		r, _, _ := newPlannedRun(t, seed, length, false)
		rng := rand.New(rand.NewPCG(seed, 37))
		plans := []*probe.Plan{r.plan}
		r.adopt(r.plan)
		agents := r.net.Config().Agents
		seen := 0
		for epoch := uint32(2); r.net.Now() < 4*time.Minute; {
			for _, f := range r.step() {
				t.Fatalf("seed %d, windows of %v, %v: %+v", seed, length, r.net.Now(), f)
			}
			seen += len(r.last.Probes)
			a := agents[rng.IntN(len(agents))].Switch
			switch rng.IntN(12) {
			case 0: // a new plan, which comes to some agents at first
				p, _ := r.planOf(epoch, seed+uint64(epoch)*uint64(rng.IntN(2)))
				if n := len(p.Probes); rng.IntN(2) == 0 {
					i := rng.IntN(n)
					p.Probes = slices.Delete(p.Probes, i, i+1)
				}
				epoch++
				plans = append(plans, p)
				fallthrough
			case 1, 2:
				for _, x := range agents {
					if rng.IntN(2) == 0 {
						r.net.SendPlan(x.Switch, plans[len(plans)-1])
					}
				}
			case 3:
				r.net.StopAgent(a)
			case 4, 5:
				if r.net.AgentPlan(a) == nil {
					r.net.StartAgent(a)
					r.net.SendPlan(a, plans[rng.IntN(len(plans))])
				}
			}
		}
		if seen == 0 {
			t.Errorf("seed %d: no path was reported", seed)
		}
	}
}
