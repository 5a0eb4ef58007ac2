package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/emu"
)

// One round of the demonstration, seen through its reports alone: each part of the script shows what it is for.
func TestDemoShowsEveryFault(t *testing.T) {
	const seed, window = 1, 2 * time.Second
	n, err := emu.New(demoConfig(), seed)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) int {
		i, ok := n.Graph().Lookup(name)
		if !ok {
			t.Fatalf("no switch %q", name)
		}
		return i
	}
	id := func(name string) uint32 { return n.NodeID(at(name)) }
	type second struct {
		reports, probes        int
		congested, slow, queue []uint32
		denied, lost, silent   int
		paths                  map[decode.FlowKey]uint64
		other                  int
	}
	windows := make([]second, 85)
	auto, path := reader(t, "auto"), reader(t, "int-path")
	var b decode.Batch
	next := map[uint32]uint32{}
	for w := range windows {
		s := &windows[w]
		s.paths = map[decode.FlowKey]uint64{}
		n.Run(time.Duration(w+1)*window, func(d emu.Datagram) {
			b.Reset()
			if d.Probe {
				f := frame(d, n.Config().Exporters)
				path.Frame(&b, 1, f, len(f), 0)
				s.probes++
			} else {
				auto.Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			}
			for _, r := range b.Reports {
				if err := r.Error(); err != nil {
					t.Fatalf("at %v: %v: %x", d.At, err, d.Payload)
				}
				if d.Probe {
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
						hash = (hash ^ uint64(h.NodeID)) * 0x9e3779b97f4a7c15
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
					if r.NodeID == id("agg-2-1") && r.DropReason == 80 {
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
	active := func(w int, kind emu.FaultKind) int {
		for _, f := range n.Config().Script {
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
		check := func(kind emu.FaultKind, what string, got int, present bool) {
			if a := active(w, kind); a >= 0 && present != (a == 1) {
				t.Errorf("window %d: %s is %d", w, what, got)
			}
		}
		l, q := median(s.congested), median(s.queue)
		check(emu.CrossTraffic, "latency of the congested line", l, l > 10e6)
		check(emu.CrossTraffic, "its queue", q, q > 10_000)
		l = median(s.slow)
		check(emu.SlowSwitch, "latency of the slow switch", l, l > 7e6)
		check(emu.DenyFlows, "number of denied packets", s.denied, s.denied > 100)
		check(emu.LoseReports, "number of lost datagrams", s.lost, s.lost > 20)
		if a := active(w, emu.SilenceReports); a == 1 && s.silent > 0 || a == 0 && s.silent < 50 {
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
