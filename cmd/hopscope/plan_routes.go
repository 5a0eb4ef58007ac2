package main

import (
	"encoding/hex"
	"fmt"

	"github.com/hopscope/hopscope/decode/srint"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// What a probe of INT-path carries besides its labels: IPv4, UDP, the route and the action id. Every switch adds a label.
const (
	pathOverhead  = 20 + 8 + 64 + 4
	pathLabel     = 22
	probeOverhead = 2 + 2*srint.MaxProbeHops + 2 + 2 // at most: route, the EtherType behind it, and the count of labels
	probeLabel    = 32
)

// routeLimits gives how many links a probe can have, and the highest port it can be sent to. A probe of h links passes
// h + 1 switches, each of which takes an entry off the route and adds a label; the last one sends it to its host.
func routeLimits(format string, mtu int) (hops, port int, err error) {
	var switches int
	switch format {
	case "int-path":
		switches, port = min((mtu-pathOverhead)/pathLabel, srint.MaxPathHops), srint.MaxPathPort
	case "int-probe":
		switches, port = min((mtu-probeOverhead)/probeLabel, srint.MaxProbeHops), srint.MaxProbePort
	default:
		return 0, 0, usagef("--sr %q is neither int-path nor int-probe", format)
	}
	if switches < 2 {
		return 0, 0, usagef("--mtu %d leaves no room for the labels of two switches", mtu)
	}
	return switches - 1, port, nil
}

// addRoutes gives every probe the route that its sender writes. At its last switch the probe leaves by the port of the
// host there. With partial set a probe whose host cannot be addressed has no route.
func addRoutes(g *topo.Graph, probes []planner.Probe, format string, maxPort int, partial bool) error {
	var buf []byte
	var ports []int
	for k := range probes {
		p := &probes[k]
		last, ok := g.Lookup(p.Collector)
		if !ok {
			return fmt.Errorf("probe %s ends at %q, which the topology has not", p.ID, p.Collector)
		}
		host := g.HostPort(last)
		if host > maxPort {
			if partial {
				continue
			}
			return fmt.Errorf("probe %s: the host at %s is behind port %d, which cannot be addressed: the highest is %d; a partial plan would leave its route out", p.ID, p.Collector, host, maxPort)
		}
		ports = append(append(ports[:0], p.Ports...), host)
		var err error
		if format == "int-path" {
			buf, err = srint.AppendSRList(buf[:0], ports)
		} else {
			buf, err = srint.AppendProbe(buf[:0], ports)
		}
		if err != nil {
			return fmt.Errorf("probe %s: %w", p.ID, err)
		}
		p.Route = hex.EncodeToString(buf)
	}
	return nil
}
