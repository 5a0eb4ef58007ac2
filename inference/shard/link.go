package shard

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

const (
	// firstTimed are the first reports of a flow in a window, whose times are used; of the others, one of everyTimed.
	firstTimed = 4
	everyTimed = 16
	// maxTimed bounds the reports of a window whose times are used, so that this costs next to nothing.
	maxTimed = 1 << 14
)

// timed reports whether the times of a report are used, which is the n-th of its flow in the window.
func timed(n uint32) bool { return n <= firstTimed || n%everyTimed == 0 }

// countTimes counts the times of a report with a whole path: how long its packet was on the links between switches.
func (c *Cut) countTimes(r *decode.Report) { c.countTimesOf(r, 0) }

// countTimesOf is countTimes without the links whose two ends were counted, by their place in the list of hops.
func (c *Cut) countTimesOf(r *decode.Report, counted uint64) {
	if c.timed == maxTimed || r.Hops[0].Has&decode.HopEgressTime == 0 {
		return
	}
	c.timed++
	u := units(r)
	for i := 1; i < len(r.Hops); i++ {
		a, b := &r.Hops[i-1], &r.Hops[i]
		if counted>>i&counted>>(i-1)&1 != 0 || a.Has&(decode.HopNodeID|decode.HopEgressTime) != decode.HopNodeID|decode.HopEgressTime ||
			b.Has&(decode.HopNodeID|decode.HopIngressTime) != decode.HopNodeID|decode.HopIngressTime || a.NodeID == b.NodeID ||
			a.EgressTime == 0 || b.IngressTime == 0 { // a time that no device set
			continue
		}
		if d, period, ok := between(u.TimeNS, a, b); ok {
			from, in := hopKey(a), uint32(b.IngressIf)
			if b.Has&decode.HopIngressIf == 0 {
				in = b.L2IngressIf
			}
			k := inference.LinkKey{Node: from.Node, EgressIf: from.EgressIf, Peer: b.NodeID, PeerIf: in, Period: period}
			c.partial.AddLink(&inference.LinkStats{LinkKey: k, Count: 1, Least: d, At: r.Time})
		}
	}
}

// between returns the time from a to b by their clocks, and the period of the clocks. The result ok is false if that is
// no number of nanoseconds of 64 bits.
func between(unit uint64, a, b *decode.Hop) (d int64, period uint64, ok bool) {
	width := min(a.TimeBits, b.TimeBits)
	switch {
	case unit == 0 || width == 0 || width > 64:
		return 0, 0, false
	case width == 64:
		return int64((b.IngressTime - a.EgressTime) * unit), 0, true
	case int(width)+bits.Len64(unit) > 62:
		return 0, 0, false
	}
	shift := 64 - width
	return int64((b.IngressTime-a.EgressTime)<<shift) >> shift * int64(unit), unit << width, true
}
