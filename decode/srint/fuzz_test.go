package srint

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// For any bytes there is no panic. An error names a byte of the input, or the missing one behind it, and leaves no
// hop. Accepted input encodes back to the same bytes.
func FuzzDecodePath(f *testing.F) {
	for _, name := range []string{"int-path-sent", "int-path-received"} {
		b := udp(vector(f, name))
		f.Add(b, len(b), false)
		f.Add(b[:len(b)-1], len(b), true)
	}
	frames(f, "int-path.pcap", func(_ uint64, _ int64, b []byte) { f.Add(b[34:], len(b)-34, false) })
	f.Fuzz(func(t *testing.T, b []byte, length int, lenient bool) {
		length = max(length, len(b))
		var r decode.Report
		DecodePath(&r, b, length, 0, lenient)
		if r.Err.Reason != 0 {
			if r.Err.Offset != 4 || len(r.Hops) > 0 || r.Has != 0 || r.Flags != 0 {
				t.Fatalf("%x: %+v", b, r)
			}
			return
		}
		if len(r.Hops) > MaxPathHops {
			t.Fatalf("%d hops", len(r.Hops))
		}
		if r.Flags&decode.Truncated != 0 {
			return
		}
		var stack []byte
		for i := len(r.Hops) - 1; i >= 0; i-- {
			stack = AppendLabel(stack, &r.Hops[i])
		}
		stack = binary.BigEndian.AppendUint32(stack, r.ActionID)
		if !bytes.HasPrefix(b[72:], stack) {
			t.Fatalf("%x came back as %x", b, stack)
		}
	})
}

func FuzzDecodeProbe(f *testing.F) {
	for _, name := range []string{"int-probe-sent", "int-probe-one-hop", "int-probe-two-hops"} {
		b := vector(f, name)
		f.Add(b[12:], len(b))
	}
	frames(f, "int-probe.pcap", func(_ uint64, _ int64, b []byte) { f.Add(b[12:], len(b)) })
	f.Fuzz(func(t *testing.T, b []byte, length int) {
		if len(b) < 2 {
			return
		}
		kind := TypeINT
		if b[0]&1 == 0 {
			kind = TypeRoute
		}
		data := b[2:]
		length = max(length, len(data))
		var r decode.Report
		ok := DecodeProbe(&r, uint16(kind), data, length, 0)
		if r.Err.Reason != 0 {
			if r.Err.Offset < 0 || r.Err.Offset > length+1 || len(r.Hops) > 0 {
				t.Fatalf("%x: %+v", b, r)
			}
			return
		}
		if !ok || r.Flags&decode.Truncated != 0 {
			return
		}
		var stack []byte
		for i := len(r.Hops) - 1; i >= 0; i-- {
			stack = AppendProbeLabel(stack, &r.Hops[i])
		}
		at := 2
		if kind == TypeRoute {
			at = 4 + len(r.SRPorts) + 2
		}
		for i := range stack {
			if reserved := i%probeLabelLen == 3 || i%probeLabelLen == 20 || i%probeLabelLen == 28; !reserved && stack[i] != data[at+i] {
				t.Fatalf("%x: byte %d of the labels came back as %#x", b, i, stack[i])
			}
		}
	})
}
