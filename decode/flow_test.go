package decode

import (
	"net/netip"
	"testing"
)

func TestParseFlow(t *testing.T) {
	v4 := FlowKey{Src: AddrFrom(netip.MustParseAddr("10.0.0.1")), Dst: AddrFrom(netip.MustParseAddr("10.0.0.2")), SrcPort: 80, DstPort: 5001, Proto: 6, IPVersion: 4}
	v6 := FlowKey{Src: AddrFrom(netip.MustParseAddr("fd00::1")), Dst: AddrFrom(netip.MustParseAddr("fd00::2")), SrcPort: 1, DstPort: 65535, Proto: 58, IPVersion: 6}
	mapped := FlowKey{Src: AddrFrom(netip.MustParseAddr("10.0.0.1")), Dst: AddrFrom(netip.MustParseAddr("10.0.0.2")), Proto: 17, IPVersion: 6}
	gre := v4
	gre.Proto = 47
	scoped, half := v4, v4
	scoped.Src, scoped.Dst, half.Dst = v4.Src.InSite(1), v4.Dst.InSite(255), v4.Dst.InSite(7)
	if text := scoped.String(); text != "10.0.0.1%1:80 > 10.0.0.2%255:5001 tcp" || scoped == v4 || scoped.SrcAddr() != v4.SrcAddr() || scoped.DstString() != "10.0.0.2%255" {
		t.Errorf("addresses of sites are %s", text)
	}
	if v6.Src.InSite(1) != v6.Src || scoped.Src.InSite(2) != scoped.Src || v4.Src.InSite(0) != v4.Src {
		t.Error("an address has another site than the first, or an IPv6 address has one")
	}
	hash := NewHashKey(1)
	if hash.Flow(&scoped) == hash.Flow(&v4) || hash.Flow(&half) == hash.Flow(&v4) {
		t.Error("the hash does not distinguish sites")
	}
	for _, k := range []FlowKey{v4, v6, mapped, gre, scoped, half} {
		for _, a := range []Addr{k.Src, k.Dst} {
			one := FlowKey{Src: a, IPVersion: k.IPVersion}
			if got, err := ParseAddr(one.SrcString()); err != nil || got != a {
				t.Errorf("ParseAddr(%q) = %v, %v", one.SrcString(), got, err)
			}
		}
		if got, err := ParseFlow(k.String()); err != nil || got != k {
			t.Errorf("ParseFlow(%q) = %+v, %v, want %+v", k.String(), got, err, k)
		}
	}
	for _, text := range []string{
		"10.0.0.1:80 > 10.0.0.2:5001/6", "10.0.0.1:80>10.0.0.2:5001 TCP", " 10.0.0.1:80 >  10.0.0.2:5001 proto 6 ", "10.0.0.1:80 > 10.0.0.2:5001/tcp",
	} {
		if got, err := ParseFlow(text); err != nil || got != v4 {
			t.Errorf("ParseFlow(%q) = %v, %v, want %v", text, got, err, v4)
		}
	}
	for _, bad := range []string{
		"", "no flow", "10.0.0.1:80", "10.0.0.1:80 > 10.0.0.2:5001", "10.0.0.1 > 10.0.0.2 tcp", "10.0.0.1:80 > 10.0.0.2:5001 sctp",
		"10.0.0.1:80 > 10.0.0.2:5001/256", "10.0.0.1:80 > [fd00::1]:5001 tcp", "[fe80::1%eth0]:1 > [fe80::2]:1 tcp", "10.0.0.1:80000 > 10.0.0.2:1 tcp",
		"10.0.0.1%0:80 > 10.0.0.2:5001 tcp", "10.0.0.1%256:80 > 10.0.0.2:5001 tcp", "10.0.0.1%x:80 > 10.0.0.2:5001 tcp", "10.0.0.1%:80 > 10.0.0.2:5001 tcp", "fd00::1%1:80 > 10.0.0.2:5001 tcp",
	} {
		if got, err := ParseFlow(bad); err == nil {
			t.Errorf("ParseFlow(%q) = %v, want an error", bad, got)
		}
	}
}

// Addresses of one numbering plan in several networks are other nodes; an IPv4 address is its number, in any site.
func TestAddrNode(t *testing.T) {
	seen := map[uint32]string{}
	for _, s := range []string{"2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1", "2001:db8:0:1::1", "fe80::1", "fd00::1", "0.0.0.1", "2001:db8:1::2"} {
		n := AddrFrom(netip.MustParseAddr(s)).Node()
		if other := seen[n]; other != "" {
			t.Errorf("%s and %s are one node", s, other)
		}
		seen[n] = s
	}
	a := AddrFrom(netip.MustParseAddr("10.1.2.3"))
	if n, m := a.Node(), a.InSite(7).Node(); n != 0x0a010203 || m != n {
		t.Errorf("10.1.2.3 is node %d, and %d in a site", n, m)
	}
}
