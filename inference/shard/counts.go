package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// countReadings are the last readings of the counters of interfaces, at most as many as there are places for hops.
type countReadings map[inference.HopKey]countReading

type countReading struct{ sent, dropped window.CountSpan }

const readingCounts = decode.HopTxPackets | decode.HopDroppedPackets

// readCounts lists what a packet read of the counters of interfaces on its way. Packets come many at a time and out of
// order: the partial and the last readings take each where it belongs.
func (s *State) readCounts(r *decode.Report) {
	for i := range r.Rare.Counts {
		c := &r.Rare.Counts[i]
		if c.Has&readingCounts == 0 || i >= len(r.Hops) || !r.Hops[i].Set(decode.HopNodeID|decode.HopEgressIf) {
			continue
		}
		k := hopKey(&r.Hops[i])
		last, known := s.readings[k]
		if !known && len(s.readings) >= s.cfg.MaxHops {
			continue
		}
		span := func(of decode.HopCount, now uint32) window.CountSpan {
			if c.Has&of == 0 {
				return window.CountSpan{}
			}
			return window.CountSpan{Has: true, FirstAt: r.Time, LastAt: r.Time, First: now, Last: now}
		}
		x := window.InterfaceCounts{Node: k.Node, Interface: k.EgressIf, Sights: 1}
		x.Sent, x.Dropped = span(decode.HopTxPackets, c.TxPackets), span(decode.HopDroppedPackets, c.DroppedPackets)
		s.cut.partial.AddCounts(&x)
		if s.readings == nil {
			s.readings = countReadings{}
		}
		last.sent.Follow(&x.Sent)
		last.dropped.Follow(&x.Dropped)
		s.readings[k] = last
	}
}

// goOn forgets old readings, and begins a window with the others. The window continues from the latest of all shards,
// also where that shard has none in it.
func (x countReadings) goOn(next *window.Partial, before int64) {
	for k, r := range x {
		if r.sent.Has && r.sent.LastAt < before {
			r.sent = window.CountSpan{}
		}
		if r.dropped.Has && r.dropped.LastAt < before {
			r.dropped = window.CountSpan{}
		}
		if !r.sent.Has && !r.dropped.Has {
			delete(x, k)
			continue
		}
		x[k] = r
		next.AddCounts(&window.InterfaceCounts{Node: k.Node, Interface: k.EgressIf, Sent: r.sent, Dropped: r.dropped})
	}
}
