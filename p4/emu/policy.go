package emu

import (
	"slices"

	headers "github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4"
)

// PolicyTable holds the segment routing policies of a switch (SR-MPLS, RFC 8660). Packets between two addresses, from
// hosts there, take a list of ports, that of the switch itself first. The switch imposes a label for each of the
// others. Each next switch pops the topmost label and sends the packet out of its port, whatever its routes are.
const PolicyTable = "sr_policy"

const (
	mostSegments = 16
	labelBytes   = 4     // of a label stack entry
	firstLabel   = 15000 // of port 0: labels of adjacencies are local to a switch
	bottom       = 1 << 8
	etherMPLS    = 0x8847
)

// policyTable is the table.
func policyTable() p4.Table {
	return p4.Table{Name: PolicyTable, Key: []p4.Field{{Name: "src", Bits: 32}, {Name: "dst", Bits: 32}},
		Actions: []p4.Action{{Name: "steer", Params: []p4.Param{{Name: "ports", Bits: 8 * mostSegments}}}}, Size: 1024}
}

// steer returns the port by which the policies of the first switch send a packet, with labels for the next ones; or -1.
func (n *Network) steer(p *packet, d *device) int32 {
	if p.V6 {
		return -1
	}
	a := p.Buf[p.L3+12:]
	e := d.tables.Find(PolicyTable, p4.Bytes(a[:4]), p4.Bytes(a[4:8]))
	if e == nil || e.Action != "steer" {
		return -1
	}
	var list [mostSegments]byte
	ports := e.Params[0].Append(list[:0], mostSegments)
	for len(ports) > 1 && ports[len(ports)-1] == 0 {
		ports = ports[:len(ports)-1]
	}
	out := int32(n.graph.ByPort(int(p.node), int(ports[0])))
	if out < 0 || !n.queues[out].Up {
		return -1 // its routes lead on
	}
	p.segment = true
	if ports = ports[1:]; len(ports) == 0 {
		return out
	}
	b := p.Insert(ethLen, labelBytes*len(ports))
	for i, port := range ports {
		entry := uint32(firstLabel+int(port))<<12 | uint32(p.TTL()-1)
		if i == len(ports)-1 {
			entry |= bottom
		}
		be.PutUint32(b[labelBytes*i:], entry)
	}
	be.PutUint16(p.Buf[ethLen-2:], etherMPLS)
	p.shift(len(b))
	return out
}

// popLabel pops the topmost label and returns its port, or -1. Time to live is kept in the IP header, where it ends up.
func (n *Network) popLabel(p *packet) int32 {
	entry := be.Uint32(p.Buf[ethLen:])
	p.Buf = slices.Delete(p.Buf, ethLen, ethLen+labelBytes)
	p.Size -= labelBytes
	p.shift(-labelBytes)
	if entry&bottom != 0 {
		ether := uint16(headers.EtherIPv4)
		if p.V6 {
			ether = headers.EtherIPv6
		}
		be.PutUint16(p.Buf[ethLen-2:], ether)
	}
	p.segment = true
	return int32(n.graph.ByPort(int(p.node), int(entry>>12)-firstLabel))
}

// strays reports whether a segment leads to a host that is not to have the packet, or cannot read it behind labels. Hosts drop such ones.
func (n *Network) strays(p *packet) bool {
	h := n.ports[p.out].host
	return h >= 0 && (h != p.dst || p.labels > 0)
}

// shift moves the places of headers behind labels.
func (p *packet) shift(by int) {
	p.labels += int8(by / labelBytes)
	p.L3, p.L4, p.shim, p.cut = p.L3+by, p.L4+by, p.shim+by, p.cut+by
}
