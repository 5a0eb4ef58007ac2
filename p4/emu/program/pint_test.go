package program

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// salt is the constant of a function: 1 writers, 2 values, 3 layer, 5 set, 6 rounding.
func salt(seed, function uint32) uint32 {
	return crcOf(be.AppendUint32(nil, seed+function*0x85ebca6b))
}

// planTables are the tables of a plan of one set: a path query of two instances of 8 bits, and loops from bit 40 on.
func planTables(epoch int, x *pint.Config, l *pint.Loops) []string {
	end := uint64(x.Tau * (1 << 32))
	c := []string{
		fmt.Sprintf("table_add egress.plan set_plan %d => %d 1", epoch, salt(x.Seed, 5)), fmt.Sprintf("table_add egress.pint_set egress.carry %d 0->0xffffffff => 0 1", epoch),
		fmt.Sprintf("table_add egress.loop.slot use %d 0 => 40 %d %d %d %d %d", epoch, 1<<l.Width()-1, l.Bits, l.T, salt(l.Seed, 2), salt(l.Seed, 1)),
	}
	for i := range uint32(2) {
		s, name := x.Seed+i*0x9e3779b9, fmt.Sprintf("egress.path%d", i)
		c = append(c, fmt.Sprintf("table_add %s.slot use %d 0 => %d 255 24 %d %d %d", name, epoch, 8*i, salt(s, 1), salt(s, 2), salt(s, 3)))
		if end > 0 {
			c = append(c, fmt.Sprintf("table_add %s.layer baseline %d 0->%d => 1", name, epoch, end-1))
		}
		if end < 1<<32 {
			c = append(c, fmt.Sprintf("table_add %s.layer xor %d %d->0xffffffff => %d 1", name, epoch, end, uint64(math.Round(x.P[0]*(1<<32)))-1))
		}
	}
	return c
}

// pintReport is where the digest begins in a report's frame.
const pintReport = 14 + 20 + 8 + 8 + 12

// common is what all switches have: a route, a collector behind port 5, and the limits of 64 hops.
func common() []string {
	c := []string{toHost2, "mirroring_add 100 5", "table_add egress.envelope.collector send 1 => 1 2 10.255.0.7 10.255.0.1 49152 32766 400"}
	for i := 1; i <= 64; i++ {
		c = append(c, fmt.Sprintf("table_add egress.pint_replace at_most %d => %d", i, uint64(1<<32)/uint64(i)-1))
	}
	return c
}

func udpFrame(id uint16, payload byte) []byte {
	b, _ := hex.DecodeString("020000000002020000000001" + "0800" + "45000020" + "00000000" + "4011" + "0000" + "0a000101" + "0a000202" + "04570035000c0000" + "00000000")
	put(b, 18, id)
	b[len(b)-1] = payload
	put(b, 38, uint16(payload)*257) // any checksum: the packet's id hashes it
	put(b, 24, csum16(b[14:34], nil))
	return b
}

// The digest that the last switch reports is what decode/pint makes of the path, and loops are reported where it finds
// them. Packets of two plans in turn go through the same switches, each by its own plan. The delivered packets equal
// the sent ones.
func TestPathDigest(t *testing.T) {
	reported, digests := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		l := &pint.Loops{Hash: pint.HashCRC, Seed: r.Uint32(), Bits: 6, T: r.IntN(2)}
		tables := common()
		var schemes [2]*pint.Scheme
		for e := range schemes {
			c := pint.Config{Hash: pint.HashCRC, Seed: r.Uint32(), Bits: 8, Instances: 2, Tau: []float64{0, .25, 1}[r.IntN(3)], P: []float64{.1 + r.Float64()*.8}}
			var err error
			if schemes[e], err = pint.New(c); err != nil {
				t.Fatal(err)
			}
			tables = append(tables, planTables(e+1, &c, l)...)
		}
		var switches []*Switch
		var nodes []uint32
		for range 1 + r.IntN(7) {
			node := r.Uint32N(4)
			s := newSwitch(t, "pint", append(tables, fmt.Sprintf("table_set_default egress.device set_device %d", node))...)
			switches, nodes = append(switches, s), append(nodes, node)
		}
		last := switches[len(switches)-1]
		if err := last.Command("table_add egress.egress_port to_host 2 => 1500 100 1"); err != nil {
			t.Fatal(err)
		}
		for k := range 60 {
			epoch := 1 + k%2
			if err := switches[0].Command("table_add ingress.ingress_port host 1 => 3"); err != nil {
				t.Fatal(err)
			}
			if err := switches[0].Command(fmt.Sprintf("table_set_default ingress.watch carry 0xffffffff %d 0", epoch)); err != nil {
				t.Fatal(err)
			}
			f, sent := Frame{1, udpFrame(uint16(k), byte(k))}, udpFrame(uint16(k), byte(k))
			id := crcOf(sent[34:42])
			want, second := uint64(0), uint8(0)
			for i, s := range switches {
				out, left, err := s.Process(f, []Pass{{PacketLength: uint32(len(f.Bytes))}, {Instance: egressClone}})
				if err != nil {
					t.Fatal(err)
				}
				part, looped := l.Step(want>>40, id, i+1, nodes[i])
				if second = 0; looped {
					second = uint8(l.T + 1)
				}
				want = schemes[epoch-1].Digest(id, nodes[:i+1]) | part<<40
				if len(out)+len(left) != 2 || len(left) != b2i(i < len(switches)-1) {
					t.Fatalf("seed %d, packet %d: %d frames leave switch %d", seed, k, len(out), i)
				}
				f = Frame{4, out[0].Bytes}
				if i < len(switches)-1 {
					if got := be.Uint64(f.Bytes[22:]); got != want || f.Bytes[14] != byte(epoch) || int(f.Bytes[15]) != i+1 || be.Uint32(f.Bytes[18:]) != id {
						t.Fatalf("seed %d, packet %d behind switch %d of %v: %x, want digest %#x", seed, k, i, nodes, f.Bytes[14:30], want)
					}
					continue
				}
				digests++
				report := out[1].Bytes
				m := report[pintReport:]
				if got := uint64(be.Uint32(m[8:])) | uint64(be.Uint32(m[12:]))<<32; got != want || m[0] != byte(epoch) || m[1] != byte(len(nodes)) || be.Uint32(m[4:]) != id {
					t.Fatalf("seed %d, packet %d: report %x, want digest %#x", seed, k, m[:16], want)
				}
				if (report[pintReport-4]&8 != 0) != (second != 0) || second != 0 && m[16] != second {
					t.Fatalf("seed %d, packet %d over %v: report %x, want a loop seen %d times", seed, k, nodes, report[50:], second)
				}
				reported += int(min(second, 1))
				sent[22] -= byte(len(nodes))
				put(sent, 24, csum16(sent[14:34], nil))
				if string(f.Bytes[12:]) != string(sent[12:]) {
					t.Fatalf("delivered %x, want %x", f.Bytes, sent)
				}
			}
		}
	}
	if digests < 500 || reported < 5 {
		t.Errorf("%d digests, %d with a loop", digests, reported)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// How full a line is comes out as decode/pint has it, packet by packet.
func TestLine(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		rate, base := math.Exp2(10+20*r.Float64()), time.Duration(1+r.Int64N(1e9))
		l, err := pint.NewLine(rate, base)
		if err != nil {
			t.Fatal(err)
		}
		constant := func(x float64) uint32 { return uint32(int32(math.Round(math.Log2(x) * 65536))) }
		shift := r.IntN(4)
		s := newSwitch(t, "pint", fmt.Sprintf("table_add egress.line.lines line 2 => %d %d %d %d %d", base, constant(float64(base)),
			constant((1<<24)*1e9/rate/float64(base)), uint32(pint.Log2(uint64(base))), shift))
		if err := s.Logarithms(logTables()...); err != nil {
			t.Fatal(err)
		}
		c, now := s.program.(*digests), uint64(1000)
		var m pint.Meter
		for range 300 {
			now += r.Uint64N(uint64(base)*2/(1+r.Uint64N(50))) / 1000 * 1000
			bytes, packets := 60+r.Uint32N(1500), r.Uint32N(5)*r.Uint32N(2)
			probe, next := r.IntN(3) == 0, m
			want := l.Step(&next, int64(now), bytes, packets<<shift)
			if !probe {
				m = next
			}
			if got := c.load(2, now, bytes, packets, probe); got != want {
				t.Fatalf("seed %d: load %d at %d, want %d", seed, got, now, want)
			}
		}
	}
}

// Digests are left alone by a switch that holds no plan of their epoch, and beyond the last hop of the table. They say so from
// there on.
func TestDigestLeftAlone(t *testing.T) {
	l := &pint.Loops{Hash: pint.HashCRC, Seed: 3, Bits: 6}
	c := pint.Config{Hash: pint.HashCRC, Seed: 9, Bits: 8, Instances: 2, Tau: 1, P: []float64{.5}}
	s := newSwitch(t, "pint", append(common(), planTables(4, &c, l)...)...)
	for _, tt := range []struct {
		epoch, hops byte
		written     bool
	}{{4, 0, true}, {5, 0, false}, {4, 64, false}, {4, 255, false}} {
		b := udpFrame(1, 2)
		put(b, 12, typePINT)
		header := []byte{tt.epoch, tt.hops, 8, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0}
		b = append(append(append([]byte{}, b[:14]...), header...), b[14:]...)
		f := one(t, s, Frame{4, b}, Pass{PacketLength: uint32(len(b))})
		if got := be.Uint64(f.Bytes[22:]) != 0; got != tt.written {
			t.Errorf("epoch %d, hop %d: %x", tt.epoch, tt.hops, f.Bytes[14:30])
		}
		if want := tt.hops + 1; tt.written && f.Bytes[15] != want || !tt.written && f.Bytes[15] != missing {
			t.Errorf("epoch %d, hop %d: it left with hop %d", tt.epoch, tt.hops, f.Bytes[15])
		}
	}
}

// A sender that leaves the identification as it is gets ids by a hash, and is counted.
func TestStuckID(t *testing.T) {
	s := newSwitch(t, "pint", append(common(), "table_add ingress.ingress_port host 1 => 0", "table_set_default ingress.watch carry 0xffffffff 1 1")...)
	id := func(ident uint16, df byte) uint32 {
		b := udpFrame(ident, 7)
		b[20] = df
		put(b, 24, csum16(b[14:34], nil))
		return be.Uint32(one(t, s, Frame{1, b}, Pass{PacketLength: 46}).Bytes[18:])
	}
	hashed := crcOf(udpFrame(1, 7)[34:42])
	for i, tt := range []struct {
		ident uint16
		df    byte
		want  uint32
	}{{5, 0x40, 5}, {5, 0x40, hashed}, {6, 0x40, 6}, {6, 0, 6}, {6, 0x40, hashed}} {
		if got := id(tt.ident, tt.df); got != tt.want {
			t.Errorf("packet %d: id %#x, want %#x", i, got, tt.want)
		}
	}
	if n := s.program.(*digests).stuckIDs[1]; n != 2 {
		t.Errorf("%d packets counted", n)
	}
}
