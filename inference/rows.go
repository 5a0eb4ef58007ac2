package inference

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/decode"
)

// The rows of a [Window] beside those of hops, flows and exporters.

// Bounds states how far the quantiles of a [Summary] can be from those of the values, since these came in buckets. No
// true quantile is higher, unless it is among the values beyond the last bound.
type Bounds struct {
	P50, P90, P99 uint64 // the least that they can be
	Open          uint64 // values beyond the last bound, of which no more is known
}

// width returns how far a quantile can be below its value in the summary.
func (b *Bounds) width(q float64, v uint64) uint64 {
	switch low := b.P50; {
	case q > .9:
		return v - min(b.P99, v)
	case q > .5:
		return v - min(b.P90, v)
	default:
		return v - min(low, v)
	}
}

// Beyond reports whether a quantile is among the values beyond the last bound, of which it is only known that they are
// higher.
func (s *Summary) Beyond(q float64) bool {
	return s.Bounds != nil && float64(s.Count)-float64(s.Bounds.Open) < math.Ceil(q*float64(s.Count))
}

// Add adds what was counted of another exporter, or by another tracker.
func (e *ExporterStats) Add(o *ExporterStats) {
	e.Reports += o.Reports
	e.Events += o.Events
	e.Lost += o.Lost
	e.Provisional += o.Provisional
	e.Duplicated += o.Duplicated
	e.Reordered += o.Reordered
	e.Late += o.Late
	e.Down += o.Down
	e.Restarts += o.Restarts
	e.Malformed += o.Malformed
	e.Last = max(e.Last, o.Last)
	e.Sequenced = e.Sequenced || o.Sequenced
}

// FlowLoss compares the reports of a flow's packets by the first and the last switch on its way. It counts packets that
// were settled in a window. A packet that a switch dropped and reported is not lost in this sense.
type FlowLoss struct {
	Flow    decode.FlowKey
	Packets uint64   // that the first switch reported
	Lost    uint64   // of these, the ones that the last switch did not report
	Path    []HopKey // at the end of the window; empty while it is not known
}

// OfProbes reports whether l is of probes that agents counted: those that were settled, and of these the ones lost on
// their way out. The path begins with the agent, which is marked as other. If the way is known, the routers follow by
// an address each ([decode.Addr.Node]), with 0 for one that did not answer a trace, and then the host.
func (l *FlowLoss) OfProbes() bool { return len(l.Path) > 0 && l.Path[0].Other }

// LinkKey is one direction of a link, as two switches on the path of a packet reported it.
type LinkKey struct {
	Node, EgressIf uint32 // where packets leave; 0 where the device did not name the interface
	Peer, PeerIf   uint32 // where they come to
	Period         uint64 // after which the clocks begin again, ns; 0 for 2⁶⁴
}

// Reverse is the other direction of the same link.
func (k LinkKey) Reverse() LinkKey {
	return LinkKey{Node: k.Peer, EgressIf: k.PeerIf, Peer: k.Node, PeerIf: k.EgressIf, Period: k.Period}
}

// Compare orders by node, interface, peer, its interface and period.
func (k LinkKey) Compare(o LinkKey) int {
	return cmp.Or(cmp.Compare(k.Node, o.Node), cmp.Compare(k.EgressIf, o.EgressIf), cmp.Compare(k.Peer, o.Peer),
		cmp.Compare(k.PeerIf, o.PeerIf), cmp.Compare(k.Period, o.Period))
}

// LinkStats holds the times of packets on a direction of a link in a window. A time is the arrival at the peer by its
// clock, less the departure from the node by its own. The clocks of switches differ, so only a change of the difference
// has a meaning. The sum of both directions has one as well, since the offset of the clocks cancels out in it.
type LinkStats struct {
	LinkKey
	Count uint64 // packets that were measured
	Least int64  // least difference, ns, modulo Period around 0
	At    int64  // time of the report that has it; of several the first
}

// InterfaceStats is the increase of an interface's counters in a window. It was not counted by packet: neither the
// flows in it are known, nor whether a drop report was about the same packet.
type InterfaceStats struct {
	Node uint32 // that the interface is of
	decode.Counters
	Samples uint64 // how often the counters came, each of them with a rise since the one before

	// Known where the detectors of the window are, and absent in bytes.
	Folded bool // as in [FlowStats]
}

// Key is the interface as a place in the network.
func (s *InterfaceStats) Key() HopKey { return HopKey{Node: s.Node, EgressIf: s.Interface} }

// Name is the number of the interface.
func (s *InterfaceStats) Name() string { return strconv.FormatUint(uint64(s.Interface), 10) }

// Add adds counts.
func (s *InterfaceStats) Add(o *InterfaceStats) {
	s.Samples += o.Samples
	s.Counters.Add(&o.Counters)
}

// NamelessKey is where hops were whose records hold no node id. Absent is not zero: such hops are not those of node 0,
// and have no [HopKey].
type NamelessKey struct {
	Exporter decode.Addr // zero for packets of the network
	Position uint8       // in the list of hops of their report, from 1; 0, with no exporter, stands for all that had no place
}

// Compare orders places by exporter and position.
func (k NamelessKey) Compare(o NamelessKey) int {
	return cmp.Or(k.Exporter.Compare(o.Exporter), cmp.Compare(k.Position, o.Position))
}

// NamelessStats is the hops at one such place in one window.
type NamelessStats struct {
	NamelessKey
	Count          uint64  // hop records
	Latency, Queue Summary // ns; bytes
}

// Deviation is a flow whose digests contradict the map, and all errors of the map, in order, that would explain that.
type Deviation struct {
	Flow    decode.FlowKey
	Ingress uint32     // the node at the first hop; NoNode if it is not known
	Digests uint64     // that were judged
	Last    int64      // time of the latest of them
	Errors  []MapError // that would explain the digests, each by itself
}

// StrayReason is the way in which the path of a flow breaks a rule.
type StrayReason uint8

// The reasons.
const (
	Missed    StrayReason = iota // it does not pass Node, nor what may stand for it
	Forbidden                    // it passes Node
	Elsewhere                    // it is none of the paths that are allowed, which it leaves behind Node
	NumStrayReasons
)

// MaxRuleName bounds the name of a rule, in bytes.
const MaxRuleName = 64

// StrayKey is a broken rule with the reason and the place.
type StrayKey struct {
	Rule   string // its name
	Reason StrayReason
	Node   uint32 // that Reason is about
}

// Compare orders by rule, reason and node.
func (k StrayKey) Compare(o StrayKey) int {
	return cmp.Or(strings.Compare(k.Rule, o.Rule), cmp.Compare(k.Reason, o.Reason), cmp.Compare(k.Node, o.Node))
}

// String returns what is wrong, such as "rule web: node 7 is not passed".
func (k StrayKey) String() string {
	switch k.Reason {
	case Missed:
		return fmt.Sprintf("rule %s: node %d is not passed", k.Rule, k.Node)
	case Forbidden:
		return fmt.Sprintf("rule %s: node %d is passed", k.Rule, k.Node)
	}
	return fmt.Sprintf("rule %s: the way leaves those that are allowed behind node %d", k.Rule, k.Node)
}

// Stray counts the flows of a window that take a way which their policy does not allow. One of them is the example: the
// one with the least key.
type Stray struct {
	StrayKey
	Flows uint64         // that break the rule so
	Flow  decode.FlowKey // the example
	Path  []HopKey       // of the example
}

// FlowSight is a busy flow in a window as seen by a node that samples packets or exports flow records. It holds where
// the packets came in and left, and their number by the sampling rate. It has neither the way of the flow nor a latency
// of a hop.
type FlowSight struct {
	Node            uint32 // that sampled, or exported
	Ingress, Egress uint32 // interfaces; 0 where they are not known
	Records         uint64 // samples and flow records
	Packets, Octets uint64 // that these stand for; Octets is 0 where it is not known
	First, Last     int64  // times of the first and the last packet of flow records, by the exporter's clock; 0 where they are not known

	// Time of packets since the node that put telemetry into them, by the clocks of the two, in ns. There are no
	// quantiles of it.
	Delayed            uint64 // packets that the mean is of; 0 where no delay is known
	DelaySum           uint64 // of these packets
	DelayMin, DelayMax uint64 // DelayMin is above DelayMax where neither is known
}

// DelayMean is the mean delay in ns; it is 0 where Delayed is.
func (s *FlowSight) DelayMean() uint64 { return s.DelaySum / max(s.Delayed, 1) }

// Add adds what was seen at the same place.
func (s *FlowSight) Add(o *FlowSight) {
	s.Records += o.Records
	s.Packets += o.Packets
	s.Octets += o.Octets
	if o.First != 0 && (s.First == 0 || o.First < s.First) {
		s.First = o.First
	}
	s.Last = max(s.Last, o.Last)
	s.Delayed += o.Delayed
	s.DelaySum += o.DelaySum
	s.DelayMin, s.DelayMax = min(s.DelayMin, o.DelayMin), max(s.DelayMax, o.DelayMax)
}

// NoDelayMin and noDelayMax are DelayMin and DelayMax where no delay is known.
const NoDelayMin, NoDelayMax = 1<<64 - 1, 0

// HasDelayBounds reports whether DelayMin and DelayMax are known.
func (s *FlowSight) HasDelayBounds() bool { return s.DelayMin <= s.DelayMax }

// MostSights bounds the places of one flow that are kept. Where there are more, those with the least numbers stay.
const MostSights = 8

// SightOf makes a sight of a report of a sample or a flow record.
func SightOf(r *decode.Report) FlowSight {
	s := FlowSight{Node: r.NodeID, Records: 1, Packets: uint64(max(r.Weight, 1)), DelayMin: NoDelayMin, DelayMax: NoDelayMax}
	if r.Rare == nil || r.Rare.Traffic == nil {
		return s
	}
	t := r.Rare.Traffic
	s.Ingress, s.Egress, s.Octets, s.First, s.Last = t.Ingress, t.Egress, t.Octets, t.Start, t.End
	d := &t.Delay
	if d.Has&decode.DelayMean != 0 {
		s.Delayed = max(d.Packets, 1)
		if s.DelaySum = d.Mean * s.Delayed; d.Has&decode.DelaySum != 0 && d.Packets > 0 {
			s.DelaySum = d.Sum
		}
		s.DelayMin, s.DelayMax = d.Mean, d.Mean
	}
	if d.Has&decode.DelayMin != 0 {
		s.DelayMin, s.DelayMax = min(s.DelayMin, d.Min), max(s.DelayMax, d.Min)
	}
	if d.Has&decode.DelayMax != 0 {
		s.DelayMin, s.DelayMax = min(s.DelayMin, d.Max), max(s.DelayMax, d.Max)
	}
	return s
}
