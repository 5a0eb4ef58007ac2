package decode

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// sets are keys as words. Some are such as a sender with knowledge of hashes would choose. They are constants of
// well-known hashes that make a factor zero, and multiples and complements of one another.
func sets(n int, r *rand.Rand) map[string][][5]uint64 {
	known := []uint64{0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x9e3779b97f4a7c15, 0, ^uint64(0), 1 << 63}
	all := map[string][][5]uint64{}
	add := func(name string, key func(i int) [5]uint64) {
		keys := make([][5]uint64, n)
		for i := range keys {
			keys[i] = key(i)
		}
		all[name] = keys
	}
	add("random", func(int) [5]uint64 { return [5]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()} })
	base := [5]uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
	for w := range base {
		add(fmt.Sprintf("sequential in word %d", w), func(i int) [5]uint64 { k := base; k[w] = uint64(i); return k })
		add(fmt.Sprintf("high bits of word %d", w), func(i int) [5]uint64 { k := base; k[w] = bits.Reverse64(uint64(i)); return k })
		for _, c := range known { // one word fixed at a constant, another free
			add(fmt.Sprintf("%#x in word %d", c, w), func(i int) [5]uint64 {
				k := base
				k[w], k[min(w^1, 3)] = c, uint64(i)*0x9e3779b97f4a7c15
				return k
			})
			add(fmt.Sprintf("multiples of %#x in word %d", c, w), func(i int) [5]uint64 { k := base; k[w] = c * uint64(i+1); return k })
		}
	}
	add("few bits", func(i int) [5]uint64 {
		k := base
		for range 3 {
			b := r.IntN(320)
			k[b/64] ^= 1 << (b % 64)
		}
		return k
	})
	add("complements", func(i int) [5]uint64 {
		k := [5]uint64{uint64(i / 2), uint64(i / 2), uint64(i / 2), uint64(i / 2), 7}
		if i%2 == 1 {
			for w := range k {
				k[w] = ^k[w]
			}
		}
		return k
	})
	return all
}

// probes counts the cells that inserting hashes into a table with linear probing reads, a third of whose cells stay
// empty.
func probes(hashes []uint64) (cells int) {
	table := make([]bool, len(hashes)*3/2)
	for _, h := range hashes {
		at, _ := bits.Mul64(h, uint64(len(table)))
		for cells++; table[at]; cells++ {
			if at++; at == uint64(len(table)) {
				at = 0
			}
		}
		table[at] = true
	}
	return cells
}

// For any keys that a sender chooses without the seed, a table does no more work than for random ones.
func TestHashOfChosenKeys(t *testing.T) {
	const n = 6000
	r := rand.New(rand.NewPCG(1, 2))
	hashes := map[string]func(*HashKey, *[5]uint64) uint64{
		"flow": func(h *HashKey, k *[5]uint64) uint64 {
			var f FlowKey
			le := binary.LittleEndian
			le.PutUint64(f.Src[:], k[0])
			le.PutUint64(f.Src[8:], k[1])
			le.PutUint64(f.Dst[:], k[2])
			le.PutUint64(f.Dst[8:], k[3])
			f.SrcPort, f.DstPort, f.Proto = uint16(k[4]>>48), uint16(k[4]>>32), uint8(k[4]>>8)
			return h.Flow(&f)
		},
		"exporter": func(h *HashKey, k *[5]uint64) uint64 {
			return h.Words(k[0], k[1], k[2], k[3])
		},
		"word": func(h *HashKey, k *[5]uint64) uint64 { return h.Word(k[0]) },
	}
	for name, hash := range hashes {
		for set, keys := range sets(n, r) {
			for seed := range uint64(1) {
				h := NewHashKey(seed)
				distinct := map[uint64]bool{}
				for i := range keys {
					distinct[hash(&h, &keys[i])] = true
				}
				// Some sets name the same flow several times.
				got := make([]uint64, 0, len(distinct))
				low := make([]uint64, 0, len(distinct))
				tags, bound := map[uint32]int{}, 0
				for v := range distinct {
					got, low = append(got, v), append(low, bits.RotateLeft64(v, 32))
					tags[uint32(v)]++
					bound = max(bound, tags[uint32(v)])
				}
				if len(got) < n/2 {
					continue
				}
				// Random hashes: 2 cells a key on average, within a few percent.
				for half, list := range map[string][]uint64{"upper": got, "lower": low} {
					if c := float64(probes(list)) / float64(len(list)); c > 2*1.2 {
						t.Errorf("%s, %s, seed %d, %s half: %.2f cells a key", name, set, seed, half, c)
					}
				}
				if bound > 3 {
					t.Errorf("%s, %s, seed %d: %d hashes share their lower half", name, set, seed, bound)
				}
			}
		}
	}
}

// Different keys have different hashes: each set has as many hashes as keys.
func TestHashDistinguishesKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for set, keys := range sets(5000, r) {
		h := NewHashKey(r.Uint64())
		want, got := map[[5]uint64]bool{}, map[uint64]bool{}
		for _, k := range keys {
			want[k] = true
			got[h.words(k[0], k[1], k[2], k[3], k[4])] = true
		}
		if len(want) != len(got) {
			t.Errorf("%s: %d keys have %d hashes", set, len(want), len(got))
		}
	}
}

// The key follows from the seed alone, on every machine and in every version: a fleet shares it.
func TestHashIsStable(t *testing.T) {
	h := NewHashKey(42)
	f := FlowKey{Src: AddrFrom4([]byte{10, 0, 1, 1}), Dst: AddrFrom4([]byte{10, 0, 2, 2}), SrcPort: 1111, DstPort: 2222, Proto: 17, IPVersion: 4}
	if got := [2]uint64{h.Flow(&f), h.Word(7)}; got != [2]uint64{0x3e3af688ab14f94f, 0x77534dbe6e1b99f1} {
		t.Errorf("hashes %#x", got)
	}
}
