package pint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The worked examples are read, and their headers are what the encoders write of what was read.
func TestFrames(t *testing.T) {
	for _, name := range testkit.VectorNames() {
		program, found := strings.CutPrefix(name, "pint-")
		if !found {
			continue
		}
		b, err := testkit.Vector(name)
		if err != nil {
			t.Fatal(err)
		}
		program, number, _ := strings.Cut(program, "-")
		f, link := Frames{Coding: decode.CodingMininet}, packet.LinkEthernet
		switch program {
		case "tofino":
			f.Coding = decode.CodingTofino
		case "hpcc":
			f, link = Frames{Coding: decode.CodingHPCC, Bytes: int(number[0] - '0')}, packet.LinkIPv4
		}
		r := read(t, f, link, b)
		if r == nil || r.Err.Reason != 0 || r.Has&decode.HasDigest == 0 || r.Digest.Coding != f.Coding || r.Has&decode.HasFlow == 0 {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		var want, got []byte
		switch program {
		case "mininet":
			got, want = AppendMininet(nil, r.Digest.Value, r.Digest.AMS), b[:14]
		case "tofino":
			got, want = AppendTofino(nil, uint32(r.Digest.Value)), b[14:20]
		case "hpcc":
			h := b[28 : 34+f.Bytes]
			got, want = AppendHPCC(nil, be32(h), uint16(h[4])<<8|uint16(h[5]), uint16(r.Digest.Value), f.Bytes), h
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: written %x, want %x", name, got, want)
		}
	}
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// read returns the report about a frame, or nil.
func read(t testing.TB, f Frames, link uint16, data []byte) *decode.Report {
	t.Helper()
	var p packet.Packet
	var b decode.Batch
	p.Frame(link, data, len(data))
	if w := f.Where(); p.IP == 0 && !w.Any && (len(w.EtherTypes) == 0 || w.EtherTypes[0] != p.EtherType) || p.IP == 0 && w.Any {
		return nil
	}
	switch n := f.NewReader().Read(&b, &p, data); n {
	case 0:
		return nil
	case 1:
		return b.Reports[0]
	default:
		t.Fatalf("%v: %d reports of one frame", f, n)
		return nil
	}
}

// FuzzFrames holds that digests come back as they were written.
func FuzzFrames(f *testing.F) {
	f.Add(uint32(0x1fff), uint16(7), uint8(5), uint16(9))
	f.Add(uint32(0xffffffff), uint16(0xffff), uint8(254), uint16(0xffff))
	f.Fuzz(func(t *testing.T, digest uint32, id uint16, hops uint8, other uint16) {
		if hops == 0 || hops == firstTTL {
			return
		}
		ip := packet.IPv4{TOS: 1, TTL: firstTTL - hops, Proto: packet.ProtoUDP, ID: id, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}
		payload := AppendHPCC(nil, digest, other, uint16(digest), 2)
		inner := packet.AppendIPv4(nil, &ip, packet.UDPLen+len(payload))
		inner = append(packet.AppendUDP(inner, 1, 2, len(payload)), payload...)
		mac := MininetMAC(digest & 0x1fff)
		for _, c := range []struct {
			coding decode.Coding
			link   uint16
			frame  []byte
			want   uint64
		}{
			{decode.CodingMininet, packet.LinkEthernet, append(AppendMininet(nil, mac, other), inner...), mac},
			{decode.CodingTofino, packet.LinkEthernet, append(AppendTofino(packet.AppendEthernet(nil, packet.MAC{}, packet.MAC{}, EtherTofino), digest), inner...), uint64(digest)},
			{decode.CodingHPCC, packet.LinkIPv4, inner, uint64(uint16(digest))},
		} {
			r := read(t, Frames{Coding: c.coding, Bytes: 2}, c.link, c.frame)
			if r == nil || r.Err.Reason != 0 || r.Digest.Value != c.want || r.Digest.ID != uint32(id) {
				t.Fatalf("%v: %x gives %+v, want %#x", c.coding, c.frame, r, c.want)
			}
			if c.coding != decode.CodingHPCC && r.Digest.Hops != hops || c.coding == decode.CodingMininet && r.Digest.AMS != other {
				t.Fatalf("%v: %+v", c.coding, r.Digest)
			}
		}
	})
}
