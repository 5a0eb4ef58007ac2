//go:build amd64 && !purego

package shard

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// TestStackCodesExtremes compares the assembly with its twin at units of every size, of which products wrap or have the sign,
// for paths of no hop to the longest, at odd places. What lies before and behind the written lanes remains.
func TestStackCodesExtremes(t *testing.T) {
	if !hasAVX512 {
		t.Skip("the processor has no AVX-512")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	unit := func() uint64 {
		switch rng.IntN(4) {
		case 0:
			return rng.Uint64N(3) // 0 is no unit
		case 1:
			return 1<<rng.IntN(64) - rng.Uint64N(2)
		case 2:
			return -(rng.Uint64N(8) * (1<<32 + 1)) // the largest latency is a small value
		}
		return rng.Uint64() >> rng.IntN(64)
	}
	value := func(bits int) uint32 {
		switch most := uint32(1<<bits - 1); rng.IntN(8) {
		case 0:
			return most - rng.Uint32N(3)
		case 1:
			return (1<<rng.IntN(bits) - rng.Uint32N(2)) & most
		case 2:
			return rng.Uint32N(40)
		default:
			return rng.Uint32() & most >> rng.IntN(bits)
		}
	}
	const sentinel = 0xa5a5
	type guarded struct {
		odd      [1]uint16
		codes    [inline]uint16
		behind   [9]uint16
		before   [1]uint32
		counters [2 * inline]uint32
		last     [17]uint32
	}
	var fresh guarded
	for i := range fresh.behind {
		fresh.behind[i] = sentinel
	}
	for i := range fresh.last {
		fresh.last[i] = sentinel
	}
	fresh.odd[0], fresh.before[0] = sentinel, sentinel
	accepted := 0
	for range 200_000 {
		n := rng.IntN(inline + 1)
		u := decode.Units{LatencyNS: unit(), QueueBytes: unit()}
		r := decode.Lazy{Shape: &decode.Shape{Hops: n, Stride: 16, Common: decode.Report{Units: &u}}}
		for i := 0; i < len(r.Stack); i += 8 {
			binary.BigEndian.PutUint64(r.Stack[i:], rng.Uint64())
		}
		var refs [inline]uint16
		for i := range refs {
			refs[i] = uint16(min(rng.Uint32()>>(8+rng.IntN(24)), math.MaxUint16)) | 1
		}
		if rng.IntN(8) == 0 {
			refs[rng.IntN(inline)] = other
		}
		hops := make([]decode.Hop, n)
		for i := range hops {
			at := r.Stack[16*(n-1-i):]
			if rng.IntN(8) == 0 {
				binary.BigEndian.PutUint64(at, []uint64{0, math.MaxUint64, uint64(i+1) * 0x9e3779b97f4a7c15}[rng.IntN(3)])
			}
			binary.BigEndian.PutUint32(at[8:], value(32))
			binary.BigEndian.PutUint32(at[12:], rng.Uint32()<<24|value(24))
			hops[i] = decode.Hop{NodeID: binary.BigEndian.Uint32(at), IngressIf: binary.BigEndian.Uint16(at[4:]), EgressIf: binary.BigEndian.Uint16(at[6:]), Has: decode.HopIngressIf | decode.HopEgressIf}
		}
		id, limit := inference.PathID(hops), rng.Uint64N(rowCodes+1)
		if rng.IntN(2) == 0 {
			limit = rowCodes
		}
		if rng.IntN(16) == 0 {
			id = []uint64{0, 1, id ^ 1<<rng.IntN(64)}[rng.IntN(3)]
		}
		got, want := fresh, fresh
		ok := stackCodes(&r.Stack[0], &refs[0], &got.codes[0], &got.counters[0], n, u.LatencyNS, u.QueueBytes, limit, id)
		if wanted := stackCodesGo(&r, &refs, &want.codes, &want.counters, limit, id); ok != wanted {
			t.Fatalf("%v, want %v: %x, units %+v, references %d, limit %d, id %x", ok, wanted, r.Stack[:16*n], u, refs, limit, id)
		}
		if !ok {
			got.codes, want.codes, want.counters = fresh.codes, fresh.codes, fresh.counters
		} else {
			accepted++
			clear(got.counters[2*n:])
			clear(want.counters[2*n:])
		}
		if got != want {
			t.Fatalf("%x, units %+v, references %d, limit %d:\n%+v, want\n%+v", r.Stack[:16*n], u, refs, limit, got, want)
		}
	}
	if accepted < 20_000 {
		t.Errorf("%d stacks have no exception", accepted)
	}
}
