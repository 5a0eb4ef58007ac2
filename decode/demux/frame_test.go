package demux

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
)

// lines returns the reports of b as JSON without what all of them have.
func lines(b *decode.Batch) string {
	var s strings.Builder
	for _, r := range b.Reports {
		line := string(reportjson.Append(nil, 1, r))
		s.WriteString(strings.Replace(line, `"frame":1,"time_ns":7,`, "", 1))
		s.WriteByte('\n')
	}
	return s.String()
}

type frameCase struct {
	name    string
	profile Profile
	link    uint16
	data    []byte
	want    string
}

const (
	flowUDP  = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":5000},"packet_id":4097`
	flow4789 = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":4789},"packet_id":4097`
	flowTCP  = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":6,"src_port":33000,"dst_port":80},"packet_id":4097`
	hops12   = `"hops":[{"node_id":1},{"node_id":2}]}` + "\n"
)

func frameCases(t testing.TB) []frameCase {
	auto := profile(t, "auto")
	with := func(change func(*Profile)) Profile {
		p := profile(t, "auto")
		change(&p)
		return p
	}
	int10Node, int21Node := int10(0x8000, 2), int21(0x8000, 2)
	npt0 := slices.Clone(int21Node)
	npt0[0] = 0x10
	npt2 := slices.Clone(int21Node)
	npt2[0], npt2[2], npt2[3] = 0x18, 0, 6
	md10 := `{"format":"int-md","version":"1.0","kind":"int-stack",`
	md21 := `{"format":"int-md","version":"2.1","kind":"int-stack",`
	instr10, instr21 := `,"instructions":"0x8000","remaining_hops":8,`, `,"instructions":"0x8000","remaining_hops":8,`
	postcard := report20(flagF, 0x4000, []byte{0, 3, 0, 4}, nil)
	isPostcard := `{"format":"telemetry-report","version":"2.0","exporter":"10.0.1.1","node_id":5,"hw_id":1,"seq":7,"kind":"postcard",` +
		`"flags":["tracked"],"hops":[{"node_id":5,"ingress_if":3,"egress_if":4}]}` + "\n"
	isPostcard6 := strings.Replace(isPostcard, "10.0.1.1", "fd00::1", 1)
	fragment := ipv4(0, 17, udp(32766, postcard))
	fragment[6] = 0x20
	later := ipv4(0, 17, udp(32766, postcard))
	later[7] = 1
	marked := ipv4(0x17, 17, udp(5000, int10Node))
	marked[6] = 0x20
	cutUDP := udp(5000, nil)

	return []frameCase{
		// INT in packets of the network
		{"INT 1.0 over TCP", auto, 1, join(t, "int10-tcp"), md10 +
			`"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":6,"src_port":40000,"dst_port":80},"packet_id":4097,"instructions":"0x9000",` +
			`"remaining_hops":6,"hops":[{"node_id":1,"queue_id":0,"queue_occupancy":42},{"node_id":2,"queue_id":3,"queue_occupancy":336}]}` + "\n"},
		{"INT 2.1 over UDP, original port", auto, 1, join(t, "int21-udp"), md21 +
			`"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":4789},"packet_id":4097,"instructions":"0xdc00",` +
			`"remaining_hops":6,"hops":[{"node_id":1,"ingress_if":3,"egress_if":4,"queue_id":0,"queue_occupancy":5,` +
			`"ingress_time":1699999999999990000,"egress_time":1699999999999991250},{"node_id":2,"ingress_if":11,"egress_if":12,"queue_id":1,` +
			`"queue_occupancy":96,"ingress_time":1700000000000001000,"egress_time":1700000000000003500}]}` + "\n"},
		{"INT 2.1 by DSCP", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, npt0))), md21 + flowUDP + instr21 + hops12},
		{"INT 2.1 by DSCP must not name another protocol", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, int21Node))),
			`{"format":"int-md","kind":"int-stack",` + flowUDP + `,"error":{"format":"int-md","field":"npt","offset":42,"reason":"bad-type"}}` + "\n"},
		{"INT 2.1, original protocol and ports", auto, 1, ether(t, ipv4(0, 17, udp(17768, append(slices.Clone(npt2), tcp(80, 0, nil)...)))),
			md21 + flowTCP + instr21 + hops12},
		{"INT 2.1, original protocol, header cut", auto, 1, ether(t, ipv4(0, 17, udp(17768, npt2))),
			md21 + `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":6},"packet_id":4097` + instr21 + hops12},
		{"INT-MX", auto, 1, ether(t, ipv4(0, 17, udp(17768, join(t, "int21-mx")))),
			`{"format":"int-mx","version":"2.1","kind":"instruction","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,` +
				`"dst_port":53},"packet_id":4097,"flags":["discard"],"domain_id":43981,"instructions":"0x9000","source_metadata":"0x0000000f12345678"}` + "\n"},
		{"INT-MX, rejected", auto, 1, ether(t, ipv4(0, 17, udp(17768, join(t, "34020035 28000000 90000000 00000000")))),
			`{"format":"int-mx","kind":"instruction","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":33000,"dst_port":17768},` +
				`"packet_id":4097,"error":{"format":"int-md","field":"length","offset":43,"reason":"bad-length"}}` + "\n"},
		{"INT over IPv6", auto, 1, ether(t, ipv6(0x17, 17, udp(5000, int10Node))),
			md10 + `"flow":{"src":"fd00::1","dst":"fd00::2","proto":17,"src_port":33000,"dst_port":5000}` + instr10 + hops12},
		{"INT behind IPv6 extension headers", auto, packet.LinkIPv6, ipv6(0x17, 0, append(join(t, "1100010400000000"), udp(5000, int10Node)...)),
			md10 + `"flow":{"src":"fd00::1","dst":"fd00::2","proto":17,"src_port":33000,"dst_port":5000}` + instr10 + hops12},
		{"TCP: INT before the options", auto, 1, ether(t, ipv4(0x17, 6, tcp(80, 1, append(slices.Clone(int10Node), 1, 1, 1, 1)))),
			md10 + flowTCP + instr10 + hops12},
		{"TCP: INT behind the options", with(func(p *Profile) { p.INT.BehindOptions = true }), 1,
			ether(t, ipv4(0x17, 6, tcp(80, 1, append([]byte{1, 1, 1, 1}, int10Node...)))), md10 + flowTCP + instr10 + hops12},
		{"probe marker", with(func(p *Profile) { p.INT.ProbeMarker = 0xaaaaaaaabbbbbbbb }), 1,
			ether(t, ipv4(0, 17, udp(5000, append(join(t, "aaaaaaaabbbbbbbb"), int10Node...)))), md10 + flowUDP + instr10 + hops12},
		{"probe marker that is none", with(func(p *Profile) { p.INT.ProbeMarker = 0xaaaaaaaabbbbbbbb }), 1,
			ether(t, ipv4(0, 17, udp(5000, append(join(t, "aaaaaaaabbbbbbbc"), int10Node...)))), ""},
		{"no mark", auto, 1, ether(t, ipv4(0x16, 17, udp(5000, int10Node))), ""},
		{"mark in other bits", with(func(p *Profile) { p.INT.DSCP, p.INT.DSCPMask = 1, 1 }), 1, ether(t, ipv4(0x21, 17, udp(5000, int10Node))),
			md10 + flowUDP + instr10 + hops12},
		{"mark of 0 needs a mask", with(func(p *Profile) { p.INT.DSCP, p.INT.DSCPMask = 0, 0 }), 1, ether(t, ipv4(0, 17, udp(5000, int10Node))), ""},
		{"marked, no room for a shim", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, []byte{1, 0, 7}))), ""},
		{"marked, no payload, trailer of the frame", auto, 1, append(ether(t, ipv4(0x17, 17, cutUDP)), int10Node...), ""},
		{"marked TCP without payload", auto, 1, ether(t, ipv4(0x17, 6, tcp(80, 0, nil))), ""},
		{"marked fragment", auto, 1, ether(t, marked), ""},
		{"marked, neither TCP nor UDP", auto, 1, ether(t, ipv4(0x17, 1, int10Node)), ""},
		{"stack beyond the UDP length", auto, 1, ether(t, ipv4(0x17, 17, append(udp(5000, int10Node[:12]), int10Node[12:]...))),
			`{"format":"int-md","kind":"int-stack",` + flowUDP + `,"error":{"format":"int-md","field":"length","offset":44,"reason":"bad-length"}}` + "\n"},
		{"capture cut in the stack", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, int10Node)))[:59],
			md10 + flowUDP + `,"flags":["truncated"]` + instr10 + `"hops":[{"node_id":2}]}` + "\n"},
		{"capture cut in the shim", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, int10Node)))[:44],
			`{"format":"int-md","kind":"int-stack",` + flowUDP + `,"flags":["truncated"]}` + "\n"},
		{"FANT", profile(t, "fant"), 1, ether(t, ipv4(0x17, 17, udp(5000, join(t, "fant-basic")))),
			md21 + flowUDP + `,"domain_id":64023,"instructions":"0xf161","remaining_hops":6,"hops":[` +
				`{"node_id":1,"ingress_if":3,"egress_if":4,"latency":1250,"queue_id":0,"queue_occupancy":5,"tx_utilization":2500,"tx_packets":9,"dropped_packets":10},` +
				`{"node_id":2,"ingress_if":11,"egress_if":12,"latency":2500,"queue_id":1,"queue_occupancy":96,"tx_utilization":7500,"tx_packets":9,"dropped_packets":10}]}` + "\n"},
		{"FANT in domain 0", auto, 1, ether(t, ipv4(0x17, 17, udp(5000, join(t, "fant-detailed")))),
			`{"format":"int-md","kind":"int-stack",` + flowUDP + `,"error":{"format":"int-md","field":"hop_ml","offset":48,"reason":"bad-width"}}` + "\n"},
		{"GRE", with(func(p *Profile) { p.INT.GREProtocol = 0x4569 }), 1, ether(t, ipv4(0, 47, join(t, "int21-gre"))),
			md21 + `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":47},"packet_id":4097,"instructions":"0x8000","remaining_hops":3,` +
				`"hops":[{"node_id":17},{"node_id":33}]}` + "\n"},
		{"GRE with checksum, key and sequence number", with(func(p *Profile) { p.INT.GREProtocol = 0x4569 }), 1,
			ether(t, ipv4(0, 47, join(t, "b0004569 00000000 00000001 00000002 int21-gre@4"))),
			md21 + `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":47},"packet_id":4097,"instructions":"0x8000","remaining_hops":3,` +
				`"hops":[{"node_id":17},{"node_id":33}]}` + "\n"},
		{"GRE, protocol not configured", auto, 1, ether(t, ipv4(0, 47, join(t, "int21-gre"))), ""},
		{"VXLAN-GPE", auto, 1, ether(t, ipv4(0, 17, udp(intmd.PortVXLANGPE, join(t, "int21-gpe")))),
			md21 + strings.Replace(flowUDP, "5000", "4790", 1) + `,"instructions":"0x8000","remaining_hops":3,"hops":[{"node_id":17},{"node_id":33}]}` + "\n"},
		{"VXLAN-GPE with another protocol", auto, 1, ether(t, ipv4(0, 17, udp(intmd.PortVXLANGPE, join(t, "0c00000300aabb00 int21-gpe@8")))), ""},
		{"Geneve, behind another option", auto, 1, ether(t, ipv4(0, 17, udp(intmd.PortGeneve, join(t, "0800655800aabb00 0102030100000000 int21-geneve@8")))),
			md21 + strings.Replace(flowUDP, "5000", "6081", 1) + `,"instructions":"0x8000","remaining_hops":3,"hops":[{"node_id":17},{"node_id":33}]}` + "\n"},
		{"Geneve, option longer than the options", auto, 1, ether(t, ipv4(0, 17, udp(intmd.PortGeneve, join(t, "0500655800aabb00 int21-geneve@8")))),
			`{"format":"int-md","kind":"int-stack",` + strings.Replace(flowUDP, "5000", "6081", 1) +
				`,"error":{"format":"int-md","field":"length","offset":53,"reason":"bad-length"}}` + "\n"},
		{"Geneve without INT", auto, 1, ether(t, ipv4(0, 17, udp(intmd.PortGeneve, join(t, "0200655800aabb00 0102030100000000")))), ""},
		{"host INT behind its own UDP header", profile(t, "host-int"), 1,
			ether(t, ipv4(0, 17, udp(hostPort, join(t, "0300070000010202 80000000 00000016 0000000b 00000011 06000000 80e80050 00000000")))),
			`{"format":"int-md","version":"0.5","kind":"int-stack","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":6,"src_port":33000,"dst_port":80},` +
				`"packet_id":4097,"instructions":"0x8000","source_seq":17,"hops":[{"node_id":11},{"node_id":22}]}` + "\n"},

		// reports in frames
		{"report", auto, 1, ether(t, ipv4(0, 17, udp(32766, postcard))), isPostcard},
		{"report over IPv6", auto, 1, ether(t, ipv6(0, 17, udp(32766, postcard))), isPostcard6},
		{"report behind VLAN tags", auto, 1, append(join(t, macs, "88a80064 81000065 0800"), ipv4(0, 17, udp(32766, postcard))...), isPostcard},
		{"report in a cooked capture", auto, packet.LinkLinuxSLL,
			append(join(t, "00000001 0006 020000000001 0000 0800"), ipv4(0, 17, udp(32766, postcard))...), isPostcard},
		{"report in a cooked capture v2", auto, packet.LinkLinuxSLL2,
			append(join(t, "0800 0000 00000003 0001 00 06 020000000001 0000"), ipv4(0, 17, udp(32766, postcard))...), isPostcard},
		{"report without a link header", auto, packet.LinkRaw, ipv4(0, 17, udp(32766, postcard)), isPostcard},
		{"report, UDP length 0", auto, packet.LinkRaw, func() []byte {
			b := ipv4(0, 17, udp(32766, postcard))
			b[24], b[25] = 0, 0
			return b
		}(), isPostcard},
		{"report, UDP length below its header", auto, packet.LinkRaw, func() []byte {
			b := ipv4(0, 17, udp(32766, postcard))
			b[24], b[25] = 0, 7
			return b
		}(), `{"format":"telemetry-report","exporter":"10.0.1.1","error":{"format":"telemetry-report","field":"version","offset":28,"reason":"short"}}` + "\n"},
		{"report, Ethernet trailer", auto, 1, append(ether(t, ipv4(0, 17, udp(32766, postcard))), 0, 0, 0, 0, 0, 0), isPostcard},
		{"report in a frame that was cut", auto, 1, ether(t, ipv4(0, 17, udp(32766, postcard)))[:60],
			`{"format":"telemetry-report","version":"2.0","exporter":"10.0.1.1","node_id":5,"hw_id":1,"seq":7,"flags":["truncated"]}` + "\n"},
		{"report, bad length, offset in the frame", auto, 1, ether(t, ipv4(0, 17, udp(32766, postcard[:20]))),
			`{"format":"telemetry-report","version":"2.0","exporter":"10.0.1.1","node_id":5,"hw_id":1,"seq":7,` +
				`"error":{"format":"telemetry-report","field":"report_length","offset":51,"reason":"bad-length"}}` + "\n"},
		{"first fragment of a report", auto, 1, ether(t, fragment),
			`{"format":"telemetry-report","exporter":"10.0.1.1","error":{"format":"telemetry-report","field":"fragment","offset":20,"reason":"unsupported"}}` + "\n"},
		{"later fragment", auto, 1, ether(t, later), ""},
		{"report to another port", auto, 1, ether(t, ipv4(0, 17, udp(32767, postcard))), ""},
		{"marked packet to the report port is a report", auto, 1, ether(t, ipv4(0x17, 17, udp(32766, postcard))), isPostcard},

		// probes
		{"INT-Probe", auto, 1, join(t, "int-probe-two-hops"),
			`{"format":"int-probe","kind":"probe","hops":[{"node_id":4,"ingress_if":1,"egress_if":3,"queue_occupancy":0,"enq_time":100050,` +
				`"queue_delay":300,"deq_occupancy":2,"ingress_time":100000,"egress_time":100400},{"node_id":9,"ingress_if":2,"egress_if":2,` +
				`"queue_occupancy":1,"enq_time":200040,"queue_delay":180,"deq_occupancy":0,"ingress_time":200000,"egress_time":200250}]}` + "\n"},
		{"INT-Probe behind a VLAN tag", auto, 1, join(t, macs, "8100 0064 int-probe-sent@12"), `{"format":"int-probe","kind":"probe","sr_ports":[3,2]}` + "\n"},
		{"INT-Probe, more labels than bytes", auto, 1, join(t, macs, "0701 0001"),
			`{"format":"int-probe","kind":"probe","error":{"format":"int-probe","field":"int_num","offset":15,"reason":"bad-count"}}` + "\n"},
		{"source route before IPv4", auto, 1, join(t, macs, "0700 0004 0002 0800 4500"), ""},
		{"INT-Probe not asked for", profile(t, "geant"), 1, join(t, "int-probe-two-hops"), ""},
		{"INT-path not asked for", auto, 1, ether(t, ipv4(0, 17, udp(2222, join(t, "int-path-sent")))), ""},
		{"INT-path", profile(t, "int-path"), 1, ether(t, ipv4(0, 17, udp(2222, join(t, "int-path-sent")))),
			`{"format":"int-path","kind":"probe",` + strings.Replace(flowUDP, "5000", "2222", 1) +
				`,"action_id":5,"sr_list":"0x` + strings.Repeat("00", 63) + `31"}` + "\n"},
		{"INT-path, fragment", profile(t, "int-path"), 1, func() []byte {
			b := ether(t, ipv4(0, 17, udp(2222, join(t, "int-path-sent"))))
			b[20] = 0x20
			return b
		}(), `{"format":"int-path","kind":"probe",` + strings.Replace(flowUDP, "5000", "2222", 1) +
			`,"error":{"format":"int-path","field":"fragment","offset":20,"reason":"unsupported"}}` + "\n"},
		{"INT-path, IPv4 options", profile(t, "int-path"), 1, func() []byte {
			b := ether(t, ipv4(0, 17, append([]byte{1, 1, 1, 1}, udp(2222, join(t, "int-path-sent"))...)))
			b[14] = 0x46
			return b
		}(), `{"format":"int-path","kind":"probe",` + strings.Replace(flowUDP, "5000", "2222", 1) +
			`,"error":{"format":"int-path","field":"options","offset":34,"reason":"unsupported"}}` + "\n"},
		{"INT-path over IPv6", profile(t, "int-path"), 1, ether(t, ipv6(0, 17, udp(2222, join(t, "int-path-sent")))), ""},

		{"nothing", auto, 1, nil, ""},
		{"ARP", auto, 1, join(t, macs, "0806 00010800"), ""},
	}
}

func TestFrame(t *testing.T) {
	var b decode.Batch
	for _, c := range frameCases(t) {
		t.Run(c.name, func(t *testing.T) {
			d := New(c.profile)
			length := len(c.data)
			if strings.Contains(c.name, "cut") {
				length += 100
			}
			b.Reset()
			n := d.Frame(&b, c.link, c.data, length, 7)
			if got := lines(&b); got != c.want || n != len(b.Reports) {
				t.Errorf("Frame(%x) = %d\n%swant\n%s", c.data, n, got, c.want)
			}
			for _, r := range b.Reports {
				if r.Units == nil || *r.Units != c.profile.Units {
					t.Errorf("Units = %v, want those of %s", r.Units, c.profile.Name)
				}
				if has := r.Has&decode.HasTTL != 0; has != (r.Has&decode.HasFlow != 0) || has && r.TTL != 60 && r.TTL != 64 {
					t.Errorf("TTL = %d, present %v", r.TTL, has)
				}
			}
			if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Frame(&b, c.link, c.data, length, 7) }); n != 0 {
				t.Errorf("%v allocs per frame, want 0", n)
			}
		})
	}
}

// A frame that is cut anywhere has no error that the whole one does not have. A wrong length is one thing, a capture
// that ends early another.
func TestFrameCut(t *testing.T) {
	for _, c := range frameCases(t) {
		d := New(c.profile)
		var whole, b decode.Batch
		d.Frame(&whole, c.link, c.data, len(c.data), 7)
		bad := len(whole.Reports) > 0 && whole.Reports[0].Err.Reason != 0
		for n := range c.data {
			b.Reset()
			d.Frame(&b, c.link, c.data[:n:n], len(c.data)+100, 7)
			for _, r := range b.Reports {
				if r.Err.Reason != 0 && !bad {
					t.Errorf("%s cut at %d: %v", c.name, n, &r.Err)
				}
			}
		}
	}
}

func TestProfiles(t *testing.T) {
	want := []string{
		"auto", "auto-unflagged", "prometheus-exporter", "fabric-tna", "geant", "onos", "host-int", "host-int-no-sink-id", "p4-int-laofan",
		"p4-int-elavinal", "p4-int-mandaryoshi", "fant", "postcard-braine", "int-path", "int-probe", "ioam-ipv6", "ifa", "pint-mininet", "pint-tofino",
		"pint-hpcc", "sflow", "ipfix",
	}
	if got := Profiles(); !slices.Equal(got, want) {
		t.Errorf("Profiles() = %q, want %q", got, want)
	}
	for _, name := range want {
		p := profile(t, name)
		if p.Name != name {
			t.Errorf("Lookup(%q).Name = %q", name, p.Name)
		}
		if u := p.Units; u.LatencyNS == 0 || u.TimeNS == 0 || u.QueueBytes == 0 || u.TxFullScale == 0 || u.HeaderTimeNS == 0 {
			t.Errorf("%s: Units = %+v", name, u)
		}
		if len(p.ReportPorts) > 0 { // a copy, for the caller to change
			p.ReportPorts[0] = 1
			if profile(t, name).ReportPorts[0] == 1 {
				t.Errorf("%s: changing a copy changed the profile", name)
			}
		}
	}
	for _, name := range []string{"", "AUTO", "pint", "ioam"} {
		if _, ok := Lookup(name); ok {
			t.Errorf("Lookup(%q) found a profile", name)
		}
	}
}

func TestRouter(t *testing.T) {
	named := func(name string, ns uint64) Profile {
		p := profile(t, "auto")
		p.Name, p.Units.TimeNS = name, ns // by which the test distinguishes them
		return p
	}
	rt := NewRouter(named("fallback", 1), []Route{
		{netip.MustParsePrefix("10.0.0.0/8"), named("ten", 10)},
		{netip.MustParsePrefix("10.1.2.3/32"), named("host", 13)},
		{netip.MustParsePrefix("10.1.99.99/16"), named("site", 12)}, // host bits do not count
		{netip.MustParsePrefix("10.1.0.0/16"), named("too late", 99)},
		{netip.MustParsePrefix("fd00::/8"), named("six", 60)},
		{netip.MustParsePrefix("fd00:1::/64"), named("six-64", 61)},
		{netip.MustParsePrefix("fd00:1:0:0:8000::/65"), named("six-65", 62)},
	})
	postcard := report20(0, 0x4000, []byte{0, 3, 0, 4}, nil)
	var b decode.Batch
	for range 2 { // found by search, then among the recent ones
		for addr, want := range map[string]uint64{
			"192.0.2.1": 1, "10.9.9.9": 10, "10.1.2.3": 13, "10.1.2.4": 12, "::ffff:10.1.2.3": 13, "fd01::1": 60, "fd00:1::1": 61,
			"fd00:1::8000:0:0:1": 62, "2001:db8::1": 1, "::": 1, "9.255.255.255": 1, "11.0.0.0": 1,
		} {
			ip := netip.MustParseAddr(addr)
			b.Reset()
			rt.Datagram(&b, decode.AddrFrom(ip), postcard, 7)
			if got := b.Reports[0].Units.TimeNS; got != want {
				t.Errorf("Datagram from %s: profile %d, want %d", addr, got, want)
			}
			if !ip.Is4() {
				continue
			}
			frame := ether(t, ipv4(0, 17, udp(32766, postcard)))
			copy(frame[26:], ip.AsSlice())
			b.Reset()
			rt.Frame(&b, 1, frame, len(frame), 7)
			if got := b.Reports[0].Units.TimeNS; got != want {
				t.Errorf("Frame from %s: profile %d, want %d", addr, got, want)
			}
		}
	}
	b.Reset()
	if probe := join(t, "int-probe-two-hops"); rt.Frame(&b, 1, probe, len(probe), 7) != 1 {
		t.Error("no report from a frame without IP")
	}
	src := decode.AddrFrom(netip.MustParseAddr("10.9.9.9"))
	if n := testing.AllocsPerRun(100, func() { b.Reset(); rt.Datagram(&b, src, postcard, 7) }); n != 0 {
		t.Errorf("%v allocs per datagram, want 0", n)
	}
	if none := NewRouter(profile(t, "auto"), nil); none.Datagram(&b, src, postcard, 7) != 1 {
		t.Error("a router without routes reads nothing")
	}
}
