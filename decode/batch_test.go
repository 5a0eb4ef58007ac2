package decode

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// dirty fills a report with values that the next user must not see.
func dirty(r *Report, id uint32) {
	r.NodeID, r.Has, r.Kind, r.Unknown = id, HasNodeID|HasFlow, KindDrop, []byte{1}
	r.Fail(PINT, "digest", 3, BadDigest)
	r.AddHop().NodeID = id
	r.AddHop().Latency = id
}

func empty(r *Report) bool {
	c := *r
	c.Hops = nil
	return reflect.DeepEqual(c, Report{}) && len(r.Hops) == 0
}

func TestBatch(t *testing.T) {
	var b Batch
	for round := range 3 {
		for i := range 20 {
			r := b.Next()
			if !empty(r) {
				t.Fatalf("round %d: Next gave %+v", round, r)
			}
			if i%3 == 0 {
				dirty(r, 99)
				b.Cancel()
				r = b.Next()
				if !empty(r) {
					t.Fatalf("round %d: Next after Cancel gave %+v", round, r)
				}
			}
			dirty(r, uint32(i))
		}
		for i, r := range b.Reports {
			if r.NodeID != uint32(i) || len(b.Reports) != 20 {
				t.Fatalf("round %d: report %d of %d is of node %d", round, i, len(b.Reports), r.NodeID)
			}
		}
		b.Reset()
	}
	if n := testing.AllocsPerRun(100, func() {
		for range 20 {
			dirtyHops(b.Next())
		}
		b.Reset()
	}); n != 0 {
		t.Errorf("%v allocs per batch, want 0", n)
	}
}

func dirtyHops(r *Report) {
	for range 5 {
		r.AddHop()
	}
}

// Reports scatter in order, none is lost or shared, and after a while nothing allocates.
func TestScatter(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	var in Batch
	out := make([]Batch, 3)
	next := uint32(0)
	round := func() {
		for i := range out {
			out[i].Reset()
		}
		want := make([][]uint32, len(out))
		for range rng.IntN(40) {
			r := in.Next()
			if !empty(r) {
				t.Fatalf("seed %d: Next gave %+v", seed, r)
			}
			dirty(r, next)
			next++
		}
		in.Scatter(func(r *Report) *Batch {
			k := int(r.NodeID*2654435761>>16) % (len(out) + 1)
			if k == len(out) {
				return nil // dropped
			}
			want[k] = append(want[k], r.NodeID)
			return &out[k]
		})
		if len(in.Reports) != 0 {
			t.Fatal("Scatter left reports behind")
		}
		seen := map[*Report]bool{}
		for k := range out {
			var got []uint32
			for _, r := range out[k].Reports {
				if seen[r] {
					t.Fatalf("seed %d: a report is in two places", seed)
				}
				seen[r] = true
				got = append(got, r.NodeID)
			}
			if !slices.Equal(got, want[k]) {
				t.Fatalf("seed %d: batch %d has %v, want %v", seed, k, got, want[k])
			}
		}
	}
	for range 200 {
		round()
	}
	fill := func() {
		for i := range out {
			out[i].Reset()
		}
		for i := range 30 {
			in.Next().NodeID = uint32(i)
		}
		in.Scatter(func(r *Report) *Batch { return &out[r.NodeID%3] })
	}
	for range 10 {
		fill()
	}
	if n := testing.AllocsPerRun(100, fill); n != 0 {
		t.Errorf("%v allocs per batch, want 0", n)
	}
}

func TestGrow(t *testing.T) {
	var r Report
	r.AddHop().NodeID = 1
	hops := r.Grow(300)
	if len(hops) != 301 || len(r.Hops) != 301 || hops[0].NodeID != 1 {
		t.Errorf("Grow: %d hops, first %+v", len(r.Hops), hops[0])
	}
}

// Merge sets every missing value, and no present one.
func TestMerge(t *testing.T) {
	full := func(v uint32) Hop {
		return Hop{
			Has: 1<<17 - 1, NodeID: v, IngressIf: uint16(v), EgressIf: uint16(v), Latency: v, QueueOccupancy: v, BufferOccupancy: v,
			TxUtilization: v, QueueCongestion: v, L2IngressIf: v, L2EgressIf: v, IngressTime: uint64(v), EgressTime: uint64(v),
			EnqTime: v, QueueDelay: v, DeqOccupancy: v, QueueID: uint8(v), BufferID: uint8(v), TimeBits: 64,
		}
	}
	one, two := full(1), full(2)
	h := Hop{}
	if h.Merge(&one); h != one {
		t.Errorf("an empty hop and %+v = %+v", one, h)
	}
	if h.Merge(&two); h != one {
		t.Errorf("%+v and %+v = %+v", one, two, h)
	}
	h = Hop{Has: HopEgressTime, EgressTime: 7, TimeBits: 64}
	h.Merge(&Hop{Has: HopIngressTime | HopLatency, IngressTime: 5, TimeBits: 32, Latency: 3})
	want := Hop{Has: HopEgressTime | HopIngressTime | HopLatency, EgressTime: 7, IngressTime: 5, Latency: 3, TimeBits: 32}
	if h != want {
		t.Errorf("times of two widths: %+v, want %+v", h, want)
	}
}
