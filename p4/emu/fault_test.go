package emu

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

const (
	begin = 300 * time.Millisecond
	end   = 700 * time.Millisecond
	total = 1200 * time.Millisecond
)

// during is 0 before the fault, 1 during it and 2 after it, leaving out the time that changes take to settle.
func during(at time.Duration) int {
	const settle = 60 * time.Millisecond
	switch {
	case at < begin:
		return 0
	case at >= begin+settle && at < end:
		return 1
	case at >= end+settle:
		return 2
	}
	return -1
}

// withFault runs a network in which one thing goes wrong, and returns its journeys and reports.
func withFault(t *testing.T, f Fault, edit func(*Config)) (n *Network, journeys []Journey, reports []*decode.Report) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.LinkRate, cfg.PacketRate, cfg.IPv6Share = 20e6, 6000, 0.2
	f.At, f.For = begin, end-begin
	cfg.Script = []Fault{f}
	cfg.Observe = func(j *Journey) {
		k := *j
		k.Hops, k.Frame = slices.Clone(j.Hops), nil
		journeys = append(journeys, k)
	}
	var reported []bool
	cfg.OnFault = func(at time.Duration, g Fault, begins bool) {
		if want := map[bool]time.Duration{true: begin, false: end}[begins]; at != want || g.Kind != f.Kind {
			t.Errorf("OnFault(%v, %v, %v), want %v at %v", at, g, begins, f, want)
		}
		reported = append(reported, begins)
	}
	if edit != nil {
		edit(&cfg)
	}
	n = mustNew(t, cfg, 12)
	n.Run(total, func(d Datagram) {
		d.Payload = bytes.Clone(d.Payload)
		for _, r := range decodeStrictly(t, n, d, 12) {
			r.Time = int64(d.At)
			reports = append(reports, r)
		}
	})
	if !slices.Equal(reported, []bool{true, false}) {
		t.Errorf("OnFault was called with %v", reported)
	}
	return n, journeys, reports
}

func (n *Network) node(t *testing.T, name string) int {
	i, ok := n.graph.Lookup(name)
	if !ok {
		t.Fatalf("no switch %q", name)
	}
	return i
}

func TestCutRateFillsOneQueue(t *testing.T) {
	for _, f := range []Fault{
		{Kind: CutRate, Node: "agg-0-0", Peer: "core-0", Value: 0.05},
		{Kind: CrossTraffic, Node: "agg-0-0", Peer: "core-0", Value: 0.95},
	} {
		n, journeys, _ := withFault(t, f, nil)
		agg, core := n.node(t, "agg-0-0"), n.node(t, "core-0")
		port := uint16(n.graph.Port(n.graph.Between(agg, core)))
		var here, elsewhere [3]uint32 // fullest
		for _, j := range journeys {
			for _, h := range j.Hops {
				w := during(h.Queued)
				switch {
				case w < 0:
				case h.Node == agg && h.EgressPort == port:
					here[w] = max(here[w], h.QueueBytes)
				default:
					elsewhere[w] = max(elsewhere[w], h.QueueBytes)
				}
			}
		}
		if here[1] < 8*here[0] || here[1] < 8*here[2] || elsewhere[1] > 3*max(elsewhere[0], elsewhere[2]) {
			t.Errorf("%v: fullest queue before, during, after: %v there, %v elsewhere", f, here, elsewhere)
		}
	}
}

func TestLinkDownMovesFlows(t *testing.T) {
	f := Fault{Kind: LinkDown, Node: "edge-1-0", Peer: "agg-1-0"}
	n, journeys, _ := withFault(t, f, nil)
	edge, agg := n.node(t, "edge-1-0"), n.node(t, "agg-1-0")
	paths := map[int]*[3][]int{}
	var lost int
	for _, j := range journeys {
		if j.Outcome == linkFailed {
			lost++
			if j.At < begin || j.At > begin+n.cfg.Convergence {
				t.Errorf("a packet was lost at %v to a link that failed at %v", j.At, begin)
			}
		}
		w := during(j.started())
		if w < 0 || j.Outcome != Delivered {
			continue
		}
		var path []int
		for i, h := range j.Hops {
			path = append(path, h.Node)
			if w == 1 && i > 0 && (h.Node == agg && path[i-1] == edge || h.Node == edge && path[i-1] == agg) {
				t.Fatalf("a packet crossed the failed link at %v", j.At)
			}
		}
		if paths[j.Flow] == nil {
			paths[j.Flow] = new([3][]int)
		}
		if p := &paths[j.Flow][w]; *p == nil {
			*p = path
		} else if !slices.Equal(*p, path) {
			t.Fatalf("flow %d takes %v and %v in the same phase", j.Flow, *p, path)
		}
	}
	moved, stayed := 0, 0
	for i, p := range paths {
		if p[0] != nil && p[2] != nil && !slices.Equal(p[0], p[2]) {
			t.Errorf("flow %d does not return: %v, %v", i, p[0], p[2])
		}
		switch {
		case p[0] == nil || p[1] == nil:
		case slices.Equal(p[0], p[1]):
			stayed++
		default:
			moved++
		}
	}
	if lost == 0 || moved < 10 || stayed < 50 {
		t.Errorf("%d packets lost, %d flows moved, %d stayed", lost, moved, stayed)
	}
}

// started is when the packet reached its first switch, or when it was dropped there.
func (j *Journey) started() time.Duration {
	if len(j.Hops) > 0 {
		return j.Hops[0].Ingress
	}
	return j.At
}

// Route says where packets go.
func TestRouteIsThePath(t *testing.T) {
	n, journeys, _ := withFault(t, Fault{Kind: LinkDown, Node: "edge-1-0", Peer: "agg-1-0"}, nil)
	for _, j := range journeys {
		if during(j.started()) == 0 && j.Outcome == Delivered {
			route, ok := n.Route(j.Flow)
			if !ok || len(route) != len(j.Hops) {
				t.Fatalf("Route(%d) = %v, %v, want %d hops", j.Flow, route, ok, len(j.Hops))
			}
			for i, h := range j.Hops {
				if n.graph.Node(route[i]) != h.Node || n.graph.Port(route[i]) != int(h.EgressPort) {
					t.Fatalf("Route(%d) = %v, packet %v", j.Flow, route, j.Hops)
				}
			}
		}
	}
}

func TestDropsHaveReasons(t *testing.T) {
	for _, d := range []Dialect{md21, md10, mx21, XD20, local05} {
		for _, tt := range []struct {
			fault   Fault
			outcome Outcome
			reason  uint8
		}{
			{Fault{Kind: DenyFlows, Node: "agg-2-1", Value: 0.3}, Denied, 80},
			{Fault{Kind: WithdrawRoute, Node: "edge-0-0", Peer: "edge-3-1"}, NoRoute, 29},
			{Fault{Kind: CutRate, Node: "agg-0-0", Peer: "core-0", Value: 0.005}, QueueFull, 71},
		} {
			n, journeys, reports := withFault(t, tt.fault, func(c *Config) { c.Dialect = d; c.QueueBytes = 12_000 })
			where := n.NodeID(n.node(t, tt.fault.Node))
			dropped := map[decode.FlowKey]int{}
			count := 0
			for _, j := range journeys {
				if j.Outcome == tt.outcome {
					dropped[j.Key]++
					count++
					if n.NodeID(j.Node) != where || tt.outcome != QueueFull && during(j.At) != 1 && during(j.At) != -1 {
						t.Fatalf("%v at %v in switch %d", j.Outcome, j.At, j.Node)
					}
				} else if j.Outcome != Delivered {
					t.Fatalf("%v: a packet was dropped because: %v", tt.fault, j.Outcome)
				}
			}
			for _, r := range reports {
				if r.Kind != decode.KindDrop {
					continue
				}
				if r.NodeID != where || r.DropReason != tt.reason || r.Has&decode.HasDropReason == 0 {
					t.Fatalf("%v, %v: drop report of node %d with reason %d", d, tt.fault, r.NodeID, r.DropReason)
				}
				dropped[r.Flow]--
			}
			for k, c := range dropped {
				if c != 0 {
					t.Errorf("%v, %v: %d drops of %v more than drop reports", d, tt.fault, c, k)
				}
			}
			if count < 20 {
				t.Errorf("%v, %v: %d drops", d, tt.fault, count)
			}
		}
	}
}

func TestSlowSwitch(t *testing.T) {
	f := Fault{Kind: SlowSwitch, Node: "core-3", Delay: 2 * time.Millisecond}
	n, journeys, _ := withFault(t, f, nil)
	core, seen := n.node(t, "core-3"), [3]int{}
	for _, j := range journeys {
		for _, h := range j.Hops {
			// A packet's pipeline delay is drawn when it is sent from the switch before.
			w := during(h.Ingress)
			if w < 0 || w == 0 && h.Ingress > begin-time.Millisecond {
				continue
			}
			if slow := h.Queued-h.Ingress >= f.Delay; slow != (w == 1 && h.Node == core) {
				t.Fatalf("switch %d at %v: %v in the pipeline", h.Node, h.Ingress, h.Queued-h.Ingress)
			}
			if h.Node == core {
				seen[w]++
			}
		}
	}
	if min(seen[0], seen[1], seen[2]) < 10 {
		t.Errorf("packets through %s: %v", f.Node, seen)
	}
}

func TestSilence(t *testing.T) {
	f := Fault{Kind: SilenceReports, Node: "edge-3-0"}
	n, _, reports := withFault(t, f, nil)
	id, count := n.NodeID(n.node(t, f.Node)), [3]int{}
	next := uint32(0)
	for _, r := range reports {
		if r.NodeID != id {
			continue
		}
		if r.Seq != next {
			t.Fatalf("sequence number %d after %d", r.Seq, int(next)-1)
		}
		next++
		if w := during(time.Duration(r.Time)); w >= 0 {
			count[w]++
		}
	}
	if count[0] < 20 || count[1] != 0 || count[2] < 20 {
		t.Errorf("reports before, during and after: %v", count)
	}
	if x := n.Exporter(n.node(t, f.Node)); x.Suppressed == 0 || x.Lost != 0 || uint32(x.Datagrams) != next {
		t.Errorf("%+v, want %d datagrams", x, next)
	}
}

func TestRestart(t *testing.T) {
	f := Fault{Kind: RestartReports, Node: "edge-3-0"}
	n, _, reports := withFault(t, f, func(c *Config) { c.FirstSequence = 5000 })
	id, next := n.NodeID(n.node(t, f.Node)), uint32(5000)
	for _, r := range reports {
		if r.NodeID == id {
			if time.Duration(r.Time) >= begin && next >= 5000 {
				next = 0
			}
			if r.Seq != next {
				t.Fatalf("sequence number %d at %v, want %d", r.Seq, time.Duration(r.Time), next)
			}
			next++
		}
	}
	if next < 20 || next >= 5000 {
		t.Errorf("the last sequence number is %d", int(next)-1)
	}
}

// What is missing of the sequence is exactly what was lost, in every version and across the end of its numbers.
func TestGapsAreLosses(t *testing.T) {
	for _, d := range []Dialect{md21, md10, XD20, local05} {
		for _, first := range []uint32{0, 1<<22 - 40, 1<<32 - 40} {
			f := Fault{Kind: LoseReports, Node: "edge-3-0", Value: 0.3}
			n, _, reports := withFault(t, f, func(c *Config) {
				c.Dialect, c.FirstSequence, c.HardwareIDs, c.ReportsPerDatagram = d, first, 2, 2
			})
			width := uint64(1) << 32
			if d != md10 && d != local05 {
				width = 1 << 22
			}
			x := n.Exporter(n.node(t, f.Node))
			got := make([]map[uint64]bool, 2)
			for hw := range got {
				got[hw] = map[uint64]bool{}
			}
			for _, r := range reports {
				if r.NodeID == x.NodeID && r.FirstOfGroup {
					got[r.HWID][(uint64(r.Seq)-uint64(first))&(width-1)] = true
				}
			}
			for hw, s := range x.BySubsystem {
				missing := uint64(0)
				for k := range s.datagrams {
					if !got[hw][k] {
						missing++
					}
				}
				if missing != s.lost || missing == 0 || uint64(len(got[hw]))+missing != s.datagrams {
					t.Errorf("%v from %d, hardware id %d: %d numbers missing, %d received, truth %+v", d, first, hw, missing, len(got[hw]), s)
				}
			}
		}
	}
}

func TestDuplicatesAndReordering(t *testing.T) {
	dup := Fault{Kind: DuplicateReports, Node: "edge-3-0", Value: 0.3}
	n, _, reports := withFault(t, dup, nil)
	x, twice, last := n.Exporter(n.node(t, dup.Node)), uint64(0), -1
	for _, r := range reports {
		if r.NodeID == x.NodeID {
			switch int(r.Seq) {
			case last:
				twice++
			case last + 1:
			default:
				t.Fatalf("sequence number %d after %d", r.Seq, last)
			}
			last = int(r.Seq)
		}
	}
	if twice != x.Duplicated || twice < 10 {
		t.Errorf("%d duplicates, want %d", twice, x.Duplicated)
	}

	late := Fault{Kind: ReorderReports, Node: "edge-3-0", Value: 0.3}
	n, _, reports = withFault(t, late, nil)
	x = n.Exporter(n.node(t, late.Node))
	passed, highest, seen := uint64(0), -1, map[uint32]bool{}
	for _, r := range reports {
		if r.NodeID == x.NodeID {
			if int(r.Seq) < highest {
				passed++
			}
			highest = max(highest, int(r.Seq))
			seen[r.Seq] = true
		}
	}
	// A datagram that is held when the fault ends is handed over then, passed by none.
	if passed > x.Reordered || passed+1 < x.Reordered || passed < 10 || uint64(len(seen)) != x.Datagrams {
		t.Errorf("%d were passed, %d seen; truth %+v", passed, len(seen), x)
	}
}

// Queue reports come from the congested line's switch, and not too often.
func TestQueueReports(t *testing.T) {
	f := Fault{Kind: CutRate, Node: "agg-0-0", Peer: "core-0", Value: 0.05}
	const gap = 20 * time.Millisecond
	n, _, reports := withFault(t, f, func(c *Config) { c.QueueReportBytes, c.QueueReportGap = 15_000, gap })
	id, count := n.NodeID(n.node(t, f.Node)), 0
	last := -time.Hour
	for _, r := range reports {
		if r.Kind != decode.KindQueue {
			continue
		}
		h := r.Hops[len(r.Hops)-1]
		if r.NodeID != id || r.Flags&decode.Transit == 0 || r.Flags&decode.Congested == 0 || h.QueueOccupancy < 15_000 {
			t.Fatalf("queue report of node %d, flags %v, last hop %+v", r.NodeID, r.Flags.AppendNames(nil), h)
		}
		if at := time.Duration(int64(h.EgressTime) - n.epoch); at-last < gap { // when the packets left the queue
			t.Fatalf("queue reports at %v and %v", last, at)
		} else {
			last = at
		}
		count++
	}
	if count < 5 {
		t.Errorf("%d queue reports", count)
	}
}
