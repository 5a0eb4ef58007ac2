package demux

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// only returns the JSON of the one report in a frame of length bytes, of which data was captured.
func only(t *testing.T, profileName string, data []byte, length int) string {
	t.Helper()
	var b decode.Batch
	if n := New(profile(t, profileName)).Frame(&b, packet.LinkEthernet, data, length, 7); n != 1 {
		t.Fatalf("%d reports from %x, want 1", n, data)
	}
	return lines(&b)
}

// The frame on the wire ends a packet, also if its IP header has a larger length. INT behind that is an error; INT
// behind what was captured is not.
func TestFrameEndsPacket(t *testing.T) {
	int10, int21 := ether(t, ipv4(0x17, 17, udp(5000, int10(0xf000, 3)))), ether(t, ipv4(0, 17, udp(17768, int21(0xf000, 3))))
	postcard := ether(t, ipv4(0, 17, udp(32766, report20(flagF, 0x7000, make([]byte, 12), ipv4(0, 17, udp(5000, nil))))))
	probe := ether(t, ipv4(0, 17, udp(2222, make([]byte, 64+22+4))))
	labels := join(t, "int-probe-two-hops")
	for _, c := range []struct {
		name, profile string
		data          []byte
		cut           int
		want          string // the error
	}{
		{"INT 1.0", "auto", int10, 80, `"field":"length","offset":44,"reason":"bad-length"`},
		{"INT 2.1", "auto", int21, 80, `"field":"length","offset":43,"reason":"bad-length"`},
		{"report", "auto", postcard, 70, `"field":"report_length","offset":51,"reason":"bad-length"`},
		{"INT-path", "int-path", probe, 100, `"field":"udp_length","offset":38,"reason":"bad-length"`},
		{"INT-Probe", "int-probe", labels, 60, `"field":"int_num","offset":15,"reason":"bad-count"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := only(t, c.profile, c.data[:c.cut:c.cut], c.cut); !strings.Contains(got, c.want) || strings.Contains(got, "truncated") {
				t.Errorf("frame of %d bytes: %swant %s", c.cut, got, c.want)
			}
			if got := only(t, c.profile, c.data[:c.cut:c.cut], 500); strings.Contains(got, "error") || !strings.Contains(got, `"truncated"`) {
				t.Errorf("%d bytes of a longer frame: %swant truncated", c.cut, got)
			}
			if got := only(t, c.profile, c.data, len(c.data)); strings.Contains(got, "error") || strings.Contains(got, "truncated") {
				t.Errorf("the whole frame: %s", got)
			}
		})
	}
}

// A block that was cut before its first value is no hop, and no empty object stands for it. One whose values are all
// marked invalid is there.
func TestCutBlock(t *testing.T) {
	data := ether(t, ipv4(0x17, 17, udp(5000, int10(0xf000, 3))))
	start := 14 + 20 + 8 + 12 // of the stack, three blocks of 16
	for cut := start; cut < len(data); cut++ {
		got := only(t, "auto", data[:cut:cut], len(data))
		blocks := (cut - start) / 16
		if (cut-start)%16 >= 4 {
			blocks++
		}
		if n := strings.Count(got, "node_id"); n != blocks || strings.Contains(got, "{}") {
			t.Errorf("cut %d bytes into the stack: %d hops, want %d: %s", cut-start, n, blocks, got)
		}
	}
	data = ether(t, ipv4(0x17, 17, udp(5000, int10(0x8000, 3))))
	copy(data[start:], []byte{0xff, 0xff, 0xff, 0xff})
	if got := only(t, "auto", data[:start+4:start+4], len(data)); !strings.HasSuffix(got, `"hops":[{}]}`+"\n") {
		t.Errorf("a whole block without a value: %s", got)
	}
	// Blocks of nothing but reserved words have no first value.
	data = ether(t, ipv4(0x17, 17, udp(5000, int10(0x00c0, 3))))
	if got := only(t, "auto", data[:start+12:start+12], len(data)); !strings.HasSuffix(got, `"hops":[{}]}`+"\n") {
		t.Errorf("one and a half blocks of reserved words: %s", got)
	}
}

// A stack that was cut is no whole path, also where the reporting node's own hop makes up for the number of blocks.
func TestCutIsNoWholePath(t *testing.T) {
	data := report20(flagF, 0x4000, []byte{0, 3, 0, 4}, ipv4(0, 17, udp(17768, int21(0x8000, 3))))
	const shim = 8 + 12 + 4 + 28
	for cut := len(data) - 1; cut >= shim; cut-- {
		var b decode.Batch
		New(profile(t, "auto")).DatagramCut(&b, exporter, data[:cut:cut], len(data), 7)
		if r := b.Reports[0]; r.Kind != decode.KindStack || r.WholePath() || r.Err.Reason != 0 || r.Flags&decode.Truncated == 0 {
			t.Errorf("cut at %d: whole path %v, %v", cut, r.WholePath(), r.Hops)
		}
	}
}

// The first bytes of a shim can be enough to reject it, also if the capture ends inside of the shim.
func TestCutShim(t *testing.T) {
	udpOf := func(shim ...byte) []byte {
		return ether(t, ipv4(0x17, 17, udp(5000, append(shim, make([]byte, 40)...))))
	}
	const room = 42
	for _, c := range []struct {
		name string
		shim []byte
		n    int // captured of it
		want string
	}{
		{"nothing", []byte{4, 0, 0, 0}, 0, `"truncated"`},
		{"type 4", []byte{4, 0, 0, 0}, 1, `"field":"type","offset":42,"reason":"bad-type"`},
		{"type 1", []byte{1, 0, 1, 0}, 2, `"truncated"`},
		{"length 1", []byte{1, 0, 1, 0}, 3, `"field":"length","offset":44,"reason":"bad-length"`},
		{"length beyond the packet", []byte{1, 0, 200, 0}, 3, `"field":"length","offset":44,"reason":"bad-length"`},
		{"length", []byte{1, 0, 11, 0}, 3, `"truncated"`},
		{"destination", []byte{2, 0, 1, 0}, 3, `"truncated"`},
		{"destination, length 0", []byte{2, 0, 0, 0}, 3, `"field":"length","offset":44,"reason":"bad-length"`},
		{"2.x, type 4", []byte{0x40, 0, 0, 0}, 1, `"field":"type","offset":42,"reason":"bad-type"`},
		{"2.x, NPT 3", []byte{0x1c, 0, 0, 0}, 1, `"field":"npt","offset":42,"reason":"bad-type"`},
		{"2.x, NPT 1 without the port", []byte{0x14, 0, 0, 0}, 1, `"field":"npt","offset":42,"reason":"bad-type"`},
		{"2.x", []byte{0x10, 0, 0, 0}, 1, `"truncated"`},
		{"2.x, length 2", []byte{0x10, 2, 0, 0}, 2, `"field":"length","offset":43,"reason":"bad-length"`},
		{"2.x, length beyond the packet", []byte{0x10, 11, 0, 0}, 3, `"field":"length","offset":43,"reason":"bad-length"`},
		{"2.x, length", []byte{0x10, 10, 0, 0}, 3, `"truncated"`},
		{"INT-MX", []byte{0x30, 10, 0, 0}, 1, `"format":"int-mx","kind":"instruction"`},
	} {
		data := udpOf(c.shim...)
		if got := only(t, "auto", data[:room+c.n:room+c.n], len(data)); !strings.Contains(got, c.want) || strings.Contains(got, "error") != strings.Contains(c.want, "reason") {
			t.Errorf("%s, %d bytes of the shim: %swant %s", c.name, c.n, got, c.want)
		}
	}
}

// The values of an INT header that the capture ends in are those of the whole one, as far as they are there.
func TestCutHeader(t *testing.T) {
	flags := func(b []byte, first byte) []byte { // E, M, C, D, as they are in the version
		b[0] |= first
		return b
	}
	v05 := join(t, "int05-udp")
	flags(v05[4:], 3)
	v10 := int10(0x8000, 2)
	flags(v10[4:], 3)[1] |= 0x80
	v21 := int21(0x8000, 2)
	flags(v21[4:], 0xe)
	domain := int21(0x8000, 2)
	domain[4+6], domain[4+7] = 0x12, 0x34
	mx := join(t, "int21-mx")
	for _, c := range []struct {
		name, profile string
		data          []byte
		from          map[string]int // bytes behind the shim that a key needs
	}{
		{"0.5", "prometheus-exporter", ether(t, ipv4(0x01, 17, udp(5000, v05))),
			map[string]int{`"version":"0.5"`: 1, `"copy"`: 1, `"hop-limit"`: 1, `"instructions":"0xc000"`: 6}},
		{"1.0", "auto", ether(t, ipv4(0x17, 17, udp(5000, v10))),
			map[string]int{`"version":"1.0"`: 1, `"copy"`: 1, `"hop-limit"`: 1, `"mtu"`: 2, `"remaining_hops":8`: 4, `"instructions":"0x8000"`: 6}},
		{"1.0 of GEANT", "geant", ether(t, ipv4(0x20, 17, udp(5000, int10(0x8000, 2)))),
			map[string]int{`"version":"1.0"`: 1, `"remaining_hops":8`: 4, `"instructions":"0x8000"`: 6, `"source_seq":0`: 8}},
		{"2.1", "auto", ether(t, ipv4(0, 17, udp(17768, v21))),
			map[string]int{`"version":"2.1"`: 1, `"discard"`: 1, `"hop-limit"`: 1, `"mtu"`: 1, `"remaining_hops":8`: 4, `"instructions":"0x8000"`: 6, `"dst_port":4789`: 0}},
		{"2.1 with a domain", "auto", ether(t, ipv4(0, 17, udp(17768, domain))),
			map[string]int{`"version":"2.1"`: 1, `"remaining_hops":8`: 4, `"instructions":"0x8000"`: 6, `"domain_id":4660`: 8, `"dst_port":4789`: 0}},
		{"2.1 of elavinal", "p4-int-elavinal", func() []byte {
			b := int21(0x0001, 2)
			b[0], b[2], b[3], b[4+6], b[4+11] = 0x10, 0, 0, 0x12, 9
			return ether(t, ipv4(0x17, 17, udp(5000, b)))
		}(), map[string]int{`"version":"2.1"`: 1, `"remaining_hops":8`: 4, `"instructions":"0x0001"`: 6, `"flow_id":9`: 12}},
		{"INT-MX", "auto", ether(t, ipv4(0, 17, udp(17768, mx))),
			map[string]int{`"version":"2.1"`: 1, `"discard"`: 1, `"instructions":"0x9000"`: 6, `"domain_id":43981`: 8, `"dst_port":53`: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const shim = 14 + 20 + 8
			for n := range 13 {
				got := only(t, c.profile, c.data[:shim+4+n:shim+4+n], len(c.data))
				for key, from := range c.from {
					if there := strings.Contains(got, key); there != (n >= from) {
						t.Errorf("%d bytes of the header: %s is there: %v, in %s", n, key, there, got)
					}
				}
				if strings.Contains(got, "error") || !strings.Contains(got, `"truncated"`) {
					t.Errorf("%d bytes of the header: %s", n, got)
				}
			}
			// What is there of it can be wrong: Hop ML, or the count of instructions.
			if c.name == "INT-MX" {
				return
			}
			bad := slices.Clone(c.data)
			if c.name == "0.5" {
				bad[shim+4+1]++
			} else {
				bad[shim+4+2]++
			}
			for n := range 13 {
				needs := 6
				if c.name == "2.1" {
					needs = 8 // whether there is a domain is checked before
				} else if c.name == "2.1 with a domain" {
					needs = 10
				}
				got := only(t, c.profile, bad[:shim+4+n:shim+4+n], len(c.data))
				if rejected := strings.Contains(got, `"reason":"bad-width"`); rejected != (n >= needs) || rejected && strings.Contains(got, "instructions") {
					t.Errorf("%d bytes of a wrong header: %s", n, got)
				}
			}
		})
	}
}

// INT behind TCP options has no place where the data offset lies inside of the TCP header.
func TestDataOffset(t *testing.T) {
	for words := range byte(16) {
		b := tcp(5000, 0, append(make([]byte, 40), join(t, "int05-udp")...))
		b[12] = words << 4
		data := ether(t, ipv4(0x01, 6, b))
		var batch decode.Batch
		if n := New(profile(t, "prometheus-exporter")).Frame(&batch, packet.LinkEthernet, data, len(data), 7); n != min(int(words)/5, 1) {
			t.Errorf("data offset %d: %d reports", words, n)
		}
	}
}

// Shim type 1 is not Intel's.
func TestHostINTType(t *testing.T) {
	int05 := join(t, "int05-udp")
	data := ether(t, ipv4(0x01, 17, udp(5000, int05)))
	if got := only(t, "host-int", data, len(data)); !strings.Contains(got, `"field":"type","offset":42,"reason":"bad-type"`) {
		t.Errorf("type 1: %s", got)
	}
	if got := only(t, "prometheus-exporter", data, len(data)); strings.Contains(got, "error") {
		t.Errorf("type 1 of 0.5: %s", got)
	}
	report := append(join(t, "04200000 00000001 00000009 00000016"), ipv4(0x01, 17, udp(5000, int05))...)
	data = ether(t, ipv4(0, 17, udp(32766, report)))
	if got := only(t, "host-int", data, len(data)); !strings.Contains(got, `"kind":"int-stack"`) || !strings.Contains(got, `"field":"type","offset":86,"reason":"bad-type"`) {
		t.Errorf("type 1 in a report: %s", got)
	}
}

// A report of a capture that ends in a group is marked as cut, wherever the capture ends. This includes an end
// exactly between two reports, and inside of a packet that another report follows.
func TestFrameCutGroup(t *testing.T) {
	inner := ipv4(0, 17, udp(5000, []byte("payload!")))
	payload := report20(flagF, 0, nil, inner)
	one := len(payload)
	payload = append(payload, report20(flagD, 0, nil, inner)[telemetry.GroupLen:]...)
	data := ether(t, ipv4(0, 17, udp(32766, payload)))
	const rest = `{"format":"telemetry-report","version":"2.0","exporter":"10.0.1.1","node_id":5,"hw_id":1,"seq":7,"flags":["truncated"]}` + "\n"
	d := New(profile(t, "auto"))
	for _, c := range []struct {
		name string
		cut  int
		want int // objects
	}{
		{"in the first header", 42 + 8 + 10, 1},
		{"in the first packet", 42 + one - 9, 2},
		{"between the reports", 42 + one, 2},
		{"in the second header", 42 + one + 11, 2},
		{"behind the second header", 42 + one + 12, 2},
	} {
		var b decode.Batch
		n := d.Frame(&b, packet.LinkEthernet, data[:c.cut:c.cut], len(data), 7)
		got := lines(&b)
		last := c.name == "behind the second header"
		if n != c.want || strings.HasSuffix(got, rest) == last || last && b.Reports[1].Kind != decode.KindDrop {
			t.Errorf("%s: %d objects, want %d:\n%s", c.name, n, c.want, got)
		}
	}
}

// Of a datagram that was longer than the memory for it the reports that are there are read, and none is malformed.
func TestDatagramCut(t *testing.T) {
	for _, c := range reportCases(t) {
		d := New(profile(t, c.profile))
		var whole, b decode.Batch
		d.Datagram(&whole, exporter, c.payload, 7)
		if slices.ContainsFunc(whole.Reports, func(r *decode.Report) bool { return r.Err.Reason != 0 }) {
			continue
		}
		for n := range c.payload {
			b.Reset()
			d.DatagramCut(&b, exporter, c.payload[:n:n], len(c.payload), 7)
			sane(t, &b, len(c.payload))
			for i, r := range b.Reports {
				if r.Err.Reason != 0 {
					t.Errorf("%s cut at %d: %v", c.name, n, &r.Err)
				}
				if i < len(whole.Reports) && r.SeqBits != 0 && (r.Seq != whole.Reports[i].Seq || r.FirstOfGroup != (i == 0)) {
					t.Errorf("%s cut at %d: number %d, want %d", c.name, n, r.Seq, whole.Reports[i].Seq)
				}
			}
			if n >= 12 && b.Reports[0].SeqBits == 0 {
				t.Errorf("%s cut at %d: no sequence number", c.name, n)
			}
		}
	}
}

// The bytes behind the end of the packet are a trailer, and none of its headers. They are neither the version behind
// a shim, nor the ports of the header that INT stood before.
func TestTrailerIsNoHeader(t *testing.T) {
	shorten := func(b []byte, total uint16) []byte {
		be.PutUint16(b[14+2:], total)
		return b
	}
	data := shorten(ether(t, ipv4(0x20, 17, udp(5000, int10(0x8000, 2)))), 32)
	if got := only(t, "geant", data, len(data)); !strings.Contains(got, `"field":"length","offset":44,"reason":"bad-length"`) {
		t.Errorf("a packet that ends behind the shim: %s", got)
	}
	npt2 := int21(0x8000, 2)
	npt2[0], npt2[2], npt2[3] = 0x18, 0, 6
	for _, c := range []struct {
		room  int // behind INT
		ports bool
	}{{0, false}, {3, false}, {4, true}} {
		b := append(slices.Clone(npt2), 0x9c, 0x40, 0, 0x50)
		data := shorten(ether(t, ipv4(0, 17, udp(17768, b))), uint16(20+8+len(npt2)+c.room))
		be.PutUint16(data[14+20+4:], uint16(8+len(npt2)+c.room))
		if got := only(t, "auto", data, len(data)); strings.Contains(got, `"proto":6`) == false || strings.Contains(got, `"dst_port":80`) != c.ports {
			t.Errorf("%d bytes behind INT: %s", c.room, got)
		}
		payload := report20(flagF, 0, nil, append(data[14:len(data):len(data)], make([]byte, (14-len(data))&3)...))
		var batch decode.Batch
		New(profile(t, "auto")).Datagram(&batch, exporter, payload, 7)
		if got := lines(&batch); strings.Contains(got, `"proto":6`) == false || strings.Contains(got, `"dst_port":80`) != c.ports {
			t.Errorf("%d bytes behind INT in a report: %s", c.room, got)
		}
	}
}
