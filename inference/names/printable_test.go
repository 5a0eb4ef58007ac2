package names

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Text from a store does not steer the terminal.
func TestPrintable(t *testing.T) {
	if got := PrintableLines("a\x1b[31mb\nc\u202e\xff"); got != "a\ufffd[31mb\nc\ufffd\ufffd" {
		t.Errorf("Printable = %q", got)
	}
	if got := Printable("a\nb"); got != "a\ufffdb" {
		t.Errorf("Printable = %q", got)
	}
}

// TestPrinted: of texts with any one byte at any place, and of random ones, as many bytes are printed as byte by byte.
func TestPrinted(t *testing.T) {
	byByte := func(p []byte) int {
		return max(0, slices.IndexFunc(append(slices.Clone(p), 0), func(c byte) bool { return (c < ' ' || c > '~') && c != '\n' && c != '\t' }))
	}
	for size := range 40 {
		for at := range size {
			for c := range 256 {
				p := bytes.Repeat([]byte{'~'}, size)
				if p[at] = byte(c); printed(p) != byByte(p) {
					t.Fatalf("%q: %d bytes, want %d", p, printed(p), byByte(p))
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		p := make([]byte, r.IntN(40))
		for i := range p {
			if p[i] = byte(' ' + r.IntN('~'-' '+1)); r.IntN(30) == 0 {
				p[i] = byte(r.Uint32())
			}
		}
		if printed(p) != byByte(p) {
			t.Fatalf("%q: %d bytes, want %d", p, printed(p), byByte(p))
		}
	}
}

// A text from the network is not cut within a character, and what else is no text stays to be seen.
func TestReadable(t *testing.T) {
	const most = 1024
	for pad := range 4 {
		text := strings.Repeat("x", pad) + strings.Repeat("漢", most)
		got, ok := strings.CutSuffix(Readable(text, most), "…")
		if !ok || !strings.HasPrefix(text, got) || len(got) < most-3 {
			t.Errorf("with %d bytes before: %q", pad, got)
		}
	}
	if got := Readable("a\xffb\x1b\u202ec", 100); got != "a\ufffdb\ufffd\ufffdc" {
		t.Errorf("%q", got)
	}
}
