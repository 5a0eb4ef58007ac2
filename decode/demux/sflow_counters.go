package demux

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

// The counters of an interface are sums since it began to count, of 64 bits for octets and of 32 for packets. A
// report holds their increments since the previous sample.
const (
	leastSpan = 100 // ms between two samples whose difference is taken
	// A sample that is up to so many numbers and ms before the last one arrived out of order. One that is further
	// before is a restart.
	reorderedBy, reorderedMS = 16, 60_000
	leastPacket              = 84 // least bytes of a packet on a line, with preamble and gap
	noCounter                = math.MaxUint32
	noOctets                 = math.MaxUint64
	mostOctets               = 1 << 53 // of a line whose speed is not known
)

// precedes reports whether the counters of s came before those that came last, or are the same.
func (l *sflowLast) precedes(h *sflow.Datagram, s *sflow.Sample) bool {
	return l.seq-s.Seq < reorderedBy && h.Uptime <= l.uptime && l.uptime-h.Uptime < reorderedMS
}

// keep keeps the counters for the next sample.
func (l *sflowLast) keep(h *sflow.Datagram, i *sflow.Interface) {
	if l == nil {
		return
	}
	if l.counters == nil {
		l.counters = new(sflow.Interface)
	}
	*l.counters, l.uptime = *i, h.Uptime
}

// span is the time since the previous counters in ms. It is 0 if their difference has no meaning: there was no
// sample, or the agent or the counters restarted. Counters of octets do not wrap. If one fell, it was set to zero,
// and the packet counters with it.
func (l *sflowLast) span(h *sflow.Datagram, i *sflow.Interface) uint32 {
	if l == nil || l.counters == nil || l.counters.Index != i.Index || h.Uptime < l.uptime || h.Uptime-l.uptime < leastSpan ||
		i.InOctets < l.counters.InOctets || i.OutOctets < l.counters.OutOctets {
		return 0
	}
	return h.Uptime - l.uptime
}

// utilization is the utilisation of an interface by sent traffic since its previous counters, in hundredths of a
// percent.
func (l *sflowLast) utilization(h *sflow.Datagram, i *sflow.Interface) (used uint32, ok bool) {
	span := l.span(h, i)
	if span == 0 || i.OutOctets == noOctets {
		return 0, false
	}
	return shareOf(i.OutOctets-l.counters.OutOctets, i.Speed, span)
}

// shareOf is the share of a line in use, in hundredths of a percent, by octets in a time in ms.
func shareOf(octets, speed uint64, span uint32) (used uint32, ok bool) {
	x := float64(octets) * 8 / (float64(speed) * float64(span) / 1000)
	if speed == 0 || x > 1.1 { // a speed that is not that of the line
		return 0, false
	}
	return uint32(min(x, 1) * decode.WholeUtilization), true
}

// goesOn reports whether the interface's counters were not set to zero since the previous ones. The evidence is a
// counter above zero that has not fallen. Any other counter that fell has then wrapped. Callers have already excluded
// that counters of octets fell.
func (l *sflowLast) goesOn(i *sflow.Interface) bool {
	was := l.counters
	for _, x := range [...][2]uint64{{was.InOctets, i.InOctets}, {was.OutOctets, i.OutOctets}} {
		if x[0] > 0 && x[0] != noOctets && x[1] != noOctets {
			return true
		}
	}
	for _, x := range [...][2]uint32{
		{was.InUnicast, i.InUnicast}, {was.InMulticast, i.InMulticast}, {was.InBroadcast, i.InBroadcast}, {was.OutUnicast, i.OutUnicast}, {was.OutMulticast, i.OutMulticast},
		{was.OutBroadcast, i.OutBroadcast}, {was.InErrors, i.InErrors}, {was.OutErrors, i.OutErrors}, {was.InDiscards, i.InDiscards}, {was.OutDiscards, i.OutDiscards},
	} {
		if x[0] > 0 && x[0] != noCounter && x[1] != noCounter && x[1] >= x[0] {
			return true
		}
	}
	return false
}

// count returns the increments of the counters of packets and of octets. A counter that the device does not have is
// absent. So is one that rose by more than the line can have carried, or that fell without evidence of a wrap.
func (l *sflowLast) count(h *sflow.Datagram, i *sflow.Interface) (c decode.Counters) {
	span := l.span(h, i)
	if span == 0 {
		return c
	}
	most := uint64(1) << 31
	if i.Speed != 0 && i.Speed < math.MaxUint64/2000 { // for twice as long: speeds and times are rounded
		most = min(most, i.Speed/8/leastPacket*(2*uint64(span)+1000)/1000+1)
	}
	c.Interface = i.Index
	was, goesOn := l.counters, l.goesOn(i)
	add := func(has decode.CounterField, to *uint64, counters ...[2]uint32) {
		sum := uint64(0)
		for n, x := range counters {
			rise := uint64(x[1] - x[0])
			if x[1] == noCounter && x[0] == noCounter {
				if n > 0 {
					continue // unicast alone
				}
				return
			}
			if rise > most || x[1] < x[0] && !goesOn {
				return
			}
			sum += rise
		}
		c.Has |= has
		*to = sum
	}
	add(decode.CountInPackets, &c.InPackets, [2]uint32{was.InUnicast, i.InUnicast}, [2]uint32{was.InMulticast, i.InMulticast}, [2]uint32{was.InBroadcast, i.InBroadcast})
	add(decode.CountOutPackets, &c.OutPackets, [2]uint32{was.OutUnicast, i.OutUnicast}, [2]uint32{was.OutMulticast, i.OutMulticast}, [2]uint32{was.OutBroadcast, i.OutBroadcast})
	add(decode.CountInErrors, &c.InErrors, [2]uint32{was.InErrors, i.InErrors})
	add(decode.CountOutErrors, &c.OutErrors, [2]uint32{was.OutErrors, i.OutErrors})
	add(decode.CountInDiscards, &c.InDiscards, [2]uint32{was.InDiscards, i.InDiscards})
	add(decode.CountOutDiscards, &c.OutDiscards, [2]uint32{was.OutDiscards, i.OutDiscards})
	mostRise := float64(mostOctets)
	if i.Speed != 0 {
		mostRise = min(mostRise, float64(i.Speed)/8*(2*float64(span)+1000)/1000)
	}
	if octets := i.OutOctets - was.OutOctets; i.OutOctets != noOctets && float64(octets) <= mostRise {
		c.Has |= decode.CountOutOctets
		c.OutOctets = octets
	}
	if octets := i.InOctets - was.InOctets; i.InOctets != noOctets {
		if float64(octets) <= mostRise {
			c.Has |= decode.CountInOctets
			c.InOctets = octets
		}
		if used, ok := shareOf(octets, i.Speed, span); ok {
			c.Has |= decode.CountRxUtilization
			c.RxUtilization = uint16(used)
		}
	}
	return c
}
