package emu

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

func mustScheme(t testing.TB, c pint.Config) *pint.Scheme {
	t.Helper()
	s, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCode(t testing.TB, c pint.CodeConfig) pint.Code {
	t.Helper()
	l, err := pint.NewCode(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Places of the queries of testPlan.
const (
	pathQuery = iota
	latencyQuery
	queueQuery
	utilizationQuery
	loopQuery
)

// testPlan has a query of every kind, in two sets, and a digest of more than 32 bits.
func testPlan(t testing.TB, h pint.Hash) *pint.Plan {
	baseline := mustScheme(t, pint.Config{Hash: h, Seed: 2, Bits: 8, Instances: 1, Tau: 1})
	code := func(most uint64) pint.Code { return mustCode(t, pint.CodeConfig{Bits: 8, Max: most}) }
	p := &pint.Plan{
		Epoch: 7, Hash: h, Seed: 3, Bits: 40,
		Queries: []pint.Query{
			pathQuery: {
				Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 16,
				Scheme: mustScheme(t, pint.Config{Hash: h, Seed: 1, Bits: 8, Instances: 2, Tau: .6, P: []float64{.3}}),
			},
			latencyQuery: {Name: "latency", Value: pint.LatencyValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: baseline, Code: code(1e9)},
			queueQuery:   {Name: "queue", Value: pint.QueueValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: baseline, Code: code(1e6)},
			utilizationQuery: {
				Name: "utilization", Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: code(pint.UtilizationUnit),
			},
			loopQuery: {Name: "loops", Value: pint.NodeValue, Aggregation: pint.Loop, Bits: 16, Loops: &pint.Loops{Hash: h, Seed: 4, Bits: 15, T: 1}},
		},
		Sets: []pint.Set{
			{Share: .75, Slots: []pint.Slot{{Query: loopQuery, Shift: 0}, {Query: pathQuery, Shift: 24}}},
			{Share: .25, Slots: []pint.Slot{{Query: utilizationQuery, Shift: 0}, {Query: latencyQuery, Shift: 16}, {Query: queueQuery, Shift: 30}}},
		},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// pintConfig is a small, well used fat-tree where half of the flows carry digests.
func pintConfig(t testing.TB) Config {
	c := DefaultConfig()
	c.LinkRate, c.PacketRate, c.IPv6Share = 10e6, 6000, .3
	c.Plan, c.PINTShare, c.LoopReportGap = testPlan(t, pint.HashMix), .5, 0
	return c
}

// addPlan makes a configuration one with PINT: dialects that cannot report digests give way.
func addPlan(t *testing.T, c *Config, seed uint64) {
	can := func(d Dialect) Dialect {
		if d == md10 || d == local05 {
			return Off
		}
		return d
	}
	c.Dialect = can(c.Dialect)
	for name, d := range c.Dialects {
		c.Dialects[name] = can(d)
	}
	c.Plan, c.PINTShare, c.LoopReportGap = testPlan(t, pint.Hash(seed/2%2)), float64(seed%5)/4, time.Duration(seed%3)*10*time.Millisecond
}

// The bytes of a report, counted by hand.
func TestDigestReport(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Flows, cfg.Plan, cfg.IPReports, cfg.FirstSequence = 0, testPlan(t, pint.HashMix), true, 300
	n := mustNew(t, cfg, 1)
	var got []byte
	n.emit = func(d Datagram) { got = bytes.Clone(d.Payload) }
	p := whole(vector(t, "int10-tcp"))
	p.pint, p.epoch, p.digestID, p.digest, p.hop = true, 7, 0x01020304, 0xaa_11223344, 5
	d := &n.switches[2]
	inner := p.Buf[ethLen : ethLen+40]
	n.report(p, d, &subject{hop: Hop{ingressPort: 1, QueueBytes: 99}, digest: true})
	want, _ := hex.DecodeString("2000012c" + "00000003" + // version 2, number 300, node 3
		"14100420" + "0000" + "5049" + "f000" + "0000" + // INT, IPv4, 16 words, 4 of metadata, F; domain, bits 0 to 3
		"07050000" + "01020304" + "11223344" + "000000aa")
	wantBytes(t, "digest", got, append(want, inner...))

	n.report(p, d, &subject{hop: Hop{ingressPort: 1}, digest: true, looped: 2})
	want, _ = hex.DecodeString("2000012d" + "00000003" + "14110520" + "0000" + "5049" + "f800" + "0000" +
		"07050000" + "01020304" + "11223344" + "000000aa" + "02000000")
	wantBytes(t, "loop", got, append(want, inner...))
}

// digestKey names a packet.
type digestKey struct {
	flow decode.FlowKey
	id   uint32
}

func path(j *Journey) (nodes []uint32) {
	for i := range j.Hops {
		nodes = append(nodes, j.Hops[i].NodeID)
	}
	return nodes
}

// keepPINT lets cfg observe the journeys of packets with digests.
func keepPINT(cfg *Config) map[digestKey][]Journey {
	kept := map[digestKey][]Journey{}
	cfg.Observe = func(j *Journey) {
		if j.PINT {
			k := *j
			k.Hops, k.Frame = slices.Clone(j.Hops), bytes.Clone(j.Frame)
			kept[digestKey{j.Key, j.DigestID}] = append(kept[digestKey{j.Key, j.DigestID}], k)
		}
	}
	return kept
}

// reports runs the network and lets it run dry, so that nothing is on its way.
func (n *Network) reports(t *testing.T, until time.Duration) (reports []*decode.Report) {
	t.Helper()
	keep := func(d Datagram) {
		d.Payload = bytes.Clone(d.Payload)
		for _, r := range decodeStrictly(t, n, d, 0) {
			r.Time = int64(d.At)
			reports = append(reports, r)
		}
	}
	n.Run(until, keep)
	n.cfg.PacketRate = 1e-6
	n.Run(n.Now()+10*time.Second, keep)
	return reports
}

// Every digest is what the plan makes of the true path and values, and every sampled packet of a flow with digests is
// reported once.
func TestDigestsReportTheTruth(t *testing.T) {
	type edit = func(*Config)
	for name, change := range map[string]edit{
		"INT-MD beside it": func(*Config) {},
		"alone":            func(c *Config) { c.Dialect, c.PINTShare = Off, 1 },
		"CRC":              func(c *Config) { c.Plan = testPlan(t, pint.HashCRC) },
		"postcards":        func(c *Config) { c.Dialect, c.IPReports = XD20, true },
		"INT-MX, grouped":  func(c *Config) { c.Dialect, c.ReportsPerDatagram, c.HardwareIDs, c.SampleEvery = mx21, 5, 3, 3 },
		"narrow": func(c *Config) {
			c.Plan = &pint.Plan{Bits: 16, Queries: c.Plan.Queries[:1], Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{}}}}}
		},
		"random graph": func(c *Config) { c.Topology, c.HostsPerEdge = "random:30,40,2", 1 },
		"paths change": func(c *Config) {
			c.Script = []Fault{
				{Kind: LinkDown, At: 100 * time.Millisecond, For: 200 * time.Millisecond, Node: "edge-1-0", Peer: "agg-1-0"},
				{Kind: DivertFlows, At: 150 * time.Millisecond, For: 200 * time.Millisecond, Node: "edge-2-0", Peer: "agg-2-1", Value: 1},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := pintConfig(t)
			change(&cfg)
			kept := keepPINT(&cfg)
			n := mustNew(t, cfg, 21)
			count := 0
			for _, r := range n.reports(t, 500*time.Millisecond) {
				if r.Kind != decode.KindDigest {
					continue
				}
				count++
				k := digestKey{r.Flow, r.Digest.ID}
				i := slices.IndexFunc(kept[k], func(j Journey) bool {
					return j.Outcome == Delivered && j.Digest == r.Digest.Value && len(j.Hops) == int(r.Digest.Hops)
				})
				if i < 0 {
					t.Fatalf("no packet fits %+v of node %d about %v: %+v", r.Digest, r.NodeID, r.Flow, kept[k])
				}
				j := kept[k][i]
				kept[k] = slices.Delete(kept[k], i, i+1)
				if r.NodeID != j.Hops[len(j.Hops)-1].NodeID || r.Digest.Epoch != cfg.Plan.Epoch || r.Flags != decode.Tracked || len(r.Hops) > 1 {
					t.Fatalf("%+v, want a report of node %d", r, j.Hops[len(j.Hops)-1].NodeID)
				}
				checkDigest(t, cfg.Plan, &j)
			}
			for _, left := range kept {
				for i := range left {
					if left[i].Sampled && left[i].Outcome == Delivered {
						t.Fatalf("no report about %+v", left[i])
					}
				}
			}
			if count < 300 || n.Stats().Reports.digests != uint64(count) {
				t.Errorf("%d digests, %d counted", count, n.Stats().Reports.digests)
			}
		})
	}
}

func checkDigest(t *testing.T, plan *pint.Plan, j *Journey) {
	t.Helper()
	l4 := ethLen + 20
	if j.Key.IPVersion == 6 {
		l4 = ethLen + 40
	}
	if id := crc32.ChecksumIEEE(j.Frame[l4:]); id != j.DigestID {
		t.Fatalf("the packet's id is %#x, that of the delivered packet %#x", j.DigestID, id)
	}
	for _, slot := range plan.Sets[plan.Set(j.DigestID)].Slots {
		q, got := &plan.Queries[slot.Query], plan.Part(j.Digest, slot)
		most, writer := uint64(0), uint64(0)
		for i := range j.Hops {
			h := &j.Hops[i]
			v := map[string]uint64{
				pint.LatencyValue: uint64(h.Latency()), pint.QueueValue: uint64(h.QueueBytes), pint.UtilizationValue: uint64(h.Load),
			}[q.Value]
			most = max(most, v)
			if q.Aggregation == pint.Dynamic {
				if p := q.Scheme.Packet(j.DigestID, 0); q.Scheme.Writers(&p, len(j.Hops)) == 1<<i {
					writer = v
				}
			}
		}
		switch q.Aggregation {
		case pint.Static:
			if want := q.Scheme.Digest(j.DigestID, path(j)); got != want {
				t.Fatalf("packet %#x over %v: digest %#x, want %#x", j.DigestID, path(j), got, want)
			}
		case pint.Dynamic:
			if !near(q.Code, got, writer) {
				t.Fatalf("packet %#x: %s is coded as %d (%v), want %d", j.DigestID, q.Name, got, q.Code.Decode(uint32(got)), writer)
			}
		case pint.PerPacket:
			if !near(q.Code, got, most) {
				t.Fatalf("packet %#x: %s is coded as %d (%v), want %d", j.DigestID, q.Name, got, q.Code.Decode(uint32(got)), most)
			}
		}
	}
}

// near reports whether code is one of the two that v may be rounded to.
func near(c pint.Code, code, v uint64) bool {
	low, high := c.Encode(v, 1<<32-1), c.Encode(v, 0)
	return uint64(low) == code || uint64(high) == code
}

// Which flows carry digests is decided by carriesPINT, holds for all of their packets, and follows the configured share.
func TestShareOfFlows(t *testing.T) {
	for _, share := range []float64{0, .25, 1} {
		cfg := pintConfig(t)
		cfg.PINTShare, cfg.Flows = share, 1000
		packets := 0
		var n *Network
		cfg.Observe = func(j *Journey) {
			packets++
			if j.PINT != n.carriesPINT(j.Flow) {
				t.Fatalf("packet of flow %d has a digest: %v", j.Flow, j.PINT)
			}
			if recorded := slices.ContainsFunc(j.Hops, func(h Hop) bool { return h.recorded }); recorded == j.PINT && j.Outcome == Delivered {
				t.Fatalf("packet of flow %d has a digest: %v, and INT: %v", j.Flow, j.PINT, recorded)
			}
		}
		n = mustNew(t, cfg, 22)
		n.Run(200*time.Millisecond, func(Datagram) {})
		chosen := 0
		for i := range n.NumFlows() {
			if n.carriesPINT(i) {
				chosen++
			}
		}
		// 5.5 standard deviations of a binomial distribution of 1000.
		if diff := float64(chosen) - 1000*share; diff < -76 || diff > 76 || share == 0 && chosen > 0 || share == 1 && chosen < 1000 || packets < 500 {
			t.Errorf("%d of 1000 flows carry digests, want a share of %v; %d packets", chosen, share, packets)
		}
	}
}

// A plan that no flow follows changes no byte.
func TestPlanWithoutFlows(t *testing.T) {
	plain, planned := busyConfig(), busyConfig()
	planned.Plan = testPlan(t, pint.HashMix)
	if a, b := fingerprint(t, plain, 7, 1), fingerprint(t, planned, 7, 1); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

// Digests do not change the way of packets. Time and place of delivery stay the same, except for the room that INT
// takes on the lines.
func TestDigestsTakeNoRoom(t *testing.T) {
	journeys := func(c Config) (all []string) {
		c.Dialect, c.DropReports = Off, false
		c.Observe = func(j *Journey) { all = append(all, j.Key.String()+j.At.String()+string(j.Frame)) }
		mustNew(t, c, 23).Run(300*time.Millisecond, func(Datagram) {})
		return all
	}
	with := pintConfig(t)
	without := with
	without.Plan, without.PINTShare = nil, 0
	if a, b := journeys(with), journeys(without); !slices.Equal(a, b) || len(a) < 500 {
		t.Errorf("%d and %d packets, not the same", len(a), len(b))
	}
}

// Every digest is that of the plan whose epoch its packet carries, also of packets that are under way when the plan changes.
func TestSetPlan(t *testing.T) {
	cfg := pintConfig(t)
	cfg.Dialect, cfg.PINTShare = Off, 1
	kept := keepPINT(&cfg)
	n := mustNew(t, cfg, 27)
	next := *testPlan(t, pint.HashCRC)
	next.Epoch = 8
	const at = 300 * time.Millisecond
	var reports []*decode.Report
	keep := func(d Datagram) {
		d.Payload = bytes.Clone(d.Payload)
		reports = append(reports, decodeStrictly(t, n, d, 27)...)
	}
	n.Run(at, keep)
	before := len(reports)
	if err := n.SetPlan(&next); err != nil {
		t.Fatal(err)
	}
	n.Run(2*at, keep)
	late := 0
	for i, r := range reports {
		j := kept[digestKey{r.Flow, r.Digest.ID}][0]
		plan := cfg.Plan
		if j.Hops[0].Ingress+cfg.Pipeline+cfg.Jitter > at && i >= before && r.Digest.Epoch == next.Epoch {
			plan = &next
		}
		if r.Digest.Epoch != plan.Epoch {
			t.Fatalf("report %d of %d: epoch %d", i, before, r.Digest.Epoch)
		}
		if i >= before && plan == cfg.Plan {
			late++
		}
		checkDigest(t, plan, &j)
	}
	if late == 0 || late > before/10 || before < 500 || len(reports) < 2*before*9/10 {
		t.Errorf("%d reports, %d before the change of plan and %d of the old plan after it", len(reports), before, late)
	}
	if s := n.controlStats(); s != (controlStats{}) {
		t.Errorf("%+v", s)
	}

	for name, err := range map[string]error{
		"no plan":      n.SetPlan(nil),
		"invalid plan": n.SetPlan(&pint.Plan{}),
		"same epoch":   n.SetPlan(cfg.Plan),
		"without":      mustNew(t, DefaultConfig(), 1).SetPlan(&next),
	} {
		if err == nil || !strings.Contains(err.Error(), "set plan: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What does not fit the tables of switches is an error when they come to hold it, and changes nothing.
func TestPlanBeyondTables(t *testing.T) {
	n := mustNew(t, pintConfig(t), 1)
	n.cfg.MaxHops = 256 // the table's field has 8 bits, and Validate lets nothing by that it does not hold
	next := testPlan(t, pint.HashCRC)
	next.Epoch = 8
	if err := n.SetPlan(next); !errors.Is(err, p4.ErrInvalid) {
		t.Errorf("%v, want %v", err, p4.ErrInvalid)
	}
	if x := &n.switches[0].plans; x.Plan(8) != nil || x.Plan(7) == nil || *x.Stamp != 7 {
		t.Error("a plan that was refused is there")
	}
	n.cfg.MaxHops = 8
	if err := n.SetPlan(next); err != nil {
		t.Error(err)
	}
}

// SetPlan makes all switches hold and stamp another plan at once, without a control plane. It does to all what
// [Network.Install] does to one switch. They keep the plan that they stamped before, so that packets under way continue
// with theirs. A network that was built without a plan has no flows that carry digests, and stays so.
func (n *Network) SetPlan(p *pint.Plan) error {
	if p == nil || n.planner.plan == nil {
		return errors.New("set plan: a plan can only take the place of another")
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	for i := range n.switches {
		if n.switches[i].plans.Plan(p.Epoch) != nil {
			return fmt.Errorf("set plan: switch %s holds another plan of epoch %d", n.graph.NodeName(i), p.Epoch)
		}
	}
	if err := n.holdEverywhere(p); err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	return nil
}
