package demux

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// foreigners makes payloads that are no telemetry reports.
var foreigners = map[string]func(r *rand.Rand) []byte{
	"sflow": func(r *rand.Rand) []byte {
		b := binary.BigEndian.AppendUint32(nil, 5)
		b = binary.BigEndian.AppendUint32(b, 1)
		return append(b, noise(r, 20+4*r.IntN(300))...)
	},
	"ipfix": func(r *rand.Rand) []byte {
		return withSets(r, noise(r, 16), 10, 2)
	},
	"netflow-9": func(r *rand.Rand) []byte {
		b := withSets(r, noise(r, 20), 9, 0)
		binary.BigEndian.PutUint16(b[2:], uint16(1+r.IntN(30)))
		return b
	},
	"netflow-5": func(r *rand.Rand) []byte {
		n := 1 + r.IntN(30)
		b := noise(r, 24+48*n)
		binary.BigEndian.PutUint32(b, 5<<16|uint32(n))
		return b
	},
	"otlp": func(r *rand.Rand) []byte { // ResourceMetrics, or the start of HTTP/2 and of a request
		switch r.IntN(3) {
		case 0:
			return append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), noise(r, r.IntN(100))...)
		case 1:
			return append([]byte("POST /v1/metrics HTTP/1.1\r\nHost: collector\r\n\r\n"), noise(r, r.IntN(400))...)
		}
		n := 3 + r.IntN(120)
		return append([]byte{0x0a, byte(n + 2), 0x0a, byte(n)}, noise(r, n)...)
	},
	"rtp": func(r *rand.Rand) []byte {
		b := noise(r, 12+r.IntN(1200))
		b[0] = 0x80
		b[1] &= 0x7f
		return b
	},
	"dns": func(r *rand.Rand) []byte {
		b := noise(r, 2)
		b = append(b, byte(1+0x80*r.IntN(2)), byte(0x80*r.IntN(2)), 0, 1, 0, byte(r.IntN(3)), 0, 0, 0, 0)
		for range 2 + r.IntN(3) {
			n := 1 + r.IntN(12)
			b = append(b, byte(n))
			for range n {
				b = append(b, byte('a'+r.IntN(26)))
			}
		}
		b = append(b, 0, 0, 1, 0, 1)
		return append(b, noise(r, 16*r.IntN(3))...)
	},
	"random": func(r *rand.Rand) []byte { return noise(r, r.IntN(1400)) },
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// withSets appends sets to a header, and writes what an exporter does at its start.
func withSets(r *rand.Rand, b []byte, version, template uint16) []byte {
	for i := range 1 + r.IntN(4) {
		n, id := 4+4*r.IntN(60), template
		if i > 0 {
			id = 256 + uint16(r.IntN(9))
		}
		s := noise(r, n)
		binary.BigEndian.PutUint16(s, id)
		binary.BigEndian.PutUint16(s[2:], uint16(n))
		b = append(b, s...)
	}
	binary.BigEndian.PutUint16(b, version)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

// Nothing that is no report is read as one: neither at a socket for reports nor in a capture, at a port of reports or at another.
func TestForeignDatagrams(t *testing.T) {
	const each = 100_000 / 8
	for kind, make := range foreigners {
		for _, name := range []string{"auto", "fabric-tna", "geant", "p4-int-laofan"} {
			rnd := rand.New(rand.NewPCG(28, uint64(len(kind))))
			p, _ := Lookup(name)
			d := New(p)
			var b decode.Batch
			stored := 0
			for i := range each {
				payload := make(rnd)
				b.Reset()
				switch i % 3 {
				case 0:
					d.Datagram(&b, decode.Addr{}, payload, 0)
				case 1:
					frame := udpFrame(payload, p, 0)
					d.Frame(&b, packet.LinkEthernet, frame, len(frame), 0)
				default:
					frame := udpFrame(payload, p, uint16(1+rnd.IntN(65535)))
					d.Frame(&b, packet.LinkEthernet, frame, len(frame), 0)
				}
				for _, r := range b.Reports {
					if r.Err.Reason == 0 && r.Format.String() != kind {
						if stored++; stored < 3 {
							t.Errorf("%s by %s: stored as %s %s %s: %x", kind, name, r.Format, r.Version, r.Kind, payload)
						}
					}
				}
				switch kind {
				case "sflow", "ipfix", "netflow-9", "netflow-5":
					if len(b.Reports) == 0 || b.Reports[0].Format.String() != kind {
						t.Fatalf("%s by %s is not recognised: %x", kind, name, payload)
					}
				}
			}
			if stored > 0 {
				t.Errorf("%s by %s: %d of %d stored as something else", kind, name, stored, each)
			}
		}
	}
}

// udpFrame puts a payload behind Ethernet, IPv4 and UDP, to a port or to one of the profile.
func udpFrame(payload []byte, p Profile, port uint16) []byte {
	if port == 0 && len(p.ReportPorts) > 0 {
		port = p.ReportPorts[0]
	}
	b := make([]byte, 42, 42+len(payload))
	be := binary.BigEndian
	be.PutUint16(b[12:], 0x0800)
	b[14], b[22], b[23] = 0x45, 64, 17
	be.PutUint16(b[16:], uint16(28+len(payload)))
	copy(b[26:], []byte{10, 0, 0, 7, 10, 0, 0, 1})
	be.PutUint16(b[34:], 50000)
	be.PutUint16(b[36:], port)
	be.PutUint16(b[38:], uint16(8+len(payload)))
	return append(b, payload...)
}
