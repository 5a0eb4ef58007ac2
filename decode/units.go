package decode

import "cmp"

// Units are the units of a device's raw numbers. Nothing on the wire states them (INT v2.1 §4), so they belong to the
// exporter's profile in the configuration.
type Units struct {
	LatencyNS    uint64 // nanoseconds in one unit of hop latency and queue delay
	TimeNS       uint64 // nanoseconds in one unit of the timestamps
	QueueBytes   uint64 // bytes in one unit of queue occupancy: a cell's size, or 1
	TxFullScale  uint64 // raw utilisation that means a full link: 100, 1000, 10000
	LatencyCalc  bool   // where no hop latency is reported, take the difference of the two timestamps
	HeaderTimeNS uint64 // nanoseconds in one unit of the report header's time

	DropReasons *DropReasons // nil where they have no names
}

// With returns u with the values that o sets. For the others, u counts.
func (u Units) With(o Units) Units {
	return Units{
		LatencyNS: cmp.Or(o.LatencyNS, u.LatencyNS), TimeNS: cmp.Or(o.TimeNS, u.TimeNS), QueueBytes: cmp.Or(o.QueueBytes, u.QueueBytes),
		TxFullScale: cmp.Or(o.TxFullScale, u.TxFullScale), LatencyCalc: o.LatencyCalc || u.LatencyCalc,
		HeaderTimeNS: cmp.Or(o.HeaderTimeNS, u.HeaderTimeNS), DropReasons: cmp.Or(o.DropReasons, u.DropReasons),
	}
}

// DropReasons holds the names of a device's drop reasons, for display. Every device numbers them in its own way.
type DropReasons map[uint8]string

// DropReason is the name of a drop reason, or "".
func (u *Units) DropReason(reason uint8) string {
	if u.DropReasons == nil {
		return ""
	}
	return (*u.DropReasons)[reason]
}

// DefaultUnits are those of the specifications' examples: nanoseconds, bytes, and hundredths of a percent.
var DefaultUnits = Units{LatencyNS: 1, TimeNS: 1, QueueBytes: 1, TxFullScale: 10000, LatencyCalc: true, HeaderTimeNS: 1}

// Latency is the time that the packet spent in h's device, in nanoseconds. If the device did not report it, it is the
// difference of egress and ingress time modulo the width of the clock. For probes it is the time to the queue and in
// it. A difference of times counts if both were set and the difference is possible, also if the device computed it. A
// reported latency that is the difference from an unset time counts as none.
func (u *Units) Latency(h *Hop) (ns uint64, ok bool) {
	switch {
	case h.Has&HopLatency != 0 && !u.misreckoned(h):
		return uint64(h.Latency) * u.LatencyNS, true
	case !u.LatencyCalc:
		return 0, false
	case h.Has&(HopIngressTime|HopEgressTime) == HopIngressTime|HopEgressTime:
		return u.inside(h)
	case h.Has&(HopQueueDelay|HopEnqTime|HopIngressTime) == HopQueueDelay|HopEnqTime|HopIngressTime:
		return u.queued(h)
	case h.Has&HopQueueDelay != 0:
		return uint64(h.QueueDelay) * u.LatencyNS, true
	}
	return 0, false
}

// Queue is the queue occupancy in bytes (or in the device's own unit if the profile has no size of it).
func (u *Units) Queue(h *Hop) (bytes uint64, ok bool) {
	if h.Has&HopQueueOccupancy == 0 {
		return 0, false
	}
	return uint64(h.QueueOccupancy) * u.QueueBytes, true
}

// Utilization is the share of the egress interface in use, 0 to 1.
func (u *Units) Utilization(h *Hop) (ratio float64, ok bool) {
	if h.Has&HopTxUtilization == 0 || u.TxFullScale == 0 {
		return 0, false
	}
	return float64(h.TxUtilization) / float64(u.TxFullScale), true
}
