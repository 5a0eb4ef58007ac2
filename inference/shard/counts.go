package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// countReadings are the last readings of the counters of interfaces, at most as many as there are places for hops.
type countReadings map[inference.HopKey]countReading

type countReading struct {
	at            int64 // ns since 1970
	window        uint32
	has           decode.HopCount
	sent, dropped uint32
}

const readingCounts = decode.HopTxPackets | decode.HopDroppedPackets

// readCounts lists what a packet read of the counters of interfaces on its way. Packets come many at a time and out of order: one that is older
// than the last reading says nothing.
func (s *State) readCounts(r *decode.Report) {
	for i := range r.Counts {
		c := &r.Counts[i]
		if c.Has&readingCounts == 0 || i >= len(r.Hops) || !r.Hops[i].Set(decode.HopNodeID|decode.HopEgressIf) {
			continue
		}
		k := hopKey(&r.Hops[i])
		last, known := s.readings[k]
		if known && r.Time < last.at || !known && len(s.readings) >= s.cfg.MaxHops {
			continue
		}
		x := window.InterfaceCounts{Node: k.Node, Interface: k.EgressIf, Sights: 1}
		span := func(of decode.HopCount, now, before uint32) window.CountSpan {
			switch {
			case c.Has&of == 0:
				return window.CountSpan{}
			case last.has&of == 0:
				return window.CountSpan{Has: true, FirstAt: r.Time, LastAt: r.Time, First: now, Last: now}
			}
			return window.CountSpan{Has: true, Before: last.window != s.window, FirstAt: last.at, LastAt: r.Time, First: before, Last: now}
		}
		x.Sent, x.Dropped = span(decode.HopTxPackets, c.TxPackets, last.sent), span(decode.HopDroppedPackets, c.DroppedPackets, last.dropped)
		s.cut.partial.AddCounts(&x)
		if s.readings == nil {
			s.readings = countReadings{}
		}
		s.readings[k] = countReading{r.Time, s.window, c.Has & readingCounts, c.TxPackets, c.DroppedPackets}
	}
}

// forget leaves out the readings of before.
func (x countReadings) forget(before int64) {
	for k, r := range x {
		if r.at < before {
			delete(x, k)
		}
	}
}
