//go:build !purego

package decode

// addBlocks is sumBlocksGo of n blocks, two words at once. There is at least one.
//
//go:noescape
func addBlocks(b *byte, n int, s *sums)

func sumBlocks(b []byte) (s sums) {
	if n := len(b) / 32; n > 0 {
		addBlocks(&b[0], n, &s)
	}
	return s
}
