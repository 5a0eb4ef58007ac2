package emu

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// extraFlow is one of Config.ExtraFlows.
type extraFlow struct {
	flow    int
	every   float64 // ns between packets
	next    float64
	poisson bool
}

// buildFlows draws the flows of the configuration. Together they are one Poisson process, and each of its packets
// belongs to a random flow. That is equivalent to a Poisson process for every flow (superposition), and needs one
// timer.
func (n *Network) buildFlows() error {
	if n.cfg.Flows > 0 && len(n.routes.Edges) < 2 {
		return fmt.Errorf("flows: topology %s has hosts on fewer than two switches", n.cfg.Topology)
	}
	n.flows = make([]flow, n.cfg.Flows, n.cfg.Flows+len(n.cfg.ExtraFlows))
	weights := make([]float64, n.cfg.Flows)
	for i := range n.flows {
		n.draw(&n.flows[i])
		weights[i] = math.Pow(float64(i+1), -n.cfg.Skew)
	}
	if len(n.flows) > 0 {
		n.alias = sim.NewAlias(weights)
		n.events.Add(n.gap(n.traffic, n.cfg.PacketRate), n.timer(timerPoisson, 0))
	}
	for i, f := range n.cfg.ExtraFlows {
		switch {
		case f.From < 0 || f.From >= len(n.hosts) || f.To < 0 || f.To >= len(n.hosts) || f.From == f.To:
			return fmt.Errorf("flow %d: from host %d to host %d; there are %d hosts", i, f.From, f.To, len(n.hosts))
		case f.Proto != tcp && f.Proto != udp:
			return fmt.Errorf("flow %d: protocol %d is neither TCP nor UDP", i, f.Proto)
		case !(f.Rate > 0) || f.Rate > 1e9:
			return fmt.Errorf("flow %d: %v packets a second", i, f.Rate)
		case f.PacketBytes < 128 || f.PacketBytes-ethLen > n.cfg.MTU:
			return fmt.Errorf("flow %d: packets of %d bytes; 128..%d fit", i, f.PacketBytes, n.cfg.MTU+ethLen)
		case f.Start < 0 || f.Packets < 0:
			return fmt.Errorf("flow %d: starts at %v with %d packets", i, f.Start, f.Packets)
		}
		s := flow{
			src: int32(f.From), dst: int32(f.To), srcPort: f.SrcPort, dstPort: f.DstPort, proto: f.Proto, v6: f.IPv6,
			size: uint16(f.PacketBytes), left: uint32(f.Packets),
		}
		s.hash = programs.FlowHash(n.key(&s))
		n.flows = append(n.flows, s)
		n.extra = append(n.extra, extraFlow{flow: len(n.flows) - 1, every: 1e9 / f.Rate, next: float64(f.Start), poisson: f.Poisson})
		n.events.Add(int64(f.Start), n.timer(timerExtra, i))
	}
	return nil
}

// draw makes f a new flow between hosts on different switches.
func (n *Network) draw(f *flow) {
	r := n.traffic
	*f = flow{src: r.Int32N(int32(len(n.hosts))), proto: udp, id: uint16(r.Uint32()), bytes: r.Uint32()}
	for f.dst = f.src; n.hosts[f.dst].node == n.hosts[f.src].node; {
		f.dst = r.Int32N(int32(len(n.hosts)))
	}
	f.srcPort = uint16(32768 + r.UintN(28232))
	f.dstPort = [...]uint16{53, 80, 443, 2049, 4791, 5001, 8080, 9000}[r.UintN(8)]
	if r.Float64() < n.cfg.TCPShare {
		f.proto = tcp
		f.options = r.UintN(2) == 0
	}
	f.v6 = r.Float64() < n.cfg.IPv6Share
	f.dscp = [...]uint8{0, 0, 10, 46}[r.UintN(4)]
	if m := n.cfg.FlowPackets; m > 0 {
		f.left = uint32(min(1+r.ExpFloat64()*m, math.MaxUint32))
	}
	f.hash = programs.FlowHash(n.key(f))
}

// gap draws the time to the next event of a Poisson process, in ns and at least 1.
func (n *Network) gap(r *rand.Rand, perSecond float64) int64 {
	return 1 + int64(min(r.ExpFloat64()*(1e9/perSecond), 1e15))
}

func (n *Network) sendPoisson(timer int32) {
	n.events.Add(n.now+n.gap(n.traffic, n.cfg.PacketRate), timer)
	i := n.alias.Pick(n.traffic)
	f := &n.flows[i]
	size := n.cfg.MinPacketBytes
	if more := n.cfg.MaxPacketBytes - size; more > 0 {
		size += n.traffic.IntN(more + 1)
	}
	n.send(i, f, size)
	if f.left > 0 {
		if f.left--; f.left == 0 {
			n.draw(f)
		}
	}
}

func (n *Network) sendExtra(timer int32, i int) {
	x := &n.extra[i]
	f := &n.flows[x.flow]
	n.send(x.flow, f, int(f.size))
	if f.left > 0 {
		if f.left--; f.left == 0 {
			return
		}
	}
	if x.poisson {
		x.next += n.traffic.ExpFloat64() * x.every
	} else {
		x.next += x.every
	}
	n.events.Add(max(int64(x.next), n.now+1), timer)
}

// send lets a host offer one packet. The host's line holds it until those before it are sent.
func (n *Network) send(index int, f *flow, size int) {
	h := &n.hosts[f.src]
	if h.free > n.now+hostBacklog {
		n.stats.hostRefused++
		return
	}
	i, p := n.newPacket()
	sampled := f.sent%uint32(n.cfg.SampleEvery) == 0
	n.build(p, index, f, size)
	if n.cfg.SourceReports {
		sampled = n.shares(p)
	}
	p.flow, p.dst, p.hash, p.kind, p.sampled = int32(index), f.dst, f.hash, data, sampled
	if n.planner.chosen(f.hash) {
		p.pint, p.digestID = true, p.packetID()
	}
	if n.cfg.Observe != nil {
		p.key = n.key(f)
	}
	n.leaveHost(i, p, h)
	n.stats.Sent++
}

func (n *Network) leaveHost(i int32, p *packet, h *host) {
	done := max(n.now, h.free) + n.psPerByte*int64(p.Size)/1000
	h.free = done
	p.node, p.in = h.node, h.iface
	p.next = done + int64(n.cfg.LinkDelay)
	p.delay = n.pipeline(h.node)
	p.due = max(p.next+p.delay, h.lastDue)
	h.lastDue = p.due
	p.live = n.events.Add(p.due, i)
}

// pipeline draws the time from arrival at a switch to its egress queue.
func (n *Network) pipeline(node int32) int64 {
	d := int64(n.cfg.Pipeline) + n.slower[node]
	if j := uint64(n.cfg.Jitter); j > 0 {
		d += int64(n.jitter.Uint64N(j))
	}
	return d
}

// shares reports whether all switches agree to report packet p: they choose by a hash of bytes that none of them changes.
func (n *Network) shares(p *packet) bool {
	return n.cfg.SampleEvery == 1 || sim.Mix(uint64(p.packetID())^sampleSalt)%uint64(n.cfg.SampleEvery) == 0
}

const sampleSalt = 0x73616d706c65

// NumFlows is the number of flows: the generated ones come first, then Config.ExtraFlows.
func (n *Network) NumFlows() int { return len(n.flows) }

// FlowKey is the key of flow i as it is now: generated flows are renewed.
func (n *Network) FlowKey(i int) decode.FlowKey { return n.key(&n.flows[i]) }

// FlowHosts are the hosts between which flow i goes now.
func (n *Network) FlowHosts(i int) (from, to int) { return int(n.flows[i].src), int(n.flows[i].dst) }
