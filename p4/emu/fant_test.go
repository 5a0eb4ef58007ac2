package emu

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/intmd"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
)

// Switches of FANT write stacks that its profile reads, with both bitmaps, and that a strict reader rejects for their width
// where they are detailed.
func TestFANT(t *testing.T) {
	for _, tt := range []struct {
		bitmap  uint16
		perHop  int
		strict  bool
		present decode.HopField
	}{
		{0xf161, 32, true, decode.HopNodeID | decode.HopLatency | decode.HopTxUtilization},
		{0xffff, 88, false, decode.HopNodeID | decode.HopEgressTime | decode.HopL2EgressIf | decode.HopBufferOccupancy},
	} {
		cfg := DefaultConfig()
		cfg.Dialect, cfg.Instructions, cfg.MaxHops, cfg.MaxPacketBytes = FANT, tt.bitmap, 6, 800
		if got := 4 * cfg.hopWords(FANT); got != tt.perHop {
			t.Errorf("%#04x: %d bytes a hop, want %d", tt.bitmap, got, tt.perHop)
		}
		n, stacks := mustNew(t, cfg, 5), 0
		fant, auto := demux.New(profile(t, "fant")), demux.New(profile(t, "auto"))
		n.Run(100*time.Millisecond, func(d Datagram) {
			var b, strict decode.Batch
			fant.Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			auto.Datagram(&strict, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
			for k, r := range b.Reports {
				if err := r.Error(); err != nil {
					t.Fatalf("%#04x: %v", tt.bitmap, err)
				}
				if r.Kind != decode.KindStack {
					continue
				}
				stacks++
				if r.DomainID != intmd.FANTDomain || r.Instructions != tt.bitmap || len(r.Hops) == 0 {
					t.Fatalf("%#04x: domain %#04x, %#04x, %d hops", tt.bitmap, r.DomainID, r.Instructions, len(r.Hops))
				}
				for _, h := range r.Hops {
					if !h.Set(tt.present) {
						t.Fatalf("%#04x: a hop has %v", tt.bitmap, h.Has.Names())
					}
				}
				if got := strict.Reports[k].Error() == nil; got != tt.strict {
					t.Fatalf("%#04x: a strict reader says %v", tt.bitmap, strict.Reports[k].Error())
				}
			}
		})
		if stacks < 100 {
			t.Errorf("%#04x: %d stacks", tt.bitmap, stacks)
		}
	}
	cfg := DefaultConfig()
	cfg.Dialect, cfg.Instructions = FANT, 0xffff
	cfg.Dialects = map[string]Dialect{"core-0": Off}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Dialects["core-1"] = md21
	if cfg.Validate() == nil {
		t.Error("INT 2.1 takes the bits that FANT alone knows")
	}
}

// Counters of interfaces are those of the packets that left and that found no room, and packets of FANT read them as they leave.
func TestCountsOfInterfaces(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dialect, cfg.Instructions, cfg.MaxHops, cfg.MaxPacketBytes = FANT, 0xffff, 6, 800
	cfg.QueueBytes, cfg.PacketRate, cfg.IPv6Share = 4000, 60_000, .3
	dropped := 0
	var passed = map[uint32]map[uint16]*decode.HopCounts{} // by node and port
	at := func(node uint32, port uint16) *decode.HopCounts {
		if passed[node] == nil {
			passed[node] = map[uint16]*decode.HopCounts{}
		}
		if passed[node][port] == nil {
			passed[node][port] = &decode.HopCounts{}
		}
		return passed[node][port]
	}
	cfg.Observe = func(j *Journey) {
		for _, h := range j.Hops {
			c := at(h.NodeID, h.EgressPort)
			if c.TxPackets++; j.Key.IPVersion == 6 {
				c.IPv6Packets++
			} else {
				c.IPv4Packets++
			}
		}
		if j.Outcome == QueueFull {
			dropped++
		}
	}
	n := mustNew(t, cfg, 6)
	last, readings := map[uint64]decode.HopCounts{}, 0
	d := demux.New(profile(t, "fant"))
	n.Run(time.Second, func(x Datagram) {
		var b decode.Batch
		d.Datagram(&b, decode.AddrFrom(x.From.Addr()), x.Payload, 0)
		for _, r := range b.Reports {
			if r.Kind != decode.KindStack {
				continue
			}
			for i := range r.Hops {
				c, h := r.HopCounts(i), &r.Hops[i]
				if c == nil || c.Has != allCounts {
					t.Fatalf("a hop of %#04x has counts %+v", r.Instructions, c)
				}
				if c.TxPackets == 0 || c.IPv4Packets+c.IPv6Packets != c.TxPackets || c.SRPackets != 0 {
					t.Fatalf("%+v", c)
				}
				readings++
				last[uint64(h.NodeID)<<16|uint64(h.EgressIf)] = *c
			}
		}
	})
	if dropped == 0 || readings < 1000 {
		t.Fatalf("%d dropped, %d readings", dropped, readings)
	}
	var drops, bytes uint32
	for i := range n.graph.NumInterfaces() {
		c := n.Counts(i)
		drops, bytes = drops+c.DroppedPackets, bytes+c.DroppedBytes
		node, port := n.NodeID(int(n.ports[i].node)), uint16(n.ports[i].number)
		want := at(node, port)
		// Of packets that are still under way nothing is observed.
		if under := c.TxPackets - want.TxPackets; under > 60 || c.IPv6Packets < want.IPv6Packets {
			t.Errorf("node %d port %d: %+v, observed %+v", node, port, c, want)
		}
		if l, ok := last[uint64(node)<<16|uint64(port)]; ok && (l.TxPackets > c.TxPackets || c.TxPackets-l.TxPackets > 200) {
			t.Errorf("node %d port %d: last read %d, has %d", node, port, l.TxPackets, c.TxPackets)
		}
	}
	if int(drops) != dropped || bytes < 200*drops || bytes > 1000*drops {
		t.Errorf("%d packets of %d bytes dropped, %d observed", drops, bytes, dropped)
	}
}

// A policy of segment routing takes packets of a flow along its list, through switches whose routes lead elsewhere.
// Behind the list packets are as before. Switches count them.
func TestPolicy(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Flows, cfg.PacketRate, cfg.Dialect, cfg.Instructions, cfg.MaxHops = 0, 0, FANT, 0xf161, 6
	cfg.ExtraFlows = []Flow{{From: 5, To: 8, Proto: 6, SrcPort: 40000, DstPort: 5001, Rate: 1000, PacketBytes: 1000}}
	var ways [][]uint32
	lost := -1 // packets without a route; negative where none may be
	cfg.Observe = func(j *Journey) {
		if j.Outcome == NoRoute && lost >= 0 {
			lost++
			return
		}
		if j.Outcome != Delivered {
			t.Fatalf("%v at %d", j.Outcome, j.Node)
		}
		var way []uint32
		for _, h := range j.Hops {
			way = append(way, h.NodeID)
		}
		ways = append(ways, way)
		if j.length != 1000 || be.Uint16(j.Frame[12:]) != headers.EtherIPv4 || headers.Fold(headers.Sum(j.Frame[14:34])) != 0xffff {
			t.Fatalf("a packet of %d bytes came as %x", j.length, j.Frame)
		}
		checkPacket(t, j.Frame[14:], j.length-14)
	}
	n := mustNew(t, cfg, 7)
	n.Run(100*time.Millisecond, func(Datagram) {})
	usual := ways[len(ways)-1]
	// By 16, not by 15's own way: down again in the pod, and up by the other aggregation switch.
	at := func(name string) int {
		i, ok := n.graph.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		return i
	}
	port := func(from, to string) byte {
		lo, hi := n.graph.Interfaces(at(from))
		for i := lo; i < hi; i++ {
			if n.ports[i].peer >= 0 && n.graph.Neighbor(i) == at(to) {
				return byte(n.ports[i].number)
			}
		}
		t.Fatalf("%s has no link to %s", from, to)
		return 0
	}
	way := []string{"edge-1-0", "agg-1-0", "edge-1-1", "agg-1-1", "core-2", "agg-2-1", "edge-2-0"}
	list := make([]byte, 16)
	for i := range way[1:] {
		list[i] = port(way[i], way[i+1])
	}
	entry := p4.Entry{Table: PolicyTable, Match: []p4.Match{{Value: p4.Bytes(n.hosts[5].v4[:])}, {Value: p4.Bytes(n.hosts[8].v4[:])}}, Action: "steer", Params: []p4.Value{p4.Bytes(list)}}
	n.Install(at("edge-1-0"), []p4.Entry{entry})
	ways = nil
	n.Run(200*time.Millisecond, func(Datagram) {})
	var want []uint32
	for _, name := range way {
		want = append(want, n.NodeID(at(name)))
	}
	if got := ways[len(ways)-1]; !slices.Equal(got, want) || slices.Equal(got, usual) {
		t.Errorf("the way is %v, want %v; before %v", got, want, usual)
	}
	lo, _ := n.graph.Interfaces(at("agg-1-0"))
	for i := lo; ; i++ {
		if n.ports[i].number == int32(port("agg-1-0", "edge-1-1")) {
			if c := n.Counts(i); c.SRPackets < 90 || c.SRPackets != c.TxPackets || c.IPv4Packets != c.TxPackets || c.SRBytes < 1000*c.SRPackets {
				t.Errorf("%+v", c)
			}
			break
		}
	}
	n.Remove(at("edge-1-0"), []p4.Entry{entry})
	n.Run(300*time.Millisecond, func(Datagram) {})
	if got := ways[len(ways)-1]; !slices.Equal(got, usual) {
		t.Errorf("without the policy the way is %v, want %v", got, usual)
	}
	// A list that ends at another host, or before it has ended, delivers nothing.
	edge, _ := n.graph.Interfaces(at("edge-1-0"))
	for ; n.ports[edge].host < 0 || n.ports[edge].host == 5; edge++ {
	}
	lo, _ = n.graph.Interfaces(at("edge-2-0"))
	for ; n.ports[lo].host != 8; lo++ {
	}
	lost = 0
	beyond := append(list[:6:6], byte(n.ports[lo].number), 1)
	for name, list := range map[string][]byte{"another host": {byte(n.ports[edge].number)}, "labels left": beyond} {
		e := entry
		e.Params = []p4.Value{p4.Bytes(append(slices.Clone(list), make([]byte, 16-len(list))...))}
		n.Install(at("edge-1-0"), []p4.Entry{e})
		n.Run(n.Now()+10*time.Millisecond, func(Datagram) {}) // those under way
		ways, lost = nil, 0
		n.Run(n.Now()+50*time.Millisecond, func(Datagram) {})
		if len(ways) > 0 || lost < 40 {
			t.Errorf("%s: %d packets delivered, %d dropped", name, len(ways), lost)
		}
		n.Remove(at("edge-1-0"), []p4.Entry{e})
	}
	list[0] = 99
	entry.Params[0] = p4.Bytes(list)
	if err := n.fits(&entry, at("edge-1-0")); !errors.Is(err, p4.ErrInvalid) {
		t.Errorf("a policy by a port that is not there: %v", err)
	}
}
