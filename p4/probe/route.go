package probe

import (
	"encoding/hex"
	"fmt"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
)

// These are the headers of a probe of INT-path beside its labels: IPv4, UDP, the route and the action id. Every switch
// adds a label.
const (
	pathOverhead  = 20 + 8 + 64 + 4
	pathLabel     = 22
	probeOverhead = 2 + 2*srint.MaxProbeHops + 2 + 2 // at most: route, the EtherType behind it, and the count of labels
	probeLabel    = 32
)

// RoomError is a frame that has no room for what two switches add.
type RoomError struct{ Text string }

func (e *RoomError) Error() string { return e.Text }

// RouteLimits returns how many links a probe can have, the highest port it can be sent to, and its size. A probe of h
// links passes h + 1 switches. Each of them takes an entry off the route and adds a label; the last one sends it to its
// host.
func RouteLimits(format string, mtu int) (hops, port int, size cover.Size, err error) {
	var most int
	switch format {
	case "int-path":
		size, most, port = cover.Size{Header: pathOverhead, PerHop: pathLabel}, srint.MaxPathHops, srint.MaxPathPort
	case "int-probe":
		size, most, port = cover.Size{Header: probeOverhead, PerHop: probeLabel}, srint.MaxProbeHops, srint.MaxProbePort
	default:
		return 0, 0, size, fmt.Errorf("%q is neither int-path nor int-probe", format)
	}
	switches := min((mtu-size.Header)/size.PerHop, most)
	if switches < 2 {
		return 0, 0, size, &RoomError{"leaves no room for the labels of two switches"}
	}
	return switches - 1, port, size, nil
}

// AddRoutes sets the route of every probe, as its sender writes it, and the ports of sender and receiver. At its last
// switch the probe leaves by the port of the host there. Where the last node is a host itself, the entry of the switch
// before it leads there. A first node that is a host has no entry. With partial set, a probe whose host cannot be
// addressed has no route.
func AddRoutes(p *cover.Problem, probes []planner.Probe, format string, partial bool) error {
	var buf []byte
	for k := range probes {
		q := &probes[k]
		ports, err := routePorts(p, q)
		if err != nil {
			return fmt.Errorf("probe %s: %w", q.ID, err)
		}
		if host := q.CollectorPort; host > p.MaxPort {
			if partial {
				continue
			}
			return fmt.Errorf("probe %s: the host at %s is behind port %d, which cannot be addressed: the highest is %d; a partial plan would leave its route out", q.ID, q.Collector, host, p.MaxPort)
		}
		if format == "int-path" {
			buf, err = srint.AppendSRList(buf[:0], ports)
		} else {
			buf, err = srint.AppendProbe(buf[:0], ports)
		}
		if err != nil {
			return fmt.Errorf("probe %s: %w", q.ID, err)
		}
		q.Route = hex.EncodeToString(buf)
	}
	return nil
}

// routePorts names the ports at the ends of a probe, unless agents have, and returns those by which it leaves its
// switches.
func routePorts(p *cover.Problem, q *planner.Probe) (ports []int, err error) {
	end := func(node string, port *int) (host bool, err error) {
		n, ok := p.Graph.Lookup(node)
		switch {
		case !ok:
			return false, fmt.Errorf("it ends at %q, which the topology has not", node)
		case !p.Transit(n):
			return true, nil
		case *port == 0:
			*port = p.Graph.HostPort(n)
		}
		return false, nil
	}
	first, err := end(q.Agent, &q.AgentPort)
	if err != nil {
		return nil, err
	}
	last, err := end(q.Collector, &q.CollectorPort)
	if err != nil {
		return nil, err
	}
	ports = append(ports, q.Ports...)
	if first {
		ports = ports[1:]
	}
	if !last {
		ports = append(ports, q.CollectorPort)
	}
	if len(ports) == 0 {
		return nil, fmt.Errorf("the hosts %s and %s are joined without a switch that a route could lead through", q.Agent, q.Collector)
	}
	return ports, nil
}

// StackLimits returns how many links a probe can have whose stack grows at every switch, and its size.
func StackLimits(p *intmd.Options, bitmap uint16, mtu int) (hops int, size cover.Size, err error) {
	header, perHop, err := p.StackBytes(bitmap)
	if err != nil {
		return 0, size, err
	}
	switches, err := p.MaxHops(bitmap, mtu-stackOverhead)
	if err != nil {
		return 0, size, err
	}
	if switches < 2 {
		return 0, size, &RoomError{fmt.Sprintf("leaves no room for the metadata of two switches: %d bytes in front of it and %d of each", stackOverhead+header, perHop)}
	}
	return switches - 1, cover.Size{Header: stackOverhead + header, PerHop: perHop}, nil
}

// stackOverhead is the length of the headers in front of the shim of INT.
const stackOverhead = 20 + 8 // IPv4, UDP
