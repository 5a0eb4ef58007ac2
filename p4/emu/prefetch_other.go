//go:build !amd64 || purego

package emu

import (
	"github.com/hopscope/hopscope/decode"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

func prefetchPacket(*packet)                {}
func prefetchFrame(*byte, *Hop)             {}
func prefetchRoute(*int32)                  {}
func prefetchQueue(*sim.Queue, *device)     {}
func prefetchPort(*port, *decode.HopCounts) {}
func prefetchPass(*programs.Packet)         {}
