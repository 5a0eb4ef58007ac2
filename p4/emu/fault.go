package emu

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hopscope/hopscope/p4/emu/sim"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	CutRate          FaultKind = iota // the direction Node to Peer keeps the share Value of its rate
	CrossTraffic                      // other traffic takes the share Value of the direction Node to Peer; a Poisson process
	LinkDown                          // the link between Node and Peer fails, both ways
	DenyFlows                         // an access list of Node drops the share Value of all flows
	WithdrawRoute                     // Node has no route to the hosts of Peer
	SlowSwitch                        // the pipeline of Node takes Delay longer
	LoseReports                       // each datagram of Node is lost with probability Value
	DuplicateReports                  // each datagram of Node arrives twice with probability Value
	ReorderReports                    // each datagram of Node is passed by the next one with probability Value
	SilenceReports                    // Node writes no reports, and numbers none
	RestartReports                    // the sequence numbers of Node begin again at 0, at once
	DivertFlows                       // Node sends the share Value of all flows to Peer, but those of its own hosts
	ForgeDigests                      // Node fills the PINT digests of the share Value of packets with noise
	LosePackets                       // the direction Node to Peer loses each packet with probability Value, and no switch reports it
	DelayLine                         // packets take Delay longer from Node to Peer
	SwallowFlow                       // Node loses all packets of the flow with the number Flow, and does not say so
	numFaults
)

var faultNames = [numFaults]string{
	"cut-rate", "cross-traffic", "link-down", "deny-flows", "withdraw-route", "slow-switch", "lose-reports",
	"duplicate-reports", "reorder-reports", "silence-reports", "restart-reports", "divert-flows", "forge-digests",
	"lose-packets", "delay-line", "swallow-flow",
}

func (k FaultKind) String() string {
	if k < numFaults {
		return faultNames[k]
	}
	return fmt.Sprintf("fault(%d)", uint8(k))
}

// Fault is one line of the script.
//
// DivertFlows has two uses. Towards another switch on a shortest path it is a change of path that loses nothing. Towards
// a switch whose own way to the destination leads back it is a routing loop. A longer loop takes several such faults, one
// for each switch on it; they divert the same flows. Packets in a loop end when their TTL does.
type Fault struct {
	Kind       FaultKind
	At, For    time.Duration // from the beginning of the script; it lasts from At until At + For
	Node, Peer string        // switches by name
	Value      float64
	Delay      time.Duration
	Flow       int // as [Network.NumFlows] counts them
}

// String returns, for example, "cut-rate agg-0-0 to core-0, 0.3".
func (f Fault) String() string {
	s := f.Kind.String() + " " + f.Node
	if f.Kind.hasPeer() {
		s += " to " + f.Peer
	}
	switch {
	case f.Kind == SlowSwitch || f.Kind == DelayLine:
		s += fmt.Sprintf(", %v", f.Delay)
	case f.Kind == SwallowFlow:
		s += fmt.Sprintf(", flow %d", f.Flow)
	case f.Kind.hasValue():
		s += fmt.Sprintf(", %g", f.Value)
	}
	return s
}

func (k FaultKind) onLink() bool {
	return k <= LinkDown || k == DivertFlows || k == LosePackets || k == DelayLine
}
func (k FaultKind) hasPeer() bool { return k.onLink() || k == WithdrawRoute }
func (k FaultKind) hasValue() bool {
	switch k {
	case LinkDown, WithdrawRoute, SlowSwitch, SilenceReports, RestartReports, DelayLine, SwallowFlow:
		return false
	}
	return true
}

// fault is the state of one line of the script.
type fault struct {
	Fault
	node   int
	iface  int // of Node, towards Peer
	edge   int32
	begin  int32 // timers
	end    int32
	cross  int32
	active bool
	armed  bool // a packet of cross traffic is scheduled
}

// line holds the effects of faults on packets on the line behind an interface.
type line struct {
	loss  float64 // probability with which it loses a packet
	delay int64   // ns that they take longer
}

// crossBytes is the size of packets of cross traffic.
const crossBytes = 1000

// maxCross bounds cross traffic to a few times a line's rate.
const maxCross = 4

func (n *Network) buildScript() error {
	var errs []error
	n.script = make([]fault, len(n.cfg.Script))
	for i, f := range n.cfg.Script {
		s := &n.script[i]
		*s = fault{Fault: f, iface: -1, edge: -1}
		if err := n.checkFault(s); err != nil {
			errs = append(errs, fmt.Errorf("script, line %d (%v): %w", i, f, err))
			continue
		}
		if (f.Kind == LosePackets || f.Kind == DelayLine) && n.lines == nil {
			n.lines = make([]line, len(n.queues))
		}
		s.begin, s.end, s.cross = n.timer(timerBegin, i), n.timer(timerEnd, i), n.timer(timerCross, i)
		n.events.Add(int64(f.At), s.begin)
	}
	return errors.Join(errs...)
}

func (n *Network) checkFault(s *fault) error {
	var ok bool
	if s.node, ok = n.graph.Lookup(s.Node); !ok {
		return fmt.Errorf("there is no switch %q", s.Node)
	}
	if s.Kind.hasPeer() {
		peer, ok := n.graph.Lookup(s.Peer)
		if !ok {
			return fmt.Errorf("there is no switch %q", s.Peer)
		}
		if s.Kind == WithdrawRoute {
			for e, node := range n.routes.Edges {
				if node == peer {
					s.edge = int32(e)
				}
			}
			if s.edge < 0 {
				return fmt.Errorf("switch %s has no hosts", s.Peer)
			}
		} else if s.iface = n.graph.Between(s.node, peer); s.iface < 0 {
			return fmt.Errorf("there is no link between %s and %s", s.Node, s.Peer)
		}
	}
	top := 1.0
	if s.Kind == CrossTraffic {
		top = maxCross
	}
	switch {
	case s.Kind >= numFaults:
		return fmt.Errorf("no such kind")
	case s.At < 0 || s.For <= 0 || s.For > math.MaxInt64-s.At:
		return fmt.Errorf("from %v for %v", s.At, s.For)
	case n.cfg.Repeat > 0 && s.At+s.For > n.cfg.Repeat:
		return fmt.Errorf("ends at %v, after the script repeats at %v", s.At+s.For, n.cfg.Repeat)
	case s.Kind.hasValue() && !(s.Value > 0 && s.Value <= top):
		return fmt.Errorf("value %v is outside 0..%v", s.Value, top)
	case (s.Kind == SlowSwitch || s.Kind == DelayLine) && (s.Delay <= 0 || s.Delay > time.Minute):
		return fmt.Errorf("delay %v", s.Delay)
	case s.Kind == SwallowFlow && (s.Flow < 0 || s.Flow >= len(n.flows)):
		return fmt.Errorf("flow %d; there are %d flows", s.Flow, len(n.flows))
	}
	return nil
}

// turn begins or ends a fault.
func (n *Network) turn(i int, begins bool) {
	s := &n.script[i]
	s.active = begins
	if begins {
		n.events.Add(n.now+int64(s.For), s.end)
	} else if n.cfg.Repeat > 0 {
		n.events.Add(n.now-int64(s.For)+int64(n.cfg.Repeat), s.begin)
	}
	switch s.Kind {
	case CutRate:
		n.applyRate(s.iface)
	case CrossTraffic:
		if begins && !s.armed {
			s.armed = true
			n.events.Add(n.now+n.gap(n.crossing, n.crossRate(s)), s.cross)
		}
	case LinkDown:
		n.applyLink(s.iface)
	case LosePackets, DelayLine:
		n.applyLine(s.iface)
	case RestartReports:
		if begins {
			d := &n.switches[s.node]
			for hw := range d.seq {
				n.flush(d, hw)
				d.seq[hw] = 0
			}
		}
	default:
		n.applySwitch(s.node)
	}
	if n.cfg.OnFault != nil {
		n.cfg.OnFault(time.Duration(n.now), s.Fault, begins)
	}
}

// applyRate sets the rate of a line from all faults that are active on it.
func (n *Network) applyRate(iface int) {
	share := 1.0
	for i := range n.script {
		if s := &n.script[i]; s.active && s.Kind == CutRate && s.iface == iface {
			share *= s.Value
		}
	}
	q := &n.queues[iface]
	n.drain(q)
	q.LastDue = 0
	for i := range q.Size {
		if s := q.At(i); s.Start <= n.now && s.Pkt >= 0 {
			q.LastDue = n.packets[s.Pkt].due
		}
	}
	ps := int64(min(math.Round(float64(n.psPerByte)/share), 1e12))
	q.Retime(n.now, ps, func(s *sim.Sending) {
		if s.Pkt < 0 {
			return
		}
		p := &n.packets[s.Pkt]
		p.start = s.Start
		n.schedule(s.Pkt, p, q, s.Done)
	})
}

// applyLink takes a link down or up. Packets in its queues and on its lines are lost; routes follow later.
func (n *Network) applyLink(iface int) {
	down := false
	for i := range n.script {
		s := &n.script[i]
		down = down || s.active && s.Kind == LinkDown && n.graph.Link(s.iface) == n.graph.Link(iface)
	}
	for _, i := range []int{iface, n.graph.Peer(iface)} {
		q := &n.queues[i]
		n.drain(q)
		q.Up = !down
		if down {
			q.Clear(n.now, func(s *sim.Sending) {
				if s.Pkt < 0 {
					n.stats.crossDropped++
				} else {
					n.drop(s.Pkt, &n.packets[s.Pkt], linkFailed)
				}
			})
		}
	}
	n.events.Add(n.now+int64(n.cfg.Convergence), n.reroute)
}

// applyLine sets what the line behind an interface does to packets from all faults that are active on it. Packets that are
// on the line already arrive when they would have.
func (n *Network) applyLine(iface int) {
	q := &n.lines[iface]
	*q = line{}
	for i := range n.script {
		s := &n.script[i]
		if !s.active || s.iface != iface {
			continue
		}
		switch s.Kind {
		case LosePackets:
			q.loss = max(q.loss, s.Value)
		case DelayLine:
			q.delay += int64(s.Delay)
		}
	}
}

// applySwitch sets the state of a switch from all faults that are active on it.
func (n *Network) applySwitch(node int) {
	d := &n.switches[node]
	n.slower[node] = 0
	d.acl, d.noRoute, d.diverts = 0, d.noRoute[:0], d.diverts[:0]
	d.forged, d.swallowed = 0, d.swallowed[:0]
	d.silent, d.loss, d.duplicate, d.reorder = false, 0, 0, 0
	for i := range n.script {
		s := &n.script[i]
		if !s.active || s.node != node {
			continue
		}
		switch s.Kind {
		case DenyFlows:
			d.acl = max(d.acl, probability(s.Value))
		case WithdrawRoute:
			d.noRoute = append(d.noRoute, s.edge)
		case SlowSwitch:
			n.slower[node] += int64(s.Delay)
		case LoseReports:
			d.loss = max(d.loss, s.Value)
		case DuplicateReports:
			d.duplicate = max(d.duplicate, s.Value)
		case ReorderReports:
			d.reorder = max(d.reorder, s.Value)
		case SilenceReports:
			d.silent = true
		case ForgeDigests:
			d.forged = max(d.forged, probability(s.Value))
		case SwallowFlow:
			d.swallowed = append(d.swallowed, int32(s.Flow))
		case DivertFlows:
			d.diverts = append(d.diverts, divert{probability(s.Value), int32(s.iface)})
		}
	}
	d.faulty = d.acl != 0 || len(d.noRoute)+len(d.diverts)+len(d.swallowed) > 0
	if d.reorder == 0 {
		n.letGo(d)
	}
}

// crossRate is the number of packets of cross traffic a second.
func (n *Network) crossRate(s *fault) float64 {
	return s.Value * float64(n.cfg.LinkRate) / (8 * crossBytes)
}

func (n *Network) sendCross(timer int32, i int) {
	s := &n.script[i]
	s.armed = s.active
	if !s.active {
		return
	}
	n.events.Add(n.now+n.gap(n.crossing, n.crossRate(s)), timer)
	q := &n.queues[s.iface]
	n.stats.crossSent++
	n.drain(q)
	if q.Up {
		if _, _, ok := q.Accept(n.now, crossBytes, -1, false); ok {
			c := &n.counts[s.iface]
			sim.Count(&c.TxPackets, 1)
			sim.Count(&c.IPv4Packets, 1)
			sim.Count(&c.IPv4Bytes, crossBytes)
			return
		}
	}
	n.countDropped(int32(s.iface), crossBytes)
	n.stats.crossDropped++
}
