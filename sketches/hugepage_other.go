//go:build !linux

package sketches

func adviseHuge([]byte) {}
