package sim

import (
	"math"
	"net/netip"
)

// Count adds to a counter of an interface, which goes on modulo 2^32 less the one value that stands for no count.
func Count(to *uint32, n int) {
	if *to += uint32(n); *to == math.MaxUint32 {
		*to = 0
	}
}

// OffsetAddr returns the address k after an IPv4 address.
func OffsetAddr(a netip.Addr, k int) netip.Addr {
	b := a.As4()
	be.PutUint32(b[:], be.Uint32(b[:])+uint32(k))
	return netip.AddrFrom4(b)
}

// HostAddr4 returns the address of host k (from 0) of the e-th switch with hosts, 10.e.e.k+1.
func HostAddr4(e, k int) [4]byte { return [4]byte{10, byte(e >> 8), byte(e), byte(k + 1)} }

// HostAddr6 returns the IPv6 address of the same host, fd00::e:k+1.
func HostAddr6(e, k int) (a [16]byte) {
	a[0], a[12], a[13], a[15] = 0xfd, byte(e>>8), byte(e), byte(k+1)
	return a
}
