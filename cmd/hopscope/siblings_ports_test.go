package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/sflow"
)

// A port of the settings that has a type takes that alone in captures, too, and what else comes there is named with the port.
func TestPortTypesOfCaptures(t *testing.T) {
	datagram := func(port uint16, b []byte) []byte {
		return ether(0x0800, ip4(17, 0, 9, 8, udp(5555, port, b)))
	}
	x := sflow.Datagram{Agent: decode.AddrFrom4([]byte{192, 0, 2, 1}), IPv: 4, Seq: 1, Samples: 1}
	sample := sflow.Sample{Kind: sflow.Flow, Rate: 100, Pool: 100}
	flows := sflow.AppendSample(sflow.AppendDatagram(nil, &x), &sample)
	m := ipfix.Message{Version: ipfix.V10, Domain: 1, Time: 1_790_000_000}
	template := decode.Template{Version: ipfix.V10, ID: 256, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}}}
	export := ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
		b = ipfix.AppendSet(b, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &template) })
		return ipfix.AppendSet(b, 256, 0, func(b []byte) []byte { return append(b, 10, 0, 0, 1, 10, 0, 0, 2) })
	})
	report := reportOf(decode.V10, 1, decode.Tracked, ether(0x0800, ip4(17, 0, 9, 8, udp(5000, 6000, []byte("databyte")))))
	var f frames
	for _, port := range []uint16{32766, 6343, 4739} {
		f = append(f, datagram(port, flows), datagram(port, export), datagram(port, report))
	}
	file := f.file(t)
	for _, c := range []struct {
		name, settings string
		flags          []string
		want           string // kinds of what is read, in the order of frames
		says           []string
	}{
		{"no type", "ports: [\"6343\", \"4739\", \"32766\"]\n", nil, "1 sflow, 2 ipfix, 3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
		{"types", "ports: [\"6343 sflow\", \"[::]:4739 ipfix\", \"0.0.0.0:32766 reports\"]\n", nil, "3 telemetry-report, 4 sflow, 8 ipfix",
			[]string{"UDP port 32766 takes reports alone", "UDP port 6343 takes sFlow alone", "UDP port 4739 takes IPFIX and NetFlow 9 alone"}},
		{"reports alone at the ports of others", "ports: [\"6343 reports\", \"4739 reports\", \"32766 sflow\"]\n", nil, "1 sflow", []string{"UDP port 4739 takes reports alone"}},
		{"one port with two types", "ports: [\"127.0.0.1:6343 reports\", \"[::1]:6343 sflow\", \"32766 reports\"]\n", nil, "3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
		{"another report port", "ports: [\"6343 sflow\", \"4739 ipfix\", \"32766 reports\"]\n", []string{"--report-port", "32766"}, "1 sflow, 2 ipfix, 3 telemetry-report, 4 sflow, 5 ipfix, 7 sflow, 8 ipfix", nil},
	} {
		settings := settingsFile(t, c.settings)
		out, diag, status := run(t, t.TempDir(), append([]string{"decode", file, "--config", settings}, c.flags...)...)
		if status != 0 {
			t.Fatalf("%s: %s", c.name, diag)
		}
		var read []string
		for line := range strings.Lines(out) {
			var o struct {
				Frame  int
				Format string
				Error  *struct{ Reason string }
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			if o.Error == nil {
				read = append(read, fmt.Sprint(o.Frame, " ", o.Format))
			}
		}
		if got := strings.Join(read, ", "); got != c.want {
			t.Errorf("%s: decode reads %s, want %s", c.name, got, c.want)
		}
		s := replayed(t, append([]string{file, "--config", settings}, c.flags...)...)
		if n := uint64(len(read)); s.Reports != n {
			t.Errorf("%s: replay reads %d reports, decode %d", c.name, s.Reports, n)
		}
		said := strings.Join(seen(&s), "\n")
		for _, w := range c.says {
			if !strings.Contains(said, w) || !strings.Contains(diag, w) {
				t.Errorf("%s: no %q in\n%s\nor in\n%s", c.name, w, said, diag)
			}
		}
	}
}
