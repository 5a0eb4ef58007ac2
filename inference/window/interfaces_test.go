package window

import (
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func fillInterfaces(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		s := inference.InterfaceStats{Node: rng.Uint32N(3), Samples: 1 + rng.Uint64N(3), Counters: decode.Counters{Has: decode.CounterField(rng.Uint32()) & packetCounts, Interface: rng.Uint32N(5)}}
		for i, n := range s.All() {
			if s.Has>>i&1 != 0 {
				*n = rng.Uint64N(1 << 40)
			}
		}
		p.AddInterface(&s)
	}
}

func fillOctets(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		s := inference.InterfaceStats{Node: rng.Uint32N(3), Samples: 1, Counters: decode.Counters{Interface: rng.Uint32N(5)}}
		if rng.IntN(3) > 0 {
			s.Has, s.InOctets = decode.CountInOctets, rng.Uint64N(1<<40)
		}
		if rng.IntN(3) > 0 {
			s.Has |= decode.CountRxUtilization
			s.RxUtilization = uint16(rng.IntN(decode.WholeUtilization + 1))
		}
		if rng.IntN(3) > 0 {
			s.Has |= decode.CountOutOctets
			s.OutOctets = rng.Uint64N(1 << 40)
		}
		p.AddInterface(&s)
	}
}

// Octets sent are of the window's interfaces, in a section of their own, behind all that the version before reads.
func TestInterfaceOctetsSent(t *testing.T) {
	var p, before Partial
	for i := range uint32(5) {
		s := inference.InterfaceStats{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInOctets | decode.CountOutOctets, Interface: i % 3, InOctets: 10, OutOctets: uint64(1000 + i)}}
		p.AddInterface(&s)
		s.Has, s.OutOctets = decode.CountInOctets, 0
		before.AddInterface(&s)
	}
	b, short := encode(t, &p), encode(t, &before)
	if !slices.Equal(b[:len(short)], short) {
		t.Error("octets sent change bytes that earlier versions read")
	}
	w := read(t, b).Window(wide)
	for i, want := range []uint64{2003, 2005, 1002} {
		if s := w.Interfaces[i]; s.OutOctets != want || s.Has != decode.CountInOctets|decode.CountOutOctets {
			t.Errorf("interface %d: %+v, want %d octets sent", i, s, want)
		}
	}
	b[len(short)] = 99 // what earlier versions pass over
	if got := read(t, b).Window(wide); !reflect.DeepEqual(got.Interfaces, before.Window(wide).Interfaces) {
		t.Errorf("%+v", got.Interfaces)
	}
}

// Octets received and the utilisation by them are of the window's interfaces. Readers of before pass over them, and
// have the rest as it was.
func TestInterfaceOctets(t *testing.T) {
	const octets = decode.CountInOctets | decode.CountRxUtilization
	var p, before, q Partial
	for _, s := range []inference.InterfaceStats{
		{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors | octets, Interface: 3, InErrors: 2, InOctets: 1000, RxUtilization: 2500}},
		{Node: 7, Samples: 1, Counters: decode.Counters{Has: octets, Interface: 3, InOctets: 500, RxUtilization: 1200}},
		{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInOctets, Interface: 9, InOctets: 1 << 50}},
		{Node: 8, Samples: 1, Counters: decode.Counters{Has: octets, Interface: 1}},
		{Node: 9, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors, Interface: 1}},
	} {
		p.AddInterface(&s)
		s.Has &^= octets
		s.InOctets, s.RxUtilization = 0, 0
		before.AddInterface(&s)
	}
	want := []inference.InterfaceStats{
		{Node: 7, Samples: 2, Counters: decode.Counters{Has: decode.CountInErrors | octets, Interface: 3, InErrors: 2, InOctets: 1500, RxUtilization: 2500}},
		{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInOctets, Interface: 9, InOctets: 1 << 50}},
		{Node: 8, Samples: 1, Counters: decode.Counters{Has: octets, Interface: 1}},
		{Node: 9, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors, Interface: 1}},
	}
	b := encode(t, &p)
	got := read(t, b)
	if w := got.Window(wide); !reflect.DeepEqual(w.Interfaces, want) {
		t.Errorf("%+v\nwant %+v", w.Interfaces, want)
	}
	var merged, rest Partial
	for range 2 {
		if err := merged.MergeBinary(b, wide, &rest); err != nil {
			t.Fatal(err)
		}
	}
	if s := merged.Window(wide).Interfaces[0]; s.InOctets != 3000 || s.RxUtilization != 2500 || s.Samples != 4 {
		t.Errorf("merged twice: %+v", s)
	}

	short := encode(t, &before)
	if !slices.Equal(b[:len(short)], short) {
		t.Error("octets change bytes that earlier versions read")
	}
	unknown := slices.Clone(b)
	unknown[len(short)] = 99
	if err := q.ReadBinary(unknown, wide); err != nil || !reflect.DeepEqual(q.Window(wide).Interfaces, before.Window(wide).Interfaces) {
		t.Errorf("%+v: %v", q.Window(wide).Interfaces, err)
	}
	for i, bad := range map[int]byte{-3: 0, -1: 0xff, 5: 0} { // no count, a share that goes on, and no items
		b := slices.Clone(b)
		if i < 0 {
			i += len(b)
		} else {
			i += len(short)
		}
		b[i] = bad
		var e *PartialError
		if err := new(Partial).ReadBinary(b, wide); !errors.As(err, &e) {
			t.Errorf("byte %d is %#x: %v", i, bad, err)
		}
	}
}

// Counts that no sample has are absent in a window, and not zero; what is no count is refused.
func TestInterfaces(t *testing.T) {
	var p Partial
	one := inference.InterfaceStats{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInPackets | decode.CountInErrors, Interface: 3, InPackets: 100, InErrors: 2}}
	two := inference.InterfaceStats{Node: 7, Samples: 2, Counters: decode.Counters{Has: decode.CountOutDiscards, Interface: 3, OutDiscards: 5}}
	other := inference.InterfaceStats{Node: 7, Samples: 1, Counters: decode.Counters{Has: decode.CountInPackets, Interface: 2}}
	for _, s := range []inference.InterfaceStats{one, two, other} {
		p.AddInterface(&s)
	}
	sum := one
	sum.Add(&two)
	if w := read(t, encode(t, &p)).Window(wide); !reflect.DeepEqual(w.Interfaces, []inference.InterfaceStats{other, sum}) || sum.Samples != 3 || sum.Has != one.Has|two.Has {
		t.Errorf("%+v", w.Interfaces)
	}
	good := encode(t, &p)
	for i, bad := range map[int]byte{-1: 0xff, -4: 0} { // a count that goes on, and none of the samples
		b := append([]byte{}, good...)
		b[len(b)+i] = bad
		var e *PartialError
		if err := new(Partial).ReadBinary(b, wide); !errors.As(err, &e) {
			t.Errorf("byte %d is %#x: %v", i, bad, err)
		}
	}
	const golden = "testdata/partial-v3-interfaces.bin"
	rng := rand.New(rand.NewPCG(5, 15))
	var g Partial
	fillInterfaces(&g, rng)
	if *update {
		if err := os.WriteFile(golden, encode(t, &g), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != string(encode(t, &g)) {
		t.Errorf("%s holds other bytes: %v", golden, err)
	}
}
