package intmd

import (
	"strconv"

	"github.com/hopscope/hopscope/decode/packet"
)

// Names returns the versions of the set, "0.5" and so on.
func (v Versions) Names() (names []string) {
	for i, name := range [...]string{"0.5", "1.0", "2.x"} {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Names returns the marks for display, "DSCP 0x17 mask 0x3f" and so on.
func (m *Marks) Names() (names []string) {
	if m.DSCPMask != 0 {
		names = append(names, "DSCP "+hexText(uint64(m.DSCP), 2)+" mask "+hexText(uint64(m.DSCPMask), 2))
	}
	for _, p := range m.Ports {
		names = append(names, "UDP "+strconv.Itoa(int(p)))
	}
	if m.TailPort != 0 {
		names = append(names, "UDP "+strconv.Itoa(int(m.TailPort)))
	}
	if m.ProbeMarker != 0 {
		names = append(names, "marker "+hexText(m.ProbeMarker, 16))
	}
	if m.GREProtocol != 0 {
		names = append(names, "GRE "+hexText(uint64(m.GREProtocol), 4))
	}
	if m.Tunnels {
		names = append(names, "VXLAN-GPE", "Geneve")
	}
	return names
}

// hexText returns v with 0x and at least so many digits.
func hexText(v uint64, digits int) string {
	s := strconv.FormatUint(v, 16)
	for len(s) < digits {
		s = "0" + s
	}
	return "0x" + s
}

// Deviations lists, for display, where o leaves the specifications.
func (o *Options) Deviations() (list []string) {
	note := func(is bool, what string) {
		if is {
			list = append(list, what)
		}
	}
	note(o.WideTimes, "INT 1.0: 64-bit times, level 2 ports of 16 bits, a sequence number at the end of the header")
	note(o.Version0, "INT 1.0: the layout under version 0")
	note(o.HostINT, "INT 0.5: shim type 3, with a sequence number behind the stack")
	note(o.LeastFirst, "INT 2.x: the bitmap numbered from the other end, a flow number at the end of the header")
	note(o.SwapNPT2, "INT 2.x: the original protocol in the third byte of the shim")
	note(o.StackInMX, "INT 2.x: a stack of INT-MD under a shim of type 3, in domain 0")
	note(o.BehindOptions, "INT in TCP stands behind the options")
	note(o.TailPort != 0, "an extra UDP header in front of INT 0.5 to port "+strconv.Itoa(int(o.TailPort))+", the protocol in the tail")
	for _, d := range o.Domains {
		what := "INT 2.x: domain " + hexText(uint64(d.ID), 4)
		if d.Layout == packet.INT2FANT {
			what += ", in which bits 9 to 14 are counts of packets and bytes"
		}
		list = append(list, what)
	}
	return list
}
