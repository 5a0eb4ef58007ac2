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

// Names returns the fields of f as output spells them.
func (f HopField) Names() (names []string) {
	for i := range HopTimeBits {
		if f&(1<<i) != 0 {
			names = append(names, HopColumns[i].Name)
		}
	}
	return names
}

// ParseHopFields is the inverse of Names.
func ParseHopFields(names []string) (f HopField, err error) {
	const all HopField = 1<<HopTimeBits - 1
	for _, name := range names {
		i := slices.Index(all.Names(), name)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", name, strings.Join(all.Names(), ", "))
		}
		f |= 1 << i
	}
	return f, nil
}

// Hop holds the values of one device about one packet: a presence mask and raw wire values. A value whose bit in Has
// is not set is zero and has no meaning. So has a value that the device marked invalid.
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

// Merge adds to h the values of o that h lacks.
func (h *Hop) Merge(o *Hop) {
	add := o.Has &^ h.Has
	if add == 0 {
		return
	}
	copyIf(add&HopNodeID, &h.NodeID, o.NodeID)
	copyIf(add&HopIngressIf, &h.IngressIf, o.IngressIf)
	copyIf(add&HopEgressIf, &h.EgressIf, o.EgressIf)
	copyIf(add&HopLatency, &h.Latency, o.Latency)
	copyIf(add&HopQueueID, &h.QueueID, o.QueueID)
	copyIf(add&HopQueueOccupancy, &h.QueueOccupancy, o.QueueOccupancy)
	copyIf(add&HopIngressTime, &h.IngressTime, o.IngressTime)
	copyIf(add&HopEgressTime, &h.EgressTime, o.EgressTime)
	copyIf(add&HopL2IngressIf, &h.L2IngressIf, o.L2IngressIf)
	copyIf(add&HopL2EgressIf, &h.L2EgressIf, o.L2EgressIf)
	copyIf(add&HopTxUtilization, &h.TxUtilization, o.TxUtilization)
	copyIf(add&HopBufferID, &h.BufferID, o.BufferID)
	copyIf(add&HopBufferOccupancy, &h.BufferOccupancy, o.BufferOccupancy)
	copyIf(add&HopQueueCongestion, &h.QueueCongestion, o.QueueCongestion)
	copyIf(add&HopEnqTime, &h.EnqTime, o.EnqTime)
	copyIf(add&HopQueueDelay, &h.QueueDelay, o.QueueDelay)
	copyIf(add&HopDeqOccupancy, &h.DeqOccupancy, o.DeqOccupancy)
	if add&(HopIngressTime|HopEgressTime) != 0 && (h.TimeBits == 0 || o.TimeBits < h.TimeBits) {
		h.TimeBits = o.TimeBits // of two times with different widths, only the common bits can be compared
	}
	h.Has |= add
}

func copyIf[T uint8 | uint16 | uint32 | uint64](have HopField, to *T, v T) {
	if have != 0 {
		*to = v
	}
}
