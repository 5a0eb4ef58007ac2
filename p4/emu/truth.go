package emu

import (
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Outcome is the end of a packet's journey.
type Outcome uint8

// The outcomes.
const (
	Delivered  Outcome = iota
	QueueFull          // tail drop
	linkFailed         // in the queue or on the line when the link failed, or sent to a failed link
	Denied             // access list
	NoRoute            // no way to the destination
	Expired            // TTL
	Spoilt             // a probe that its receiver cannot read, or that comes to a host without an agent
	Vanished           // lost on a line or in a switch that does not say so
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"delivered", "queue full", "link failed", "denied", "no route", "ttl expired", "checksum", "vanished"}

func (o Outcome) String() string {
	if o < numOutcomes {
		return outcomeNames[o]
	}
	return "unknown"
}

// Reason is the drop reason in reports. The numbers are those of fabric-tna, where it has one.
func (o Outcome) Reason() uint8 {
	return [numOutcomes]uint8{QueueFull: reasonTrafficManager, linkFailed: reasonTrafficManager, Denied: reasonACL, NoRoute: reasonNoRoute, Expired: reasonTTL}[o]
}

// Drop reasons on the wire.
const (
	reasonTTL            = 26
	reasonNoRoute        = 29
	reasonTrafficManager = 71
	reasonACL            = 80
)

// Hop is the true record of a packet in one switch. Times are virtual.
type Hop struct {
	Node        int // in the graph
	NodeID      uint32
	ingressPort uint16
	EgressPort  uint16
	Ingress     time.Duration // arrival of the last bit
	Queued      time.Duration // at the egress queue
	Egress      time.Duration // out of the queue
	QueueBytes  uint32        // found in the queue
	Utilization uint32        // of the egress line, hundredths of a percent
	Load        uint32        // the same as HPCC has it, without the packet itself, in parts of pint.UtilizationUnit; 0 without a plan
	recorded    bool          // the node added its block to the packet
}

// Latency is the time that the packet spent in the switch, as reported.
func (h *Hop) Latency() time.Duration { return h.Egress - h.Ingress }

// Journey is the truth about one packet of a flow, or about one probe.
type Journey struct {
	Flow     int // for a probe, the host that sent it
	Probe    bool
	Key      decode.FlowKey // zero for a probe
	PacketID uint16         // IPv4 identification
	Sampled  bool           // switches were to report on it
	Outcome  Outcome
	At       time.Duration // of delivery or drop
	Node     int           // that dropped it, or that its receiver is attached to
	Hops     []Hop         // switches that it left
	Frame    []byte        // as delivered or dropped, without the zeros at its end
	length   int           // of the whole frame

	// PINT packets have a digest beside their bytes, and an id by which it was written.
	PINT     bool
	DigestID uint32
	Digest   uint64
}

// Stats counts since the network was built. At every moment Sent = Delivered + the sum of Dropped + InFlight, and
// crossSent = crossDelivered + crossDropped + crossQueued.
type Stats struct {
	Events uint64

	Sent        uint64 // packets of flows
	Delivered   uint64
	Dropped     [numOutcomes]uint64 // by Outcome; the entry of Delivered is 0
	InFlight    uint64              // on lines, in pipelines and in queues
	hostRefused uint64              // never sent, because the host's own line was behind

	ProbesSent, ProbesDelivered, probesDropped, ProbesInFlight uint64

	crossSent, crossDelivered, crossDropped, crossQueued uint64

	// LoopsDetected counts packets that a switch took to be in a routing loop, once for each time; LoopReportGap bounds
	// how many of them are reported.
	LoopsDetected uint64

	Reports ReportStats
}

// ReportStats counts reports and the datagrams that they leave in.
type ReportStats struct {
	Written    uint64 // reports of every kind
	drops      uint64 // among them, about dropped packets
	digests    uint64 // PINT digests
	loops      uint64 // routing loops
	Suppressed uint64 // not written, because the exporter was silent
	Datagrams  uint64 // numbered, whether delivered or not
	delivered  uint64 // handed to emit; duplicates are not counted
	Lost       uint64 // datagrams lost on the way
	lostInside uint64 // reports in those
	Duplicated uint64
	Reordered  uint64
}

// Stats returns the counters.
func (n *Network) Stats() Stats {
	s := n.stats
	for i := range n.queues {
		q := &n.queues[i]
		s.crossDelivered += uint64(q.Drain(n.now, n.line, n.found))
		for k := range q.Size {
			if q.At(k).Pkt < 0 {
				s.crossQueued++
			}
		}
	}
	n.stats.crossDelivered = s.crossDelivered
	for i := range n.packets {
		switch p := &n.packets[i]; {
		case p.live == 0:
		case p.kind == data:
			s.InFlight++
		default:
			s.ProbesInFlight++
		}
	}
	return s
}
