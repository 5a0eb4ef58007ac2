package emu

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// oneLine loads the line from leaf-0 to its spine by Poisson traffic of packets of one size, to the share rho.
func oneLine(rho float64) (Config, float64) {
	cfg := DefaultConfig()
	cfg.Topology, cfg.HostsPerEdge, cfg.Flows, cfg.Dialect = "leaf-spine:1,2", 4, 0, Off
	cfg.LinkRate, cfg.QueueBytes = 10e6, 16_000_000
	const bytes = 1000
	for i := range 4 {
		cfg.ExtraFlows = append(cfg.ExtraFlows, Flow{
			From: i, To: 4 + i, Proto: udp, SrcPort: 1, DstPort: uint16(i), PacketBytes: bytes,
			Rate: rho / 4 * float64(cfg.LinkRate) / (8 * bytes), Poisson: true,
		})
	}
	return cfg, 8 * bytes * 1e9 / float64(cfg.LinkRate) // ns on the line
}

// The oracle is Lindley's recursion over the arrivals at each queue, and a walk over all packets for the occupancy.
func TestQueueFollowsLindley(t *testing.T) {
	cfg, _ := oneLine(0.9)
	type hop struct {
		Hop
		bytes int
	}
	byPort := map[[2]int][]hop{}
	cfg.Observe = func(j *Journey) {
		for _, h := range j.Hops {
			k := [2]int{h.Node, int(h.EgressPort)}
			byPort[k] = append(byPort[k], hop{h, j.length})
		}
	}
	n := mustNew(t, cfg, 6)
	n.Run(3*time.Second, func(Datagram) {})
	if s := n.Stats(); s.Dropped[QueueFull] > 0 || len(byPort) != 6 {
		t.Fatalf("%+v, %d queues", s, len(byPort))
	}
	waited := 0
	for port, hops := range byPort {
		slices.SortStableFunc(hops, func(a, b hop) int { return int(a.Egress - b.Egress) })
		free := time.Duration(0)
		for i, h := range hops {
			start := max(h.Queued, free)
			if h.Egress != start {
				t.Fatalf("queue %v, packet %d: left at %v, want %v", port, i, h.Egress, start)
			}
			free = start + time.Duration(int64(h.bytes)*8e9/cfg.LinkRate)
			found := 0
			for k := i - 1; k >= 0; k-- {
				end := hops[k].Egress + time.Duration(int64(hops[k].bytes)*8e9/cfg.LinkRate)
				if end <= h.Queued {
					break
				}
				found += hops[k].bytes
			}
			if int(h.QueueBytes) != found {
				t.Fatalf("queue %v, packet %d: found %d bytes, want %d", port, i, h.QueueBytes, found)
			}
			if start > h.Queued {
				waited++
			}
		}
	}
	if waited < 1000 {
		t.Errorf("only %d packets waited", waited)
	}
}

// The Poisson flows of four hosts meet at one queue. Each host's own line spaces its packets, so the mean wait is
// shorter than that of an M/D/1 queue, s·ρ/(2(1-ρ)). Over seeds 0 to 11 it was 0.886 to 0.930 of it, with a standard
// deviation of 0.013. The bounds are seven of those away from the middle.
func TestMeanWaitIsThatOfMD1(t *testing.T) {
	const rho, seed = 0.7, 3
	cfg, service := oneLine(rho)
	var count, wait float64
	var leaf int
	cfg.Observe = func(j *Journey) {
		if h := &j.Hops[0]; h.Node == leaf {
			count++
			wait += float64(h.Egress - h.Queued)
		}
	}
	n := mustNew(t, cfg, seed)
	leaf, _ = n.graph.Lookup("leaf-0")
	n.Run(time.Duration(2e5*service/rho), func(Datagram) {})
	mean, want := wait/count, service*rho/(2*(1-rho))
	if mean < 0.8*want || mean > want {
		t.Errorf("seed %d: mean wait %.0f ns over %.0f packets, M/D/1 gives %.0f", seed, mean, count, want)
	}
}

// A queue that is too small for the load drops what exceeds it, and never holds more than its limit.
func TestTailDrop(t *testing.T) {
	cfg, _ := oneLine(1.5)
	cfg.QueueBytes = 20_000
	cfg.DropReports, cfg.Dialect = true, XD20
	var dropped, delivered, most float64
	cfg.Observe = func(j *Journey) {
		if j.Outcome == QueueFull {
			dropped++
		} else {
			delivered++
			most = max(most, float64(j.Hops[0].QueueBytes))
		}
	}
	n := mustNew(t, cfg, 8)
	reports := 0
	n.Run(4*time.Second, func(d Datagram) {
		for _, r := range decodeStrictly(t, n, d, 8) {
			if r.DropReason == reasonTrafficManager {
				reports++
			}
		}
	})
	if share := dropped / (dropped + delivered); math.Abs(share-1./3) > 0.05 {
		t.Errorf("%.1f %% of the packets were dropped, want a third", 100*share)
	}
	if most > 19_000 || most < 18_000 {
		t.Errorf("the fullest queue had %v bytes, want room for the last packet of 20000", most)
	}
	if float64(reports) != dropped {
		t.Errorf("%d drop reports about %v packets", reports, dropped)
	}
}
func TestUtilizationIsBusyTime(t *testing.T) {
	for _, rho := range []float64{0.2, 0.5, 0.9, 1.4, -0.8} {
		cfg, _ := oneLine(math.Abs(rho))
		if rho < 0 { // half the load on half the line
			rho = -rho
			cfg, _ = oneLine(rho / 2)
			cfg.Script = []Fault{{Kind: CutRate, For: time.Hour, Node: "leaf-0", Peer: "spine-0", Value: 0.5}}
		}
		for i := range cfg.ExtraFlows {
			cfg.ExtraFlows[i].Poisson = false
			cfg.ExtraFlows[i].Start = time.Duration(i) * 97 * time.Microsecond
		}
		var seen []uint32
		cfg.Observe = func(j *Journey) {
			if j.At > time.Second {
				seen = append(seen, j.Hops[0].Utilization)
			}
		}
		n := mustNew(t, cfg, 1)
		n.Run(2*time.Second, func(Datagram) {})
		want := min(rho, 1) * 10000
		for _, u := range seen {
			if math.Abs(float64(u)-want) > 250 { // a window holds 25 to 125 packets, give or take two
				t.Fatalf("load %v: utilisation %d, want about %v", rho, u, want)
			}
		}
		if len(seen) < 100 {
			t.Errorf("load %v: %d packets", rho, len(seen))
		}
	}
}

// Switches report of their lines what they would report without probes. Probes take room in queues, but do not count in
// the utilisation of a line. Packets wait for probes, so that loads differ a little; counting probes makes them five
// times as large here.
func TestProbesAreNotMeasured(t *testing.T) {
	reported := func(probes int) (utilization []uint32, load, sent uint64) {
		cfg := pintConfig(t)
		cfg.Topology, cfg.HostsPerEdge, cfg.PacketRate, cfg.LinkRate, cfg.Plan = "leaf-spine:1,2", 1, 200, 1e9, testPlan(t, pint.HashCRC)
		for range probes {
			cfg.Probes = append(cfg.Probes, Probe{From: "leaf-0", Ports: []int{1, 2, 2}, Every: time.Millisecond})
		}
		cfg.Observe = func(j *Journey) {
			for _, h := range j.Hops {
				if !j.Probe {
					utilization, load = append(utilization, h.Utilization), load+uint64(h.Load)
				}
			}
		}
		n := mustNew(t, cfg, 4)
		n.Run(time.Second, func(Datagram) {})
		return utilization, load, n.Stats().ProbesDelivered
	}
	want, load, _ := reported(0)
	got, with, probes := reported(5)
	if len(want) < 300 || slices.Max(want) == 0 || probes < 4000 {
		t.Fatalf("%d hops; %d probes", len(want), probes)
	}
	if !slices.Equal(got, want) || with > load*3/2 || with < load/2 {
		t.Errorf("with probes the lines are used otherwise: load %d, want %d; utilization\n%v, want\n%v", with, load, got, want)
	}
}

// The oracle is a meter for each line, which sees packets leave in their order. The load that a packet gets excludes
// the packet itself and all packets behind it, and differs from what an earlier one got.
func TestLoadIsOfThoseBefore(t *testing.T) {
	cfg, _ := oneLine(0.7)
	cfg.Plan = testPlan(t, pint.HashCRC)
	cfg.Pipeline, cfg.LinkDelay = time.Millisecond, 3*time.Millisecond // in which other packets leave
	type hop struct {
		Hop
		bytes int
	}
	byPort := map[[2]int][]hop{}
	cfg.Observe = func(j *Journey) {
		for _, h := range j.Hops {
			k := [2]int{h.Node, int(h.EgressPort)}
			byPort[k] = append(byPort[k], hop{h, j.length})
		}
	}
	n := mustNew(t, cfg, 6)
	n.Run(2*time.Second, func(Datagram) {})
	if s := n.Stats(); s.Dropped[QueueFull] > 0 || len(byPort) != 6 {
		t.Fatalf("%+v, %d queues", s, len(byPort))
	}
	largest := uint32(0)
	for port, hops := range byPort {
		slices.SortStableFunc(hops, func(a, b hop) int { return int(a.Egress - b.Egress) })
		var m pint.Meter
		for i, h := range hops[:len(hops)-20] { // those behind the last ones may be under way
			left := h.Egress + time.Duration(int64(h.bytes)*8e9/cfg.LinkRate)
			queue := 0
			for _, x := range hops[i+1:] {
				if x.Queued >= left {
					break
				}
				queue += x.bytes
			}
			if want := n.line.Step(&m, int64(left), uint32(h.bytes), uint32(queue)); uint64(h.Load) != want {
				t.Fatalf("queue %v, packet %d, which leaves at %v: load %d, want %d", port, i, left, h.Load, want)
			}
			largest = max(largest, h.Load)
		}
	}
	if largest < pint.UtilizationUnit/2 {
		t.Errorf("the largest load is %d of %d", largest, pint.UtilizationUnit)
	}
}
