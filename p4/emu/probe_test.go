package emu

import (
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	programs "github.com/hopscope/hopscope/p4/emu/program"
)

// someProbes are one a pod. Each goes from the first edge switch up to a core switch, down into the next pod, and out
// to the first host there.
func someProbes() []Probe {
	var p []Probe
	for pod := range 4 {
		next := (pod + 1) % 4
		p = append(p, Probe{
			From: []string{"edge-0-0", "edge-1-0", "edge-2-0", "edge-3-0"}[pod], Every: 200 * time.Millisecond,
			Ports: []int{3, 3, next + 1, 1, 1},
		})
	}
	return p
}

// The labels of probes are the truth about them, and the last one is written when the probe leaves for the host.
func TestProbesReportTheTruth(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LinkRate, cfg.PacketRate = 10e6, 12_000 // queues fill
	cfg.Probes = someProbes()
	for i := range cfg.Probes {
		cfg.Probes[i].Every = 3 * time.Millisecond
	}
	cfg.Script = []Fault{{Kind: CutRate, At: 200 * time.Millisecond, For: 300 * time.Millisecond, Node: "edge-0-0", Peer: "agg-0-0", Value: 0.5}}
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
			if d.Probe {
				reports = append(reports, decodeStrictly(t, n, Datagram{At: d.At, From: d.From, Port: d.Port, Payload: slices.Clone(d.Payload), Probe: true}, 9)...)
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
				same = got.NodeID == want.NodeID && got.IngressIf == want.ingressPort && got.EgressIf == want.EgressPort &&
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
			t.Fatalf("round %d of %v, want %d", r.ActionID, r.Flow, want)
		}
		rounds[r.Flow] = r.ActionID + 1
	}
}

// A switch follows probes from other switches, and from hosts that send them. The same bytes from another host are no probe,
// neither at the first switch nor, as a flow to the port of probes, at any other.
func TestUsersDatagrams(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Topology, cfg.Flows, cfg.Dialect = "leaf-spine:2,4", 0, Off
	cfg.Probes = []Probe{{From: "leaf-0", Ports: []int{1, 2, 3}, Every: 10 * time.Millisecond}}
	cfg.ExtraFlows = []Flow{{From: 1, To: 5, Proto: udp, SrcPort: 9, DstPort: cfg.ProbePort, Rate: 1000, PacketBytes: 400}}
	users, probes := 0, 0
	cfg.Observe = func(j *Journey) {
		if j.Probe {
			probes++
			return
		}
		users++
		b := j.Frame
		if j.Outcome != Delivered || len(j.Hops) != 3 || j.length != 400 || be.Uint16(b[ethLen+22:]) != cfg.ProbePort || b[ethLen+8] != hostTTL-3 {
			t.Fatalf("%d bytes of a host to the port of probes: %v after %d hops, %x", j.length, j.Outcome, len(j.Hops), b)
		}
		pseudo := headers.PseudoHeader(b[ethLen+12:ethLen+20], udp, 400-ethLen-20)
		if headers.Fold(pseudo+headers.Sum(b[ethLen+20:])) != 0xffff {
			t.Fatalf("a switch has changed %x", b)
		}
	}
	n := mustNew(t, cfg, 3)
	received := 0
	n.Run(time.Second, func(d Datagram) { received++ })
	if users < 900 || probes < 90 || received != probes {
		t.Errorf("%d datagrams, %d probes and %d received", users, probes, received)
	}

	i, p := n.newPacket()
	defer n.free(i)
	sender := n.probes[0].from
	for k := range n.hosts {
		h := &n.hosts[k]
		d := &n.switches[h.node]
		for _, b := range [][]byte{probeFrame(t, n), {12: 7, 15: 4, 17: 1, 18: 7, 19: 1, 20: 1, 21: 0}} {
			p.Buf, p.Size, p.node, p.in, p.kind = append(p.Buf[:0], b...), len(b), h.node, h.iface, sourceRouted
			if follows := n.follows(p, d, &programs.Packet{}); follows != (int32(k) == sender) {
				t.Errorf("host %d, which sends probes: %v, followed: %v", k, int32(k) == sender, follows)
			}
		}
	}
}

// probeFrame is a probe of INT-path that takes port 1 next.
func probeFrame(t *testing.T, n *Network) []byte {
	t.Helper()
	b, err := srint.AppendPath(make([]byte, probeHeaders), []int{1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	headers.AppendEthernet(b[:0], mac(macSwitch, 0), mac(macHost, 0), headers.EtherIPv4)
	ip := headers.IPv4{TTL: 64, Proto: udp, Src: n.hosts[0].v4, Dst: n.hosts[1].v4}
	headers.AppendUDP(headers.AppendIPv4(b[:ethLen], &ip, len(b)-ethLen-headers.IPv4Len), sourcePort, n.cfg.ProbePort, len(b)-probeHeaders)
	return b
}
