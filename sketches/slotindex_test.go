package sketches

import (
	"math/rand/v2"
	"testing"
)

// The twin is a map from tag to its slots. Few different tags, all in one corner, make long clusters that wrap around.
func TestSlotIndexMatchesMap(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		const n = 200
		x := NewSlotIndex(n)
		shift := r.IntN(32) // from all over the index to all at its end
		where, tags := map[uint32]map[uint32]bool{}, make([]uint32, n)
		var free, used []uint32
		for s := range uint32(n) {
			free = append(free, s)
		}
		for range 20_000 {
			if r.IntN(2) == 0 && len(free) > 0 {
				s := free[len(free)-1]
				free = free[:len(free)-1]
				used = append(used, s)
				tag := ^(r.Uint32() >> shift)
				tags[s] = tag
				if where[tag] == nil {
					where[tag] = map[uint32]bool{}
				}
				where[tag][s] = true
				x.Insert(tag, s)
			} else if len(used) > 0 {
				i := r.IntN(len(used))
				s := used[i]
				used[i] = used[len(used)-1]
				used = used[:len(used)-1]
				free = append(free, s)
				delete(where[tags[s]], s)
				x.Delete(tags[s], s)
				x.Delete(tags[s], s) // nothing more happens
			}
			tag := ^(r.Uint32() >> shift)
			found := 0
			for pos, s := x.Find(tag, -1); s != NoSlot; pos, s = x.Find(tag, pos) {
				if !where[tag][s] {
					t.Fatalf("seed %d: slot %d is found under tag %x", seed, s, tag)
				}
				found++
			}
			if found != len(where[tag]) {
				t.Fatalf("seed %d: tag %x has %d slots, want %d", seed, tag, found, len(where[tag]))
			}
		}
		x.Clear()
		for _, s := range used {
			if _, got := x.Find(tags[s], -1); got != NoSlot {
				t.Fatalf("seed %d: slot %d is found after Clear", seed, got)
			}
		}
	}
}

// However many slots share a tag, a look-up reads at most SlotReach cells, and finds what was inserted.
func TestReach(t *testing.T) {
	const n = 4 * SlotReach
	x := NewSlotIndex(n)
	in := map[uint32]bool{}
	for s := range uint32(n) {
		if x.Insert(7, s) {
			in[s] = true
		}
	}
	if len(in) != SlotReach {
		t.Fatalf("%d slots under one tag, want %d", len(in), SlotReach)
	}
	if !x.Insert(1<<31, n-1) {
		t.Fatal("no room for another tag")
	}
	for len(in) > 0 {
		found := 0
		for pos, s := x.Find(7, -1); s != NoSlot; pos, s = x.Find(7, pos) {
			if !in[s] {
				t.Fatalf("slot %d was not inserted", s)
			}
			found++
		}
		if found != len(in) {
			t.Fatalf("%d of %d slots found", found, len(in))
		}
		for s := range in { // any of them
			x.Delete(7, s)
			delete(in, s)
			if len(in)%97 != 0 {
				continue
			}
			break
		}
	}
}
