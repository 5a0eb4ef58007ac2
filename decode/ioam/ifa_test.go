package ioam

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
)

// twoHops is an IPv4 packet over UDP with two hops, from public slides and scripts of switches: 112 bytes.
const twoHops = "4500 0070 1001 4000 40fd 128e 0a000101 0a000202" +
	"2f110440 1064 2344 0014 0000 ff007e10" +
	"100b223e 44312345 0006 0005 1dcd68e8 000004e2 00001000 0000 0010 00000000" +
	"100a113f 40312345 000b 000a 1dcd5d30 00000384 00000000 0000 0000 00000000" +
	"4142434445464748494a4b4c"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readIFA returns the reports of an IP packet of length bytes, of which data was captured.
func readIFA(b *decode.Batch, f IFA, data []byte, length int) int {
	var p packet.Packet
	p.Frame(packet.LinkRaw, data, length)
	return f.NewReader().Read(b, &p, data)
}

// ifaLine returns the report of a packet as JSON without what all have, "" without one.
func ifaLine(t testing.TB, f IFA, data []byte, length int) string {
	t.Helper()
	var b decode.Batch
	n := readIFA(&b, f, data, length)
	if n != len(b.Reports) || n > 1 {
		t.Fatalf("Read = %d, %d reports", n, len(b.Reports))
	}
	if n == 0 {
		return ""
	}
	s, ok := strings.CutPrefix(string(reportjson.Append(nil, 1, b.Reports[0])), `{"frame":1,"time_ns":0,"format":"ifa",`)
	if !ok {
		t.Fatalf("it begins otherwise: %s", s)
	}
	return strings.TrimSuffix(s, "}")
}

const (
	ifaFlow = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":17,"src_port":4196,"dst_port":9028},"packet_id":4097,"flags":["inband"],`
	onWire  = `"flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":253},"packet_id":4097`
	values  = `"instructions":"0xff","remaining_hops":126,"hops":[`
	newest  = `{"node_id":2850,"hop_limit":62,"ingress_if":5,"egress_if":6,"latency":1250,"queue_id":3,"queue_occupancy":4096,"queue_congestion":1,"queue_cells":16,"port_speed":4,"ingress_seconds":74565,"ingress_fraction":500001000}`
	first   = `{"node_id":2577,"hop_limit":63,"ingress_if":10,"egress_if":11,"latency":900,"queue_id":3,"queue_occupancy":0,"queue_congestion":0,"queue_cells":0,"port_speed":4,"ingress_seconds":74565,"ingress_fraction":499998000}`
	start   = `"version":"2","kind":"trace",`
)

func TestTwoHops(t *testing.T) {
	b := unhex(t, twoHops)
	if got, want := ifaLine(t, IFA{}, b, len(b)), start+ifaFlow+values+first+","+newest+"]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for n := range b {
		got := ifaLine(t, IFA{}, b[:n], len(b))
		switch cut := strings.ReplaceAll(ifaFlow, `"inband"`, `"truncated","inband"`); {
		case n < 20:
			if got != "" {
				t.Errorf("%d bytes: %s", n, got)
			}
		case n < 24 && got != onWire+`,"flags":["truncated"]`:
			t.Errorf("%d bytes: %s", n, got)
		case n >= 28 && n < 36 && got != strings.TrimSuffix(start+cut, ","):
			t.Errorf("%d bytes: %s, want %s", n, got, start+cut)
		case n == 36+32 && got != start+cut+values+newest+"]": // the list begins in the middle of the path
			t.Errorf("%d bytes: %s", n, got)
		case n >= 100 && got != start+ifaFlow+values+first+","+newest+"]": // what was cut is the user's
			t.Errorf("%d bytes: %s", n, got)
		}
	}
}

// Of a block that was cut the values are there that are whole.
func TestCutBlock(t *testing.T) {
	b := unhex(t, twoHops)
	whole := strings.TrimSuffix(strings.TrimPrefix(newest, "{"), "}")
	fields := strings.Split(whole, ",")
	ends := map[string]int{"node_id": 3, "hop_limit": 4, "port_speed": 5, "queue_congestion": 5, "queue_id": 6, "ingress_seconds": 8, "egress_if": 10,
		"ingress_if": 12, "ingress_fraction": 16, "latency": 20, "queue_occupancy": 24, "queue_cells": 28}
	for n := range hopLen {
		var want []string
		for _, f := range fields {
			if name, _, _ := strings.Cut(strings.TrimPrefix(f, `"`), `"`); ends[name] <= n {
				want = append(want, f)
			}
		}
		hops := `,"hops":[{` + strings.Join(want, ",") + `}]`
		if want == nil {
			hops = `"remaining_hops":126`
		}
		if got := ifaLine(t, IFA{}, b[:36+n], len(b)); !strings.HasSuffix(got, hops) {
			t.Errorf("%d bytes: %s, want %s", n, got, hops)
		}
	}
}

// Each change makes another packet out of that with two hops. Offsets count from the IP header.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int
		to   string
		want string // "" for the error, else the end of the object
	}{
		{"15 words", 35, "0f", `"error":{"format":"ifa","field":"current_length","offset":35,"reason":"bad-stack"}`},
		{"24 words", 35, "18", `"error":{"format":"ifa","field":"current_length","offset":35,"reason":"bad-length"}`},
		{"more than the most", 23, "08", `"error":{"format":"ifa","field":"current_length","offset":35,"reason":"bad-length"}`},
		{"fragments", 22, "14", `"error":{"format":"ifa","field":"flags","offset":22,"reason":"unsupported"}`},
		{"tail", 22, "0c", `"error":{"format":"ifa","field":"flags","offset":22,"reason":"unsupported"}`},
		{"checksum", 22, "05", `"error":{"format":"ifa","field":"flags","offset":22,"reason":"unsupported"}`},
		{"version", 20, "1f", `"error":{"format":"ifa","field":"version","offset":20,"reason":"bad-version"}`},
		{"ICMP", 21, "01", `"error":{"format":"ifa","field":"next_header","offset":21,"reason":"unsupported"}`},
		{"IP in IP", 21, "04", `"error":{"format":"ifa","field":"next_header","offset":21,"reason":"unsupported"}`},
		{"another layout", 36, "20", `"error":{"format":"ifa","field":"lns","offset":36,"reason":"unsupported"}`},
		{"nanoseconds", 48, "3b9aca00", `"error":{"format":"ifa","field":"ingress_fraction","offset":48,"reason":"bad-value"}`},
		{"GRE version", 21, "2f0440 00016558", `"error":{"format":"ifa","field":"gre_version","offset":25,"reason":"unsupported"}`},
		{"TCP", 21, "060440 1064 2344 0000 0000 0000 0000 40", `"error":{"format":"ifa","field":"data_offset","offset":36,"reason":"bad-length"}`},
		{"TCP beyond", 21, "060440 1064 2344 0000 0000 0000 0000 f0" + strings.Repeat("00", 60), `"error":{"format":"ifa","field":"current_length","offset":87,"reason":"bad-length"}`},
	} {
		b := unhex(t, twoHops)
		copy(b[c.at:], unhex(t, c.to))
		if c.name == "TCP beyond" {
			b[87], b[36] = 200, 0xf0
		}
		if got := ifaLine(t, IFA{}, b, len(b)); got != onWire+","+c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	b := unhex(t, twoHops)
	copy(b[21:], unhex(t, "2f0440 2000 6558 00000007"))
	want := start + strings.Replace(ifaFlow, `17,"src_port":4196,"dst_port":9028`, "47", 1) + values + first + "," + newest + "]"
	if got := ifaLine(t, IFA{}, b, len(b)); got != want {
		t.Errorf("GRE with a key: %s, want %s", got, want)
	}
	b = unhex(t, twoHops)
	b[20], b[36], b[68] = 0x22, 0x20, 0x30 // local name spaces mean nothing
	if got := ifaLine(t, IFA{}, b, len(b)); !strings.HasSuffix(got, first+","+newest+"]") {
		t.Errorf("a global name space: %s", got)
	}
	b = unhex(t, twoHops)
	b[34] = 0xff
	if got := ifaLine(t, IFA{}, b, len(b)); strings.Contains(got, "remaining_hops") {
		t.Errorf("an unused hop limit: %s", got)
	}
}

// No hop yet, over TCP.
func TestNoHop(t *testing.T) {
	b := unhex(t, "4500 0030 0000 4000 40fd 0000 0a000101 0a000202"+
		"22060420 9c40 01bb 00000001 00000001 5018 2000 0000 0000 0000ff00")
	want := `"version":"2","kind":"trace","flow":{"src":"10.0.1.1","dst":"10.0.2.2","proto":6,"src_port":40000,"dst_port":443},"packet_id":0,"flags":["inband"],"instructions":"0x00"`
	if got := ifaLine(t, IFA{}, b, len(b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for n := 20; n < 24; n++ { // the packet ends within the header
		b[3] = byte(n)
		if got := ifaLine(t, IFA{}, b[:n], n); !strings.HasSuffix(got, `"error":{"format":"ifa","field":"version","offset":20,"reason":"short"}`) {
			t.Errorf("%d bytes: %s", n, got)
		}
	}
	for n := 24; n < 48; n++ { // within the transport or the metadata header
		b[3] = byte(n)
		if got := ifaLine(t, IFA{}, b[:n], n); !strings.Contains(got, `"error":{"format":"ifa"`) {
			t.Errorf("%d bytes: %s", n, got)
		}
	}
}

// The numbers of IP protocols are the network's, fragments are not read, and over IPv6 it is the same.
func TestWhere(t *testing.T) {
	b := unhex(t, twoHops)
	if b[9] = 131; ifaLine(t, IFA{}, b, len(b)) != "" {
		t.Error("protocol 131 was read without being set")
	}
	f := IFA{Protocols: []uint8{253, 131}}
	if got := ifaLine(t, f, b, len(b)); !strings.HasSuffix(got, first+","+newest+"]") {
		t.Errorf("protocol 131: %s", got)
	}
	if w := f.Where(); w.Mark != "IP protocol 253, 131" || !w.Any {
		t.Errorf("Where = %+v", w)
	}
	if b[6] |= 0x20; ifaLine(t, f, b, len(b)) != "" {
		t.Error("a fragment was read")
	}
	ip := packet.IPv6{HopLimit: 61, Proto: 253, Src: [16]byte{0: 0xfd, 15: 1}, Dst: [16]byte{0: 0xfd, 15: 2}}
	six := append(packet.AppendIPv6(nil, &ip, len(b)-20), b[20:]...)
	want := start + `"flow":{"src":"fd00::1","dst":"fd00::2","proto":17,"src_port":4196,"dst_port":9028},"flags":["inband"],` + values + first + "," + newest + "]"
	if got := ifaLine(t, f, six, len(six)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A packet costs no allocation once the batch has grown.
func TestAllocations(t *testing.T) {
	b := unhex(t, twoHops)
	var batch decode.Batch
	reader := IFA{}.NewReader()
	var p packet.Packet
	p.Frame(packet.LinkRaw, b, len(b))
	reader.Read(&batch, &p, b)
	if n := testing.AllocsPerRun(100, func() {
		batch.Reset()
		reader.Read(&batch, &p, b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The IP length may end within the IP header; nothing is behind it then.
func TestProvenShort(t *testing.T) {
	b := unhex(t, "4500000b1001400040fd00000a0001010a0002022f2f0410300065580000000700000007ff00fd006400010f")
	var batch decode.Batch
	if n := readIFA(&batch, IFA{Proven: true}, b, len(b)); n != 0 {
		t.Errorf("%d reports of a packet of 11 bytes", n)
	}
}

// Whatever the bytes: no panic, an error names a byte of the packet, or the missing one behind it, and leaves no value.
func FuzzReadIFA(f *testing.F) {
	b := unhex(f, twoHops)
	f.Add(b, len(b))
	f.Add(b[:50], len(b))
	f.Fuzz(func(t *testing.T, b []byte, length int) {
		length = max(length, len(b))
		var batch decode.Batch
		readIFA(&batch, IFA{Proven: true}, b, length)
		batch.Reset()
		for range readIFA(&batch, IFA{}, b, length) {
			r := batch.Reports[0]
			switch {
			case r.Err.Reason != 0 && (r.Err.Offset < 0 || r.Err.Offset > len(b) || len(r.Hops) > 0 || r.AddRare().IOAM.Has != 0 || r.Flags != 0 || r.Kind != 0):
				t.Fatalf("%x: %+v", b, r)
			case len(r.Hops) != len(r.AddRare().IOAM.Nodes) || len(r.Hops) > int(r.Announced):
				t.Fatalf("%x: %d hops, %d nodes, %d announced", b, len(r.Hops), len(r.AddRare().IOAM.Nodes), r.Announced)
			case r.Err.Reason == 0 && len(r.Hops) < int(r.Announced) && r.Flags&decode.Truncated == 0:
				t.Fatalf("%x: %d of %d hops, and nothing was cut", b, len(r.Hops), r.Announced)
			}
		}
	})
}
