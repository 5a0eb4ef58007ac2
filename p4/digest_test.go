package p4_test

import (
	"bytes"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// plans are those that cases.py puts into the tables, by epoch, as decoders read them.
func plans(t *testing.T) map[uint8]*pint.Plan {
	t.Helper()
	made := map[uint8]*pint.Plan{}
	for _, path := range []string{"vectors/plan-24.json", "vectors/plan-46.json"} {
		p, err := pintplan.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made[p.Epoch] = p
	}
	return made
}

// keyed is the hash of the CRC family, as comments of decode/pint.WriteTables give it.
func keyed(seed, function, id, x uint32) uint32 {
	crc := func(v uint32) uint32 { return crc32.ChecksumIEEE(be.AppendUint32(nil, v)) }
	key := crc(crc(seed+function*0x85ebca6b) + id)
	return crc(key + crc(key+crc(x)))
}

// encode is pint.Levels.Encode with the product from logarithms: on average the same, and within pint.ProductError.
func encode(l *pint.Levels, v uint64, rnd uint32) uint64 {
	c := uint32(0)
	for int(c)+1 < l.Codes() && l.Level(c+1) <= v {
		c++
	}
	if int(c)+1 == l.Codes() {
		return uint64(c)
	}
	lo := l.Level(c)
	point := uint64(0)
	if rnd != 0 {
		gap := int32(math.Round(math.Log2(float64(l.Level(c+1)-lo)) * 65536))
		point = pint.Exp2(gap + pint.Log2(uint64(rnd)) - 32<<16)
	}
	if v-lo > point {
		c++
	}
	return uint64(c)
}

// write is what the switch does to a digest.
func write(p *pint.Plan, digest uint64, id uint32, hop int, v pint.Values) (_ uint64, looped bool) {
	const hops, rounding = 1, 6
	for _, slot := range p.Sets[p.Set(id)].Slots {
		q := &p.Queries[slot.Query]
		part := p.Part(digest, slot)
		switch q.Aggregation {
		case pint.Static:
			part = q.Scheme.Write(part, id, hop, v.Node)
		case pint.Dynamic:
			if layer := q.Scheme.Packet(id, 0); q.Scheme.Writes(&layer, hop) {
				part = encode(q.Code.(*pint.Levels), v.Latency, keyed(q.Scheme.Config().Seed, rounding, id, uint32(hop)))
			}
		case pint.PerPacket:
			part = max(part, encode(q.Code.(*pint.Levels), v.Utilization, keyed(p.Seed, rounding+uint32(slot.Query), id, 0)))
		case pint.Loop:
			part, looped = q.Loops.Step(part, id, hop, v.Node)
		}
		mask := uint64(1)<<q.Bits - 1
		digest = digest&^(mask<<slot.Shift) | part<<slot.Shift
	}
	return digest, looped
}

const headerLen = 16

// header is the place of a PINT header in a frame, 0 without one.
func header(frame []byte) int {
	at := 14
	if be.Uint16(frame[12:]) == 0x8100 {
		at = 18
	}
	if be.Uint16(frame[at-2:]) != 0x88b5 || len(frame) < at+headerLen {
		return 0
	}
	return at
}

// unmarked is a frame without its PINT header.
func unmarked(frame []byte) []byte {
	at := header(frame)
	if at == 0 {
		return frame
	}
	b := slices.Clone(frame)
	copy(b[at-2:], b[at+2:at+4])
	return slices.Delete(b, at, at+headerLen)
}

// Packets pass with the header and without it as they pass any router.
func TestAroundDigests(t *testing.T) {
	seen := 0
	each(t, "pint", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		in, ip := unrouted(unmarked(p.In.Bytes))
		for _, o := range p.Out {
			switch {
			case len(p.Behind) > 0 || !checksums(in, ip) || p.Name == "fragment" || p.Name == "ICMP" || p.Name == "ICMPv6":
				continue
			case o.Port != reportPort:
				if got, want := unmarked(o.Bytes), without(in); !bytes.Equal(got[12:], want[12:]) {
					t.Errorf("without its header, what left is\n%x\nwant\n%x", got, want)
				}
			default:
				words := int(o.Bytes[14+28+8+2]) // of metadata
				inner, want := o.Bytes[14+28+8+12+4*words:], without(in)
				if !bytes.Equal(inner[12:], want[12:len(want)&^3]) {
					t.Errorf("reported\n%x\nwant\n%x", inner, want)
				}
			}
			seen++
		}
	})
	if seen < 100 {
		t.Errorf("%d frames were compared", seen)
	}
}

// The id of a packet is IPv4's identification where it is asked for and changes, and else a CRC over the L4 header.
func TestPacketIDs(t *testing.T) {
	byIP := []string{"by IPv4's identification", "identification that changes", "the same without DF", "sampled by hash 0", "sampled by hash 1", "sampled by hash 2", "sampled by hash 3"}
	seen := 0
	each(t, "pint", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if g.Name != "source" || len(p.Out) != 1 {
			return
		}
		out := p.Out[0].Bytes
		at := header(out)
		if at == 0 {
			return
		}
		ip := at + headerLen
		n, proto := 40, out[ip+6]
		if out[ip]>>4 == 4 {
			n, proto = int(out[ip]&15)*4, out[ip+9]
		}
		size := 8
		if proto == packet.ProtoTCP {
			size = 20
		}
		want := crc32.ChecksumIEEE(out[ip+n : ip+n+size])
		if slices.Contains(byIP, p.Name) {
			want = uint32(be.Uint16(out[ip+4:]))
		}
		if got := be.Uint32(out[at+4:]); got != want {
			t.Errorf("packet id %#x, want %#x", got, want)
		}
		seen++
	})
	if seen < 12 {
		t.Errorf("%d packets were compared", seen)
	}
}

// A source marks the packets whose hash is not above a limit, half of them here, and no others.
func TestSampling(t *testing.T) {
	for program, hash := range map[string]func(frame []byte) uint32{
		"intmd": func(b []byte) uint32 { return crc32.ChecksumIEEE(append(slices.Clone(b[18:20]), b[34:42]...)) },
		"pint":  func(b []byte) uint32 { return crc32.ChecksumIEEE([]byte{0, 0, b[18], b[19]}) },
	} {
		each(t, program, func(t *testing.T, _ *p4.Group, p *p4.Packet) {
			if !strings.HasPrefix(p.Name, "sampled by hash") {
				return
			}
			want := hash(p.In.Bytes) <= 0x7fffffff
			if got := len(p.Out[0].Bytes) > len(p.In.Bytes); got != want {
				t.Errorf("%s: marked %v, want %v", program, got, want)
			}
		})
	}
}

// Switches write into digests according to the plan of the packet's epoch: nodes, latencies, utilisation of the line,
// and loops.
func TestDigests(t *testing.T) {
	const node = 9
	all := plans(t)
	written := map[string]int{}
	lines := map[*p4.Group]*pint.Meter{}
	line, err := pint.NewLine(10_000, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	each(t, "pint", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if lines[g] == nil {
			lines[g] = new(pint.Meter)
		}
		var own []p4.Pass // of packets, not of clones
		for _, pass := range p.Passes {
			if pass.Instance == 0 {
				own = append(own, pass)
			}
		}
		loads := make([]uint64, len(own))
		for i, pass := range own {
			if pass.EgressPort != 2 || strings.HasPrefix(g.Name, "no plan") {
				continue
			}
			meter := *lines[g]
			loads[i] = line.Step(&meter, int64(pass.Egress)*1000, pass.PacketLength, pass.EnqueueDepth<<18)
			if in := append([]p4.Frame{p.In}, p.Behind...)[i]; !isProbe(in.Bytes) {
				*lines[g] = meter // a probe gets what the line is like, and is not part of it
			}
		}
		for i, in := range append([]p4.Frame{p.In}, p.Behind...) {
			if i >= len(own) {
				continue
			}
			at := header(in.Bytes)
			var b []byte // the header as it came, or as the source begins it
			switch first := slices.IndexFunc(p.Out, func(o p4.Frame) bool { return o.Port != reportPort && header(o.Bytes) > 0 }); {
			case at > 0:
				b = in.Bytes[at:]
			case first >= 0:
				at = header(p.Out[first].Bytes)
				b = slices.Clone(p.Out[first].Bytes[at : at+headerLen])
				b[1] = 0
				clear(b[8:])
			default:
				continue
			}
			epoch, id, digest := b[0], be.Uint32(b[4:]), be.Uint64(b[8:])
			hop := 255
			looped := false
			if plan := all[epoch]; plan != nil && int(b[1]) < pint.MaxHops && !strings.HasPrefix(g.Name, "no plan") {
				hop = int(b[1]) + 1
				digest, looped = write(plan, digest, id, hop, pint.Values{Node: node, Latency: (own[i].Egress - own[i].Ingress) * 1000, Utilization: loads[i]})
				written[g.Name]++
			}
			var out []byte
			k := 0
			for _, o := range p.Out {
				switch {
				case o.Port != reportPort:
					if k == i {
						out = o.Bytes
					}
					k++
				case hop == 255:
					t.Error("a digest that a switch did not write into was reported")
				default:
					checkDigest(t, all, o.Bytes, decode.Digest{Epoch: epoch, Hops: uint8(hop), ID: id, Value: digest}, looped)
				}
			}
			if looped && len(p.Out) == 1 && g.Name == "loop" {
				t.Error("a loop was not reported")
			}
			if out == nil || slices.Contains([]string{"last switch", "no plan in the last switch", "no collector"}, g.Name) {
				continue
			}
			if b := out[at:]; b[0] != epoch || b[1] != uint8(hop) || be.Uint32(b[4:]) != id || be.Uint64(b[8:]) != digest {
				t.Errorf("left with epoch %d, hop %d, id %d and digest %#x; want %d, %d, %d and %#x",
					b[0], b[1], be.Uint32(b[4:]), be.Uint64(b[8:]), epoch, hop, id, digest)
			}
		}
	})
	if written["source"] < 12 || written["transit"] < 50 || written["last switch"] < 6 || written["loop"] < 7 || written["probes"] < 10 {
		t.Errorf("digests written: %v", written)
	}
}

// isProbe reports whether a frame has the mark of a probe, DSCP 27.
func isProbe(frame []byte) bool {
	b, at := unrouted(unmarked(frame))
	return packets(b, at) && (b[at]>>4 == 4 && b[at+1]>>2 == 27 || b[at]>>4 == 6 && be.Uint16(b[at:])>>6&0x3f == 27)
}

// Probes start no reports of queues, and keep no packet from starting one. The first packet in a minute is reported
// though a probe was there before it. TestDigests has their part in the load of a line.
func TestProbesReportNoQueues(t *testing.T) {
	queues := map[string]int{}
	each(t, "intmd", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if strings.HasPrefix(g.Name, "queue") || strings.HasPrefix(g.Name, "long queue") {
			for _, o := range p.Out {
				if o.Port == reportPort && g.Name != "long queue to hosts" {
					queues[p.Name]++
				}
			}
		}
	})
	if queues["probe"] != 0 || queues["probe with INT"] != 0 || queues["probe, before the first in a minute"] != 0 ||
		queues["first in a minute"] != 1 || queues["second in a minute"] != 0 || queues["five packets, two of them probes"] != 1 {
		t.Errorf("reports of queues: %v", queues)
	}
}

// checkDigest reads a report of a digest, whose upper word is there if the switch knows that the plan has one.
func checkDigest(t *testing.T, all map[uint8]*pint.Plan, frame []byte, want decode.Digest, looped bool) {
	t.Helper()
	var batch decode.Batch
	demux.New(profile(t, "auto")).Datagram(&batch, decode.Addr{}, frame[42:], 0)
	if len(batch.Reports) != 1 || batch.Reports[0].Error() != nil {
		t.Fatalf("%d reports in %x", len(batch.Reports), frame)
	}
	r := batch.Reports[0]
	if p := all[want.Epoch]; p == nil || p.Bits <= 32 {
		want.Value &= 0xffffffff
	}
	if r.Digest != want || r.Flags&decode.Loop != 0 != looped {
		t.Errorf("reported %+v with %v, want %+v", r.Digest, r.Flags, want)
	}
}
