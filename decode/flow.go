package decode

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Addr is an IPv6 address, or an IPv4 address in its mapped form ::ffff:a.b.c.d.
type Addr [16]byte

// AddrFrom4 maps four bytes in network order.
func AddrFrom4(b []byte) (a Addr) {
	_ = b[3]
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], b[:4])
	return a
}

// AddrFrom converts the standard library's address; a zone is dropped.
func AddrFrom(ip netip.Addr) Addr { return ip.As16() }

// Netip converts to the standard library's address, IPv4 unmapped.
func (a Addr) Netip() netip.Addr { return netip.AddrFrom16(a).Unmap() }

// IPv4 is the number of an IPv4 address. It is not ok for other addresses, and for those of a site.
func (a *Addr) IPv4() (n uint32, ok bool) {
	n = binary.BigEndian.Uint32(a[12:])
	return n, a.is4()
}

// String is the dotted form for IPv4 and the short form of RFC 5952 for IPv6.
func (a Addr) String() string { return a.Netip().String() }

// Node is the node id of a device that is known by its address alone: the number of an IPv4 address. For an IPv6
// address it is the low 32 bits XOR 32 bits of a hash of the others. The hash distinguishes devices of several
// networks with one numbering plan, whose low bits are equal.
func (a Addr) Node() uint32 {
	low := binary.BigEndian.Uint32(a[12:])
	if plain, _ := a.Site(); plain.is4() {
		return low
	}
	high, middle := binary.BigEndian.Uint64(a[:]), uint64(binary.BigEndian.Uint32(a[8:]))
	return low ^ uint32((high^middle*0x9e3779b97f4a7c15)*0xff51afd7ed558ccd>>32)
}

// Compare orders addresses by their bytes.
func (a Addr) Compare(b Addr) int { return bytes.Compare(a[:], b[:]) }

// InSite marks an IPv4 address with its site, for networks in which several sites use the same addresses. The marked
// address differs from the plain one in all bytes and texts. Other addresses are left as they are.
func (a Addr) InSite(site uint8) Addr {
	if plain, was := a.Site(); was == 0 && plain.is4() {
		a[siteByte] = site
	}
	return a
}

// Site returns the site that InSite gave an address, and the address without it.
func (a Addr) Site() (plain Addr, site uint8) {
	plain = a
	plain[siteByte] = 0
	if !plain.is4() {
		return a, 0
	}
	return plain, a[siteByte]
}

// siteByte is the byte of an IPv4 address in which the site is: one that is zero in its mapped form.
const siteByte = 9

func (a *Addr) is4() bool { return [12]byte(a[:12]) == [12]byte{10: 0xff, 11: 0xff} }

// ParseAddr reads an address as keys of flows have them: "10.0.0.1", "fd00::1", or "10.0.0.1%7", the address 10.0.0.1
// of site 7.
func ParseAddr(s string) (Addr, error) {
	text, zone, scoped := strings.Cut(s, "%")
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return Addr{}, err
	}
	a := AddrFrom(ip)
	if !scoped || !ip.Is4() {
		return a, nil // the zone of an IPv6 address is dropped
	}
	site, err := strconv.ParseUint(zone, 10, 8)
	if err != nil || site == 0 {
		return Addr{}, fmt.Errorf("%q is no address with a site such as 10.0.0.1%%7", s)
	}
	return a.InSite(uint8(site)), nil
}

// FlowKey identifies a flow by its 5-tuple, as the network saw the packet without any telemetry header.
// It is comparable and holds no pointer.
type FlowKey struct {
	Src, Dst         Addr
	SrcPort, DstPort uint16 // 0 where the protocol has none, or the packet was cut before them
	Proto            uint8  // IP protocol; for IPv6 that of the upper layer
	IPVersion        uint8  // 4 or 6; 0 in a key that stands for no flow
	_                uint16
}

// SrcString and DstString return the addresses as the packet's IP version writes them, with their sites, if any.
func (k *FlowKey) SrcString() string { return string(k.appendAddr(nil, k.Src)) }

// DstString is SrcString for the destination.
func (k *FlowKey) DstString() string { return string(k.appendAddr(nil, k.Dst)) }

func (k *FlowKey) appendAddr(b []byte, a Addr) []byte {
	b = k.addr(a).AppendTo(b)
	if _, site := a.Site(); site != 0 && k.IPVersion != 6 {
		b = strconv.AppendUint(append(b, '%'), uint64(site), 10)
	}
	return b
}

func (k *FlowKey) appendEnd(b []byte, a Addr, port uint16) []byte {
	if _, site := a.Site(); site != 0 && k.IPVersion != 6 {
		return strconv.AppendUint(append(k.appendAddr(b, a), ':'), uint64(port), 10)
	}
	return netip.AddrPortFrom(k.addr(a), port).AppendTo(b)
}

func (k *FlowKey) addr(a Addr) netip.Addr {
	if k.IPVersion == 6 {
		return netip.AddrFrom16(a)
	}
	plain, _ := a.Site()
	return plain.Netip()
}

// SrcAddr and DstAddr return the addresses in the form of the packet's IP version, without their sites.
func (k *FlowKey) SrcAddr() netip.Addr { return k.addr(k.Src) }

// DstAddr is SrcAddr for the destination.
func (k *FlowKey) DstAddr() netip.Addr { return k.addr(k.Dst) }

// Compare orders keys by source, destination, ports, protocol and IP version.
func (k *FlowKey) Compare(o *FlowKey) int {
	if c := bytes.Compare(k.Src[:], o.Src[:]); c != 0 {
		return c
	}
	if c := bytes.Compare(k.Dst[:], o.Dst[:]); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(k.SrcPort, o.SrcPort), cmp.Compare(k.DstPort, o.DstPort),
		cmp.Compare(k.Proto, o.Proto), cmp.Compare(k.IPVersion, o.IPVersion))
}

// protocols are the IP protocols that flows are written with by name.
var protocols = map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}

// String returns "10.0.0.1:80 > 10.0.0.2:5001 tcp", and "10.0.0.1%7:80 > 10.0.0.2%7:5001 tcp" of addresses of site 7.
// [ParseFlow] reads it.
func (k FlowKey) String() string {
	if k.IPVersion == 0 {
		return "no flow"
	}
	b := k.appendEnd(nil, k.Src, k.SrcPort)
	b = append(b, " > "...)
	b = k.appendEnd(b, k.Dst, k.DstPort)
	b = append(b, ' ')
	if name, ok := protocols[k.Proto]; ok {
		b = append(b, name...)
	} else {
		b = strconv.AppendUint(append(b, "proto "...), uint64(k.Proto), 10)
	}
	return string(b)
}

// ParseFlow parses the output of [FlowKey.String]. The protocol may also be a number, and may follow a slash, as in
// "10.0.0.1:80 > 10.0.0.2:5001/6"; spaces do not matter.
func ParseFlow(s string) (FlowKey, error) {
	wrong := func(what string) (FlowKey, error) {
		return FlowKey{}, fmt.Errorf("%q is no flow such as \"10.0.0.1:80 > 10.0.0.2:5001 tcp\": %s", s, what)
	}
	src, rest, ok := strings.Cut(s, ">")
	if !ok {
		return wrong("there is no >")
	}
	rest = strings.TrimSpace(rest)
	end := strings.IndexAny(rest, " /")
	if end < 0 {
		return wrong("the protocol is missing")
	}
	from, fromSite, ok := parseEnd(strings.TrimSpace(src))
	if !ok {
		return wrong("the source is not ADDRESS:PORT")
	}
	to, toSite, ok := parseEnd(rest[:end])
	if !ok {
		return wrong("the destination is not ADDRESS:PORT")
	}
	if from.Addr().Is4() != to.Addr().Is4() || from.Addr().Zone() != "" || to.Addr().Zone() != "" {
		return wrong("the addresses are not of one kind")
	}
	k := FlowKey{Src: AddrFrom(from.Addr()).InSite(fromSite), Dst: AddrFrom(to.Addr()).InSite(toSite), SrcPort: from.Port(), DstPort: to.Port(), IPVersion: 6}
	if from.Addr().Is4() {
		k.IPVersion = 4
	}
	name := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[end+1:]), "proto "))
	for n, known := range protocols {
		if strings.EqualFold(name, known) {
			k.Proto = n
			return k, nil
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return wrong("the protocol is none of icmp, icmp6, tcp, udp and no number up to 255")
	}
	k.Proto = uint8(n)
	return k, nil
}

// parseEnd reads ADDRESS:PORT, and ADDRESS%SITE:PORT of an IPv4 address.
func parseEnd(s string) (end netip.AddrPort, site uint8, ok bool) {
	addr, zone, scoped := strings.Cut(s, "%")
	if !scoped || strings.HasPrefix(s, "[") {
		end, err := netip.ParseAddrPort(s)
		return end, 0, err == nil
	}
	number, port, _ := strings.Cut(zone, ":")
	n, err := strconv.ParseUint(number, 10, 8)
	if err != nil || n == 0 {
		return end, 0, false
	}
	end, err = netip.ParseAddrPort(addr + ":" + port)
	return end, uint8(n), err == nil && end.Addr().Is4()
}
