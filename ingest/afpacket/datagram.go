package afpacket

import (
	"encoding/binary"
	"net/netip"

	"github.com/hopscope/hopscope/ingest"
)

// Unwrapper turns frames into the datagrams in them. One goroutine uses it.
type Unwrapper struct {
	ports map[uint16]ingest.Kind // Config.Datagrams
	port  uint16                 // looked up last: most datagrams go to the same one
	kind  ingest.Kind            // of that
	ok    bool                   // that is in ports
}

// Unwrapper makes an Unwrapper for the ports of c.
func (c *Config) Unwrapper() Unwrapper {
	u := Unwrapper{ports: c.Datagrams}
	u.kind, u.ok = u.ports[u.port]
	return u
}

// Unwrap turns whole datagrams among frames into what a socket would have received. It returns the bytes of all frames then,
// and how many of them were cut.
func (u *Unwrapper) Unwrap(frames []ingest.Frame) (bytes, cut uint64) {
	for i := range frames {
		f := &frames[i]
		u.datagram(f)
		bytes += uint64(len(f.Data))
		if f.Length > len(f.Data) {
			cut++
		}
	}
	return bytes, cut
}

// datagram turns a frame into what a socket would have received: the payload of a whole UDP datagram to one of the
// ports, without headers. It leaves any other frame unchanged, also one whose lengths contradict each other.
func (u *Unwrapper) datagram(f *ingest.Frame) {
	b, wire := f.Data, f.Length
	ether := uint16(0)
	if f.Link == ingest.LinkEthernet {
		at := 12
		for range maxTags + 2 { // with the one that the kernel stripped
			if len(b) < at+2 {
				return
			}
			ether = binary.BigEndian.Uint16(b[at:])
			if ether != etherVLAN && ether != etherQinQ && ether != oldTag {
				break
			}
			at += 4
		}
		b, wire = b[min(at+2, len(b)):], wire-at-2
	} else if len(b) > 0 {
		switch b[0] >> 4 {
		case 4:
			ether = etherIPv4
		case 6:
			ether = etherIPv6
		}
	}
	var src, dst netip.Addr
	var header, total int
	switch {
	case ether == etherIPv4 && len(b) >= 20 && b[0]>>4 == 4 && b[9] == protoUDP && binary.BigEndian.Uint16(b[6:])&0x3fff == 0: // no fragment
		header, total = int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		src, dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	case ether == etherIPv6 && len(b) >= 40 && b[0]>>4 == 6 && b[6] == protoUDP:
		header, total = 40, 40+int(binary.BigEndian.Uint16(b[4:]))
		src, dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	default:
		return
	}
	if header < 20 || len(b) < header+8 || total > wire {
		return
	}
	udp := b[header:]
	length, port := int(binary.BigEndian.Uint16(udp[4:])), binary.BigEndian.Uint16(udp[2:])
	if port != u.port {
		u.port = port
		u.kind, u.ok = u.ports[port]
	}
	if !u.ok || length < 8 || header+length > total {
		return
	}
	end := min(length, len(udp))
	f.Data, f.Length, f.Link = udp[8:end:end], length-8, ingest.LinkUDP
	f.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(udp))
	f.Dst, f.DstPort, f.Only = dst, port, u.kind
}
