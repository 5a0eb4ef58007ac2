package demux

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/plain"
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
	"random":                          func(r *rand.Rand) []byte { return noise(r, r.IntN(1400)) },
	"sflow, as agents send it":        func(r *rand.Rand) []byte { return plain.RandomSFlow(r, r.IntN(2) == 0) },
	"ipfix, as exporters send it":     func(r *rand.Rand) []byte { return ipfixMessage(r, ipfix.V10) },
	"netflow-9, as exporters send it": func(r *rand.Rand) []byte { return ipfixMessage(r, ipfix.V9) },
}

// headers are those of other programs that begin as a report 0.5 or 1.0 does.
var headers = map[string]func(r *rand.Rand) []byte{
	"zeros": func(r *rand.Rand) []byte { return make([]byte, r.IntN(200)) },
	"numbers": func(r *rand.Rand) []byte { // a small one, and what it counts: players, samples, beacons
		return append([]byte{0, 0, 0, byte(r.IntN(64))}, noise(r, r.IntN(32))...)
	},
	"tftp": func(r *rand.Rand) []byte { return append([]byte{0, byte(3 + r.IntN(2))}, noise(r, 2+r.IntN(513))...) },
	"wireguard": func(r *rand.Rand) []byte { // initiation, response, cookie, nothing
		n := r.IntN(4)
		return append([]byte{byte(1 + n), 0, 0, 0}, noise(r, [...]int{144, 88, 60, 28}[n])...)
	},
	"l2tpv3": func(r *rand.Rand) []byte { // a session, a sublayer, and a frame
		ip := packet.AppendIPv4(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4),
			&packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 40)
		return slices.Concat([]byte{0, 3, 0, 0}, noise(r, 4), make([]byte, 4), ip, noise(r, 40))
	},
}

// A payload that begins like a report, and is none, is not stored as one at a port of reports either. It has no
// packet, or one behind the header of another format.
func TestForeignHeaders(t *testing.T) {
	for _, profile := range []string{"auto", "fabric-tna", "geant", "p4-int-laofan"} {
		p, _ := Lookup(profile)
		rt := NewRouter(p, nil)
		for name, make := range headers {
			rnd := rand.New(rand.NewPCG(28, 1))
			for i := range 5000 {
				payload := make(rnd)
				reports, _ := receive(rt, p, payload, len(payload), i%6, rnd)
				for _, r := range reports {
					if r.FirstOfGroup && r.Has&decode.HasSeq != 0 {
						t.Fatalf("%s by %s: has a number to be followed: %x", name, profile, payload)
					}
					if r.Err.Reason == 0 {
						t.Fatalf("%s by %s: stored as %s %s %s: %x", name, profile, r.Format, r.Version, r.Kind, payload)
					}
				}
			}
		}
	}
}

// bytesOf decodes the hexadecimal digits of s, with blanks between them.
func bytesOf(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func ipfixMessage(r *rand.Rand, version uint16) []byte {
	list := []*decode.Template{plain.RandomTemplate(r, version), plain.RandomTemplate(r, version)}
	return plain.RandomIPFIX(r, version, r.Uint32(), list)
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// withSets appends sets to a header, and sets the header's fields as an exporter does.
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

// damage returns a payload unchanged, cut on its way, cut by the sender, with flipped bits, or with bytes of another
// one.
func damage(r *rand.Rand, payload []byte) (b []byte, length int, whole bool) {
	b = slices.Clone(payload)
	switch n := len(b); r.IntN(5) {
	case 1: // settings cut nothing shorter, and no capture holds less of a packet
		return b[:min(n, 64+r.IntN(n+1))], n, false
	case 2:
		b = b[:r.IntN(n+1)]
	case 3:
		for range 1 + r.IntN(8) {
			if n > 0 {
				b[r.IntN(n)] ^= 1 << r.IntN(8)
			}
		}
	case 4:
		if n > 0 {
			copy(b[r.IntN(n):], noise(r, r.IntN(n)))
		}
	default:
		return b, n, true
	}
	return b, len(b), false
}

// No foreign datagram is read as a report, whole, cut or damaged. This holds at a port for reports alone, at one for
// anything, and in a capture at a port of reports or at another. A whole one is recognised. A datagram that a port
// does not accept is not stored.
func TestForeignDatagrams(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(foreigners))
	each := 100_000/len(kinds) + 1
	for k, name := range kinds {
		kind, _, _ := strings.Cut(name, ",")
		for i, profile := range []string{"auto", "fabric-tna", "geant", "p4-int-laofan"} {
			rnd := rand.New(rand.NewPCG(28, uint64(4*k+i)))
			p, _ := Lookup(profile)
			rt := NewRouter(p, nil)
			stored := 0
			for i := range each {
				payload, length, whole := damage(rnd, foreigners[name](rnd))
				reports, only := receive(rt, p, payload, length, i%6, rnd)
				for _, r := range reports {
					if r.Flags&decode.Truncated != 0 && r.Kind == 0 && len(r.Hops) == 0 && r.Has&decode.HasFlow == 0 {
						continue // all that a report holds can be behind the cut: it is in no flow and no hop
					}
					if r.Err.Reason == 0 && (r.Format.String() != kind || only == ReportsOnly) {
						if stored++; stored < 3 {
							t.Errorf("%s by %s at a port for %s: stored as %s %s %s: %x", name, profile, only, r.Format, r.Version, r.Kind, payload)
						}
					}
				}
				switch kind {
				case "sflow", "ipfix", "netflow-9", "netflow-5":
					if whole && (len(reports) == 0 || reports[0].Format.String() != kind) {
						t.Fatalf("%s by %s is not recognised: %x", name, profile, payload)
					}
				}
			}
			if stored > 0 {
				t.Errorf("%s by %s: %d of %d stored as something else", name, profile, stored, each)
			}
		}
	}
}

// receive passes a payload to a router in one of six ways. The ways are ports for anything, for reports, for sFlow
// and for IPFIX, and captures, at a port of reports or at another.
func receive(rt *Router, p Profile, payload []byte, length, way int, rnd *rand.Rand) (reports []*decode.Report, only Kind) {
	var b decode.Batch
	switch way {
	case 4, 5:
		port := uint16(0)
		if way == 5 {
			port = uint16(1 + rnd.IntN(65535))
		}
		frame := udpFrame(append(payload[:len(payload):len(payload)], make([]byte, length-len(payload))...), p, port)
		rt.Frame(&b, packet.LinkEthernet, frame[:len(frame)-length+len(payload)], len(frame), 0)
		return b.Reports, Anything
	}
	only = Kind(way)
	var lazy decode.LazyBatch
	rt.Only(only)
	rt.Lazy(&lazy, decode.Addr{}, payload, length, 0)
	for _, x := range lazy.List {
		if !x.Waits {
			reports = append(reports, x.Report())
		}
	}
	return reports, only
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

// Random bytes that begin as a report, which three of sixteen datagrams of random bytes do, are none. These 600,000
// stand for 3.2 million datagrams; of 213 million, 14 were stored.
func TestForeignRandom(t *testing.T) {
	rnd, rt, stored := rand.New(rand.NewPCG(99, 7)), NewRouter(profile(t, "auto"), nil), 0
	payload := make([]byte, 1400)
	for range 600_000 {
		n := 1 + rnd.IntN(len(payload))
		for i := 0; i < n; i += 8 {
			binary.LittleEndian.PutUint64(payload[i:], rnd.Uint64())
		}
		payload[0] = payload[0]&0x0f | byte(rnd.IntN(3))<<4
		reports, _ := receive(rt, Profile{}, payload[:n], n, int(Anything), rnd)
		for _, r := range reports {
			if r.Err.Reason == 0 {
				stored++
				t.Logf("stored as %s %s %s: %x", r.Format, r.Version, r.Kind, payload[:n])
			}
		}
	}
	if stored > 2 {
		t.Errorf("%d are stored", stored)
	}
}

// Payloads that a check can refuse are refused. One is a question of DNS that fits a header 1.0 without a packet. One
// has data of a domain behind a header with bits that senders leave 0. One is a set of an unknown template before a
// false one.
func TestForeignByChance(t *testing.T) {
	dns := []byte{0x17, 0x15, 1, 0x80, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'a', 'u', 'n', 12, 'o', 'l', 'a', 't', 'g', 'o', 'f', 'v', 's', 'q', 'n'}
	header := slices.Clone(dns)
	header[5] = 9
	domain := []byte{0x2a, 0x2a, 0x5e, 0xd6, 0, 0, 0, 7, 0x02, 1, 0, 0x80, 1, 2, 3, 4}
	reserved := slices.Clone(domain)
	reserved[11] = 0x81
	message := append([]byte{0, 9, 0, 5}, make([]byte, 16)...)
	message = append(message, 1, 0x89, 0, 6, 0, 2, 1, 0, 4, 0)
	whole := append(slices.Clone(message[:20]), 1, 0x89, 0, 6, 0, 2)
	dark := make([]byte, 4*0xff)
	for _, c := range []struct {
		name    string
		payload []byte
		stored  bool
	}{
		{"DNS", dns, false}, {"a header 1.0", header, true}, {"data of a domain", domain, true}, {"with a reserved bit", reserved, false},
		{"a set that lies", message, false}, {"none", whole, true},
		{"a header 1.0 with reserved bits, and no packet", bytesOf("1604bfc4610a4ce138c2732d38af2981488fee9997ef59ad"), false},
		{"a header 1.0 that announces IPv6, and reserved bits", bytesOf("1540b39fffdf18b150e177289dd50655b37fd669"), false},
		{"a header 1.0, and a fragment whose length and checksum are wrong", bytesOf("1733719195113cc8065b0cc937fb6fe486818001bc1bd27c3117c75f" +
			"4e8a872b64441b1cda041619b2f5466f0e5ccd23f5b3699b3a09b2ac677136370224a22bc0d625"), false},
		{"a header 0.5 with reserved bits, and a tag at its end", bytesOf("12b8430e08dee89f24c2b550094f419ddad3b12503443eb74243f966715f499d9f61a22709feac6988a8bfa2"), false},
		{"a header of NetFlow 9 that counts records, and none", bytesOf("0009207f06b0a8b142179b8dc51eee5b795306ed"), false},
		{"a report 2.0 with a frame of 12 bytes", bytesOf("2a000001 00000007 03030080 020000000002 020000000001"), true},
		{"a report 2.0 with none", bytesOf("2a000001 00000007 03000080"), false},
		{"a report 2.0 behind a failed one, with nothing inside", bytesOf("2a000001 00000007 f4010000 deadbeef 14000000"), false},
		{"a report 2.0 to the end with data of a domain, and a length of metadata", append(bytesOf("2a000001 00000007 02ff0500"), dark...), false},
		{"with none", append(bytesOf("2a000001 00000007 02ff0000"), dark...), true},
		{"a report 2.0 with more of a domain, and reserved bits", bytesOf("2a000001 00000007 12040200 20400001 80000000 01020304 05060708"), false},
		{"with less than its bits stand for", bytesOf("2a000001 00000007 12040200 20000001 f0000000 01020304 05060708"), false},
		{"with as much", bytesOf("2a000001 00000007 12040200 20000001 80000000 01020304 05060708"), true},
	} {
		d := New(profile(t, "auto"))
		var b decode.Batch
		d.Datagram(&b, decode.Addr{1}, c.payload, 7)
		stored := slices.ContainsFunc(b.Reports, func(r *decode.Report) bool { return r.Err.Reason == 0 })
		if stored != c.stored || len(b.Reports) == 0 {
			t.Errorf("%s: stored %t: %s", c.name, stored, lines(&b))
		}
	}
}

// Behind a report of a group that failed, one that the capture cuts is cut, and none that failed.
func TestCutBehindFailed(t *testing.T) {
	payload := bytesOf("2a000001 00000007 09010000 deadbeef 13080200 2000")
	d := New(profile(t, "auto"))
	var b decode.Batch
	d.DatagramCut(&b, decode.Addr{1}, payload, len(payload)+34, 7)
	if len(b.Reports) != 2 || b.Reports[0].Err.Reason == 0 || b.Reports[1].Err.Reason != 0 || b.Reports[1].Flags&decode.Truncated == 0 {
		t.Errorf("%s", lines(&b))
	}
}
