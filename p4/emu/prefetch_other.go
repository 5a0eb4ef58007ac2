//go:build !amd64 || purego

package emu

func prefetchPacket(*packet)        {}
func prefetchFrame(*byte, *Hop)     {}
func prefetchRoute(*int32)          {}
func prefetchQueue(*queue, *device) {}
