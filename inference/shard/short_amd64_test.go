//go:build !purego

package shard

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// TestStackCodes compares the codes of stacks in assembly with those in Go: of paths of every length, with values of
// every size, absent ones, hops without a place, and other paths.
func TestStackCodes(t *testing.T) {
	if !hasAVX512 {
		t.Skip("the processor has no AVX-512")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 200_000 {
		n := 1 + rng.IntN(inline)
		u := decode.Units{LatencyNS: 1 << rng.IntN(3), QueueBytes: []uint64{1, 80, 1 << 20, 1<<64 - 1}[rng.IntN(4)]}
		r := decode.Lazy{Shape: &decode.Shape{Hops: n, Stride: 16, Common: decode.Report{Units: &u}}}
		var refs [inline]uint16
		hops := make([]decode.Hop, n)
		for i := range r.Stack {
			r.Stack[i] = uint8(rng.Uint32())
		}
		for i := range refs {
			refs[i] = uint16(1 + rng.IntN(1<<16-1))
		}
		if rng.IntN(16) == 0 {
			refs[rng.IntN(inline)] = other
		}
		for i := range hops {
			at := r.Stack[16*(n-1-i):]
			latency, queue := rng.Uint32()>>rng.IntN(33), rng.Uint32()>>(8+rng.IntN(25))
			switch rng.IntN(64) {
			case 0:
				latency = 1<<32 - 1
			case 1:
				queue = max24
			}
			binary.BigEndian.PutUint32(at[8:], latency)
			binary.BigEndian.PutUint32(at[12:], uint32(rng.IntN(256))<<24|queue)
			hops[i] = decode.Hop{NodeID: binary.BigEndian.Uint32(at), IngressIf: binary.BigEndian.Uint16(at[4:]), EgressIf: binary.BigEndian.Uint16(at[6:]), Has: decode.HopIngressIf | decode.HopEgressIf}
		}
		id, limit := inference.PathID(hops), uint64(1+rng.IntN(rowCodes))
		if rng.IntN(16) == 0 {
			id ^= 1 << rng.IntN(64)
		}
		var codes, codesGo [inline]uint16
		var counters, countersGo [2 * inline]uint32
		ok := stackCodes(&r.Stack[0], &refs[0], &codes[0], &counters[0], n, u.LatencyNS, u.QueueBytes, limit, id)
		if want := stackCodesGo(&r, &refs, &codesGo, &countersGo, limit, id); ok != want {
			t.Fatalf("%v, want %v: %x, %d hops, references %d, limit %d", ok, want, r.Stack[:16*n], n, refs, limit)
		}
		if !ok {
			continue
		}
		accepted++
		clear(counters[2*n:])
		if codes != codesGo || counters != countersGo {
			t.Fatalf("%x, %d hops:\n%d\n%d, want\n%d\n%d", r.Stack[:16*n], n, codes, counters, codesGo, countersGo)
		}
	}
	if accepted < 20_000 {
		t.Errorf("%d stacks have no exception", accepted)
	}
}
