//go:build !amd64 || purego

package decode

func sumBlocks(b []byte) sums { return sumBlocksGo(b) }
