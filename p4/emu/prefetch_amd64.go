//go:build !purego

package emu

import (
	"github.com/hopscope/hopscope/decode"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// These functions prefetch memory for coming events, and change nothing.

//go:noescape
func prefetchPacket(p *packet)

//go:noescape
func prefetchFrame(frame *byte, hop *Hop)

//go:noescape
func prefetchRoute(next *int32)

//go:noescape
func prefetchQueue(q *sim.Queue, d *device)

//go:noescape
func prefetchPort(x *port, c *decode.HopCounts)

//go:noescape
func prefetchPass(x *programs.Packet)
