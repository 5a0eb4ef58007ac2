package emu

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
)

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
			n := mustNew(t, cfg, 26)
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
			if s := n.Stats(); s.LoopsDetected != s.Reports.loops || s.LoopsDetected < uint64(detected) {
				t.Errorf("%d loops detected, %d reported", s.LoopsDetected, s.Reports.loops)
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
	if s := n.Stats(); count < 20 || s.Reports.loops < uint64(count) || s.LoopsDetected < 10*s.Reports.loops || s.Dropped[Expired] == 0 {
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

// Path and Route return where packets will go, diverted or not. Those in a loop never arrive.
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

// Noise in digests comes from the one switch that the fault is in, and hits the share of packets that it says.
func TestForgedDigests(t *testing.T) {
	cfg := pintConfig(t)
	cfg.Dialect, cfg.PINTShare = Off, 1
	cfg.Plan = &pint.Plan{Bits: 16, Queries: cfg.Plan.Queries[:1], Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{}}}}}
	cfg.Script = []Fault{{Kind: ForgeDigests, For: time.Hour, Node: "edge-0-0", Value: .25}}
	kept := keepPINT(&cfg)
	n := mustNew(t, cfg, 28)
	n.Run(2*time.Second, func(Datagram) {})
	node, through, wrong := n.node(t, "edge-0-0"), 0, 0
	for _, list := range kept {
		for _, j := range list {
			right := j.Digest == cfg.Plan.Queries[0].Scheme.Digest(j.DigestID, path(&j))
			if last := len(j.Hops) - 1; last >= 0 && j.Hops[last].Node == node { // no switch writes after it
				through++
				if !right {
					wrong++
				}
			} else if !right && (last < 0 || j.Hops[0].Node != node) {
				t.Fatalf("packet %#x over %v has digest %#x", j.DigestID, path(&j), j.Digest)
			}
			if j.Digest >= 1<<16 {
				t.Fatalf("digest %#x", j.Digest)
			}
		}
	}
	if share := float64(wrong) / float64(through); through < 300 || share < .12 || share > .4 {
		t.Errorf("%d of %d digests are wrong, want a quarter", wrong, through)
	}
}

func TestPaths(t *testing.T) {
	cfg := pintConfig(t)
	cfg.FlowPackets = 30
	cfg.Script = []Fault{
		{Kind: DivertFlows, At: begin, For: end - begin, Node: "edge-1-0", Peer: "agg-1-1", Value: 1},
		{Kind: DenyFlows, At: begin, For: end - begin, Node: "agg-2-0", Value: .3},
	}
	var paths Paths
	var journeys []Journey
	cfg.Observe = func(j *Journey) {
		paths.Observe(j)
		k := *j
		k.Hops = slices.Clone(j.Hops)
		journeys = append(journeys, k)
	}
	n := mustNew(t, cfg, 29)
	n.Run(total, func(Datagram) {})
	next, at, changed := map[decode.FlowKey]int{}, map[decode.FlowKey]int{}, 0
	for _, j := range journeys {
		if len(j.Hops) == 0 {
			continue
		}
		list := paths.Of(j.Key)
		if at[j.Key] == list[next[j.Key]].Packets {
			next[j.Key]++
			at[j.Key] = 0
			changed++
		}
		at[j.Key]++
		got, start := list[next[j.Key]], j.Hops[0].Ingress
		if !slices.Equal(got.Nodes, path(&j)) || got.PINT != j.PINT || got.Whole != (j.Outcome == Delivered) || start < got.First || start > got.Last {
			t.Fatalf("%v went over %v at %v, %v; want %+v", j.Key, path(&j), start, j.Outcome, got)
		}
	}
	if changed < 20 || len(paths.Flows()) != len(at) || paths.Of(decode.FlowKey{}) != nil {
		t.Errorf("%d changes of path; %d flows of %d", changed, len(paths.Flows()), len(at))
	}
}

// Paths collects the ways that packets took. Its method Observe is a [Config.Observe], or part of one.
type Paths struct {
	flows map[decode.FlowKey][]pathTaken
}

// pathTaken is a way that packets of a flow took one after the other.
type pathTaken struct {
	Nodes       []uint32      // node ids in order; all hops of a packet in a loop
	First, Last time.Duration // arrival of the first and of the last such packet at its first switch
	Packets     int
	Whole       bool // the packets were delivered; else Nodes ends where they were dropped
	PINT        bool // they carried digests
}

// Observe adds the journey of a packet of a flow.
func (p *Paths) Observe(j *Journey) {
	if j.Probe || len(j.Hops) == 0 {
		return
	}
	if p.flows == nil {
		p.flows = make(map[decode.FlowKey][]pathTaken)
	}
	list, at, whole := p.flows[j.Key], j.Hops[0].Ingress, j.Outcome == Delivered
	if k := len(list) - 1; k >= 0 && list[k].Whole == whole && list[k].PINT == j.PINT &&
		slices.EqualFunc(list[k].Nodes, j.Hops, func(id uint32, h Hop) bool { return id == h.NodeID }) {
		list[k].Last = at
		list[k].Packets++
		return
	}
	taken := pathTaken{First: at, Last: at, Packets: 1, Whole: whole, PINT: j.PINT}
	for i := range j.Hops {
		taken.Nodes = append(taken.Nodes, j.Hops[i].NodeID)
	}
	p.flows[j.Key] = append(list, taken)
}

// Of returns the ways that packets of a flow took, in the order in which they arrived. The slice belongs to p.
func (p *Paths) Of(flow decode.FlowKey) []pathTaken { return p.flows[flow] }

// Flows returns all flows that had packets, in no order.
func (p *Paths) Flows() []decode.FlowKey { return slices.Collect(maps.Keys(p.flows)) }
