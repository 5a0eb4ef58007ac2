package emu

import (
	"bytes"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
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

// Every digest is what the plan makes of the true path and of the true values along it, and every sampled packet of a flow
// that carries digests is reported once.
func TestDigestsTellTheTruth(t *testing.T) {
	type edit = func(*Config)
	for name, change := range map[string]edit{
		"INT-MD beside it": func(*Config) {},
		"alone":            func(c *Config) { c.Dialect, c.PINTShare = Off, 1 },
		"CRC":              func(c *Config) { c.Plan = testPlan(t, pint.HashCRC) },
		"postcards":        func(c *Config) { c.Dialect, c.IPReports = XD20, true },
		"INT-MX, grouped":  func(c *Config) { c.Dialect, c.ReportsPerDatagram, c.HardwareIDs, c.SampleEvery = MX21, 5, 3, 3 },
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
			if count < 300 || n.Stats().Reports.Digests != uint64(count) {
				t.Errorf("%d digests, %d counted", count, n.Stats().Reports.Digests)
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
				pint.LatencyValue: uint64(h.Latency()), pint.QueueValue: uint64(h.QueueBytes), pint.UtilizationValue: uint64(h.Utilization) << 16 / 10000,
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

// Which flows carry digests is told by CarriesPINT, holds for all of their packets, and follows the configured share.
func TestShareOfFlows(t *testing.T) {
	for _, share := range []float64{0, .25, 1} {
		cfg := pintConfig(t)
		cfg.PINTShare, cfg.Flows = share, 1000
		packets := 0
		var n *Network
		cfg.Observe = func(j *Journey) {
			packets++
			if j.PINT != n.CarriesPINT(j.Flow) {
				t.Fatalf("packet of flow %d has a digest: %v", j.Flow, j.PINT)
			}
			if recorded := slices.ContainsFunc(j.Hops, func(h Hop) bool { return h.Recorded }); recorded == j.PINT && j.Outcome == Delivered {
				t.Fatalf("packet of flow %d has a digest: %v, and INT: %v", j.Flow, j.PINT, recorded)
			}
		}
		n = mustNew(t, cfg, 22)
		n.Run(200*time.Millisecond, func(Datagram) {})
		chosen := 0
		for i := range n.NumFlows() {
			if n.CarriesPINT(i) {
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

// Digests do not change the way of packets: what is delivered when and where stays the same, but for the room that INT
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

// visits is how often the journey comes to the switch where it comes most often.
func visits(j *Journey) (most int) {
	count := map[int]int{}
	for i := range j.Hops {
		count[j.Hops[i].Node]++
		most = max(most, count[j.Hops[i].Node])
	}
	return most
}

// Packets in a routing loop are reported while they are in it, and no others. Loops of two switches and of more.
func TestLoopsAreDetected(t *testing.T) {
	lines := func(pairs ...string) (script []Fault) {
		for i := 0; i < len(pairs); i += 2 {
			script = append(script, Fault{Kind: DivertFlows, At: begin, For: end - begin, Node: pairs[i], Peer: pairs[i+1], Value: .4})
		}
		return script
	}
	for name, script := range map[string][]Fault{
		"two":   lines("agg-1-0", "core-0"),
		"four":  lines("edge-0-0", "agg-0-0", "agg-0-0", "edge-0-1", "edge-0-1", "agg-0-1", "agg-0-1", "edge-0-0"),
		"eight": lines("edge-0-0", "agg-0-0", "agg-0-0", "core-0", "core-0", "agg-1-0", "agg-1-0", "edge-1-0", "edge-1-0", "agg-1-1", "agg-1-1", "core-2", "core-2", "agg-0-1", "agg-0-1", "edge-0-0"),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := pintConfig(t)
			cfg.LinkRate, cfg.PINTShare, cfg.Script = 1e9, 1, script
			kept := keepPINT(&cfg)
			n := mustNew(t, cfg, 24)
			reported := map[digestKey]int{}
			for _, r := range n.reports(t, total) {
				if r.Flags&decode.Loop == 0 {
					continue
				}
				k := digestKey{r.Flow, r.Digest.ID}
				reported[k]++
				i := slices.IndexFunc(kept[k], func(j Journey) bool {
					h := int(r.Digest.Hops)
					return len(j.Hops) >= h && visits(&Journey{Hops: j.Hops[:h]}) > 1 && j.Hops[h-1].NodeID == r.NodeID
				})
				if i < 0 {
					t.Fatalf("node %d reports a loop of %v, but the packet went over %+v", r.NodeID, r.Flow, kept[k])
				}
				if r.Kind != decode.KindDigest || r.Digest.Epoch != cfg.Plan.Epoch {
					t.Fatalf("report of a loop: %+v", r)
				}
			}
			expired, detected, through := 0, 0, 0
			for k, list := range kept {
				for _, j := range list {
					if cfg.Plan.Set(j.DigestID) != 0 { // the set with the query
						continue
					}
					switch {
					case j.Outcome == Expired && len(j.Hops) != hostTTL-1:
						t.Fatalf("expired after %d hops", len(j.Hops))
					case j.Outcome == Expired:
						expired++
						if reported[k] > 0 {
							detected++
						}
					case visits(&j) == 1:
						through++
					}
				}
			}
			if expired < 50 || through < 1000 || detected < expired*9/10 {
				t.Errorf("%d packets went round until their TTL ended, %d of them were reported; %d went straight", expired, detected, through)
			}
			if s := n.Stats(); s.LoopsDetected != s.Reports.Loops || s.LoopsDetected < uint64(detected) {
				t.Errorf("%d loops detected, %d reported", s.LoopsDetected, s.Reports.Loops)
			}
		})
	}
}

// Reports of loops keep their distance, and cost no others their place.
func TestLoopReportGap(t *testing.T) {
	cfg := pintConfig(t)
	cfg.LinkRate, cfg.PINTShare, cfg.LoopReportGap = 1e9, 1, 20*time.Millisecond
	cfg.Script = []Fault{{Kind: DivertFlows, At: begin, For: end - begin, Node: "agg-1-0", Peer: "core-0", Value: 1}}
	n := mustNew(t, cfg, 25)
	last := map[uint32]time.Duration{}
	count := 0
	for _, r := range n.reports(t, total) {
		if r.Flags&decode.Loop == 0 {
			continue
		}
		at := time.Duration(r.Time)
		if at >= end { // packets that come out of the loop leave by another interface
			continue
		}
		if before, seen := last[r.NodeID]; seen && at-before < cfg.LoopReportGap {
			t.Fatalf("node %d reports loops at %v and %v", r.NodeID, before, at)
		}
		last[r.NodeID] = at
		count++
	}
	if s := n.Stats(); count < 20 || s.Reports.Loops < uint64(count) || s.LoopsDetected < 10*s.Reports.Loops || s.Dropped[Expired] == 0 {
		t.Errorf("%d reports of loops; %+v", count, s)
	}
}

// A change of path that loses nothing: the fault moves flows to another way of the same length.
func TestDivertChangesPaths(t *testing.T) {
	f := Fault{Kind: DivertFlows, Node: "edge-1-0", Peer: "agg-1-1", Value: 1}
	n, journeys, _ := withFault(t, f, nil)
	node, other := n.node(t, f.Node), n.node(t, "agg-1-0")
	seen := [3]map[bool]int{{}, {}, {}} // by whether they go over the other switch
	for _, j := range journeys {
		if j.Outcome != Delivered {
			t.Fatalf("a packet is %v", j.Outcome)
		}
		w := -1
		if len(j.Hops) == 5 && j.Hops[0].Node == node {
			w = during(j.Hops[0].Ingress)
		}
		if w >= 0 {
			seen[w][j.Hops[1].Node == other]++
		}
		if visits(&j) > 1 || len(j.Hops) > 5 {
			t.Fatalf("path %v", path(&j))
		}
	}
	if seen[0][true] < 10 || seen[1][true] > 0 || seen[1][false] < 20 || seen[2][true] < 10 {
		t.Errorf("flows from %s over agg-1-0 before, during and after: %v", f.Node, seen)
	}
}

// Path and Route say where packets will go, diverted or not, and that those in a loop never arrive.
func TestPathIsWherePacketsGo(t *testing.T) {
	cfg := pintConfig(t)
	cfg.LinkRate = 1e9
	const at = 300 * time.Millisecond
	cfg.Script = []Fault{
		{Kind: DivertFlows, At: 100 * time.Millisecond, For: time.Second, Node: "agg-1-0", Peer: "core-0", Value: .5},
		{Kind: LinkDown, At: 100 * time.Millisecond, For: time.Second, Node: "agg-2-0", Peer: "core-1"},
	}
	type trip struct {
		flow int
		path []uint32
		gone bool
	}
	var trips []trip
	var n *Network
	cfg.Observe = func(j *Journey) {
		if len(j.Hops) > 0 && j.Hops[0].Ingress > at && !j.Probe {
			trips = append(trips, trip{j.Flow, path(j), j.Outcome == Delivered})
		}
	}
	n = mustNew(t, cfg, 26)
	n.Run(at, func(Datagram) {})
	paths, arrives := make([][]uint32, n.NumFlows()), make([]bool, n.NumFlows())
	loops := 0
	for i := range paths {
		if paths[i], arrives[i] = n.Path(i); !arrives[i] {
			loops++
		}
	}
	n.Run(500*time.Millisecond, func(Datagram) {})
	for _, got := range trips {
		if want := paths[got.flow]; got.gone != arrives[got.flow] || got.gone && !slices.Equal(got.path, want) || !got.gone && !slices.Equal(got.path[:min(len(want), len(got.path))], want[:min(len(want), len(got.path))]) {
			t.Fatalf("flow %d goes over %v and arrives: %v; want %v, %v", got.flow, got.path, got.gone, want, arrives[got.flow])
		}
	}
	if loops < 5 || len(trips) < 500 {
		t.Errorf("%d flows in loops, %d packets", loops, len(trips))
	}
}

// During a change-over packets carry a mix of two plans; before and after it digests are those of one.
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
	mixed, whole := 0, 0
	for i, r := range reports {
		plan := cfg.Plan
		if i >= before {
			plan = &next
		}
		if r.Digest.Epoch != plan.Epoch {
			t.Fatalf("report %d of %d: epoch %d", i, before, r.Digest.Epoch)
		}
		j := kept[digestKey{r.Flow, r.Digest.ID}][0]
		if i >= before && j.Hops[0].Egress <= at {
			mixed++
			continue
		}
		checkDigest(t, plan, &j)
		whole++
	}
	if mixed == 0 || mixed > whole/10 || before < 500 || len(reports) < 2*before*9/10 {
		t.Errorf("%d reports of one plan, %d mixed, %d before the change of plan", whole, mixed, before)
	}

	for name, err := range map[string]error{
		"no plan":      n.SetPlan(nil),
		"invalid plan": n.SetPlan(&pint.Plan{}),
		"without":      mustNew(t, DefaultConfig(), 1).SetPlan(&next),
	} {
		if err == nil || !strings.Contains(err.Error(), "set plan: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
