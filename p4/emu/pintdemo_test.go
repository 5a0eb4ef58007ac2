package emu_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// The reports of the demonstration with PINT show its additional faults. Loops are reported while there is one and by
// switches on it. Digests are those of the paths taken, and the number of reports stays the same.
func TestPINTDemo(t *testing.T) {
	const seed, earlier, window = 1, 160 * time.Second, time.Second
	cfg, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Script = slices.Clone(cfg.Script[len(cfg.Script)-2:]) // TestDemoShowsEveryFault is about the others
	for i := range cfg.Script {
		cfg.Script[i].At -= earlier
	}
	cfg.Repeat -= earlier
	detour, loop := cfg.Script[0], cfg.Script[1]
	var n *emu.Network
	var moved, stayed, digests int
	cfg.Observe = func(j *emu.Journey) {
		if !j.PINT || j.Outcome != emu.Delivered {
			return
		}
		digests++
		emu.CheckDigest(t, cfg.Plan, j)
		if first := &j.Hops[0]; len(j.Hops) == 5 && n.Graph().NodeName(first.Node) == detour.Node {
			switch via := n.Graph().NodeName(j.Hops[1].Node); {
			case first.Ingress < detour.At || first.Ingress >= detour.At+detour.For:
				stayed++
			case via != detour.Peer:
				t.Fatalf("at %v a packet from %s goes over %s", first.Ingress, detour.Node, via)
			default:
				moved++
			}
		}
	}
	n = emu.MustNew(t, cfg, seed)
	around := []uint32{n.NodeID(n.At(t, loop.Node)), n.NodeID(n.At(t, loop.Peer))}
	reports, reported := make([]int, cfg.Repeat/window), 0
	n.Run(cfg.Repeat-1, func(d emu.Datagram) {
		if d.Probe {
			return
		}
		for _, r := range emu.DecodeStrictly(t, n, d, seed) {
			reports[d.At/window]++
			if r.Flags&decode.Loop == 0 {
				continue
			}
			reported++
			if d.At < loop.At || d.At > loop.At+loop.For+window || d.At < loop.At+loop.For && !slices.Contains(around, r.NodeID) {
				t.Fatalf("node %d reports a loop at %v", r.NodeID, d.At)
			}
		}
	})
	for w, k := range reports {
		if k < 3000 || k > 5000 {
			t.Errorf("window %d: %d reports", w, k)
		}
	}
	if s := n.Stats(); reported < 50 || s.Dropped[emu.Expired] == 0 || moved < 500 || stayed < 500 || digests < 30_000 {
		t.Errorf("%d reports of loops, %d packets expired; %d digests, of them %d on the detour and %d before and after", reported, s.Dropped[emu.Expired], digests, moved, stayed)
	}
}
