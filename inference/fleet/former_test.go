package fleet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestFormerPartial reads a partial like a program that has only sections 1 to 8. It passes over the others, and finds
// what it would have got from a collector of its own age.
func TestFormerPartial(t *testing.T) {
	plain := goldenPartial(3)
	want, err := plain.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := goldenPartial(3)
	p.AddLoss(&inference.FlowLoss{Flow: flowKey(5), Packets: 50, Lost: 3, Path: []inference.HopKey{{Node: 1, EgressIf: 2}}})
	p.AddDeviation(&inference.Deviation{Flow: flowKey(5), Ingress: 1, Digests: 9, Last: 15e9, Errors: []inference.MapError{{Kind: inference.Foreign, A: 1, B: 2, Node: 99}}})
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := 3 + 1 + 1 + 8 + 8
	for range 8 {
		_, n := binary.Uvarint(b[at:])
		at += n
	}
	known := bytes.Clone(b[:at])
	passed, last := 0, byte(0)
	for at < len(b) {
		tag, end := b[at], at+5+int(binary.LittleEndian.Uint32(b[at+1:]))
		if tag <= last || end > len(b) {
			t.Fatalf("section %d behind section %d, to byte %d of %d", tag, last, end, len(b))
		}
		if tag <= 8 {
			known = append(known, b[at:end]...)
		} else {
			passed++
		}
		at, last = end, tag
	}
	if passed != 2 || !bytes.Equal(known, want) {
		t.Errorf("%d sections are passed over, and %d bytes of %d are left:\n%x, want\n%x", passed, len(known), len(b), known, want)
	}
}
