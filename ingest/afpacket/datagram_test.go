package afpacket

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestDatagram makes datagrams of frames, whole, cut and damaged, and compares them with what the decoder of packets reads in the frames.
func TestDatagram(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := Config{Datagrams: map[uint16]ingest.Kind{6343: ingest.SFlow, 32766: ingest.Anything}}
	u := c.Unwrapper()
	made := 0
	for range 200_000 {
		h := testkit.MakeFrameHead(rng, maxTags)
		h.Proto, h.Offset = 17, 0
		ethernet := rng.IntN(4) != 0
		if !ethernet {
			h.Tags = nil
		}
		b := h.Frame(ethernet)
		if h.Ether != 0x0800 && h.Ether != 0x86dd {
			continue
		}
		payload := make([]byte, rng.IntN(60))
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		l4, ip := len(b)-8, 0
		if ethernet {
			ip = 14 + 4*len(h.Tags)
		}
		b = append(b, payload...)
		binary.BigEndian.PutUint16(b[l4+4:], uint16(8+len(payload)))
		if h.V6 {
			binary.BigEndian.PutUint16(b[ip+4:], uint16(len(b)-l4))
		} else {
			binary.BigEndian.PutUint16(b[ip+2:], uint16(len(b)-ip))
			binary.BigEndian.PutUint16(b[ip+6:], 0x4000)
		}
		clean := rng.IntN(2) == 0
		if !clean {
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
		}
		b = append(b, make([]byte, rng.IntN(3))...) // padding of Ethernet
		wire := len(b)
		if rng.IntN(3) == 0 {
			b = b[:rng.IntN(len(b)+1)]
		}
		f := ingest.Frame{Data: b, Length: wire, Link: ingest.LinkRaw}
		if ethernet {
			f.Link = ingest.LinkEthernet
		}
		link := f.Link
		u.datagram(&f)
		kind, wanted := c.Datagrams[h.Port]
		if f.Link != ingest.LinkUDP {
			if clean && wanted && len(b) >= l4+8 {
				t.Fatalf("no datagram of % x", b)
			}
			continue
		}
		made++
		var p packet.Packet
		p.Frame(link, b, wire)
		if p.IP == 0 || !p.HasPorts || p.Proto != 17 || p.Fragment {
			t.Fatalf("% x is none to the decoder: %+v", b, p)
		}
		var key decode.FlowKey
		p.Flow(&key, b)
		if f.DstPort != key.DstPort || f.Src.Port() != key.SrcPort || decode.AddrFrom(f.Src.Addr()) != key.Src || decode.AddrFrom(f.Dst) != key.Dst || f.Only != c.Datagrams[f.DstPort] {
			t.Fatalf("% x: %+v, want %v", b, f, key)
		}
		if end := min(len(b), p.UDPEnd(b)); !bytes.Equal(f.Data, b[p.L4+8:max(end, p.L4+8)]) || f.Length < len(f.Data) {
			t.Fatalf("% x: payload % x of %d, want % x", b, f.Data, f.Length, b[p.L4+8:end])
		}
		if clean && (f.Length != len(payload) || f.Only != kind || !bytes.Equal(f.Data, payload[:len(f.Data)]) || f.Src.Addr() != netip.Addr(h.Src)) {
			t.Fatalf("%+v of % x", f, payload)
		}
	}
	if made < 20_000 {
		t.Errorf("%d datagrams were made", made)
	}
}
