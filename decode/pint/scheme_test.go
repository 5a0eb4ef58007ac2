package pint

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

func TestCRC(t *testing.T) {
	for range 1000 {
		x, a := rand.Uint32(), uint16(rand.Uint32())
		var b [6]byte
		binary.BigEndian.PutUint32(b[:], x)
		binary.BigEndian.PutUint16(b[4:], a)
		if got, want := crc(x), crc32.ChecksumIEEE(b[:4]); got != want {
			t.Fatalf("crc(%#x) = %#x, want %#x", x, got, want)
		}
		if got, want := crc48(x, a), crc32.ChecksumIEEE(b[:]); got != want {
			t.Fatalf("crc48(%#x, %#x) = %#x, want %#x", x, a, got, want)
		}
		if got, want := crc16(a), crc32.ChecksumIEEE(b[4:]); got != want {
			t.Fatalf("crc16(%#x) = %#x, want %#x", a, got, want)
		}
	}
}

// The decoder's writers of a path equal those of its switches one after the other.
func TestDigestIsWhatSwitchesWrite(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, s := range schemes(t) {
		for range 2000 {
			path := make([]uint32, 1+rng.IntN(MaxHops))
			for i := range path {
				path[i] = rng.Uint32N(200)
			}
			id := rng.Uint32N(1200)
			var d uint64
			for i, v := range path {
				d = s.Write(d, id, i+1, v)
			}
			if want := s.Digest(id, path); d != want {
				t.Fatalf("seed %d: %s: packet %d, path %d: switches %#x, decoder %#x", seed, name, id, path, d, want)
			}
		}
	}
}
