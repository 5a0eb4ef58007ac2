package emu

import (
	"fmt"
	"time"

	programs "github.com/hopscope/hopscope/p4/emu/program"
)

// Expire returns the interface by which a packet of f with this TTL or hop limit reaches the switch where that expires.
// A router answers from the address of that interface. The result ok is false where the packet reaches its host, or is
// lost before. Present routes count, and faults that drop packets do not. Flow f needs no rate, and adds no traffic.
func (n *Network) Expire(f *Flow, ttl int) (iface int, ok bool) {
	s := flow{src: int32(f.From), dst: int32(f.To), srcPort: f.SrcPort, dstPort: f.DstPort, proto: f.Proto, v6: f.IPv6}
	hash, at, in := programs.FlowHash(n.key(&s)), n.hosts[f.From].node, n.hosts[f.From].iface
	for range n.switches {
		if ttl--; ttl <= 0 {
			return int(in), true
		}
		out := n.nextHop(at, &n.hosts[f.To], hash, f.IPv6)
		if out < 0 || !n.queues[out].Up || at == n.hosts[f.To].node {
			return 0, false
		}
		in = n.ports[out].peer
		at = n.ports[in].node
	}
	return 0, false
}

// Cross carries a packet of f to its host, by the present routes. It returns the time on lines and in pipelines, and
// the number of switches. The result ok is false where no route leads there, and where a fault loses the packet
// (LinkDown, LosePackets). Queues are empty for it, and it fills none. Flow f needs no rate, and adds no traffic.
func (n *Network) Cross(f *Flow) (takes time.Duration, switches int, ok bool) {
	s := flow{src: int32(f.From), dst: int32(f.To), srcPort: f.SrcPort, dstPort: f.DstPort, proto: f.Proto, v6: f.IPv6}
	hash, at, to := programs.FlowHash(n.key(&s)), n.hosts[f.From].node, &n.hosts[f.To]
	takes = n.cfg.LinkDelay // from the host
	for range n.switches {
		switches++
		out := n.nextHop(at, to, hash, f.IPv6)
		if out < 0 || !n.queues[out].Up {
			return 0, switches, false
		}
		takes += time.Duration(n.pipeline(at)) + n.cfg.LinkDelay
		if n.lines != nil {
			if l := &n.lines[out]; l.loss > 0 && n.losing.Float64() < l.loss {
				return 0, switches, false
			} else {
				takes += time.Duration(l.delay)
			}
		}
		if at == to.node {
			return takes, switches, true
		}
		at = n.ports[n.ports[out].peer].node
	}
	return 0, switches, false
}

// Resalt changes the salt by which a switch hashes flows, as a restart or an update of its software may. It returns an error for a switch that is not there.
func (n *Network) Resalt(node string, salt uint32) error {
	i, ok := n.graph.Lookup(node)
	if !ok {
		return fmt.Errorf("there is no switch %q", node)
	}
	n.switches[i].salt = salt
	return nil
}
