package emu

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

var be = binary.BigEndian

const (
	ethLen = headers.EthernetLen
	udpLen = headers.UDPLen
	tcpLen = headers.TCPLen
	tcp    = headers.ProtoTCP
	udp    = headers.ProtoUDP

	payloadKept = sim.PayloadKept
)

// mac is a locally administered address.
func mac(kind byte, n int) headers.MAC {
	return headers.MAC{0x02, kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// Kinds of MAC addresses.
const (
	macSwitch = 0x10
	macHost   = 0x20
)

// flow is the state of one flow. It holds no pointer, so that a million of them cost the garbage collector nothing.
type flow struct {
	hash             uint32 // [programs.FlowHash]
	src, dst         int32  // hosts
	srcPort, dstPort uint16
	proto            uint8
	v6, options      bool
	dscp             uint8
	id               uint16 // of the next IP packet
	size             uint16 // of every packet; 0 for random sizes
	sent             uint32
	bytes            uint32 // TCP sequence number
	left             uint32 // packets until the flow ends; 0 for never
}

func (n *Network) key(f *flow) (k decode.FlowKey) {
	src, dst := &n.hosts[f.src], &n.hosts[f.dst]
	k = decode.FlowKey{SrcPort: f.srcPort, DstPort: f.dstPort, Proto: f.proto, IPVersion: 4}
	if f.v6 {
		k.IPVersion, k.Src, k.Dst = 6, src.v6, dst.v6
	} else {
		k.Src, k.Dst = decode.AddrFrom4(src.v4[:]), decode.AddrFrom4(dst.v4[:])
	}
	return k
}

// build writes the headers and the first bytes of a packet of flow f, size bytes long from the Ethernet header on.
func (n *Network) build(p *packet, index int, f *flow, size int) {
	src, dst := &n.hosts[f.src], &n.hosts[f.dst]
	p.Build(&sim.Packet{
		To: mac(macSwitch, int(src.node)), From: mac(macHost, int(f.src)), V6: f.v6, Options: f.options, DSCP: f.dscp, TTL: hostTTL, Proto: f.proto, ID: f.id,
		Src4: src.v4, Dst4: dst.v4, Src6: src.v6, Dst6: dst.v6, SrcPort: f.srcPort, DstPort: f.dstPort, Seq: f.bytes, Flow: uint32(index), Number: f.sent,
	}, size)
	if f.proto == tcp {
		f.bytes += uint32(size - len(p.Buf) + payloadKept)
	}
	p.id = f.id
	f.id++
	f.sent++
}

// nextMAC is the address behind an interface.
func (n *Network) nextMAC(out int32) headers.MAC {
	if h := n.ports[out].host; h >= 0 {
		return mac(macHost, int(h))
	}
	return mac(macSwitch, int(n.ports[n.ports[out].peer].node))
}
