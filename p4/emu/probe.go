package emu

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	programs "github.com/hopscope/hopscope/p4/emu/program"
)

// pathProbe is the state of one of Config.Probes.
type pathProbe struct {
	from, to int32 // hosts
	ports    []int
	every    int64
	round    uint32
	id       uint16
}

// buildProbes follows every probe's ports through the graph, and refuses those that do not end at a host.
func (n *Network) buildProbes() error {
	var errs []error
	for i, c := range n.cfg.Probes {
		p, err := n.followProbe(&c)
		if err != nil {
			errs = append(errs, fmt.Errorf("probe %d: %w", i, err))
			continue
		}
		n.probes = append(n.probes, p)
		n.events.Add(p.every*int64(i)/int64(len(n.cfg.Probes)), n.timer(timerProbe, i))
	}
	return errors.Join(errs...)
}

func (n *Network) followProbe(c *Probe) (p pathProbe, err error) {
	at, ok := n.graph.Lookup(c.From)
	switch {
	case !ok:
		return p, fmt.Errorf("there is no switch %q", c.From)
	case c.Every < time.Millisecond:
		return p, fmt.Errorf("sent every %v; at most once a millisecond", c.Every)
	case n.cfg.FirstNode+uint32(len(n.switches)) > 256:
		return p, fmt.Errorf("labels have 8 bits for the device; node ids go up to %d", n.cfg.FirstNode+uint32(len(n.switches))-1)
	case n.cfg.ProbePort != srint.PathPort:
		return p, fmt.Errorf("probe_port %d: switches know probes by port %d", n.cfg.ProbePort, srint.PathPort)
	}
	if _, err := srint.AppendPath(nil, c.Ports, 0); err != nil {
		return p, err
	}
	p = pathProbe{from: -1, to: -1, ports: c.Ports, every: int64(c.Every)}
	lo, hi := n.graph.Interfaces(at)
	for i := lo; i < hi && p.from < 0; i++ {
		p.from = n.ports[i].host
	}
	if p.from < 0 {
		return p, fmt.Errorf("switch %s has no host that could send", c.From)
	}
	for k, port := range c.Ports {
		if p.to >= 0 {
			return p, fmt.Errorf("the probe reaches a host after %d of its %d hops", k, len(c.Ports))
		}
		i := n.graph.ByPort(at, port)
		if i < 0 {
			return p, fmt.Errorf("hop %d: switch %s has no port %d", k+1, n.graph.NodeName(at), port)
		}
		p.to = n.ports[i].host
		at = n.graph.Neighbor(i)
	}
	if p.to < 0 {
		return p, fmt.Errorf("after its %d hops the probe is on the way to switch %s, not at a host", len(c.Ports), n.graph.NodeName(at))
	}
	return p, nil
}

// probeHeaders is the length of the headers before the route.
const probeHeaders = ethLen + headers.IPv4Len + udpLen

// probeList is the length of a route in a probe.
const probeList = 64

// sendProbe lets the host send one probe; the action id counts them.
func (n *Network) sendProbe(timer int32, index int) {
	c := &n.probes[index]
	n.events.Add(n.now+c.every, timer)
	i, p := n.newPacket()
	src, dst := &n.hosts[c.from], &n.hosts[c.to]
	b := headers.AppendEthernet(p.Buf, mac(macSwitch, int(src.node)), mac(macHost, int(c.from)), headers.EtherIPv4)
	b = append(b, make([]byte, headers.IPv4Len+udpLen)...)
	b, err := srint.AppendPath(b, c.ports, uint64(c.round))
	if err != nil {
		n.free(i) // followProbe has tried the same route
		return
	}
	ip := headers.IPv4{TTL: 64, Proto: udp, ID: c.id, Src: src.v4, Dst: dst.v4}
	h := headers.AppendIPv4(b[:ethLen], &ip, len(b)-ethLen-headers.IPv4Len)
	headers.AppendUDP(h, sourcePort, n.cfg.ProbePort, len(b)-probeHeaders) // the first switch clears the checksum anyhow
	c.round++
	c.id++
	p.Buf, p.Size, p.L3, p.L4 = b, len(b), ethLen, ethLen+20
	p.kind, p.flow, p.dst = sourceRouted, c.from, c.to
	n.leaveHost(i, p, src)
	n.stats.ProbesSent++
}

// queueProbe lets the program of the switch choose where a probe goes.
func (n *Network) queueProbe(i int32, p *packet, d *device, entering bool) {
	if !p.wide && d.written.probes && entering {
		rewriteRoute(p, d)
	}
	p.pass = n.newPass()
	if n.follows(p, d, p.pass) {
		p.out = int32(n.graph.ByPort(int(p.node), int(p.pass.Port)))
	}
	if p.out < 0 {
		n.drop(i, p, NoRoute)
		return
	}
	n.enqueue(i, p, d)
}

// follows takes a probe, as it came to a switch, through the ingress of the switch's program, and reports whether it leaves.
func (n *Network) follows(p *packet, d *device, x *programs.Packet) bool {
	n.fabric.p = p
	return n.program(d).Ingress(x, n.programPort(p.in), p.Buf, p.Size)
}

// program is that of a switch for probes. It writes INT into them, whatever else the switch's dialect is.
func (n *Network) program(d *device) *programs.Switch {
	if d.dialect == Off {
		return n.routers[0]
	}
	return n.routers[2]
}

// replace makes the frame that left a program that of a packet.
func (p *packet) replace(x *programs.Packet) { p.Buf, x.Head, p.Size = x.Head, p.Buf, x.Length }

// probeLeaves happens when a probe leaves its queue: only then is the depth known that it leaves behind.
func (n *Network) probeLeaves(i int32, p *packet) {
	q := &n.queues[p.out]
	n.drain(q)
	p.waiting = false
	p.depthAfter = uint32(q.Size - 1) // without the probe itself, which is on the line
	p.live = n.events.Add(p.due, i)
}

// stamp lets the program of the switch write what was measured into a probe. INT counts bytes in the queue, labels packets.
func (n *Network) stamp(p *packet, d *device, h *Hop) {
	n.measure(p, h, p.carries, p.asked)
	if !p.wide {
		n.measured.EnqueueDepth = p.depth
	}
	n.fabric.p = p
	if n.program(d).Egress(p.pass, &n.measured) {
		h.recorded = p.pass.Grew()
		p.replace(p.pass)
	}
	n.release(p)
}

// measure sets what the program gets to know of a packet that has left its queue. The bitmap is that of its INT.
func (n *Network) measure(p *packet, h *Hop, d Dialect, asked uint16) {
	n.shown = programs.Shown{Utilization: h.Utilization, Counts: n.read(p, d, asked)}
	if asked&insBuffer != 0 {
		n.shown.Buffer = min(n.buffer(h.Node), 0xfffffe)
	}
	n.measured = programs.Pass{
		PacketLength: uint32(p.Size), IngressTime: uint64(h.Ingress), EgressTime: uint64(h.Egress), EnqueueTime: uint32(h.Queued / 1000),
		EnqueueDepth: h.QueueBytes, QueueDelay: uint32((h.Egress - h.Queued) / 1000), DequeueDepth: p.depthAfter, Shown: &n.shown,
	}
}

// receiveProbe hands a probe to the collector as the host's socket gets it: from the host that sent it.
func (n *Network) receiveProbe(p *packet) {
	n.emit(Datagram{
		At: time.Duration(n.now), From: netip.AddrPortFrom(n.hosts[p.flow].addr, sourcePort), Port: n.cfg.ProbePort,
		Payload: p.Buf[probeHeaders:], Probe: true,
	})
}
