package pint

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

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

// The examples again as packets, which a program in Python made.
func TestDialectVectors(t *testing.T) {
	found := 0
	for _, name := range testkit.VectorNames() {
		kind, _, _ := strings.Cut(strings.TrimPrefix(name, "pint-"), "-")
		if !strings.HasPrefix(name, "pint-") || kind == "hpcc" {
			continue
		}
		found++
		b, err := testkit.Vector(name)
		if err != nil {
			t.Fatal(err)
		}
		switch kind {
		case "mininet":
			id, hops := uint32(binary.BigEndian.Uint16(b[18:])), int(255-b[22])
			mac := binary.BigEndian.Uint64(b) >> 16
			digest, ok := MininetLanes(mac)
			s := Mininet()
			if want := s.Digest(id, []uint32{0, 1, 2, 3, 4}); !ok || hops != 5 || uint64(digest) != want || MininetMAC(digest) != mac {
				t.Errorf("%s: packet %d, %d hops: digest %#x, want %#x", name, id, hops, digest, want)
			}
			if r := s.Check(id, hops, uint64(digest)); r != Plausible {
				t.Errorf("%s: %v", name, r)
			}
		case "tofino":
			id, hops := uint32(binary.BigEndian.Uint16(b[24:])), int(255-b[28])
			digest := uint64(binary.BigEndian.Uint32(b[14:]))
			for _, high := range []bool{false, true} {
				s := Tofino(high)
				if want := s.Digest(id, []uint32{0, 3, 4}); hops != 3 || digest != want {
					t.Errorf("%s: packet %d, %d hops: digest %#x, want %#x", name, id, hops, digest, want)
				}
				if r := s.Check(id, hops, digest); r != Plausible {
					t.Errorf("%s: %v", name, r)
				}
			}
		}
	}
	if found != 8 {
		t.Errorf("%d vectors, want 8", found)
	}
}

func TestHPCCVectors(t *testing.T) {
	for name, base := range map[string]float64{"pint-hpcc-1": 1.05, "pint-hpcc-2": 1.01} {
		b, err := testkit.Vector(name)
		if err != nil {
			t.Fatal(err)
		}
		h := hpcc(t, base)
		d, ok := h.Digest(b[20+8+6:])
		if u := h.Decode(d) / UtilizationUnit; !ok || u < .749 || u > .752 {
			t.Errorf("%s: utilisation %.3f, want 0.75", name, u)
		}
	}
}

// Entries that the Tofino program's tables lack are 0, and 0 is below every limit.
func TestTofinoBeyondItsTables(t *testing.T) {
	s := Tofino(false)
	for id := uint32(990); id < 1010; id++ {
		for hops := 1; hops <= 12; hops++ {
			if got, want := s.Known(id, hops), id < 1000 && hops <= 9; got != want {
				t.Errorf("Known(%d, %d) = %v", id, hops, got)
			}
			p := s.Packet(id, 0)
			if id >= 1000 || hops > 9 {
				if got, want := s.Writes(&p, hops), !p.Baseline || hops <= 10; got != want {
					t.Errorf("packet %d: hop %d writes: %v", id, hops, got)
				}
			}
		}
	}
	for c, want := range map[[3]uint32]uint32{{7, 1, 0}: 28434, {7, 2, 0}: 38338, {500, 3, 0}: 9019} {
		if got := tofinoHashes().hops[c[0]][c[1]]; uint32(got) != want {
			t.Errorf("global(%d, %d) = %d, want %d", c[1], c[0], got, want)
		}
	}
}

// The rules of the published programs, and what they let through.
func TestCheck(t *testing.T) {
	m, own := Mininet(), scheme(t, Config{Bits: 8, Instances: 2, P: []float64{.1}})
	wide := scheme(t, Config{Bits: 32, Instances: 2, Tau: 1})
	none := uint32(0)
	for p := own.Packet(none, 1); own.Writers(&p, 3) != 0; p = own.Packet(none, 1) {
		none++
	}
	for _, c := range []struct {
		name   string
		s      *Scheme
		id     uint32
		hops   int
		digest uint64
		want   Reason
	}{
		{"no hops", m, 7, 0, 0, BadHops},
		{"many hops", m, 7, 65, 0, BadHops},
		{"id beyond the tables", Tofino(false), 1000, 3, 0, UnknownHash},
		{"hop beyond the tables", Tofino(false), 7, 10, 0, UnknownHash},
		{"wide", m, 7, 5, 1 << 13, TooWide},
		{"wide instances", own, 7, 5, 1 << 16, TooWide},
		{"all bits", wide, 7, 5, 1<<64 - 1, Plausible},
		{"nobody wrote", m, 1, 5, 1, NoWriter},
		{"nobody wrote nothing", m, 1, 5, 0, Plausible},
		{"nobody wrote into the second instance", own, none, 3, 1 << 8, NoWriter},
		{"high lane", m, 7, 5, 255 << 5, HighLane},
		{"middle lane", m, 7, 5, 7 << 1, MiddleLane},
		{"low lane", m, 7, 5, 1, LowLane},
		{"highest lanes", m, 7, 5, 254<<5 | 6<<1, Plausible},
		{"lanes of an XOR", m, 13, 5, 255<<5 | 15<<1 | 1, Plausible},
	} {
		if got := c.s.Check(c.id, c.hops, c.digest); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if Reason(200).String() != "unknown reason" || NoWriter.String() != "digest without a writer" {
		t.Error("names of reasons")
	}
}

// Every digest of switches is plausible.
func TestWrittenDigestsArePlausible(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, s := range schemes(t) {
		for range 2000 {
			path := make([]uint32, 1+rng.IntN(9))
			for i := range path {
				path[i] = rng.Uint32N(1 << 20)
			}
			id := rng.Uint32N(1000)
			if r := s.Check(id, len(path), s.Digest(id, path)); r != Plausible {
				t.Fatalf("seed %d: %s: packet %d over %d: %v", seed, name, id, path, r)
			}
		}
	}
}
