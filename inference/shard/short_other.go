//go:build !amd64 || purego

package shard

const hasAVX512 = false

func stackCodes(*byte, *uint16, *uint16, *uint32, int, uint64, uint64, uint64, uint64) bool {
	return false
}
