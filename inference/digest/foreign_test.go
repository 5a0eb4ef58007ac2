package digest

import (
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/plain"
)

// forgeAt sends packets over spine 100 of which every second one has noise for a digest when it leaves a hop, 1 for the
// first. Hops behind it write as they always do.
func (x *spraying) forgeAt(hop, n int) {
	path := []uint32{0, 100, 1}
	for k := range n {
		x.now += 1e6
		r := plain.RandomDigest(x.r, x.p, 1, path, x.now)
		if k%2 == 0 {
			r.Digest.Value = x.r.Uint64() & 0xffff
			scheme := x.p.Queries[0].Scheme
			for h := hop + 1; h <= len(path); h++ {
				r.Digest.Value = scheme.Write(r.Digest.Value, r.Digest.ID, h, path[h-1])
			}
		}
		x.s.update(r)
	}
}

// Digests that fit no path are published in the window in which they come, with the switch that spoils them.
func TestForeign(t *testing.T) {
	for hop, node := range []uint32{0, 100, 1} {
		found := 0
		for seed := range uint64(20) {
			x := newSpraying(t, seed, 1<<20)
			x.send(1, 100, x.over(1))
			if w := x.window(); len(w.Digests) > 0 {
				t.Fatalf("before: %+v", w.Digests)
			}
			x.forgeAt(hop+1, 100)
			w := x.window()
			if len(w.Digests) != 1 || w.Digests[0].Fault != inference.Inconsistent || w.Digests[0].Count < 5 {
				t.Fatalf("hop %d, seed %d: %+v", hop+1, seed, w.Digests)
			}
			switch w.Digests[0].Node {
			case node:
				found++
			case 0: // node 0 cannot be distinguished from none here
			default:
				t.Errorf("hop %d, seed %d: %d spoils digests, want %d", hop+1, seed, w.Digests[0].Node, node)
			}
		}
		if node != 0 && found < 6 { // in the first window; the others wait for more digests
			t.Errorf("hop %d: found %d of 20 times", hop+1, found)
		}
	}
}

// A flow that comes to leave the network at another switch, by packets in turn or for good, is no news within the first
// window.
func TestForeignElsewhere(t *testing.T) {
	for _, turns := range []bool{false, true} {
		for seed := range uint64(20) {
			x := newSpraying(t, seed, 1<<20)
			x.send(1, 100, x.over(1))
			x.window()
			x.send(1, 60, func() []uint32 {
				if turns && x.r.IntN(2) == 0 {
					return []uint32{0, 100, 1}
				}
				return []uint32{0, 101, 2}
			})
			if w := x.window(); len(w.Digests) > 0 {
				t.Errorf("in turns %v, seed %d: %+v", turns, seed, w.Digests)
			}
		}
	}
}
