package packet

import (
	"fmt"
	"strings"
)

// Names returns the marks for display, "UDP 2222" and so on.
func (w *Where) Names() (names []string) {
	for _, p := range w.Ports {
		names = append(names, fmt.Sprintf("UDP %d", p))
	}
	if len(w.EtherTypes) > 0 {
		types := make([]string, len(w.EtherTypes))
		for i, t := range w.EtherTypes {
			types[i] = fmt.Sprintf("%#04x", t)
		}
		names = append(names, "EtherType "+strings.Join(types, ", "))
	}
	if w.Mark != "" {
		names = append(names, w.Mark)
	}
	return names
}

// Layers returns the names of a frame's layers from the outside in, and the offset of the first unknown byte.
func (p *Packet) Layers() (names []string, stopped int) {
	switch p.Link {
	case LinkEthernet:
		names = append(names, "ethernet")
	case LinkPPP:
		names = append(names, "ppp")
	case LinkNull, LinkLoop:
		names = append(names, "loopback")
	case LinkLinuxSLL, LinkLinuxSLL2:
		names = append(names, "linux cooked")
	}
	switch {
	case p.IP == 0 && p.EtherType != 0:
		return append(names, fmt.Sprintf("ethertype %#04x", p.EtherType)), p.L3
	case p.IP == 0:
		return names, p.L3
	}
	names = append(names, fmt.Sprintf("ipv%d", p.IP))
	switch {
	case p.L4 == 0:
		return append(names, "fragment"), p.L3
	case p.Proto == ProtoUDP && p.HasPorts:
		return append(names, fmt.Sprintf("udp %d > %d", p.SrcPort(), p.DstPort())), p.L4 + UDPLen
	case p.Proto == ProtoTCP && p.HasPorts:
		return append(names, fmt.Sprintf("tcp %d > %d", p.SrcPort(), p.DstPort())), p.L4 + TCPLen
	}
	return append(names, fmt.Sprintf("protocol %d", p.Proto)), p.L4
}
