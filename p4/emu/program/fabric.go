package program

import (
	"bytes"
	"fmt"

	"github.com/hopscope/hopscope/planner/topo"
)

// Fabric is switches of one program that are joined by the links of a topology. Frames cross it at once: queues are
// empty, and every switch takes the same time. It is not safe for concurrent use.
type Fabric struct {
	graph    *topo.Graph
	switches []*Switch // by node

	// Locked calls do while no table of a switch is written. It is nil if no other goroutine writes to tables.
	Locked func(node int, do func())

	// Clock is the time of a frame, us. Nil lets time pass with the switches that frames visit.
	Clock func() uint64

	now    uint64 // us
	packet Packet
}

// Arrival is a frame that left the fabric, by a port of a switch without a link.
type Arrival struct {
	Node int
	Frame
}

// hopTime is the time that a frame takes through a switch, us.
const hopTime = 10

// mostVisits bounds the switches that the frames of one frame visit. A frame that goes round in circles ends before, by its time to live.
const mostVisits = 1 << 12

// NewFabric makes switches of a program with empty tables, one for each node.
func NewFabric(g *topo.Graph, name string) (*Fabric, error) {
	f := &Fabric{graph: g, switches: make([]*Switch, g.NumNodes())}
	for n := range f.switches {
		s, err := New(name)
		if err != nil {
			return nil, err
		}
		f.switches[n] = s
	}
	return f, nil
}

// Switch returns the switch of a node.
func (f *Fabric) Switch(node int) *Switch { return f.switches[node] }

// Replace puts another switch at a node, such as one that has restarted with empty tables.
func (f *Fabric) Replace(node int, s *Switch) { f.switches[node] = s }

// Send puts a frame into a switch, and returns all frames that leave the fabric because of it, in order.
func (f *Fabric) Send(node int, in Frame) (left []Arrival, err error) {
	waiting := []Arrival{{node, in}}
	for visits := 0; len(waiting) > 0; visits++ {
		if visits == mostVisits {
			return left, fmt.Errorf("a frame and its copies visit more than %d switches", mostVisits)
		}
		at := waiting[0]
		waiting = waiting[1:]
		out := f.visit(at)
		for _, o := range out {
			i := f.graph.ByPort(at.Node, int(o.Port))
			if i < 0 || f.graph.Peer(i) < 0 {
				left = append(left, Arrival{at.Node, o})
				continue
			}
			peer := f.graph.Peer(i)
			waiting = append(waiting, Arrival{f.graph.Node(peer), Frame{uint16(f.graph.Port(peer)), o.Bytes}})
		}
	}
	return left, nil
}

// visit passes a frame through a switch.
func (f *Fabric) visit(at Arrival) (out []Frame) {
	if f.now += hopTime; f.Clock != nil {
		f.now = max(f.now, f.Clock())
	}
	process := func() {
		s, p := f.switches[at.Node], &f.packet
		s.Now = f.now
		pass := Pass{IngressPort: at.Port, PacketLength: uint32(len(at.Bytes)), IngressTime: f.now, EgressTime: f.now + hopTime}
		for more := s.Ingress(p, at.Port, at.Bytes, len(at.Bytes)); more; more = s.Clone(p) {
			if port := p.Port; s.Egress(p, &pass) {
				out = append(out, Frame{port, bytes.Clone(p.Head)})
			}
		}
	}
	if f.Locked == nil {
		process()
	} else {
		f.Locked(at.Node, process)
	}
	return out
}
