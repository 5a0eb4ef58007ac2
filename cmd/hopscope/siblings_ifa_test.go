package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

// The IP protocol of IFA is one for experiments. What others send under it is no malformed IFA: it is counted as no telemetry, unless a profile says that
// it is IFA. What has a header of IFA and breaks behind it is malformed.
func TestSiblingsExperimental(t *testing.T) {
	whole := ifaFrame(20000, 1001, 1002)[34:]
	rng := rand.New(rand.NewPCG(28, 7))
	var others, broken [][]byte
	for _, b := range []string{"", "x", "\x20", "\x20\x00\x00\x00\x00\x00\x00\x00", "\x10\x01\x00\x40", "text of an experiment, in words", string(make([]byte, 60)), "\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x2f\x01\x04\x40 a protocol that carries nothing", "\x2f\x11\xe4\x40 reserved flags", "\x2f\x11\x04\x40\x10\x64\x23\x44\x00\x04 shorter than its header", "\x45\x00\x00\x1c"} {
		others = append(others, []byte(b))
	}
	others = append(others, whole[:3]) // the end of the packet
	for n := range 400 {
		b := make([]byte, 1+n%90)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		others = append(others, b)
	}
	spoil := func(at int, v byte) {
		b := bytes.Clone(whole)
		b[at] = v
		broken = append(broken, b)
	}
	spoil(15, 15)  // words that are no hops
	spoil(15, 200) // longer than the packet
	spoil(3, 8)    // longer than the most
	spoil(2, 0x14) // a fragment
	spoil(1, 4)    // IP in IP
	spoil(28, 0xff)
	carriers := []struct {
		name string
		make func(i int, payload []byte) []byte
	}{
		{"IPv4", func(_ int, b []byte) []byte { return ether(0x0800, ip4(253, 0, 9, 8, b)) }},
		{"IPv6", func(_ int, b []byte) []byte { return ether(0x86dd, ip6(253, 0, 9, 8, b)) }},
		{"a tag", func(_ int, b []byte) []byte {
			return ether(0x8100, append([]byte{0, 5, 8, 0}, ip4(253, 0, 9, 8, b)...))
		}},
		{"VXLAN", func(_ int, b []byte) []byte {
			return ether(0x0800, ip4(17, 0, 7, 6, udp(999, 4789, append([]byte{8, 0, 0, 0, 0, 0, 7, 0}, ether(0x0800, ip4(253, 0, 9, 8, b))...))))
		}},
	}
	for _, c := range carriers {
		frames := func(list [][]byte) frames {
			f := frames{c.make(0, whole)}
			for i, b := range list {
				f = append(f, c.make(i, b))
			}
			return f
		}
		s := frames(others).summary(t, "--profile", "auto")
		if s.Reports != 1 || s.Malformed != 0 || s.Ledger.Dropped["foreign"] != int64(len(others)) || len(s.Dialects) != 0 || len(s.Remarks) != 0 {
			t.Errorf("%s: %d reports, %d malformed %v, %d of %d are no telemetry, %v", c.name, s.Reports, s.Malformed, s.MalformedReasons, s.Ledger.Dropped["foreign"], len(others), s.Dialects)
		}
		s = frames(broken).summary(t, "--profile", "auto")
		if c.name != "VXLAN" && (s.Malformed != uint64(len(broken)) || s.Ledger.Dropped["foreign"] != 0) {
			t.Errorf("%s: %d of %d that broke are malformed, %d no telemetry", c.name, s.Malformed, len(broken), s.Ledger.Dropped["foreign"])
		}
		s = frames(others).summary(t, "--profile", "ifa")
		if c.name != "VXLAN" && s.Malformed < uint64(len(others))*9/10 {
			t.Errorf("%s: profile ifa calls %d of %d malformed", c.name, s.Malformed, len(others))
		}
	}
	// In samples they are packets as others.
	var f frames
	for i, b := range others {
		x := carriers[0].make(i, b)
		d := sflow.Datagram{Agent: decode.AddrFrom4([]byte{10, 9, 0, 1}), IPv: 4, Seq: uint32(i + 1), Samples: 1}
		sample := sflow.Sample{Kind: sflow.Flow, Seq: uint32(i + 1), Rate: 1, Has: sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(x)), Header: x}
		f = append(f, reportFrame([4]byte{10, 9, 0, 1}, 6343, sflow.AppendSample(sflow.AppendDatagram(nil, &d), &sample)))
	}
	s := f.summary(t, "--flows", "10")
	if s.Malformed != 0 || len(s.Dialects)+len(s.Remarks) != 0 || len(s.Flows) != 1 || s.Flows[0].Packets != uint64(len(others)) || s.Flows[0].Flow.Proto != 253 {
		t.Errorf("sampled: %d malformed, %v, %v, flows %s", s.Malformed, s.Dialects, s.Remarks, fmt.Sprint(s.Flows))
	}
}
