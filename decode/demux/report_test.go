package demux

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ioam"
)

type reportCase struct {
	name    string
	profile string
	payload []byte
	want    string
}

// reportCases are what becomes of a report and the packet inside, and of the values that stand in the header.
func reportCases(t testing.TB) []reportCase {
	const (
		head20   = `{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":5,"hw_id":1,"seq":7,`
		head10   = `{"format":"telemetry-report","version":"1.0","exporter":"10.9.9.9","node_id":5,"hw_id":1,"seq":7,"header_time":9,`
		int21Of  = `"int_version":"2.1","instructions":"0x8000","remaining_hops":8,`
		int10Of  = `"int_version":"1.0","instructions":"0x8000","remaining_hops":8,`
		tracked  = `,"flags":["tracked"],`
		twoHops  = `{"node_id":1},{"node_id":2}`
		ownPorts = `{"node_id":5,"ingress_if":3,"egress_if":4}`
	)
	ports := []byte{0, 3, 0, 4}
	inner := func(n int) []byte { return ipv4(0, 17, udp(17768, int21(0x8000, n))) }
	rename := func(b []byte, node uint32) []byte { // the newest block, which is the first on the wire
		be.PutUint32(b[28+16:], node)
		return b
	}
	report10 := func(first uint32, rest ...byte) []byte {
		b := be.AppendUint32(nil, first)
		return append(append(b, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9), rest...)
	}
	ten := func(n int) []byte { return ipv4(0x17, 17, udp(5000, int10(0x8000, n))) }
	broken := inner(2)
	broken[28+1] = 2
	six := func(b []byte) []byte { // the packet is of IPv6
		b[8] |= 1
		return b
	}
	const (
		flowTrace = `"flow":{"src":"fd00:1::1","dst":"fd00:2::1","proto":58}`
		traceOf   = `"namespace":123,"instructions":"0xf00000","remaining_len":4,`
		nodes     = `{"node_id":1,"hop_limit":63,"egress_if":101,"ingress_seconds":1700000000,"ingress_fraction":123456},` +
			`{"node_id":2,"hop_limit":62,"ingress_if":201,"egress_if":202,"ingress_seconds":1700000000,"ingress_fraction":123789}`
	)
	narrow := join(t, "ioam-trace")
	narrow[50] = 0x18 // words a node
	export, err := ioam.AppendExtension(nil, 17, join(t, "ioam-dex"))
	if err != nil {
		t.Fatal(err)
	}

	return []reportCase{
		{"drop, vector", "auto", join(t, "tr05-drop"),
			`{"format":"telemetry-report","version":"0.5","exporter":"10.9.9.9","node_id":161,"hw_id":3,"seq":41,"header_time":123456789,` +
				`"kind":"drop","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":1111,"dst_port":2222},"packet_id":4097,` +
				`"flags":["dropped","tracked"],"drop_reason":80,"hops":[{"node_id":161,"ingress_if":7,"egress_if":0,"queue_id":0,` +
				`"ingress_time":123456789}]}` + "\n"},
		{"group of two, vector", "auto", join(t, "tr20-group"),
			`{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":195,"hw_id":5,"seq":300,"kind":"postcard",` +
				`"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":1111,"dst_port":2222},"packet_id":4097,"flags":["tracked"],` +
				`"hops":[{"node_id":195,"ingress_if":11,"egress_if":12,"queue_id":1,"queue_occupancy":96,"ingress_time":1700000000000001000}]}` + "\n" +
				`{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":195,"hw_id":5,"seq":300,"kind":"drop",` +
				`"flags":["dropped"],"drop_reason":71,"hops":[{"node_id":195,"ingress_if":11,"egress_if":0,"queue_id":4}]}` + "\n"},
		{"TLVs, vector", "auto", append(join(t, "20400007 00000005"), join(t, "tr20-tlv")...),
			head20 + `"kind":"postcard","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":1111,"dst_port":2222},"packet_id":4097,` +
				`"flags":["tracked"],"domain_id":16706,"unknown":"0xcafe0001","hops":[{"node_id":5,"latency":1500}]}` + "\n"},
		{"second report of a group beyond the payload", "auto", join(t, "tr20-group")[:82],
			`{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":195,"hw_id":5,"seq":300,"kind":"postcard",` +
				`"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":1111,"dst_port":2222},"packet_id":4097,"flags":["tracked"],` +
				`"hops":[{"node_id":195,"ingress_if":11,"egress_if":12,"queue_id":1,"queue_occupancy":96,"ingress_time":1700000000000001000}]}` + "\n" +
				`{"format":"telemetry-report","version":"2.0","exporter":"10.9.9.9","node_id":195,"hw_id":5,"seq":300,` +
				`"error":{"format":"telemetry-report","field":"report_length","offset":65,"reason":"bad-length"}}` + "\n"},

		// values of the reporting node outside of the stack
		{"no local metadata: no hop", "auto", report20(flagF, 0, nil, inner(2)),
			head20 + `"kind":"int-stack",` + flow4789 + tracked + int21Of + `"hops":[` + twoHops + `]}` + "\n"},
		{"local metadata: the last hop", "auto", report20(flagF, 0x4000, ports, inner(2)),
			head20 + `"kind":"int-stack",` + flow4789 + tracked + int21Of + `"hops":[` + twoHops + `,` + ownPorts + `]}` + "\n"},
		{"local metadata of the newest block's node: the same hop", "auto", report20(flagF, 0x4000, ports, rename(inner(2), 5)),
			head20 + `"kind":"int-stack",` + flow4789 + tracked + int21Of + `"hops":[{"node_id":1},` + ownPorts + `]}` + "\n"},
		{"the block's own values stay", "auto",
			report20(flagF, 0x6000, append(slices.Clone(ports), 0, 0, 0, 99), rename(ipv4(0, 17, udp(17768, int21(0xc000, 1))), 5)),
			head20 + `"kind":"int-stack",` + flow4789 + tracked + `"int_version":"2.1","instructions":"0xc000","remaining_hops":8,` +
				`"hops":[{"node_id":5,"ingress_if":1,"egress_if":2,"latency":99}]}` + "\n"},
		{"local metadata and an empty stack", "auto", report20(flagF, 0x4000, ports, inner(0)),
			head20 + `"kind":"int-stack",` + flow4789 + tracked + `"int_version":"2.1","instructions":"0x8000","remaining_hops":8,"hops":[` + ownPorts + `]}` + "\n"},
		{"local metadata and a rejected stack", "auto", report20(flagF, 0x4000, ports, broken),
			head20 + `"kind":"int-stack",` + strings.Replace(flow4789, "4789", "17768", 1) + tracked + `"hops":[` + ownPorts + `],` +
				`"error":{"format":"int-md","field":"length","offset":53,"reason":"bad-length"}}` + "\n"},
		{"1.0: header time only with local metadata", "auto", append(report10(0x14200041), ten(2)...),
			head10 + `"kind":"int-stack",` + flowUDP + tracked + int10Of + `"hops":[` + twoHops + `]}` + "\n"},
		{"1.0: header time as ingress time", "auto", append(report10(0x15300041, ports...), ten(2)...),
			head10 + `"kind":"int-stack",` + flowUDP + tracked + int10Of + `"hops":[` + twoHops +
				`,{"node_id":5,"ingress_if":3,"egress_if":4,"ingress_time":9}]}` + "\n"},

		// kinds
		{"drop with INT inside", "auto", report20(flagF|flagD|flagQ, 0, nil, inner(1)),
			head20 + `"kind":"drop",` + flow4789 + `,"flags":["dropped","congested","tracked"],` + int21Of + `"hops":[{"node_id":1}]}` + "\n"},
		{"queue with INT inside", "auto", report20(flagF|flagQ, 0, nil, inner(1)),
			head20 + `"kind":"queue",` + flow4789 + `,"flags":["congested","tracked"],` + int21Of + `"hops":[{"node_id":1}]}` + "\n"},
		{"INT is only looked for in tracked flows", "auto", report20(0, 0, nil, inner(1)),
			head20 + `"kind":"postcard",` + strings.Replace(flow4789, "4789", "17768", 1) + `}` + "\n"},
		{"tracked, but no mark", "auto", report20(flagF, 0, nil, ipv4(0, 17, udp(5000, int21(0x8000, 1)))),
			head20 + `"kind":"postcard",` + flowUDP + `,"flags":["tracked"]}` + "\n"},
		{"marked, but no room for a shim", "auto", report20(flagF, 0, nil, ipv4(0x17, 17, udp(5000, nil))),
			head20 + `"kind":"postcard",` + flowUDP + `,"flags":["tracked"]}` + "\n"},
		{"INT-MX inside is no stack", "auto", report20(flagF, 0x4000, ports, ipv4(0, 17, udp(17768, join(t, "34030035 20000000 90000000 00000000")))),
			head20 + `"kind":"postcard",` + strings.Replace(flow4789, "4789", "53", 1) + tracked +
				`"int_version":"2.1","instructions":"0x9000","hops":[` + ownPorts + `]}` + "\n"},
		{"packet cut behind INT", "auto", report20(flagF, 0, nil, func() []byte { // the IP header still claims the payload
			b := inner(1)
			be.PutUint16(b[2:], be.Uint16(b[2:])+400)
			be.PutUint16(b[24:], be.Uint16(b[24:])+400)
			return b
		}()), head20 + `"kind":"int-stack",` + flow4789 + tracked + int21Of + `"hops":[{"node_id":1}]}` + "\n"},
		{"packet cut in INT", "auto", report20(flagF, 0x4000, ports, inner(2)[:48]),
			head20 + `"kind":"int-stack",` + flow4789 + `,"flags":["tracked","truncated"],` + int21Of + `"hops":[{"node_id":2},` + ownPorts + `]}` + "\n"},
		{"packet cut in the INT header", "auto", report20(flagF, 0x4000, ports, inner(2)[:40]),
			head20 + `"kind":"int-stack",` + flow4789 + `,"flags":["tracked","truncated"],` + int21Of + `"hops":[` + ownPorts + `]}` + "\n"},
		{"packet cut in its ports", "auto", report20(flagF, 0x4000, ports, inner(2)[:20]),
			head20 + `"kind":"postcard","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17},"packet_id":4097` + tracked + `"hops":[` + ownPorts + `]}` + "\n"},
		{"packet cut in its IP header", "auto", report20(flagF, 0x4000, ports, inner(2)[:16]),
			head20 + `"kind":"postcard","flags":["tracked"],"hops":[` + ownPorts + `]}` + "\n"},
		{"a dropped packet that is a fragment", "auto", report20(flagF|flagD, 0x4000, ports, func() []byte {
			b := inner(1)
			b[6], b[7] = 0, 9
			return b
		}()), head20 + `"kind":"drop","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17},"packet_id":4097,"flags":["dropped","tracked"],"hops":[` + ownPorts + `]}` + "\n"},
		{"5-tuple alone: TCP with a UDP header", "auto", report20(flagF, 0x4000, ports, ipv4(0x17, 6, udp(80, nil))),
			head20 + `"kind":"postcard",` + flowTCP + tracked + `"hops":[` + ownPorts + `]}` + "\n"},

		// IOAM
		{"IOAM trace", "auto", six(report20(flagF, 0, nil, join(t, "ioam-trace"))),
			head20 + `"kind":"trace",` + flowTrace + tracked + traceOf + `"hops":[` + nodes + `]}` + "\n"},
		{"IOAM trace and local metadata: the last hop", "auto", six(report20(flagF, 0x4000, ports, join(t, "ioam-trace"))),
			head20 + `"kind":"trace",` + flowTrace + tracked + traceOf + `"hops":[` + nodes + `,` + ownPorts + `]}` + "\n"},
		{"drop with an IOAM trace", "auto", six(report20(flagF|flagD, 0, nil, join(t, "ioam-trace"))),
			head20 + `"kind":"drop",` + flowTrace + `,"flags":["dropped","tracked"],` + traceOf + `"hops":[` + nodes + `]}` + "\n"},
		{"IOAM trace that breaks a rule", "auto", six(report20(flagF, 0x4000, ports, narrow)),
			head20 + `"kind":"postcard",` + flowTrace + tracked + `"hops":[` + ownPorts + `],"error":{"format":"ioam","field":"node_len","offset":74,"reason":"bad-width"}}` + "\n"},
		{"IOAM is only looked for in tracked flows", "auto", six(report20(0, 0, nil, join(t, "ioam-trace"))), head20 + `"kind":"postcard",` + flowTrace + `}` + "\n"},
		{"IOAM option that is no trace", "auto", six(report20(flagF, 0, nil, ipv6(0, 0, append(export, udp(5000, nil)...)))),
			head20 + `"kind":"postcard","flow":{"src":"fd00::1","dst":"fd00::2","proto":17,"src_port":33000,"dst_port":5000},"flags":["tracked"]}` + "\n"},
		{"IOAM in a dialect without it", "fant", six(report20(flagF, 0, nil, join(t, "ioam-trace"))), head20 + `"kind":"postcard",` + flowTrace + `,"flags":["tracked"]}` + "\n"},

		// dialects
		{"host INT without sink id", "host-int-no-sink-id",
			join(t, "04200000 00000001 00000009 4504002c 10010000 3c110000 0a000101 0a000202 80e81388 00180000",
				"03000500 00010201 80000000 0000000b 00000011"),
			`{"format":"telemetry-report","version":"0.5","exporter":"10.9.9.9","hw_id":0,"seq":1,"header_time":9,"kind":"int-stack",` +
				flowUDP + tracked + `"int_version":"0.5","instructions":"0x8000","source_seq":17,"hops":[{"node_id":11}]}` + "\n"},
		{"host INT, an inner packet without ports", "host-int", join(t, "04200000 00000001 00000009 00000016 4504002c 10010000 3c010000 0a000101 0a000202"),
			`{"format":"telemetry-report","version":"0.5","exporter":"10.9.9.9","node_id":22,"hw_id":0,"seq":1,"header_time":9,"kind":"postcard",` +
				`"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":1},"packet_id":4097,"flags":["tracked"]}` + "\n"},
		{"rejected header", "auto", join(t, "30000000"),
			`{"format":"telemetry-report","exporter":"10.9.9.9","error":{"format":"telemetry-report","field":"version","offset":0,"reason":"bad-version"}}` + "\n"},
		{"empty datagram", "auto", nil,
			`{"format":"telemetry-report","exporter":"10.9.9.9","error":{"format":"telemetry-report","field":"version","offset":0,"reason":"short"}}` + "\n"},
	}
}

var exporter = decode.AddrFrom4([]byte{10, 9, 9, 9})

func TestDatagram(t *testing.T) {
	var b decode.Batch
	for _, c := range reportCases(t) {
		t.Run(c.name, func(t *testing.T) {
			d := New(profile(t, c.profile))
			b.Reset()
			n := d.Datagram(&b, exporter, c.payload, 7)
			if got := lines(&b); got != c.want || n != len(b.Reports) {
				t.Errorf("Datagram(%x) = %d\n%swant\n%s", c.payload, n, got, c.want)
			}
			for i, r := range b.Reports {
				if r.Units == nil {
					t.Error("no Units")
				}
				if r.Err.Reason == 0 && (r.SeqBits == 0 || r.FirstOfGroup != (i == 0)) {
					t.Errorf("report %d: SeqBits %d, FirstOfGroup %v", i, r.SeqBits, r.FirstOfGroup)
				}
			}
			if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Datagram(&b, exporter, c.payload, 7) }); n != 0 {
				t.Errorf("%v allocs per datagram, want 0", n)
			}
		})
	}
}

// Each report finds what another one left behind: long before short, errors before good ones, in any order.
func TestReuse(t *testing.T) {
	cases := reportCases(t)
	decoders := map[string]*Decoder{}
	for _, c := range cases {
		if decoders[c.profile] == nil {
			decoders[c.profile] = New(profile(t, c.profile))
		}
	}
	var b decode.Batch
	for _, first := range cases {
		for _, second := range cases {
			b.Reset()
			decoders[first.profile].Datagram(&b, exporter, first.payload, 7)
			b.Reset()
			decoders[second.profile].Datagram(&b, exporter, second.payload, 7)
			if got := lines(&b); got != second.want {
				t.Fatalf("%s after %s:\n%swant\n%s", second.name, first.name, got, second.want)
			}
		}
	}
}

// Every byte of every datagram set to its extremes, and every datagram cut at every byte.
func TestDatagramExtremes(t *testing.T) {
	var b decode.Batch
	for _, c := range reportCases(t) {
		d := New(profile(t, c.profile))
		for n := range c.payload {
			b.Reset()
			d.Datagram(&b, exporter, c.payload[:n:n], 7)
			sane(t, &b, n)
			payload := slices.Clone(c.payload)
			for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
				payload[n] = v
				b.Reset()
				d.Datagram(&b, exporter, payload, 7)
				sane(t, &b, len(payload))
			}
		}
	}
}

// sane checks what holds for any input of n bytes.
func sane(t testing.TB, b *decode.Batch, n int) {
	t.Helper()
	for _, r := range b.Reports {
		if e := r.Err; e.Reason != 0 && (e.Field == "" || e.Format == 0 || e.Offset < 0 || e.Offset > n) {
			t.Fatalf("error %+v for %d bytes", e, n)
		}
		if len(r.Hops) > 256 {
			t.Fatalf("%d hops from %d bytes", len(r.Hops), n)
		}
		if r.Format == 0 || r.Err.Reason == 0 && r.Kind == 0 && r.Flags&decode.Truncated == 0 {
			t.Fatalf("report without format or kind: %+v", r)
		}
		if r.Has&decode.HasPorts != 0 && r.Has&decode.HasFlow == 0 || r.Has&decode.HasFlow != 0 && r.Flow.IPVersion == 0 {
			t.Fatalf("flow %v, present %x", r.Flow, r.Has)
		}
		if r.Units == nil {
			t.Fatal("no Units")
		}
	}
}
