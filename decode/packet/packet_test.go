package packet

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	macs = "020000000002 020000000001"
	udp4 = "4517 0024 1001 0000 4011 0000 0a000101 0a000202" // total length 36
	udp  = "0457 08ae 0010 0000 4142434445464748"
	ip6  = "62e00000 0018 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002" // class 0x2e
)

// want is the layout in short, and the flow as a string.
type want struct {
	l3, l4, end int
	ip, proto   uint8
	tos, ttl    uint8
	fragment    bool
	flow        string // "" for none
	ports       bool
}

var cases = []struct {
	name string
	link uint16
	in   string
	want want
}{
	{"Ethernet, UDP", LinkEthernet, macs + "0800" + udp4 + udp,
		want{14, 34, 50, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"VLAN tag", LinkEthernet, macs + "8100 0064 0800" + udp4 + udp,
		want{18, 38, 54, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"QinQ", LinkEthernet, macs + "88a8 0064 8100 0065 0800" + udp4 + udp,
		want{22, 42, 58, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"tags without end", LinkEthernet, macs + strings.Repeat("9100 0001", 20), want{l3: 14 + 8*4, end: 12 + 80}},
	{"tag cut", LinkEthernet, macs + "8100 00", want{l3: 14, end: 15}},
	{"VN-tag", LinkEthernet, macs + "8926 8001 0002 8100 0064 0800" + udp4 + udp,
		want{24, 44, 60, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"VN-tag cut", LinkEthernet, macs + "8926 8001 0002 08", want{l3: 14, end: 19}},
	{"E-tag", LinkEthernet, macs + "893f e000 0001 0000 86dd" + ip6 + udp,
		want{22, 62, 86, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"E-tag cut", LinkEthernet, macs + "893f e000 0001 0000 86", want{l3: 14, end: 21}},
	{"a frame in that of a provider", LinkEthernet, macs + "88a8 0064 88e7 00000007" + macs + "0800" + udp4 + udp,
		want{36, 56, 72, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"LLC and SNAP", LinkEthernet, macs + "002c aaaa03 000000 0800" + udp4 + udp,
		want{22, 42, 58, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"LLC and SNAP behind a tag", LinkEthernet, macs + "8100 0064 05ff aaaa03 000000 0800" + udp4 + udp,
		want{26, 46, 62, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"SNAP of a maker", LinkEthernet, macs + "002c aaaa03 00000c 2000" + udp4 + udp, want{l3: 14, end: 58}},
	{"no length", LinkEthernet, macs + "0600 aaaa03 000000 0800" + udp4 + udp, want{l3: 14, end: 58}},
	{"SNAP cut", LinkEthernet, macs + "002c aaaa03 000000 08", want{l3: 14, end: 21}},
	{"SNAP without end", LinkEthernet, macs + "0000" + strings.Repeat("aaaa03 000000 0000", 9), want{l3: 14 + 8*8, end: 86}},
	{"a spanning tree", LinkEthernet, macs + "0026 424203 0000", want{l3: 14, end: 19}},
	{"Linux cooked, SNAP", LinkLinuxSLL, "0000 0001 0006 020000000001 0000 0004 aaaa03 000000 0800" + udp4 + udp,
		want{24, 44, 60, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"Linux cooked", LinkLinuxSLL, "0000 0001 0006 020000000001 0000 0800" + udp4 + udp,
		want{16, 36, 52, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"Linux cooked v2", LinkLinuxSLL2, "0800 0000 00000003 0001 00 06 020000000001 0000" + udp4 + udp,
		want{20, 40, 56, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"Linux cooked, cut", LinkLinuxSLL, "0000 0001 0006 020000000001 0000 08", want{}},
	{"raw IPv4", LinkRaw, udp4 + udp, want{0, 20, 36, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"raw IPv6", LinkRaw, ip6 + udp, want{0, 40, 64, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"IPv4 link", LinkIPv4, udp4 + udp, want{0, 20, 36, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"IPv6 on an IPv4 link", LinkIPv4, ip6 + udp, want{}},
	{"IPv4 on an IPv6 link", LinkIPv6, udp4 + udp, want{}},
	{"IPv6 link", LinkIPv6, ip6 + udp, want{0, 40, 64, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"raw, neither", LinkRaw, "50", want{}},
	{"nothing", LinkRaw, "", want{}},
	{"unknown link", 12345, macs + "0800" + udp4 + udp, want{}},
	{"IPv4 options", LinkIPv4, "4600 001c 0000 0000 4006 0000 0a000101 0a000202 94040000 9c40 0050",
		want{0, 24, 28, 4, 6, 0, 64, false, "10.0.1.1:40000 > 10.0.2.2:80 tcp", true}},
	{"IPv4 options cut", LinkIPv4, "4f00 0050 0000 0000 4006 0000 0a000101 0a000202 9404",
		want{0, 60, 80, 4, 6, 0, 64, false, "10.0.1.1:0 > 10.0.2.2:0 tcp", false}},
	{"IPv4 header too small", LinkIPv4, "4400 0014 0000 0000 4006 0000 0a000101 0a000202", want{end: 20}},
	{"version nibble disagrees with EtherType", LinkEthernet, macs + "0800" + ip6 + udp, want{l3: 14, end: 70}},
	{"IPv4 total length 0", LinkIPv4, "4500 0000 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 0008 0000",
		want{0, 20, 28, 4, 17, 0, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"IPv4 length beyond the frame", LinkIPv4, "4500 ffff 0000 0000 4011 0000 0a000101 0a000202 0457 08ae",
		want{0, 20, 65535, 4, 17, 0, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"first fragment", LinkIPv4, "4500 0024 0000 2000 4011 0000 0a000101 0a000202 0457 08ae 0010 0000",
		want{0, 20, 36, 4, 17, 0, 64, true, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"later fragment", LinkIPv4, "4500 0024 0000 0001 4011 0000 0a000101 0a000202 0457 08ae 0010 0000",
		want{0, 0, 36, 4, 17, 0, 64, true, "10.0.1.1:0 > 10.0.2.2:0 udp", false}},
	{"ICMP has no ports", LinkIPv4, "4500 001c 0000 4000 4001 0000 0a000101 0a000202 0800 0000 0000 0000",
		want{0, 20, 28, 4, 1, 0, 64, false, "10.0.1.1:0 > 10.0.2.2:0 icmp", false}},
	{"IPv6 extension headers", LinkIPv6, "60000000 0028 00 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"2b00 010400000000 3c00 040000000000 1101 000000000000 0000000000000000 0457 08ae 0008 0000",
		want{0, 72, 80, 6, 17, 0, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"IPv6 authentication header", LinkIPv6, "60000000 0014 33 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"0601 0000 00000001 00000002 9c40 0050",
		want{0, 52, 60, 6, 6, 0, 64, false, "[2001:db8::1]:40000 > [2001:db8::2]:80 tcp", true}},
	{"IPv6 first fragment", LinkIPv6, "60000000 0010 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"1100 0001 00000007 0457 08ae 0008 0000",
		want{0, 48, 56, 6, 17, 0, 64, true, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"IPv6 later fragment", LinkIPv6, "60000000 0010 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"1100 0008 00000007 0457 08ae 0008 0000",
		want{0, 0, 56, 6, 17, 0, 64, true, "[2001:db8::1]:0 > [2001:db8::2]:0 udp", false}},
	{"IPv6 atomic fragment", LinkIPv6, "60000000 0010 2c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"1100 0000 00000007 0457 08ae 0008 0000",
		want{0, 48, 56, 6, 17, 0, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"IPv6 extension headers without end", LinkIPv6, "60000000 0100 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		strings.Repeat("3c00 010400000000", 32),
		want{0, 0, 296, 6, 60, 0, 64, false, "[2001:db8::1]:0 > [2001:db8::2]:0 proto 60", false}},
	{"IPv6 extension header cut", LinkIPv6, "60000000 0100 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002 3c00",
		want{0, 0, 296, 6, 60, 0, 64, false, "[2001:db8::1]:0 > [2001:db8::2]:0 proto 60", false}},
	{"IPv4 mapped addresses in IPv6", LinkIPv6, "60000000 0004 11 40 00000000000000000000ffff0a000101 00000000000000000000ffff0a000202 0457 08ae",
		want{0, 40, 44, 6, 17, 0, 64, false, "[::ffff:10.0.1.1]:1111 > [::ffff:10.0.2.2]:2222 udp", true}},
	{"PPP", LinkPPP, "0021" + udp4 + udp, want{2, 22, 38, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"PPP, IPv6", LinkPPP, "0057" + ip6 + udp, want{2, 42, 66, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"PPP in HDLC-like framing", LinkPPP, "ff03 0021" + udp4 + udp, want{4, 24, 40, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"PPP, compressed protocol", LinkPPP, "21" + udp4 + udp, want{1, 21, 37, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"PPP, both", LinkPPP, "ff03 57" + ip6 + udp, want{3, 43, 67, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"PPP, another protocol", LinkPPP, "c021 0101 0004", want{}},
	{"PPP, cut", LinkPPP, "ff03 00", want{}},
	{"loopback, little-endian", LinkNull, "02000000" + udp4 + udp, want{4, 24, 40, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"loopback, big-endian", LinkNull, "00000002" + udp4 + udp, want{4, 24, 40, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"loopback of Linux, IPv6", LinkNull, "0a000000" + ip6 + udp, want{4, 44, 68, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"loopback of Darwin, IPv6", LinkNull, "1e000000" + ip6 + udp, want{4, 44, 68, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"loopback of FreeBSD, IPv6, big-endian", LinkNull, "0000001c" + ip6 + udp, want{4, 44, 68, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"loopback, another family", LinkNull, "11000000" + udp4 + udp, want{}},
	{"loopback, cut", LinkNull, "020000", want{}},
	{"loopback of OpenBSD", LinkLoop, "00000002" + udp4 + udp, want{4, 24, 40, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true}},
	{"loopback of OpenBSD, IPv6", LinkLoop, "00000018" + ip6 + udp, want{4, 44, 68, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"loopback of OpenBSD has one byte order", LinkLoop, "02000000" + udp4 + udp, want{}},
	{"16 extension headers", LinkIPv6, "60000000 0088 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		strings.Repeat("3c00 010400000000", 15) + "1100 010400000000 0457 08ae 0008 0000",
		want{0, 168, 176, 6, 17, 0, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true}},
	{"17 extension headers", LinkIPv6, "60000000 0090 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		strings.Repeat("3c00 010400000000", 16) + "1100 010400000000 0457 08ae 0008 0000",
		want{0, 0, 184, 6, 60, 0, 64, false, "[2001:db8::1]:0 > [2001:db8::2]:0 proto 60", false}},
	{"ports behind the IP packet", LinkIPv4, "4500 0017 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 0008 0000",
		want{0, 20, 23, 4, 17, 0, 64, false, "10.0.1.1:0 > 10.0.2.2:0 udp", false}},
	{"extension header behind the IPv6 packet", LinkIPv6, "60000000 0007 3c 40 20010db8000000000000000000000001 20010db8000000000000000000000002" +
		"1100 010400000000 0457 08ae 0008 0000",
		want{0, 0, 47, 6, 60, 0, 64, false, "[2001:db8::1]:0 > [2001:db8::2]:0 proto 60", false}},
	{"no IP", LinkEthernet, macs + "0806 0001", want{l3: 14, end: 16}},
	{"Ethernet cut", LinkEthernet, "020000000002 020000000001 08", want{}},
}

func check(t *testing.T, p *Packet, data []byte, w want) {
	t.Helper()
	if p.L3 != w.l3 || p.L4 != w.l4 || p.End != w.end || p.IP != w.ip || p.Proto != w.proto || p.TOS != w.tos || p.TTL != w.ttl || p.Fragment != w.fragment {
		t.Errorf("got %+v, want %+v", *p, w)
	}
	if p.IP == 0 {
		if w.flow != "" {
			t.Errorf("no IP header, want flow %s", w.flow)
		}
		return
	}
	k := decode.FlowKey{SrcPort: 9, DstPort: 9}
	p.Flow(&k, data)
	if k.String() != w.flow || p.HasPorts != w.ports || k.SrcPort != p.SrcPort() || k.DstPort != p.DstPort() {
		t.Errorf("Flow = %v, ports %v, want %v, %v", k, p.HasPorts, w.flow, w.ports)
	}
	if src := p.Src(data); src != k.Src {
		t.Errorf("Src = %v, want %v", src, k.Src)
	}
}

// One Packet for all cases, so that each finds what the one before left.
func TestFrame(t *testing.T) {
	var p Packet
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := unhex(t, c.in)
			length := max(len(data), c.want.end) // on the wire
			p.Frame(c.link, data, length)
			check(t, &p, data, c.want)
			if n := testing.AllocsPerRun(100, func() { p.Frame(c.link, data, length) }); n != 0 {
				t.Errorf("%v allocs per frame, want 0", n)
			}
		})
	}
}

// A packet cut anywhere is read as far as it goes, and what was read does not change.
func TestCut(t *testing.T) {
	for _, c := range cases {
		data := unhex(t, c.in)
		length := max(len(data), c.want.end)
		var whole, p Packet
		whole.Frame(c.link, data, length)
		for n := range data {
			cut := data[:n:n]
			p.Frame(c.link, cut, length)
			if p.IP != 0 && (p.IP != whole.IP || p.L3 != whole.L3 || p.End != whole.End || p.TOS != whole.TOS) {
				t.Errorf("%s cut at %d: %+v, whole %+v", c.name, n, p, whole)
			}
			if p.L4 != 0 && p.L4 != whole.L4 {
				t.Errorf("%s cut at %d: L4 = %d, whole %d", c.name, n, p.L4, whole.L4)
			}
			if p.HasPorts && n < p.L4+4 {
				t.Errorf("%s cut at %d: has ports", c.name, n)
			}
		}
	}
}

// A packet of the network ends where its IP header says, but never behind its frame. One inside a report may have
// been cut by the node that reports.
func TestFrameEnd(t *testing.T) {
	for _, in := range []string{udp4 + udp, ip6 + udp} {
		data := unhex(t, in)
		var p Packet
		p.Frame(LinkRaw, data, 0)
		promised := 36
		if p.IP == 6 {
			promised = 64
		}
		for length := len(data) - 4; length < 100; length++ {
			p.Frame(LinkRaw, data, length)
			if want := min(promised, max(length, len(data))); p.End != want {
				t.Errorf("IPv%d, %d bytes on the wire: ends at %d, want %d", p.IP, length, p.End, want)
			}
		}
		if p.IP == 4 {
			p.IPv4(data[:30], 0, 30)
		} else {
			p.IPv6(data[:50], 0, 50)
		}
		if p.End != promised {
			t.Errorf("IPv%d inside a report: ends at %d, want %d", p.IP, p.End, promised)
		}
	}
}

// The inner packets of reports start anywhere, and end before the data does.
func TestInside(t *testing.T) {
	pad := "ffffff"
	var p Packet
	data := unhex(t, pad+macs+"0800"+udp4+udp)
	p.Ethernet(data, 3, len(data))
	check(t, &p, data, want{17, 37, 53, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true})
	data = unhex(t, pad+udp4+udp)
	p.IPv4(data, 3, len(data))
	check(t, &p, data, want{3, 23, 39, 4, 17, 0x17, 64, false, "10.0.1.1:1111 > 10.0.2.2:2222 udp", true})
	data = unhex(t, pad+ip6+udp)
	p.IPv6(data, 3, len(data))
	check(t, &p, data, want{3, 43, 67, 6, 17, 0x2e, 64, false, "[2001:db8::1]:1111 > [2001:db8::2]:2222 udp", true})
}

// Mirrored frames in GRE are walked into, whatever tags they have; what says of itself that it is another thing is not.
func TestMirrored(t *testing.T) {
	const frame, outer = macs + "893f e000 0001 0000 8100 0064 0800" + udp4 + udp, "4500 0100 0000 0000 402f 0000 c0000201 c0000202"
	for _, c := range []struct {
		name, gre string
		ok        bool
	}{
		{"type I", "0000 88be", true},
		{"type II", "1000 88be 00000001 1064 0001 00000007", true},
		{"type II, another version", "1000 88be 00000001 2064 0001 00000007", false},
		{"type III", "1000 22eb 00000001 2064 0001 00000000 0000 0000", true},
		{"type III with a header of the platform", "1000 22eb 00000001 2064 0001 00000000 0000 0001 0000000000000000", true},
		{"type III of no Ethernet", "1000 22eb 00000001 2064 0001 00000000 0000 0800", false},
		{"SNAP", "0000 6558" + macs + "0040 aaaa03 000000 0800" + udp4 + udp, true},
	} {
		data := unhex(t, outer+c.gre+frame)
		if c.name == "SNAP" {
			data = unhex(t, outer+c.gre)
		}
		for n := range len(data) + 1 {
			var p Packet
			p.Frame(LinkRaw, data[:n], len(data))
			if ok := p.Inside(data[:n]); ok != (c.ok && n >= len(data)-16) || ok && (p.L4 != len(data)-16 || p.TTL != 64) {
				t.Errorf("%s, %d of %d bytes: %t, %+v", c.name, n, len(data), ok, p)
			}
		}
	}
}

func TestUDPEnd(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     int
	}{
		{"its own length", "4500 0024 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 000c 0000", 32},
		{"beyond IP", "4500 0024 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 0040 0000", 36},
		{"0", "4500 0024 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 0000 0000", 36},
		{"below its header", "4500 0024 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 0001 0000", 21},
		{"cut", "4500 0024 0000 0000 4011 0000 0a000101 0a000202 0457 08ae 00", 36},
	} {
		data := unhex(t, c.in)
		var p Packet
		p.IPv4(data, 0, 100)
		if got := p.UDPEnd(data); got != c.want {
			t.Errorf("%s: UDPEnd = %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, c := range cases {
		f.Add(c.link, unhex(f, c.in), 0)
	}
	f.Fuzz(func(t *testing.T, link uint16, data []byte, more int) {
		var p Packet
		p.Frame(link, data, len(data)+more&0xffff)
		if p.L3 > len(data) || p.L4 < 0 || p.IP != 0 && p.L3+20 > len(data) {
			t.Fatalf("Frame(%d, %x) = %+v", link, data, p)
		}
		if p.Fragment && (p.FragAt < p.L3 || p.FragAt+2 > len(data)) {
			t.Fatalf("Frame(%d, %x): fragment fields at %d", link, data, p.FragAt)
		}
		if p.IP != 0 {
			var k decode.FlowKey
			if p.Flow(&k, data); k.IPVersion != p.IP {
				t.Fatalf("Flow(%x) = %v", data, k)
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	for _, c := range []string{"Ethernet, UDP", "QinQ", "IPv6 extension headers"} {
		for _, tc := range cases {
			if tc.name != c {
				continue
			}
			b.Run(c, func(b *testing.B) {
				data := unhex(b, tc.in)
				var p Packet
				var k decode.FlowKey
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					p.Frame(tc.link, data, len(data))
					p.Flow(&k, data)
				}
			})
		}
	}
}
