package flowtable

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/sketches/exact"
)

func hash(k uint64) uint64 { k *= 0x9e3779b97f4a7c15; k ^= k >> 32; return k * 0xd6e8feb86659fd93 }

// The twin is a map that is told of evictions.
func TestMatchesMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		type twin struct {
			slot uint32
			n    int
		}
		want := map[uint64]*twin{}
		lost := exact.Counts[Reason]{}
		var now int64
		tab, err := New(Config{MemoryBytes: 6000, IdleTimeout: 500}, func(slot uint32, e *Entry[uint64, int], why Reason) {
			w := want[e.Key]
			if w == nil || w.slot != slot || w.n != e.Value {
				t.Fatalf("seed %d: evicted slot %d %+v, want %+v", seed, slot, *e, w)
			}
			if why == Idle && e.Seen >= now-500 {
				t.Fatalf("seed %d: evicted as idle at %d: %+v", seed, now, *e)
			}
			lost.Add(why, 1)
			delete(want, e.Key)
		})
		if err != nil {
			t.Fatal(err)
		}
		if tab.Bytes() > 6000 {
			t.Fatalf("%d bytes", tab.Bytes())
		}
		var slots [64]uint32
		for range 20000 {
			now += int64(r.IntN(20) * r.IntN(20))
			switch r.IntN(4) {
			case 0:
				tab.Sweep(now, r.IntN(20))
			case 1:
				if tab.Len() > 0 {
					for slot, e := range tab.All() {
						if r.IntN(10) == 0 {
							_ = e
							tab.Delete(slot)
							break
						}
					}
				}
			default:
				n := 1 + r.IntN(len(slots))
				keys, hashes := make([]uint64, n), make([]uint64, n)
				for i := range keys {
					keys[i] = uint64(r.IntN(1 + r.IntN(400)))
					hashes[i] = hash(keys[i]) & (0x7<<61 | 0xffff) // collide
				}
				tab.FindAll(hashes, keys, now, slots[:n], func(i int, slot uint32) { want[keys[i]] = &twin{slot: slot} })
				for i, slot := range slots[:n] {
					if w := want[keys[i]]; w == nil || slot == None || tab.At(slot).Key != keys[i] || w.slot != slot {
						t.Fatalf("seed %d: key %d at slot %d, want %+v", seed, keys[i], slot, w)
					}
					want[keys[i]].n++
					tab.At(slot).Value++
				}
			}
			if tab.Len() != len(want) {
				t.Fatalf("seed %d: %d entries, want %d", seed, tab.Len(), len(want))
			}
		}
		s := tab.Stats()
		if s.Idle != lost[Idle] || s.Pressure != lost[Pressure] || s.Refused != 0 || lost[Idle] == 0 || lost[Pressure] == 0 {
			t.Errorf("seed %d: %+v, want %v", seed, s, lost)
		}
		for k, w := range want {
			if slot := tab.Get(hash(k)&(0x7<<61|0xffff), &k); slot != w.slot {
				t.Errorf("seed %d: key %d at slot %d, want %d", seed, k, slot, w.slot)
			}
		}
	}
}
