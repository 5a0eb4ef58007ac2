package p4_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/p4"
)

// ports and reportPort are those of the cases.
const reportPort = 5

// reported is what a node with that id and that clock at the switch's start says about a pass.
func reported(p *p4.Pass, node uint32, clock uint64) decode.Hop {
	return decode.Hop{
		NodeID: node, IngressIf: p.IngressPort, EgressIf: p.EgressPort, Latency: uint32((p.Egress - p.Ingress) * 1000),
		QueueOccupancy: p.EnqueueDepth, IngressTime: clock + p.Ingress*1000, EgressTime: clock + p.Egress*1000,
		L2IngressIf: node<<16 | uint32(p.IngressPort), L2EgressIf: node<<16 | uint32(p.EgressPort),
	}
}

// compare says whether got has what want says, as far as it has values at all.
func compare(t *testing.T, what string, got, want *decode.Hop) {
	t.Helper()
	check := func(f decode.HopField, name string, a, b uint64) {
		if got.Has&f != 0 && a != b {
			t.Errorf("%s: %s %d, want %d", what, name, a, b)
		}
	}
	check(decode.HopNodeID, "node", uint64(got.NodeID), uint64(want.NodeID))
	check(decode.HopIngressIf, "ingress", uint64(got.IngressIf), uint64(want.IngressIf))
	check(decode.HopEgressIf, "egress", uint64(got.EgressIf), uint64(want.EgressIf))
	check(decode.HopLatency, "latency", uint64(got.Latency), uint64(want.Latency))
	check(decode.HopQueueID, "queue", uint64(got.QueueID), 0)
	check(decode.HopQueueOccupancy, "occupancy", uint64(got.QueueOccupancy), uint64(want.QueueOccupancy))
	check(decode.HopIngressTime, "ingress time", got.IngressTime, want.IngressTime)
	check(decode.HopEgressTime, "egress time", got.EgressTime, want.EgressTime)
	check(decode.HopL2IngressIf, "logical ingress", uint64(got.L2IngressIf), uint64(want.L2IngressIf))
	check(decode.HopL2EgressIf, "logical egress", uint64(got.L2EgressIf), uint64(want.L2EgressIf))
	if unseen := decode.HopTxUtilization | decode.HopBufferID | decode.HopBufferOccupancy; got.Has&unseen != 0 {
		t.Errorf("%s: it has %v, which the switch does not see", what, (got.Has & unseen).Names())
	}
}

// blockOf is the block that a node writes, up to the checksum complement.
func blockOf(r *decode.Report, hop *decode.Hop) []byte {
	h := intmd.Header{Version: decode.V21, Instructions: r.Instructions}
	if r.DomainID == intmd.FANTDomain {
		h.DomainID, h.Layout = intmd.FANT.ID, intmd.FANT.Layout
	}
	w := *hop
	w.Has = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy |
		decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf
	b := intmd.AppendHop(nil, &h, &w)
	if r.Instructions&1 != 0 {
		b = b[:len(b)-4]
	}
	return b
}

// inside reads the INT in a frame, if there is any and it breaks no rule.
func inside(t *testing.T, frame []byte) *decode.Report {
	t.Helper()
	b, _ := unrouted(frame)
	var batch decode.Batch
	demux.New(profile(t, "fant")).Frame(&batch, 1, b, len(b), 0)
	if len(batch.Reports) != 1 || batch.Reports[0].Error() != nil || batch.Reports[0].Format != decode.INTMD || batch.Reports[0].Flags&decode.Truncated != 0 {
		return nil
	}
	return batch.Reports[0]
}

// Blocks hold what the switch measured. A stack grows by one hop. Otherwise a flag has the reason, or the packet's INT
// is none that a node would add to.
func TestBlocks(t *testing.T) {
	grown, refused := 0, 0
	for program, clock := range map[string]uint64{"srint": 5_000_000_000, "intmd": 1_700_000_000_000_000_000} {
		each(t, program, func(t *testing.T, g *p4.Group, p *p4.Packet) {
			if len(p.Behind) > 0 || slices.Contains([]string{"sink", "drop", "long queue to hosts"}, g.Name) {
				return
			}
			in := inside(t, p.In.Bytes)
			for _, o := range p.Out {
				if o.Port == reportPort {
					continue
				}
				out := inside(t, o.Bytes)
				if out == nil {
					if in != nil {
						t.Errorf("INT went in, and what left is none: %v", o.Bytes)
					}
					continue
				}
				before, flags := 0, decode.Flags(0)
				if in != nil {
					before, flags = len(in.Hops), in.Flags
				}
				node := uint32(9)
				if program == "srint" {
					node = 7
				}
				switch {
				case len(out.Hops) == before+1:
					want := reported(&p.Passes[0], node, clock)
					compare(t, "newest hop", &out.Hops[before], &want)
					if block := blockOf(out, &want); !bytes.Contains(o.Bytes, block) {
						t.Errorf("no block %x in %v", block, o.Bytes)
					}
					if in != nil && out.Flags != in.Flags {
						t.Errorf("flags %v, were %v", out.Flags, in.Flags)
					}
					if in != nil && out.RemainingHops != in.RemainingHops-1 {
						t.Errorf("%d hops left after %d", out.RemainingHops, in.RemainingHops)
					}
					grown++
				case len(out.Hops) != before:
					t.Errorf("%d hops, %d before", len(out.Hops), before)
				case (out.Flags^flags)&(decode.HopLimit|decode.MTU) == 0 && flags&decode.HopLimit == 0 &&
					!slices.Contains([]string{"nothing asked", "domain of others", "width that is not the bitmap's", "NPT 0", "by port with NPT 0"}, p.Name):
					t.Errorf("no hop was added and no flag set: %v", o.Bytes)
				default:
					refused++
				}
			}
		})
	}
	if grown < 40 || refused < 8 {
		t.Errorf("%d stacks grew and %d did not", grown, refused)
	}
}

// Reports decode without an error, are numbered without a gap by hardware id, and hold what the switch measured.
func TestReports(t *testing.T) {
	count := map[decode.Kind]int{}
	type source struct {
		group string
		hw    uint8
	}
	next := map[source]uint32{}
	for program, dialect := range map[string]string{"intmd": "fant", "into": "fant", "pint": "auto", "hopscope": "fant"} {
		clear(next)
		each(t, program, func(t *testing.T, g *p4.Group, p *p4.Packet) {
			for _, o := range p.Out {
				if o.Port != reportPort || p.Name == "after reports" { // a probe
					continue
				}
				b := o.Bytes
				if !checksums(b, 14) || be.Uint32(b[34:]) != 49152<<16|32766 || be.Uint32(b[26:]) != 0x0aff0007 || be.Uint32(b[30:]) != 0x0aff0001 || int(be.Uint16(b[16:]))+14 != len(b) || int(be.Uint16(b[38:]))+34 != len(b) {
					t.Fatalf("headers of %v", b)
				}
				var batch decode.Batch
				demux.New(profile(t, dialect)).Datagram(&batch, decode.Addr{}, b[42:], 0)
				if len(batch.Reports) != 1 {
					t.Fatalf("%d reports", len(batch.Reports))
				}
				r := batch.Reports[0]
				if err := r.Error(); err != nil {
					t.Fatalf("%v\n%v", err, b)
				}
				from := source{g.Name, r.HWID}
				if r.Seq != next[from] || r.NodeID != 9 {
					t.Errorf("number %d of node %d, want %d of 9", r.Seq, r.NodeID, next[from])
				}
				next[from] = r.Seq + 1
				if r.Has&decode.HasDigest != 0 {
					count[decode.KindDigest]++
				} else {
					count[r.Kind]++
				}
				unassigned := p.Name == "hosts behind, no assignment" // to this interface, which reports the others
				if program == "pint" || unassigned || len(p.Behind) > 0 || len(r.Hops) == 0 || p.Passes[0].Instance != 0 {
					continue
				}
				want := reported(&p.Passes[0], 9, 1_700_000_000_000_000_000)
				compare(t, "the switch's own hop", &r.Hops[len(r.Hops)-1], &want)
			}
		})
	}
	t.Log(count)
	for _, k := range []decode.Kind{decode.KindStack, decode.KindDrop, decode.KindQueue, decode.KindDigest} {
		if count[k] < 3 {
			t.Errorf("%d reports of kind %v", count[k], k)
		}
	}
}

// without is a frame as a switch passes it on to hosts: as bare, with TTL and addresses of the line changed.
func without(frame []byte) []byte {
	b := slices.Clone(frame)
	copy(b, []byte{2, 0, 0, 0, 0, 0x12, 2, 0, 0, 0, 0, 0x10})
	ip := 14
	if be.Uint16(b[12:]) == 0x8100 {
		ip = 18
	}
	if b[ip]>>4 == 4 {
		b[ip+8]--
	} else {
		b[ip+7]--
	}
	return bare(b)
}

// bare is a frame without INT: DSCP or port restored, all lengths and checksums made anew.
func bare(frame []byte) []byte {
	b := slices.Clone(frame)
	ip := 14
	if be.Uint16(b[12:]) == 0x8100 {
		ip = 18
	}
	v4, l4 := b[ip]>>4 == 4, ip+40
	proto, dscp := b[ip+6], be.Uint16(b[ip:])>>6&0x3f
	if v4 {
		l4 = ip + int(b[ip]&15)*4
		proto, dscp = b[ip+9], uint16(b[ip+1]>>2)
	}
	header, check := 8, l4+6
	if proto == packet.ProtoTCP {
		header, check = 20, l4+16
	}
	byPort := proto == packet.ProtoUDP && be.Uint16(b[l4+2:]) == 17768
	k := 0
	if byPort || dscp == 0x17 {
		shim := b[l4+header:]
		k = 4 + 4*int(shim[1])
		if byPort {
			copy(b[l4+2:], shim[2:4])
		} else if dscp = uint16(shim[3] >> 2); v4 {
			b[ip+1] = byte(dscp<<2) | b[ip+1]&3
		} else {
			be.PutUint16(b[ip:], be.Uint16(b[ip:])&^0x0fc0|dscp<<6)
		}
		b = slices.Delete(b, l4+header, l4+header+k)
	}
	var addresses []byte
	if v4 {
		be.PutUint16(b[ip+2:], be.Uint16(b[ip+2:])-uint16(k))
		be.PutUint16(b[ip+10:], 0)
		be.PutUint16(b[ip+10:], ^packet.Fold(packet.Sum(b[ip:l4])))
		addresses = b[ip+12 : ip+20]
	} else {
		be.PutUint16(b[ip+4:], be.Uint16(b[ip+4:])-uint16(k))
		addresses = b[ip+8 : ip+40]
	}
	if proto == packet.ProtoUDP {
		be.PutUint16(b[l4+4:], be.Uint16(b[l4+4:])-uint16(k))
	}
	if proto == packet.ProtoTCP || proto == packet.ProtoUDP && be.Uint16(b[check:]) != 0 {
		be.PutUint16(b[check:], 0)
		be.PutUint16(b[check:], ^packet.Fold(packet.PseudoHeader(addresses, proto, len(b)-l4)+packet.Sum(b[l4:])))
	}
	return b
}

// The sink node gives back what the source got, byte for byte, but for TTL and addresses of the line.
func TestRestored(t *testing.T) {
	restored := 0
	each(t, "intmd", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if g.Name != "sink" || p.Name == "version 1 stays" {
			return
		}
		want := [][]byte{without(p.In.Bytes)}
		if p.Name == "D: nobody gets it" {
			want = nil
		}
		var got [][]byte
		for _, o := range p.Out {
			if o.Port != reportPort {
				got = append(got, o.Bytes)
			}
		}
		if p.Name == "nobody to report to" { // it leaves by another port
			copy(want[0], got[0][:12])
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("left\n%x\nwant\n%x", got, want)
		}
		restored += len(got)
	})
	if restored < 15 {
		t.Errorf("%d packets were restored", restored)
	}
}

// A report of the sink node holds the packet as it came, with INT, but for TTL and addresses of the line.
func TestReportedPacket(t *testing.T) {
	seen := 0
	each(t, "intmd", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if g.Name != "sink" || inside(t, p.In.Bytes) == nil {
			return
		}
		for _, o := range p.Out {
			if o.Port != reportPort {
				continue
			}
			words := int(o.Bytes[14+28+8+2]) // of metadata
			inner := o.Bytes[14+28+8+12+4*words:]
			whole := len(p.In.Bytes) &^ 3
			want := slices.Clone(p.In.Bytes[:min(whole, 400)])
			copy(want, inner[:12])
			ip := 14
			if be.Uint16(want[12:]) == 0x8100 {
				ip = 18
			}
			if want[ip]>>4 == 4 {
				want[ip+8]--
				be.PutUint16(want[ip+10:], 0)
				be.PutUint16(want[ip+10:], ^packet.Fold(packet.Sum(want[ip:ip+20])))
			} else {
				want[ip+7]--
			}
			if !bytes.Equal(inner, want) {
				t.Errorf("reported\n%x\nwant\n%x", inner, want)
			}
			seen++
		}
	})
	if seen < 12 {
		t.Errorf("%d packets were compared", seen)
	}
}

// Whatever a source or transit node adds, the packet around it stays as it is: with INT taken out, what left is what came.
func TestAround(t *testing.T) {
	seen := 0
	each(t, "intmd", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if len(p.Behind) > 0 || g.Name != "source" && g.Name != "transit" && g.Name != "queue" {
			return
		}
		in := inside(t, p.In.Bytes)
		for _, o := range p.Out {
			out := inside(t, o.Bytes)
			if o.Port == reportPort {
				continue
			}
			if out == nil { // a router passed it on
				want := slices.Clone(p.In.Bytes)
				copy(want, o.Bytes[:12])
				ip := 14
				if be.Uint16(want[12:]) == 0x8100 {
					ip = 18
				}
				if want[ip]>>4 == 4 {
					want[ip+8]--
					be.PutUint16(want[ip+10:], 0)
					be.PutUint16(want[ip+10:], ^packet.Fold(packet.Sum(want[ip:ip+int(want[ip]&15)*4])))
				} else {
					want[ip+7]--
				}
				if !bytes.Equal(o.Bytes, want) {
					t.Errorf("left\n%v\nwant\n%x", o.Bytes, want)
				}
				continue
			}
			got, want := without(o.Bytes), without(without(p.In.Bytes))
			if !bytes.Equal(got, want) {
				t.Errorf("without INT, what left is\n%x\nand what came\n%x", got, want)
			}
			if in != nil && !slices.Equal(out.Hops[:len(in.Hops)], in.Hops) {
				t.Errorf("older hops are %v, and were %v", out.Hops[:len(in.Hops)], in.Hops)
			}
			if in != nil && in.Instructions&1 != 0 && len(out.Hops) > len(in.Hops) && !bytes.Equal(o.Bytes[40:42], p.In.Bytes[40:42]) {
				t.Errorf("the UDP checksum was %x and is %x, with a checksum complement", p.In.Bytes[40:42], o.Bytes[40:42])
			}
			seen++
		}
	})
	if seen < 40 {
		t.Errorf("%d packets were compared", seen)
	}
}

// Packets of users that look like probes or digests leave as others do: routed if they are IP, passed on without a change
// if they are not. Where a table discards them, none leaves.
func TestUsersPackets(t *testing.T) {
	routed, passed, discarded := 0, 0, 0
	each(t, "hopscope", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if !strings.HasPrefix(g.Name, "hosts") || p.Name == "2222 with INT" || g.Name == "hosts, with INT" {
			return
		}
		at := 12
		if be.Uint16(p.In.Bytes[at:]) == 0x8100 {
			at += 4
		}
		kind := be.Uint16(p.In.Bytes[at:])
		isIP := kind == 0x0800 || kind == 0x86dd
		switch {
		case p.Name == "2222, TTL 1" || !isIP && g.Name == "hosts, nothing passed":
			if len(p.Out) > 0 {
				t.Errorf("left as %v", p.Out)
			}
		case g.Name == "hosts, discarded" && p.In.Port == 1 && kind != 0x0701 && kind != 0x86dd && !slices.Contains([]string{"2222, options", "2222, fragment"}, p.Name):
			if len(p.Out) > 0 {
				t.Errorf("left as %v", p.Out)
			}
			discarded++
		case len(p.Out) != 1:
			t.Errorf("%d frames left", len(p.Out))
		case isIP:
			got, want := slices.Clone(p.Out[0].Bytes), slices.Clone(p.In.Bytes)
			copy(want, got[:12])
			if ip := at + 2; kind == 0x0800 {
				want[ip+8]--
				be.PutUint16(want[ip+10:], 0)
				be.PutUint16(want[ip+10:], ^packet.Fold(packet.Sum(want[ip:ip+int(want[ip]&15)*4])))
			} else {
				want[ip+7]--
			}
			if p.Out[0].Port != 2 || !bytes.Equal(got, want) {
				t.Errorf("left by port %d as\n%x\nwant\n%x", p.Out[0].Port, got, want)
			}
			routed++
		default:
			if p.Out[0].Port != 4 || !bytes.Equal(p.Out[0].Bytes, p.In.Bytes) {
				t.Errorf("left by port %d as\n%v\nwant\n%v", p.Out[0].Port, p.Out[0].Bytes, p.In.Bytes)
			}
			passed++
		}
	})
	if routed < 12 || passed < 12 || discarded < 12 {
		t.Errorf("%d packets were routed, %d passed on and %d discarded", routed, passed, discarded)
	}
}

// A packet with INT and a digest makes two reports, of which the digest's holds the packet without INT.
func TestTwoReports(t *testing.T) {
	seen := 0
	each(t, "hopscope", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if !strings.HasPrefix(p.Name, "both end here") {
			return
		}
		var reports []*decode.Report
		var host []byte
		for _, o := range p.Out {
			if o.Port != reportPort {
				host = o.Bytes
				continue
			}
			var batch decode.Batch
			demux.New(profile(t, "auto")).Datagram(&batch, decode.Addr{}, o.Bytes[42:], 0)
			if len(batch.Reports) != 1 || batch.Reports[0].Error() != nil {
				t.Fatalf("%d reports in %v", len(batch.Reports), o.Bytes)
			}
			r := batch.Reports[0]
			if reports = append(reports, r); r.Has&decode.HasDigest != 0 {
				words := int(o.Bytes[14+28+8+2])
				if inner := o.Bytes[14+28+8+12+4*words:]; !bytes.Equal(inner, host[:len(host)&^3]) {
					t.Errorf("the digest's report holds\n%x\nand the host got\n%x", inner, host)
				}
			}
		}
		if len(reports) != 2 || reports[0].Has&decode.HasDigest == 0 || len(reports[0].Hops) > 0 || reports[1].Has&decode.HasDigest != 0 || len(reports[1].Hops) != 2 || reports[0].Flow != reports[1].Flow {
			t.Fatalf("reports %+v", reports)
		}
		seen++
	})
	if seen < 8 {
		t.Errorf("%d packets", seen)
	}
}

// A switch changes nothing of a wide probe but its route and its INT.
func TestAroundProbes(t *testing.T) {
	seen := 0
	each(t, "srint", func(t *testing.T, g *p4.Group, p *p4.Packet) {
		if g.Name != "wide" {
			return
		}
		for _, o := range p.Out {
			in, _ := unrouted(p.In.Bytes)
			out, _ := unrouted(o.Bytes)
			before, after := inside(t, p.In.Bytes), inside(t, o.Bytes)
			switch {
			case (before == nil) != (after == nil):
				t.Errorf("INT became readable or unreadable: %v", o.Bytes)
				continue
			case before == nil: // payload, whatever it is
			case !slices.Equal(after.Hops[:len(before.Hops)], before.Hops):
				t.Errorf("older hops are %v, and were %v", after.Hops[:len(before.Hops)], before.Hops)
			default:
				in, out = bare(in), bare(out)
			}
			if !bytes.Equal(in, out) {
				t.Errorf("left\n%x\nwant\n%x", out, in)
			}
			if b, port, err := srint.PopProbePort(slices.Clone(p.In.Bytes), 12); err == nil {
				route, _ := unrouted(b)
				if k := len(b) - len(route) + 14; port != o.Port || !bytes.Equal(o.Bytes[:k], b[:k]) {
					t.Errorf("left by port %d with\n%x\nwant %d with\n%x", o.Port, []byte(o.Bytes[:k]), port, b[:k])
				}
			}
			seen++
		}
	})
	if seen < 20 {
		t.Errorf("%d probes were compared", seen)
	}
}
