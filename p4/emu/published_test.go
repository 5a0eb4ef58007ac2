package emu

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/pint"
	programs "github.com/hopscope/hopscope/p4/emu/program"
)

func publishedPacket(r *rand.Rand) programs.PublishedPacket {
	p := programs.PublishedPacket{
		Src: [4]byte{10, 0, 0, byte(r.Uint32())}, Dst: [4]byte{10, 0, 1, byte(r.Uint32())},
		SrcPort: uint16(r.Uint32()), DstPort: uint16(r.Uint32()), ID: uint16(r.Uint32()), Payload: make([]byte, r.IntN(50)),
	}
	for i := range p.Payload {
		p.Payload[i] = byte(r.Uint32())
	}
	return p
}

// decodePublished reads a frame by a profile, and fails unless it is one digest of the packet p.
func decodePublished(t *testing.T, name string, p *programs.PublishedPacket, frame []byte) *decode.Report {
	t.Helper()
	link := uint16(1)
	if name == "pint-hpcc" {
		link = 9
	}
	var b decode.Batch
	demux.New(profile(t, name)).Frame(&b, link, frame, len(frame), 0)
	if len(b.Reports) != 1 {
		t.Fatalf("%s: %d reports of %x", name, len(b.Reports), frame)
	}
	r := b.Reports[0]
	key := decode.FlowKey{
		Src: decode.AddrFrom4(p.Src[:]), Dst: decode.AddrFrom4(p.Dst[:]), SrcPort: p.SrcPort, DstPort: p.DstPort, Proto: udp, IPVersion: 4,
	}
	if err := r.Error(); err != nil || r.Kind != decode.KindDigest || r.Has&decode.HasDigest == 0 || r.Flow != key || r.Digest.ID != uint32(p.ID) {
		t.Fatalf("%s: %v: %+v of %x", name, err, r, frame)
	}
	return r
}

// The worked examples of Mininet-PINT: path of switches 0, 1, 2, 3, 4.
func TestMininetFrames(t *testing.T) {
	for _, tt := range []struct {
		id       uint16
		mac, ams string
		writer   int // -1 where the example does not say
	}{
		{7, "009d00050000", "000000000009", 2},
		{100, "00fb00060000", "", 4},
		{200, "00d800040000", "", 4},
		{13, "000400040000", "", 4},
		{23, "000300010001", "", -1},
		{1, "000000000000", "", -1},
	} {
		p := programs.PublishedPacket{Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 6}, SrcPort: 53, DstPort: 53, ID: tt.id}
		f := p.AppendMininet([]byte("before"), []uint32{0, 1, 2, 3, 4})[6:]
		wantHex(t, "digest", f[:6], tt.mac)
		if tt.ams != "" {
			wantHex(t, "AMS2 digest", f[6:12], tt.ams)
		}
		r := decodePublished(t, "pint-mininet", &p, f)
		if f[15] != 1 || f[22] != 250 || r.Digest.Hops != 5 {
			t.Errorf("packet %d: TOS %d, TTL %d", tt.id, f[15], f[22])
		}
		if r.Digest.LastWriter != be.Uint16(f[24:]) || tt.writer >= 0 && int(r.Digest.LastWriter) != tt.writer {
			t.Errorf("packet %d: last writer %d, want %d", tt.id, r.Digest.LastWriter, tt.writer)
		}
	}
}

func wantHex(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if s := hex.EncodeToString(got); s != want {
		t.Errorf("%s: %s, want %s", what, s, want)
	}
}

// The coding schemes of the decoder give the digests that the programs leave in packets, and the decoder finds them in
// the frames. The programs are written here from their tables and steps.
func TestPublishedSchemes(t *testing.T) {
	const seed = 31
	r := rand.New(rand.NewPCG(seed, 0))
	mininet, tofino := pint.Mininet(), [2]*pint.Scheme{pint.Tofino(false), pint.Tofino(true)}
	for round := range 3000 {
		p := publishedPacket(r)
		nodes := make([]uint32, 1+r.IntN(40))
		for i := range nodes {
			nodes[i] = r.Uint32N(65536) >> r.IntN(16)
		}
		f := p.AppendMininet(nil, nodes)
		got := decodePublished(t, "pint-mininet", &p, f)
		if want := mininet.Digest(uint32(p.ID), nodes); uint64(pint.MininetMAC(uint32(want))) != got.Digest.Value {
			t.Fatalf("seed %d, round %d: packet %d over %v: %x, want %x", seed, round, p.ID, nodes, got.Digest.Value, pint.MininetMAC(uint32(want)))
		}
		wantHex(t, "destination MAC", f[:6], fmt.Sprintf("%012x", got.Digest.Value))
		if int(got.Digest.Hops) != len(nodes) {
			t.Fatalf("seed %d, round %d: %d hops, want %d", seed, round, got.Digest.Hops, len(nodes))
		}
		checkUDP(t, f)

		// Within the tables; what is beyond is not known to a decoder.
		p.ID %= programs.TofinoIDs
		path, nodes := make([]uint8, 1+r.IntN(programs.TofinoHops-1)), nodes[:0]
		for i := range path {
			path[i] = uint8(r.IntN(programs.TofinoValues))
			nodes = append(nodes, uint32(path[i]))
		}
		for _, s := range tofino {
			packet := s.Packet(uint32(p.ID), 0)
			f = p.AppendTofino(nil, path, packet.Baseline)
			got = decodePublished(t, "pint-tofino", &p, f)
			if want := s.Digest(uint32(p.ID), nodes); got.Digest.Value != want || int(got.Digest.Hops) != len(path) {
				t.Fatalf("seed %d, round %d: packet %d over %v: %+v, want %#x", seed, round, p.ID, path, got.Digest, want)
			}
			checkPacket(t, f[ethLen+6:], len(f)-ethLen-6)
		}
	}
}

// checkUDP has another implementation read the frame, and checks the UDP checksum, which stays right though the IPv4
// header's does not.
func checkUDP(t *testing.T, frame []byte) {
	t.Helper()
	f := bytes.Clone(frame)
	be.PutUint16(f[ethLen+10:], 0)
	be.PutUint16(f[ethLen+10:], ^checksum(f[ethLen:ethLen+20]))
	checkPacket(t, f[ethLen:], len(f)-ethLen)
	g := gopacket.NewPacket(frame, layers.LinkTypeEthernet, gopacket.Default)
	if u, ok := g.Layer(layers.LayerTypeUDP).(*layers.UDP); !ok || uint16(u.SrcPort) != be.Uint16(frame[ethLen+20:]) {
		t.Fatalf("%x: %v", frame, g)
	}
}

// The worked examples of Tofino-PINT.
func TestTofinoFrames(t *testing.T) {
	p := programs.PublishedPacket{Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}, ID: 7}
	f := p.AppendTofino(nil, []uint8{0, 3}, true)
	wantHex(t, "EtherType, header", f[12:20], "1337d7a5bf450800")
	if f[20] != 0x45 || f[28] != 253 {
		t.Errorf("IPv4 begins %x, TTL %d", f[20:28], f[28])
	}
	// Identifications without an entry: all write the value 0.
	p.ID = 1000
	f = p.AppendTofino(nil, []uint8{1, 2, 3}, false)
	wantHex(t, "header", f[14:20], "000000000800")
}

// The worked example of HPCC-PINT: a utilisation of 0.75 is 122 with probability 0.96, else 121; and the largest counts.
func TestHPCCFrames(t *testing.T) {
	const seed, rounds = 33, 20_000
	r := rand.New(rand.NewPCG(seed, 0))
	p := publishedPacket(r)
	up := 0
	for range rounds {
		f := p.AppendHPCC(nil, 5, []float64{.1, .75, 0}, 1.05, 1, r.Float64)
		got := decodePublished(t, "pint-hpcc", &p, f)
		checkPacket(t, f[2:], len(f)-2)
		switch got.Digest.Value {
		case 122:
			up++
		case 121:
		default:
			t.Fatalf("seed %d: digest %d", seed, got.Digest.Value)
		}
	}
	lo, hi := math.Pow(1.05, 121), math.Pow(1.05, 122)
	want := (384 - lo) / (hi - lo)
	if share, sigma := float64(up)/rounds, math.Sqrt(want*(1-want)/rounds); math.Abs(share-want) > 5.5*sigma {
		t.Errorf("seed %d: rounded up with probability %v, want %v", seed, share, want)
	}
	// Two bytes, least significant first: 0.9999 is about 1.01^627 / 512.
	f := p.AppendHPCC(nil, 5, []float64{.9999}, 1.01, 2, func() float64 { return 0 })
	if at := 2 + 20 + udpLen + 6; uint32(f[at])|uint32(f[at+1])<<8 != 627 {
		t.Errorf("digest %x, want 627", f[at:at+2])
	}
	// A line that is idle has the smallest code.
	f = p.AppendHPCC(nil, 5, []float64{0}, 1.05, 1, r.Float64)
	if got := decodePublished(t, "pint-hpcc", &p, f); got.Digest.Value != 0 {
		t.Errorf("digest %d of an idle path", got.Digest.Value)
	}
}
