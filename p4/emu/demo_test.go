package emu

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// One round of the demonstration, seen through its reports alone: each part of the script shows what it is for.
func TestDemoShowsEveryFault(t *testing.T) {
	const seed, window = 1, 2 * time.Second
	n, err := demo(seed, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	id := func(name string) uint32 { return n.NodeID(n.node(t, name)) }
	type second struct {
		reports, probes        int
		congested, slow, queue []uint32
		denied, lost, silent   int
		paths                  map[decode.FlowKey]uint64
		other                  int
	}
	windows := make([]second, 85)
	auto, path := demux.New(profile(t, "auto")), demux.New(profile(t, "int-path"))
	var b decode.Batch
	next := map[uint32]uint32{}
	for w := range windows {
		s := &windows[w]
		s.paths = map[decode.FlowKey]uint64{}
		n.Run(time.Duration(w+1)*window, func(d Datagram) {
			b.Reset()
			if d.probe {
				f := appendFrame(nil, d, n.cfg.Exporters, 0)
				path.Frame(&b, 1, f, len(f), 0)
				s.probes++
			} else {
				auto.Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			}
			for _, r := range b.Reports {
				if err := r.Error(); err != nil {
					t.Fatalf("at %v: %v: %x", d.At, err, d.Payload)
				}
				if d.probe {
					continue
				}
				s.reports++
				if r.FirstOfGroup && r.NodeID == id("edge-3-0") {
					s.lost += int(r.Seq - next[r.NodeID])
					next[r.NodeID] = r.Seq + 1
				}
				if r.NodeID == id("edge-2-1") {
					s.silent++
				}
				switch r.Kind {
				case decode.KindStack:
					hash := uint64(0)
					for _, h := range r.Hops {
						hash = mix(hash ^ uint64(h.NodeID))
						switch {
						case h.NodeID == id("agg-0-0") && h.EgressIf == 3:
							s.congested = append(s.congested, h.Latency)
							s.queue = append(s.queue, h.QueueOccupancy)
						case h.NodeID == id("core-3"):
							s.slow = append(s.slow, h.Latency)
						}
					}
					s.paths[r.Flow] = hash
				case decode.KindDrop:
					if r.NodeID == id("agg-2-1") && r.DropReason == reasonACL {
						s.denied++
					} else {
						s.other++
					}
				}
			}
		})
	}
	median := func(v []uint32) int {
		if slices.Sort(v); len(v) == 0 {
			return 0
		}
		return int(v[len(v)/2])
	}
	// active says whether a window is wholly inside (1), wholly outside (0) or across the ends of a fault (-1).
	active := func(w int, kind faultKind) int {
		for _, f := range n.cfg.Script {
			if f.Kind == kind {
				from, to := time.Duration(w)*window, time.Duration(w+1)*window
				switch {
				case from >= f.At+window && to <= f.At+f.For:
					return 1
				case to <= f.At || from >= f.At+f.For+window:
					return 0
				}
			}
		}
		return -1
	}
	moved := map[int]int{}
	for w := range windows {
		s := &windows[w]
		if r := s.reports / 2; r < 2000 || r > 5000 || s.probes < 20 {
			t.Errorf("window %d: %d reports/s, %d probes", w, r, s.probes)
		}
		check := func(kind faultKind, what string, got int, present bool) {
			if a := active(w, kind); a >= 0 && present != (a == 1) {
				t.Errorf("window %d: %s is %d", w, what, got)
			}
		}
		l, q := median(s.congested), median(s.queue)
		check(CrossTraffic, "latency of the congested line", l, l > 10e6)
		check(CrossTraffic, "its queue", q, q > 10_000)
		l = median(s.slow)
		check(slowSwitch, "latency of the slow switch", l, l > 7e6)
		check(DenyFlows, "number of denied packets", s.denied, s.denied > 100)
		check(loseReports, "number of lost datagrams", s.lost, s.lost > 20)
		if a := active(w, SilenceReports); a == 1 && s.silent > 0 || a == 0 && s.silent < 50 {
			t.Errorf("window %d: %d reports of the exporter that falls silent", w, s.silent)
		}
		for f, p := range s.paths {
			if w > 0 && windows[w-1].paths[f] != 0 && windows[w-1].paths[f] != p {
				moved[w]++
			}
		}
	}
	down, up := int(46*time.Second/window), int(60*time.Second/window)
	for w, k := range moved {
		if w < down || w > down+1 && w < up || w > up+1 {
			t.Errorf("window %d: %d flows changed their path", w, k)
		}
	}
	if moved[down]+moved[down+1] < 10 || moved[up]+moved[up+1] < 10 {
		t.Errorf("flows that changed their path, by window: %v", moved)
	}
}

// The labels of probes are the truth about them, and the last one is written when the probe leaves for the host.
func TestProbesTellTheTruth(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LinkRate, cfg.PacketRate = 10e6, 12_000 // queues fill
	cfg.Probes = demoProbes()
	for i := range cfg.Probes {
		cfg.Probes[i].Every = 3 * time.Millisecond
	}
	cfg.Script = []Fault{{Kind: cutRate, At: 200 * time.Millisecond, For: 300 * time.Millisecond, Node: "edge-0-0", Peer: "agg-0-0", Value: 0.5}}
	var journey Journey
	cfg.Observe = func(j *Journey) {
		if j.Probe {
			journey = *j
			journey.Hops = slices.Clone(j.Hops)
		}
	}
	n := mustNew(t, cfg, 9)
	var reports []*decode.Report
	var journeys []Journey
	deepest, after := uint32(0), uint32(0)
	for step := range 1000 {
		n.Run(time.Duration(step+1)*time.Millisecond, func(d Datagram) {
			if d.probe {
				reports = append(reports, decodeStrictly(t, n, Datagram{At: d.At, From: d.From, Port: d.Port, Payload: slices.Clone(d.Payload), probe: true}, 9)...)
			}
		})
		if journey.Probe && journey.Outcome == Delivered {
			journeys = append(journeys, journey)
		}
		journey = Journey{}
	}
	at := 0
	for _, j := range journeys { // of those that end in the same millisecond only the last was kept
		for ; ; at++ {
			if at == len(reports) {
				t.Fatalf("no probe fits %+v", j)
			}
			r, same := reports[at], true
			same = same && len(r.Hops) == len(j.Hops)
			for i := 0; same && i < len(r.Hops); i++ {
				got, want := &r.Hops[i], &j.Hops[i]
				same = got.NodeID == want.NodeID && got.IngressIf == want.IngressPort && got.EgressIf == want.EgressPort &&
					got.IngressTime == uint64(want.Ingress/1000) && got.EnqTime == uint32(want.Queued/1000) &&
					got.QueueDelay == uint32((want.Egress-want.Queued)/1000)
				// A queue of k packets cannot pass within the time that k-1 of the smallest need: probes.
				if same && got.QueueOccupancy > 1 {
					if least := int64(got.QueueOccupancy-1) * (probeHeaders + 64 + 4) * 8e9 / cfg.LinkRate; int64(want.Egress-want.Queued) < least {
						t.Fatalf("%d packets before the probe took %v", got.QueueOccupancy, want.Egress-want.Queued)
					}
				}
				if (got.QueueOccupancy == 0) != (want.QueueBytes == 0) {
					same = false
				}
				deepest, after = max(deepest, got.QueueOccupancy), max(after, got.DeqOccupancy)
			}
			if same {
				break
			}
		}
	}
	if len(journeys) < 100 || deepest < 5 || after < 5 {
		t.Errorf("%d probes, at most %d packets before and %d behind them", len(journeys), deepest, after)
	}
	rounds := map[decode.FlowKey]uint32{}
	for _, r := range reports {
		if want, seen := rounds[r.Flow]; seen && r.ActionID != want {
			// A probe may be lost to its IPv4 checksum; the round shows it.
			if r.ActionID < want {
				t.Fatalf("round %d of %v after round %d", r.ActionID, r.Flow, want)
			}
		}
		rounds[r.Flow] = r.ActionID + 1
	}
}
