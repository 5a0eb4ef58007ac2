package srint

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
)

func BenchmarkDecode(b *testing.B) {
	var r decode.Report
	path, probe := udp(vector(b, "int-path-received")), vector(b, "int-probe-two-hops")[14:]
	b.Run("int-path/hops=3", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Reset()
			DecodePath(&r, path, len(path), 34, false)
		}
	})
	b.Run("int-probe/hops=2", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Reset()
			DecodeProbe(&r, TypeINT, probe, len(probe), 14)
		}
	})
	b.Run("reset", func(b *testing.B) { // the share of emptying the report
		for b.Loop() {
			r.Reset()
		}
	})
}

func BenchmarkSwitch(b *testing.B) {
	payload, err := AppendPath(nil, []int{2, 4, 1}, 5)
	if err != nil {
		b.Fatal(err)
	}
	frame := make([]byte, 0, 1024)
	first := ipv4(payload)
	b.ReportAllocs()
	for b.Loop() { // one probe through three switches
		frame = append(frame[:0], first...)
		for i := range pathHops {
			PopPort(frame, 14)
			frame, _ = PushLabel(frame, 14, &pathHops[i])
		}
	}
}
