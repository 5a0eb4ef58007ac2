//go:build !purego

package decode

import (
	"math/rand/v2"
	"testing"
)

func TestSumBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1024)
	for range 10_000 {
		for i := range b {
			b[i] = uint8(rng.Uint32())
		}
		from := rng.IntN(64)
		part := b[from : from+rng.IntN(len(b)-from)]
		if got, want := sumBlocks(part), sumBlocksGo(part); got != want {
			t.Fatalf("%d bytes: %x, want %x", len(part), got, want)
		}
	}
}
