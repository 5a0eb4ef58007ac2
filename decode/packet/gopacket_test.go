package packet_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
)

// drawFrame makes an Ethernet frame with up to three tags, and IPv4 with options or IPv6 with extension headers,
// fragments among them. TCP, UDP or something else is above. Bytes that do not define layers are random.
func drawFrame(r *rand.Rand) []byte {
	be := binary.BigEndian
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var upper []byte
	proto := []byte{6, 17, 17, 132, 89}[r.IntN(5)]
	switch proto {
	case 6:
		upper = random(20 + 4*r.IntN(4))
		upper[12] = byte(len(upper)/4) << 4
		for i := 20; i < len(upper); i++ {
			upper[i] = 1 // no operation
		}
	case 17:
		upper = random(8)
		n := r.IntN(64)
		be.PutUint16(upper[4:], uint16(8+n))
		be.PutUint16(upper[2:], 40_000+uint16(r.IntN(1000))) // no tunnel, which gopacket enters
		be.PutUint16(upper, 50_000+uint16(r.IntN(1000)))
		upper = append(upper, random(n)...)
	default:
		upper = random(12 + r.IntN(40))
	}
	var ip []byte
	ether := uint16(layers.EthernetTypeIPv4)
	if r.IntN(2) == 0 {
		ip = random(20 + 4*r.IntN(5))
		ip[0] = 4<<4 | byte(len(ip)/4)
		be.PutUint16(ip[2:], uint16(len(ip)+len(upper)))
		be.PutUint16(ip[6:], []uint16{0, 0, 0x4000, 0x2000, 0x2010, 0x0010}[r.IntN(6)])
		ip[9] = proto
		for i := 20; i < len(ip); i++ {
			ip[i] = 1 // no operation
		}
	} else {
		ether = uint16(layers.EthernetTypeIPv6)
		ip = random(40)
		ip[0] = 6<<4 | ip[0]&0x0f
		at, headers := -1, []byte{}                  // at: where the last one of headers begins
		for _, kind := range []byte{0, 60, 43, 44} { // in their usual order, each once or not
			if r.IntN(3) != 0 {
				continue
			}
			x := make([]byte, 8+8*r.IntN(2))
			switch kind {
			case 44:
				x = random(8)
				x[1] = 0
				be.PutUint16(x[2:], []uint16{0, 1, 8, 9}[r.IntN(4)])
			case 43:
				x[1] = byte(len(x)/8 - 1)
				x[2] = 0 // type 0, which gopacket reads
				x = x[:8]
				x[1] = 0
			default:
				x[1] = byte(len(x)/8 - 1)
				x[2], x[3] = 1, byte(len(x)-4) // PadN
			}
			if at < 0 {
				ip[6] = kind
			} else {
				headers[at] = kind
			}
			at = len(headers)
			headers = append(headers, x...)
		}
		if len(headers) == 0 {
			ip[6] = proto
		} else {
			headers[at] = proto
		}
		be.PutUint16(ip[4:], uint16(len(headers)+len(upper)))
		ip = append(ip, headers...)
	}
	frame := random(12)
	for range r.IntN(4) {
		frame = be.AppendUint16(frame, []uint16{uint16(layers.EthernetTypeDot1Q), uint16(layers.EthernetTypeQinQ)}[r.IntN(2)])
		frame = append(frame, random(2)...)
	}
	frame = append(be.AppendUint16(frame, ether), ip...)
	frame = append(frame, upper...)
	if r.IntN(4) == 0 {
		frame = append(frame, random(r.IntN(20))...) // padding
	}
	if r.IntN(4) == 0 {
		frame = frame[:r.IntN(len(frame)+1)]
	}
	return frame[:len(frame):len(frame)]
}

// offset is where a layer begins in the data that it was read from.
func offset(data, layer []byte) int { return cap(data) - cap(layer) }

// TestGopacket reads drawn frames, whole ones and cut ones, as gopacket does. If both read a layer they agree on its
// place and its values. gopacket does not read into fragments, which are left out above IP.
func TestGopacket(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	seen := map[gopacket.LayerType]int{}
	for n := range 20_000 {
		data := drawFrame(r)
		var p packet.Packet
		p.Frame(packet.LinkEthernet, data, len(data))
		g := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("frame %d, %x: "+format, append([]any{n, data}, args...)...)
		}
		for _, l := range g.Layers() {
			seen[l.LayerType()]++
		}
		var src, dst []byte
		fragment := g.Layer(layers.LayerTypeIPv6Fragment) != nil
		network := g.NetworkLayer()
		if network == nil || len(network.LayerContents()) == 0 { // no whole header
			if p.IP != 0 && g.ErrorLayer() == nil {
				fail("%+v, gopacket has no IP", p)
			}
			continue
		}
		switch l := network.(type) {
		case *layers.IPv4:
			src, dst = l.SrcIP.To4(), l.DstIP.To4()
			fragment = l.Flags&layers.IPv4MoreFragments != 0 || l.FragOffset != 0
			if p.IP != 4 || p.L3 != offset(data, l.Contents) || p.TOS != l.TOS || p.TTL != l.TTL || p.ID != l.Id || p.Proto != uint8(l.Protocol) || p.Fragment != fragment {
				fail("%+v, gopacket has %+v", p, l)
			}
			if whole := p.L3 + int(l.Length); p.End != min(whole, len(data)) && p.End != whole {
				fail("it ends at %d, gopacket says %d", p.End, whole)
			}
		case *layers.IPv6:
			src, dst = l.SrcIP, l.DstIP
			if p.IP != 6 || p.L3 != offset(data, l.Contents) || p.TOS != l.TrafficClass || p.TTL != l.HopLimit {
				fail("%+v, gopacket has %+v", p, l)
			}
		}
		if s, d := p.Src(data), p.Dst(data); netip.AddrFrom16(s).Unmap() != address(src) || netip.AddrFrom16(d).Unmap() != address(dst) {
			fail("addresses %v and %v, gopacket has %v and %v", s, d, address(src), address(dst))
		}
		if fragment {
			continue
		}
		transport := g.TransportLayer()
		if transport == nil || len(transport.LayerContents()) == 0 {
			continue
		}
		switch l := transport.(type) {
		case *layers.UDP:
			if p.Proto != packet.ProtoUDP || p.L4 != offset(data, l.Contents) || p.SrcPort() != uint16(l.SrcPort) || p.DstPort() != uint16(l.DstPort) {
				fail("%+v, gopacket has %+v", p, l)
			}
		case *layers.TCP:
			if p.Proto != packet.ProtoTCP || p.L4 != offset(data, l.Contents) || p.SrcPort() != uint16(l.SrcPort) || p.DstPort() != uint16(l.DstPort) {
				fail("%+v, gopacket has %+v", p, l)
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, l := range []gopacket.LayerType{
		layers.LayerTypeDot1Q, layers.LayerTypeIPv4, layers.LayerTypeIPv6, layers.LayerTypeIPv6HopByHop, layers.LayerTypeIPv6Destination,
		layers.LayerTypeIPv6Routing, layers.LayerTypeIPv6Fragment, layers.LayerTypeUDP, layers.LayerTypeTCP, gopacket.LayerTypeFragment,
	} {
		if seen[l] < 100 {
			t.Errorf("gopacket read %d layers %v, which says nothing of ours", seen[l], l)
		}
	}
}

func address(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a.Unmap()
}
