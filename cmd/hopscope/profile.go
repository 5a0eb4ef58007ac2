package main

import (
	"strings"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/demux"
)

// lookupProfile gives the built-in profile of that name, with other report ports if any are given.
func lookupProfile(name string, ports []uint) (demux.Profile, error) {
	p, ok := demux.Lookup(name)
	if !ok {
		return p, usagef("no profile %q; there are %s", name, strings.Join(demux.Profiles(), ", "))
	}
	if len(ports) > 0 {
		p.ReportPorts = nil
		for _, n := range ports {
			if n < 1 || n > 65535 {
				return p, usagef("--report-port %d is outside 1..65535", n)
			}
			p.ReportPorts = append(p.ReportPorts, uint16(n))
		}
	}
	return p, nil
}

// pintFlags puts the flags --nodes and --topology in the place of what the settings say.
func pintFlags(c collector.PINT, nodes, topology string) (collector.PINT, error) {
	c.Nodes, c.Topology = nodes, topology
	if err := c.Validate(); err != nil {
		return c, usagef("%v", err)
	}
	return c, nil
}
