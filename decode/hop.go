package decode

import (
	"fmt"
	"slices"
	"strings"
)

// HopField is a set of the values that a [Hop] can hold.
type HopField uint32

// One bit for each value of a Hop. Names and meanings are those of INT v2.1 §4.7; the last ones come from
// source-routed probes and from drop reports.
const (
	HopNodeID HopField = 1 << iota
	HopIngressIf
	HopEgressIf
	HopLatency
	HopQueueID
	HopQueueOccupancy
	HopIngressTime
	HopEgressTime
	HopL2IngressIf
	HopL2EgressIf
	HopTxUtilization
	HopBufferID
	HopBufferOccupancy
	HopQueueCongestion
	HopEnqTime
	HopQueueDelay
	HopDeqOccupancy
)

var hopFieldNames = [...]string{
	"node_id", "ingress_if", "egress_if", "latency", "queue_id", "queue_occupancy", "ingress_time", "egress_time", "l2_ingress_if",
	"l2_egress_if", "tx_utilization", "buffer_id", "buffer_occupancy", "queue_congestion", "enq_time", "queue_delay", "deq_occupancy",
}

// Names gives the fields of f as output spells them.
func (f HopField) Names() (names []string) {
	for i, name := range hopFieldNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// ParseHopFields is the inverse of Names.
func ParseHopFields(names []string) (f HopField, err error) {
	for _, name := range names {
		i := slices.Index(hopFieldNames[:], name)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", name, strings.Join(hopFieldNames[:], ", "))
		}
		f |= 1 << i
	}
	return f, nil
}

// Hop is what one device said about one packet: a presence mask and raw wire values. A value whose bit in Has is not
// set is zero and means nothing; that is also how a value which the device marked invalid appears.
type Hop struct {
	Has             HopField
	NodeID          uint32
	IngressIf       uint16 // level 1 interfaces
	EgressIf        uint16
	Latency         uint32 // time inside the device
	QueueOccupancy  uint32 // 24 bits in INT; at enqueue in probes
	BufferOccupancy uint32 // 24 bits
	TxUtilization   uint32 // of the egress interface
	QueueCongestion uint32 // 24 bits, INT 0.5 only
	L2IngressIf     uint32
	L2EgressIf      uint32
	IngressTime     uint64 // device clock, TimeBits wide
	EgressTime      uint64
	EnqTime         uint32 // device clock when the packet entered its queue (probes)
	QueueDelay      uint32 // time spent in the queue (probes)
	DeqOccupancy    uint32 // queue occupancy when the packet left it (probes)
	QueueID         uint8
	BufferID        uint8
	TimeBits        uint8 // width of IngressTime and EgressTime on the wire: 32, 48 or 64; 0 if neither was asked for
	_               uint8
}

// Set reports whether all values of f are present.
func (h *Hop) Set(f HopField) bool { return h.Has&f == f }

// Drop makes the values of f absent.
func (h *Hop) Drop(f HopField) {
	if h.Has&f == 0 {
		return
	}
	kept := Hop{}
	h.Has &^= f
	kept.Merge(h)
	*h = kept
}

// Merge gives h the values of o that h has not got itself.
func (h *Hop) Merge(o *Hop) {
	add := o.Has &^ h.Has
	if add == 0 {
		return
	}
	take(add&HopNodeID, &h.NodeID, o.NodeID)
	take(add&HopIngressIf, &h.IngressIf, o.IngressIf)
	take(add&HopEgressIf, &h.EgressIf, o.EgressIf)
	take(add&HopLatency, &h.Latency, o.Latency)
	take(add&HopQueueID, &h.QueueID, o.QueueID)
	take(add&HopQueueOccupancy, &h.QueueOccupancy, o.QueueOccupancy)
	take(add&HopIngressTime, &h.IngressTime, o.IngressTime)
	take(add&HopEgressTime, &h.EgressTime, o.EgressTime)
	take(add&HopL2IngressIf, &h.L2IngressIf, o.L2IngressIf)
	take(add&HopL2EgressIf, &h.L2EgressIf, o.L2EgressIf)
	take(add&HopTxUtilization, &h.TxUtilization, o.TxUtilization)
	take(add&HopBufferID, &h.BufferID, o.BufferID)
	take(add&HopBufferOccupancy, &h.BufferOccupancy, o.BufferOccupancy)
	take(add&HopQueueCongestion, &h.QueueCongestion, o.QueueCongestion)
	take(add&HopEnqTime, &h.EnqTime, o.EnqTime)
	take(add&HopQueueDelay, &h.QueueDelay, o.QueueDelay)
	take(add&HopDeqOccupancy, &h.DeqOccupancy, o.DeqOccupancy)
	if add&(HopIngressTime|HopEgressTime) != 0 && (h.TimeBits == 0 || o.TimeBits < h.TimeBits) {
		h.TimeBits = o.TimeBits // of two times with different widths, only the common bits can be compared
	}
	h.Has |= add
}

func take[T uint8 | uint16 | uint32 | uint64](have HopField, to *T, v T) {
	if have != 0 {
		*to = v
	}
}
