package window

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func fillGaps(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		g := Gap{ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{10, 0, 0, 1}), Node: rng.Uint32N(3), HWID: uint8(rng.IntN(2))}, To: rng.Uint64N(3), Width: 22,
			First: rng.Uint32N(1 << 22), Count: 1 + rng.Uint32N(1000)}
		g.Nameless = g.Node == 0 && rng.IntN(2) == 0
		p.AddGap(&g)
	}
}

// Gaps are read as they were written, also of a node whose id is 0. Readers of before pass over them, and have the rest
// as it was.
func TestGaps(t *testing.T) {
	var p, before, q Partial
	fillGolden(&p, rand.New(rand.NewPCG(7, 21)))
	fillGolden(&before, rand.New(rand.NewPCG(7, 21)))
	key := inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, 1})}
	want := []Gap{{ExporterKey: key, To: 9, Width: 32, First: 1<<32 - 2, Count: 5}, {ExporterKey: key, Width: 8, First: 200, Count: 255}}
	want[1].Nameless = true
	slices.SortFunc(want, func(a, b Gap) int { return a.Compare(&b) })
	for i := range want {
		p.AddGap(&want[len(want)-1-i])
	}
	b, short := encode(t, &p), encode(t, &before)
	if got := read(t, b).Gaps(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if !slices.Equal(b[:len(short)], short) {
		t.Error("gaps change bytes that earlier versions read")
	}
	unknown := slices.Clone(b)
	unknown[len(short)] = 99
	if err := q.ReadBinary(unknown, wide); err != nil || len(q.Gaps()) != 0 || !slices.Equal(encode(t, &q), short) {
		t.Errorf("%v", err)
	}
	for i, bad := range map[int]byte{6: 2, -1: 0} { // an unknown flag, and no count
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
	if p.DropAcross(); len(p.Gaps()) != 0 {
		t.Errorf("%d gaps are left", len(p.Gaps()))
	}
}
