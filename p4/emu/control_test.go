package emu

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// controller changes plans by asking again until a switch has answered, all of them before the next step.
type controller struct {
	n       *Network
	waiting map[Request]int // switches by request
	asked   map[int]time.Duration
	steps   [][]p4.Entry // what every switch is to have, one after the other
	retry   time.Duration
}

func (c *controller) begin(cfg *Config, steps ...[]p4.Entry) {
	c.waiting, c.asked, c.steps, c.retry = map[Request]int{}, map[int]time.Duration{}, steps, 2*(cfg.ControlDelay+cfg.ControlJitter)+20*cfg.ControlGap
	for i := range c.n.switches {
		c.ask(i)
	}
}

func (c *controller) ask(node int) {
	c.asked[node] = c.n.Now()
	c.waiting[c.n.Install(node, c.steps[0])] = node
}

func (c *controller) answer(a Answer) {
	node, ok := c.waiting[a.Request]
	if !ok || a.Node != node || len(c.steps) == 0 {
		return
	}
	delete(c.asked, node)
	if len(c.asked) == 0 {
		c.steps = c.steps[1:]
		clear(c.waiting)
		for i := range c.n.switches {
			if len(c.steps) > 0 {
				c.ask(i)
			}
		}
	}
}

// tick repeats requests that have been unanswered for too long.
func (c *controller) tick() {
	for _, node := range slices.Sorted(maps.Keys(c.asked)) {
		if c.n.Now()-c.asked[node] > c.retry {
			c.ask(node)
		}
	}
}

func planEntries(t testing.TB, p *pint.Plan) []p4.Entry {
	t.Helper()
	entries, err := pintplan.Entries(p)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// The test changes plans over a slow and lossy control plane, one switch after the other. In any order, each reported
// digest is that of the plan whose epoch it carries. If all switches hold a plan before the first one stamps it, no
// digest is lost.
func TestChangeOver(t *testing.T) {
	for _, careful := range []bool{true, false} {
		for seed := range uint64(2) {
			cfg := pintConfig(t)
			cfg.Plan, cfg.Dialect, cfg.PINTShare, cfg.PacketRate = testPlan(t, pint.HashCRC), Off, 1, 2000
			if seed%2 == 1 {
				cfg.Plan = testPlan(t, pint.HashMix) // which tables do not hold
			}
			cfg.ControlDelay, cfg.ControlJitter, cfg.ControlGap, cfg.ControlLoss = 2*time.Millisecond, 20*time.Millisecond, time.Millisecond, .1
			plans := map[uint8]*pint.Plan{cfg.Plan.Epoch: cfg.Plan}
			for epoch := uint8(8); epoch < 10; epoch++ {
				next := *testPlan(t, pint.HashCRC)
				next.Epoch, next.Seed = epoch, uint32(epoch)
				plans[epoch] = &next
			}
			kept := keepPINT(&cfg)
			c := &controller{}
			cfg.OnAnswer = c.answer
			n := mustNew(t, cfg, seed)
			c.n = n
			var reports []*decode.Report
			for step := range 1700 {
				switch step {
				case 100:
					steps := [][]p4.Entry{planEntries(t, plans[8]), {pintplan.Stamp(8)}}
					if !careful {
						slices.Reverse(steps)
					}
					c.begin(&cfg, steps...)
				case 900: // the first plan makes room for the third
					if len(c.steps) > 0 {
						t.Fatalf("seed %d: %d steps of the first change are left", seed, len(c.steps))
					}
					for i := range n.switches {
						for range 8 { // some get lost
							n.Remove(i, planEntries(t, testPlan(t, pint.HashCRC)))
						}
					}
					c.begin(&cfg, planEntries(t, plans[9]), []p4.Entry{pintplan.Stamp(9)})
				}
				c.tick()
				n.Run(n.Now()+time.Millisecond, func(d Datagram) {
					d.Payload = bytes.Clone(d.Payload)
					reports = append(reports, decodeStrictly(t, n, d, 0)...)
				})
			}
			epochs := map[uint8]int{}
			for _, r := range reports {
				if r.Kind != decode.KindDigest {
					continue
				}
				epochs[r.Digest.Epoch]++
				j := kept[digestKey{r.Flow, r.Digest.ID}][0]
				checkDigest(t, plans[r.Digest.Epoch], &j)
			}
			st := n.controlStats()
			lost := st.unstamped + st.foreign + st.incomplete
			if careful != (lost == 0) || len(epochs) != 3 || len(c.steps) > 0 || st.requestsLost == 0 || st.answersLost == 0 {
				t.Errorf("seed %d, careful %v: digests by epoch %v, %d steps left, %+v", seed, careful, epochs, len(c.steps), st)
			}
			if !careful && st.unstamped == 0 {
				t.Errorf("seed %d: no packet entered at a switch that was to stamp a plan which it did not hold", seed)
			}
		}
	}
}

// A switch that holds no plan of a packet's epoch leaves the digest as it is.
func TestForeignEpoch(t *testing.T) {
	cfg := pintConfig(t)
	cfg.Plan, cfg.Dialect, cfg.PINTShare = testPlan(t, pint.HashCRC), Off, 1
	var n *Network
	through, whole := 0, 0
	cfg.Observe = func(j *Journey) {
		if j.Outcome != Delivered {
			return
		}
		for i := range j.Hops {
			if n.graph.NodeName(j.Hops[i].Node) == "core-1" && j.Hops[i].Ingress > 50*time.Millisecond {
				through++
				return
			}
		}
		if j.Hops[0].Ingress > 50*time.Millisecond {
			whole++
			checkDigest(t, cfg.Plan, j)
		}
	}
	n = mustNew(t, cfg, 3)
	core := n.node(t, "core-1")
	n.Remove(core, planEntries(t, cfg.Plan)[:1]) // what is left is no plan
	n.Run(400*time.Millisecond, func(Datagram) {})
	st := n.controlStats()
	if through < 50 || whole < 500 || st.foreign < uint64(through) || st.incomplete < uint64(through) {
		t.Errorf("%d packets through the switch, %d not; %+v", through, whole, st)
	}
}

// Entries of a controller are read back, reach one switch after the other, and may be refused entry by entry.
func TestInstallReadBack(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ControlDelay, cfg.ControlGap = time.Millisecond, 5*time.Millisecond
	var answers []Answer
	cfg.OnAnswer = func(a Answer) { answers = append(answers, a) }
	n := mustNew(t, cfg, 1)
	route := func(dst uint64, port uint64) p4.Entry {
		return p4.Entry{Table: RouteTable, Match: []p4.Match{{Value: p4.Uint(dst), Prefix: 32}}, Action: "forward", Params: []p4.Value{p4.Uint(port)}}
	}
	good, bad := route(0x0a000001, 1), route(0x0a000002, 77)
	for i := range 3 {
		n.Install(i, []p4.Entry{good, bad})
	}
	n.ReadBack(1, RouteTable)
	n.Remove(1, []p4.Entry{good, good})
	n.ReadBack(1, "")
	n.Install(-1, []p4.Entry{good}) // no switch is there, and none answers
	n.ReadBack(1<<20, "")
	n.Run(time.Second, func(Datagram) {})
	if len(answers) != 6 {
		t.Fatalf("%d answers", len(answers))
	}
	for i, a := range answers {
		if want := 2*time.Millisecond + time.Duration(i)*5*time.Millisecond; a.At != want || a.Request != Request(i+1) {
			t.Errorf("answer %d to request %d at %v, want %v", i, a.Request, a.At, want)
		}
	}
	if e := answers[0].Errors; len(e) != 2 || e[0] != nil || !errors.Is(e[1], p4.ErrInvalid) || e[1].Error() != "table ipv4_route: switch core-0 has no port 77: entry does not fit the program" {
		t.Errorf("errors %v", e)
	}
	if got := answers[3].entries; answers[3].Node != 1 || len(got) != 1 || got[0].String() != good.String() {
		t.Errorf("read back %v", got)
	}
	if e := answers[4].Errors; len(e) != 2 || e[0] != nil || !errors.Is(e[1], p4.ErrNotFound) {
		t.Errorf("errors %v", e)
	}
	if got := answers[5].entries; len(got) != 2 || got[0].Table != watchTable || !got[0].Default() || got[1].Table != watch6Table {
		t.Errorf("read back %v", got)
	}

	// A table that is full.
	answers = nil
	var many []p4.Entry
	for i := range uint64(4097) {
		many = append(many, route(i, 1))
	}
	n.Install(5, many)
	n.Run(2*time.Second, func(Datagram) {})
	if e := answers[0].Errors; len(e) != 4097 || e[4095] != nil || !errors.Is(e[4096], p4.ErrFull) {
		t.Errorf("errors %v", e[4090:])
	}
}

// A plan that the network was built with is read back as the tables hold it, and a third one finds no room.
func TestPlansReadBack(t *testing.T) {
	cfg := pintConfig(t)
	cfg.Plan = testPlan(t, pint.HashCRC)
	var answers []Answer
	cfg.OnAnswer = func(a Answer) { answers = append(answers, a) }
	n := mustNew(t, cfg, 1)
	n.ReadBack(0, pintplan.PlanTable)
	n.ReadBack(0, pintplan.SourceTable)
	for epoch := uint8(20); epoch < 22; epoch++ {
		p := *cfg.Plan
		p.Epoch = epoch
		n.Install(0, planEntries(t, &p))
	}
	n.Run(time.Second, func(Datagram) {})
	if got := answers[0].entries; len(got) != 1 || got[0].Match[0].Value.Uint64() != 7 {
		t.Errorf("read back %v", got)
	}
	if got := answers[1].entries; len(got) != 1 || got[0].String() != "pint_source => stamp(0x07)" {
		t.Errorf("read back %v", got)
	}
	if answers[2].Errors != nil || !slices.ContainsFunc(answers[3].Errors, func(err error) bool { return errors.Is(err, p4.ErrFull) }) {
		t.Errorf("errors %v, then %v", answers[2].Errors, answers[3].Errors)
	}
	if x := &n.switches[0].plans; x.Plan(7) == nil || x.Plan(20) == nil || x.Plan(21) != nil || *x.Stamp != 7 {
		t.Errorf("held %+v", x)
	}
}

// Routes, watch lists and the ways of probes are followed from the moment they reach a switch.
func TestWrittenTables(t *testing.T) {
	cfg := DefaultConfig()
	cfg.ControlDelay = 100 * time.Millisecond
	cfg.Probes = someProbes()[:1]
	var n *Network
	to := sim.HostAddr4(7, 1) // the last host
	over := map[bool]map[string]int{true: {}, false: {}}
	after := func(h *Hop) bool { return h.Ingress > 101*time.Millisecond }
	var first, second int
	cfg.Observe = func(j *Journey) {
		if j.Outcome != Delivered || !after(&j.Hops[0]) && j.Hops[0].Ingress > 99*time.Millisecond {
			return
		}
		name := n.graph.NodeName(j.Hops[0].Node)
		switch {
		case j.Probe:
			if len(j.Hops) == 3 {
				second++
			} else {
				first++
			}
			if (len(j.Hops) == 3) != after(&j.Hops[0]) {
				t.Fatalf("probe over %d switches at %v", len(j.Hops), j.Hops[0].Ingress)
			}
		case name == "edge-0-0" && j.Key.IPVersion == 4 && bytes.Equal(j.Key.Dst[12:], to[:]):
			over[after(&j.Hops[0])][n.graph.NodeName(j.Hops[1].Node)]++
		}
		if name == "edge-1-0" {
			recorded := j.Hops[0].recorded
			if want := !after(&j.Hops[0]) || j.Key.Proto == tcp; recorded != want {
				t.Fatalf("%v at %v: recorded %v", j.Key, j.Hops[0].Ingress, recorded)
			}
		}
	}
	cfg.Flows, cfg.Skew = 2000, 0
	n = mustNew(t, cfg, 1)
	edge := n.node(t, "edge-0-0")
	list, err := srint.AppendPath(nil, []int{3, 2, 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &n.probes[0]
	n.Install(edge, []p4.Entry{
		{Table: RouteTable, Match: []p4.Match{{Value: p4.Bytes(to[:]), Prefix: 32}}, Action: "forward", Params: []p4.Value{p4.Uint(4)}},
		{Table: probeTable, Match: []p4.Match{{Value: p4.Bytes(n.hosts[p.from].v4[:])}, {Value: p4.Bytes(n.hosts[p.to].v4[:])}},
			Action: "route", Params: []p4.Value{p4.Bytes(list[:probeList])}},
	})
	all := []p4.Match{p4.Masked(0, 0), p4.Masked(0, 0), p4.Masked(uint64(udp), 255), p4.Between(0, 65535), p4.Between(0, 65535)}
	n.Install(n.node(t, "edge-1-0"), []p4.Entry{
		{Table: watchTable, Match: all, Priority: 1, Action: "pass"}, {Table: watch6Table, Match: all, Priority: 1, Action: "pass"},
		{Table: watchTable, Action: "watch", Params: []p4.Value{p4.Uint(0xf100), p4.Uint(9)}},
	})
	basic, detailed := 0, 0
	n.Run(time.Second, func(d Datagram) {
		if d.Probe {
			return
		}
		for _, r := range decodeStrictly(t, n, d, 0) {
			if r.Kind != decode.KindStack || r.Flow.IPVersion != 4 {
				continue
			}
			if h := &r.Hops[0]; h.NodeID == n.NodeID(n.node(t, "edge-1-0")) && d.At > 150*time.Millisecond {
				if h.Has&decode.HopIngressTime != 0 {
					t.Fatalf("%+v", h)
				}
				basic++
			} else if h.Has&decode.HopIngressTime != 0 {
				detailed++
			}
		}
	})
	if over[false]["agg-0-0"] == 0 || len(over[true]) != 1 || over[true]["agg-0-1"] == 0 {
		t.Errorf("before %v, after %v", over[false], over[true])
	}
	if first == 0 || second < 3 || basic < 20 || detailed < 100 {
		t.Errorf("%d probes on the first way and %d on the second; %d reports of few values, %d of many", first, second, basic, detailed)
	}
}

// A controller that only reads changes no packet, and the same seed gives the same answers.
func TestControlIsSeeded(t *testing.T) {
	run := func(ask bool) (string, string) {
		cfg := busyConfig()
		cfg.Plan, cfg.PINTShare = testPlan(t, pint.HashCRC), .5
		cfg.ControlDelay, cfg.ControlJitter, cfg.ControlLoss = time.Millisecond, 30*time.Millisecond, .3
		var answers string
		cfg.OnAnswer = func(a Answer) { answers += fmt.Sprintln(a.Request, a.At, a.Node, len(a.entries)) }
		n, sent := mustNew(t, cfg, 9), ""
		for i := range 200 {
			if ask {
				n.ReadBack(i%len(n.switches), "")
				n.Install(i%len(n.switches), planEntries(t, cfg.Plan)) // what they have
			}
			n.Run(n.Now()+time.Millisecond, func(d Datagram) { sent += fmt.Sprintf("%v %v %x\n", d.At, d.From, d.Payload[len(d.Payload)/2:]) })
		}
		return sent, answers
	}
	sent, answers := run(true)
	second, same := run(true)
	without, _ := run(false)
	if sent != second || answers != same || len(answers) < 1000 {
		t.Error("the same seed gives something else")
	}
	if sent != without {
		t.Error("a controller that changes nothing changes packets")
	}
}
