package main

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
	"github.com/hopscope/hopscope/ingest/otlp"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/ingest/udp"
)

// defaultPorts are those that people use: of reports, sFlow, IPFIX, NetFlow 9, and metrics of OpenTelemetry.
var defaultPorts = []string{
	"127.0.0.1:32766 auto", "127.0.0.1:6343 auto", "127.0.0.1:4739 auto", "127.0.0.1:2055 auto", "127.0.0.1:4317 otlp-grpc", "127.0.0.1:4318 otlp-http",
}

// portType is the type of a port of the list.
type portType struct {
	only ingest.Kind // of datagrams
	tcp  bool        // it is one of metrics instead
	http bool        // else gRPC
}

var portTypes = map[string]portType{
	"auto": {}, "reports": {only: ingest.Reports}, "sflow": {only: ingest.SFlow}, "ipfix": {only: ingest.IPFIX},
	"otlp-grpc": {tcp: true}, "otlp-http": {tcp: true, http: true},
}

// parsePort reads an entry of ports: [ADDRESS:]PORT [TYPE].
func parsePort(s string) (a netip.AddrPort, t portType, err error) {
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 2 {
		return a, t, fmt.Errorf("%q is not [ADDRESS:]PORT [TYPE], such as \"6343\" or \"[::]:6343 sflow\"", s)
	}
	if len(words) == 2 {
		var ok bool
		if t, ok = portTypes[words[1]]; !ok {
			return a, t, fmt.Errorf("%q: type %q is none of %s", s, words[1], strings.Join(slices.Sorted(maps.Keys(portTypes)), ", "))
		}
	}
	if _, err := strconv.ParseUint(words[0], 10, 64); err == nil {
		words[0] = "127.0.0.1:" + words[0]
	}
	a, err = udp.ParseAddr(words[0])
	return a, t, err
}

// listen lets the sources receive at the ports of the list. The default list does not count where an older setting
// names addresses, and ports in it that another program uses are left out.
func (c *config) listen() {
	c.UDP.Ports, c.OTLP.Ports = nil, nil
	defer c.datagrams()
	spare := slices.Equal(c.Ports, defaultPorts)
	if spare && (len(c.UDP.Listen) > 0 || c.OTLP.Enabled) {
		return
	}
	for _, s := range c.Ports {
		switch a, t, err := parsePort(s); {
		case err != nil: // the checks report it
		case t.tcp:
			c.OTLP.Ports = append(c.OTLP.Ports, otlp.Port{Addr: a.String(), HTTP: t.http, Spare: spare})
		default:
			c.UDP.Ports = append(c.UDP.Ports, udp.Port{Addr: a, Only: t.only, Spare: spare})
		}
	}
}

// interfaces are the settings of interfaces that are read.
func (c *config) interfaces() []*afpacket.Config {
	return []*afpacket.Config{&c.AFPacket, &c.AFXDP.Config}
}

// datagrams sets the UDP ports whose datagrams are read from interfaces, with what alone may come to each: those of sockets, and
// further ones. A port with several types takes anything.
func (c *config) datagrams() {
	for _, in := range c.interfaces() {
		in.Datagrams = map[uint16]ingest.Kind{}
		add := func(port uint16, k ingest.Kind) {
			if other, ok := in.Datagrams[port]; ok && other != k {
				k = ingest.Anything
			}
			in.Datagrams[port] = k
		}
		for _, p := range c.sockets() {
			add(p.Addr.Port(), p.Only)
		}
		for _, s := range in.Ports {
			if a, t, err := parsePort(s); err == nil && !t.tcp { // else the checks report it
				add(a.Port(), t.only)
			}
		}
		delete(in.Datagrams, 0)
	}
}

// sockets are the addresses that UDP sockets receive at.
func (c *config) sockets() (list []udp.Port) {
	for _, s := range c.UDP.Listen {
		if a, err := udp.ParseAddr(s); err == nil { // else the checks report it
			list = append(list, udp.Port{Addr: a})
		}
	}
	return append(list, c.UDP.Ports...)
}

// checkInterfaces reads the ports of interfaces of one section, and finds sockets whose datagrams the rings of an interface would have, too.
func checkInterfaces(cfg *config, in *afpacket.Config, v *verdict) {
	for i, s := range in.Ports {
		if _, t, err := parsePort(s); err != nil {
			v.problem(fmt.Sprintf("%s.ports[%d]", in.Section, i), "%v", err)
		} else if t.tcp || strings.Contains(strings.Fields(s)[0], ":") {
			v.problem(fmt.Sprintf("%s.ports[%d]", in.Section, i), "%q is not PORT [TYPE] of UDP, such as \"6343 sflow\"", s)
		}
	}
	for i, name := range in.Interfaces {
		key := fmt.Sprintf("%s.interfaces[%d]", in.Section, i)
		if _, err := net.InterfaceByName(name); err != nil && name != "" && v.dry { // a start says it with what else it needs
			v.warn(key, "%s is no interface of this machine", name)
		}
		if in != &cfg.AFPacket && slices.Contains(cfg.AFPacket.Interfaces, name) {
			v.problem(key, "%s is one of afpacket.interfaces, and its packets would be read twice", name)
		}
		for _, p := range cfg.sockets() {
			a := p.Addr
			if a.Port() != 0 && (a.Addr().IsLoopback() == (name == afpacket.Loopback) || a.Addr().IsUnspecified()) {
				v.problem(key, "datagrams to %s come to %s and to the socket of this address, and would be read twice: "+
					"take the address out of ports, and name its port in %s.ports", a, name, in.Section)
				break
			}
		}
	}
}

// kinds returns the types of report that UDP ports accept, for captures. The list names the collector's own addresses,
// but a capture may be from elsewhere, so only the number counts. A port with several types in the list accepts
// anything.
func (c *config) kinds() map[uint16]demux.Kind {
	kinds, several := map[uint16]demux.Kind{}, map[uint16]bool{}
	for _, s := range c.Ports {
		a, t, err := parsePort(s)
		if err != nil || t.tcp {
			continue
		}
		k := collector.KindOf(t.only)
		if other, ok := kinds[a.Port()]; ok && other != k {
			several[a.Port()] = true
		}
		kinds[a.Port()] = k
	}
	maps.DeleteFunc(kinds, func(port uint16, k demux.Kind) bool { return k == demux.Anything || several[port] || port == 0 })
	return kinds
}

// closed lets no source and no page be opened, whatever the settings name.
func (c *config) closed() {
	c.UDP.SetDefaults()
	c.OTLP.SetDefaults()
	c.AFPacket.SetDefaults()
	c.AFXDP.SetDefaults()
	c.Ports, c.PCAP, c.Web.Listen = slices.Clone(defaultPorts), pcapfile.DefaultFollowConfig(), ""
	c.listen()
}

// checkPorts reads the list of ports, and finds addresses that are to be opened twice.
func checkPorts(cfg *config, v *verdict) {
	type place struct {
		addr netip.AddrPort
		tcp  bool
	}
	taken := map[place]string{}
	claim := func(p place, by string) (other string, ok bool) {
		other, twice := taken[p]
		if twice && p.addr.Port() != 0 {
			return other, false
		}
		taken[p] = by
		return "", true
	}
	for i, s := range cfg.UDP.Listen {
		if a, err := udp.ParseAddr(s); err == nil {
			taken[place{a, false}] = fmt.Sprintf("udp.listen[%d]", i)
		}
	}
	if cfg.OTLP.Enabled {
		for key, s := range map[string]string{"otlp.grpc": cfg.OTLP.GRPC, "otlp.http": cfg.OTLP.HTTP} {
			if a, err := netip.ParseAddrPort(s); err == nil {
				taken[place{a, true}] = key
			}
		}
	}
	for i, s := range cfg.Ports {
		key := fmt.Sprintf("ports[%d]", i)
		a, t, err := parsePort(s)
		if err != nil {
			v.problem(key, "%v", err)
		} else if len(cfg.UDP.Ports)+len(cfg.OTLP.Ports) > 0 {
			if other, ok := claim(place{a, t.tcp}, key); !ok {
				v.problem(key, "%s is the address of %s, too", a, other)
			}
		}
	}
	for _, in := range cfg.interfaces() {
		checkInterfaces(cfg, in, v)
	}
	if len(cfg.UDP.Listen)+len(cfg.UDP.Ports)+len(cfg.OTLP.Ports)+len(cfg.PCAP.Files)+len(cfg.AFPacket.Interfaces)+len(cfg.AFXDP.Interfaces)+len(cfg.Ports) == 0 && !cfg.OTLP.Enabled {
		v.problem("ports", "nothing is received: no port is given, no otlp, no capture, no interface; \"32766\" receives from this machine, \"[::]:32766\" from everywhere")
	}
}
