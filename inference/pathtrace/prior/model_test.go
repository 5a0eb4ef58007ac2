package prior

import (
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/internal/testkit"
)

// The cover of a space is how many packets distinguish two nodes of a hop. Those of ids that differ in one fragment are fewer.
func TestCover(t *testing.T) {
	const hops, packets = 5, 20_000
	for _, valueBits := range []int{0, 8, 32} {
		scheme, err := pint.New(pint.Config{Seed: uint32(testkit.Seed(t)), Bits: 8, Instances: 1, Tau: 1, ValueBits: valueBits})
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewModel(Config{Scheme: scheme, Nodes: []uint32{1, 2, 3, 4, 5, 6}})
		if err != nil {
			t.Fatal(err)
		}
		path, least := []uint32{1, 2, 3, 4, 5}, 1.0
		for h := range hops {
			other, n := append([]uint32{}, path...), 0
			other[h] = 6
			for id := range uint32(packets) {
				if scheme.Digest(id, path) != scheme.Digest(id, other) {
					n++
				}
			}
			least = min(least, float64(n)/packets)
		}
		if c := m.Space(hops).Cover; c < 0.75*least || c > 1.25*least {
			t.Errorf("ids of %d bits: cover %.3f, and %.3f of packets distinguish two nodes", valueBits, c, least)
		}
	}
}
