package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/loss"
	"github.com/hopscope/hopscope/inference/window"
)

// maxPairs is how many flows are compared at the same time. Further ones wait until one of them is forgotten.
const maxPairs = 4096

// maxLosses is the number of flows of a window that report what they lost, of all shards together.
const maxLosses = 4 * (maxPairs + maxProbeWays)

// pairs compares the reports of packets by the first and the last switch. It has memory only where first switches
// report. A flow that none of them reports costs nothing but a test of its flags.
type pairs struct {
	flows       []pair
	free        []uint32
	placeBySlot map[uint32]uint32 // place in flows, by slot of the flow
}

type pair struct {
	loss.Flow
	slot uint32
	live bool
}

// entersNetwork reports whether r is the first switch's report of a packet before any telemetry was put into it. It is
// a report that is not the last switch's, about no hop.
func entersNetwork(r *decode.Report) bool {
	const marks = decode.Transit | decode.Tracked | decode.Dropped | decode.Congested | decode.Loop
	return r.Flags&marks == decode.Transit|decode.Tracked && r.Kind == decode.KindPostcard && len(r.Hops) == 0
}

// leavesNetwork reports whether r is about a packet that came to the end of its way, or that a switch dropped and
// reported. A sample is taken anywhere.
func leavesNetwork(r *decode.Report) bool {
	if r.Flags&(decode.Transit|decode.Loop|decode.Sampled) != 0 {
		return false
	}
	switch r.Kind {
	case decode.KindStack, decode.KindQueue, decode.KindDigest, decode.KindDrop:
		return true
	}
	return false
}

// lastPostcard reports whether r is the postcard of the last switch that is known to send one for the flow. No report
// has the whole path then.
func (s *State) lastPostcard(f *flow, r *decode.Report) bool {
	if r.Kind != decode.KindPostcard || r.Flags&decode.Transit != 0 || len(r.Hops) != 1 || f.flags&postcards == 0 || f.hops == 0 {
		return false
	}
	var space [maxBlocks]uint32
	chain := s.slab.chain(&space, f)[:f.hops]
	return s.slab.at(chain[len(chain)-1]).key() == hopKey(&r.Hops[0])
}

// countEntered counts a report for which entersNetwork is true. It is no report of the flow's packets: the last switch
// sends one for the same packet.
func (s *State) countEntered(f *flow, slot uint32, r *decode.Report) {
	f.last = max(f.last, r.Time)
	if r.Has&decode.HasPacketID == 0 {
		return
	}
	x := &s.pairs
	if f.flags&paired == 0 {
		at := uint32(len(x.flows))
		switch {
		case len(x.free) > 0:
			at = x.free[len(x.free)-1]
			x.free = x.free[:len(x.free)-1]
		case at < maxPairs:
			x.flows = append(x.flows, pair{})
		default:
			return
		}
		if x.placeBySlot == nil {
			x.placeBySlot = map[uint32]uint32{}
		}
		x.placeBySlot[slot] = at
		x.flows[at] = pair{slot: slot, live: true}
		f.flags |= paired
	}
	x.flows[x.placeBySlot[slot]].Entered(r.PacketID, r.Time)
}

func (s *State) countLeft(slot uint32, r *decode.Report) {
	if r.Has&decode.HasPacketID != 0 {
		s.pairs.flows[s.pairs.placeBySlot[slot]].Left(r.PacketID, r.Time)
	}
}

func (x *pairs) forget(slot uint32) {
	at := x.placeBySlot[slot]
	delete(x.placeBySlot, slot)
	x.flows[at] = pair{}
	x.free = append(x.free, at)
}

// cutPairs adds the losses that were settled until the end of the window.
func (s *State) cutPairs(p *window.Partial, end int64) {
	for i := range s.pairs.flows {
		x := &s.pairs.flows[i]
		if !x.live {
			continue
		}
		c := x.Cut(end)
		if c.Packets == 0 {
			continue
		}
		e := s.flows.At(x.slot)
		out := inference.FlowLoss{Flow: e.Key, Packets: uint64(c.Packets), Lost: uint64(c.Lost)}
		if e.Value.flags&partial == 0 {
			s.path = s.hopKeys(s.path[:0], &e.Value)
			out.Path = s.path
		}
		p.AddLoss(&out)
	}
}
