package pint

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"
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

// The worked examples: path of switches 0, 1, 2, 3, 4.
func TestMininetExamples(t *testing.T) {
	s := Mininet()
	path := []uint32{0, 1, 2, 3, 4}
	for _, c := range []struct {
		id  uint32
		mac uint64
	}{
		{7, 0x009d00050000},
		{100, 0x00fb00060000},
		{200, 0x00d800040000},
		{13, 0x000400040000},
		{23, 0x000300010001},
		{1, 0},
	} {
		if got := MininetMAC(uint32(s.Digest(c.id, path))); got != c.mac {
			t.Errorf("packet %d: %012x, want %012x", c.id, got, c.mac)
		}
	}
}

func TestTofinoExamples(t *testing.T) {
	if got := tofinoValue(&Packet{id: 7}, 0); got != 0xd7a5bf45 {
		t.Errorf("value(0, 7) = %x", got)
	}
	if got := tofinoValue(&Packet{id: 7}, 3); got != 0x86e7e189 {
		t.Errorf("value(3, 7) = %x", got)
	}
	if got := tofinoValue(&Packet{id: 500}, 4); got != 0xcea232f3 {
		t.Errorf("value(4, 500) = %x", got)
	}
}

// What the decoder thinks of a path is what its switches do one after the other.
func TestDigestIsWhatSwitchesWrite(t *testing.T) {
	schemes := map[string]*Scheme{"mininet": Mininet(), "tofino": Tofino(false)}
	for name, c := range map[string]Config{
		"mix":       {Bits: 8, Instances: 2, Tau: .5, P: []float64{.1}},
		"crc":       {Hash: HashCRC, Bits: 4, Instances: 3, Tau: .4, P: []float64{.05, .2}},
		"fragments": {Bits: 8, Instances: 1, Tau: .3, P: []float64{.1}, ValueBits: 32},
	} {
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		schemes[name] = s
	}
	for name, s := range schemes {
		for range 2000 {
			path := make([]uint32, 1+rand.IntN(10))
			for i := range path {
				path[i] = rand.Uint32N(200)
			}
			id := rand.Uint32N(1000)
			var d uint64
			for i, v := range path {
				d = s.Write(d, id, i+1, v)
			}
			if want := s.Digest(id, path); d != want {
				t.Fatalf("%s: packet %d, path %d: switches %#x, decoder %#x", name, id, path, d, want)
			}
		}
	}
}
