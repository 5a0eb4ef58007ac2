package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
)

// STAMP holds the sessions that an agent sends, and where it answers those of others.
type STAMP struct {
	Sessions  []STAMPSession `yaml:"sessions" doc:"Reflectors of requests, with a session each."`
	Interval  time.Duration  `yaml:"interval" range:"1ms..1h" doc:"Time between two requests of a session, spread over all sessions."`
	Timeout   time.Duration  `yaml:"timeout" range:"1ms..1m" doc:"Time after which a request is lost; later answers are late."`
	Size      int            `yaml:"size" range:"0..9000" doc:"Bytes of UDP payload of a packet, at least 44, or 112 with keys. 0 is the least."`
	DSCP      int            `yaml:"dscp" range:"0..63" doc:"DSCP of requests."`
	CoS       bool           `yaml:"class_of_service" doc:"Ask reflectors for answers with the same DSCP, and for the DSCP received (RFC 8972)."`
	Times     string         `yaml:"times" oneof:"ntp|ptp" doc:"Format of time stamps in requests. Reflectors may answer in their own."`
	Trace     time.Duration  `yaml:"trace" range:"0s..1h" doc:"Time between two traces of the routers of sessions with a port. 0 disables them."`
	Stateless bool           `yaml:"stateless" doc:"Reflectors number no answers, so losses have no direction."`
	Keys      string         `yaml:"keys" doc:"File of keys for authenticated sessions, in the form of digest_keys. Empty disables authentication."`
	IOAM      stamp.IOAM     `yaml:"ioam" doc:"Trace that requests of sessions with ioam carry (RFC 9197, RFC 9486)."`
	Reflector STAMPReflector `yaml:"reflector" doc:"Answers to the sessions of others."`
}

// STAMPSession holds the settings of one session.
type STAMPSession struct {
	To   string `yaml:"to" doc:"HOST:PORT of the reflector. Without a port it is 862."`
	Name string `yaml:"name" doc:"Name of the session in metrics and status. Empty is to."`
	From string `yaml:"from" doc:"Source address of requests. Empty leaves it to the host's routes."`
	DSCP int    `yaml:"dscp" range:"0..63" doc:"DSCP of its requests. 0 is that of all sessions."`
	SSID int    `yaml:"ssid" range:"0..65535" doc:"Identifier of the session (RFC 8972), and its path in the series probe. 0 is its port, or its place in the list, from 1 on."`
	Port int    `yaml:"port" range:"0..65535" doc:"UDP source port of requests, which selects the way in networks that hash. 0 is any."`
	// Ports are so many that it is one session each.
	Ports int `yaml:"ports" range:"0..1024" doc:"Number of ports, from port on, with a session each. 0 is 1."`
	// DSCPs are several in place of DSCP.
	DSCPs    []int    `yaml:"dscps" range:"0..63" doc:"DSCP values with a session each, with ports of its own. Empty is dscp alone."`
	IOAM     bool     `yaml:"ioam" doc:"Requests carry the trace of stamp.ioam. It needs IPv6 and CAP_NET_RAW."`
	Segments []string `yaml:"segments" doc:"IPv6 addresses of SRv6 segments (RFC 8754) that requests pass in this order before to."`
}

// STAMPReflector holds the addresses at which requests are answered, and the limits.
type STAMPReflector struct {
	Listen    []string `yaml:"listen" doc:"Addresses to answer at, as ADDRESS:PORT; a port alone is on loopback. Empty answers nothing."`
	Allow     []string `yaml:"allow" doc:"Networks whose requests are answered, such as 192.0.2.0/24. Empty is all."`
	Keys      string   `yaml:"keys" doc:"File of keys, in the form of digest_keys. With it only signed requests are answered."`
	Stateless bool     `yaml:"stateless" doc:"Copy the numbers of requests, and remember no session. Losses have no direction then."`
	Sessions  int      `yaml:"max_sessions" range:"1..65536" doc:"Most sessions at an address. Further ones get no answer until one has been silent for a minute."`
	Rate      float64  `yaml:"answers_per_second" range:"1..1000000" doc:"Most answers a second, and in a burst, at each address."`
	IOAM      bool     `yaml:"ioam" doc:"Report IOAM traces of answered requests to collectors."`
}

// mostSTAMP are the sessions that an agent can have.
const mostSTAMP = 1024

// SetDefaults is without sessions and without a reflector.
func (c *STAMP) SetDefaults() {
	*c = STAMP{Interval: 100 * time.Millisecond, Timeout: 2 * time.Second, Times: "ntp", Trace: time.Minute, IOAM: stamp.IOAM{Type: "0xc20000", Nodes: 8}, Reflector: STAMPReflector{Sessions: 1024, Rate: 10_000}}
}

// Used reports whether anything is sent or answered.
func (c *STAMP) Used() bool { return len(c.Sessions) > 0 || len(c.Reflector.Listen) > 0 }

// single is one session of those of a STAMPSession.
type single struct {
	STAMPSession
	class bool // DSCP is one of DSCPs
}

// sockets are how many sessions s stands for, each with a socket.
func (s *STAMPSession) sockets() int { return max(s.Ports, 1) * max(len(s.DSCPs), 1) }

// count is the number of all sessions.
func (c *STAMP) count() (n int) {
	for k := range c.Sessions {
		n += c.Sessions[k].sockets()
	}
	return n
}

// singles are the sessions of s, one for each DSCP and port.
func (s *STAMPSession) singles() (list []single) {
	for i := range s.sockets() {
		x := single{STAMPSession: *s}
		x.Name = s.name()
		if len(s.DSCPs) > 0 {
			x.class, x.DSCP = true, s.DSCPs[i/max(s.Ports, 1)]
			x.Name += fmt.Sprintf(" dscp %d", x.DSCP)
		}
		if s.Port > 0 {
			x.Port = s.Port + i
		}
		if s.Ports > 0 {
			x.Name += fmt.Sprintf(" port %d", x.Port)
		}
		list = append(list, x)
	}
	return list
}

// all are the sessions of all.
func (c *STAMP) all() (list []single) {
	for k := range c.Sessions {
		list = append(list, c.Sessions[k].singles()...)
	}
	return list
}

// path is the number of a session at collectors: its SSID, with its DSCP where that is one of several.
func (s *single) path(p *stamp.Plan) uint32 {
	if !s.class {
		return uint32(p.SSID)
	}
	return decode.ClassPath(p.SSID, p.DSCP)
}

// socket is what the socket of a session is to be.
func (c *STAMP) socket(s *single, p *stamp.Plan) (x socketConfig, err error) {
	x = socketConfig{from: s.From, to: s.reflector(), port: uint16(s.Port), dscp: p.DSCP}
	if s.IOAM {
		if x.hops, err = c.IOAM.Header(); err != nil {
			return x, err
		}
	}
	x.route, err = stamp.RoutingHeader(s.Segments)
	return x, err
}

// plan is the plan of session s, which is at place k of the list of all.
func (c *STAMP) plan(k int, s *single, keys *probe.Keys) stamp.Plan {
	p := stamp.Plan{
		SSID: uint16(s.SSID), Size: c.Size, Interval: c.Interval, Timeout: c.Timeout, PTP: c.Times == "ptp", CoS: c.CoS, DSCP: uint8(s.DSCP), Stateful: !c.Stateless,
	}
	switch {
	case s.SSID == 0 && s.Port > 0:
		p.SSID = uint16(s.Port)
	case s.SSID == 0:
		p.SSID = uint16(k + 1)
	}
	if s.DSCP == 0 && !s.class {
		p.DSCP = uint8(c.DSCP)
	}
	if keys != nil {
		p.Keys = stamp.NewKeys(keys.Secrets())
	}
	p.SetSize()
	return p
}

// Validate finds what is wrong beyond the ranges of single values. It reads no file.
func (c *STAMP) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for k := range c.Sessions {
		switch s := &c.Sessions[k]; {
		case s.Ports > 0 && (s.Port == 0 || s.SSID != 0 || s.Port+s.Ports > 1<<16):
			wrong("sessions[%d]: %d ports need a port to begin with, end at 65535, and have no ssid in common", k, s.Ports)
		case s.Port > 0 && s.Port+s.sockets() > 1<<16:
			wrong("sessions[%d]: ports of %d dscps end behind 65535; begin with one below %d", k, len(s.DSCPs), 1<<16-s.sockets()+1)
		}
		c.Sessions[k].checkHeaders(func(format string, args ...any) { wrong("sessions[%d]: %w", k, fmt.Errorf(format, args...)) })
	}
	if n := c.count(); n > mostSTAMP {
		wrong("sessions: %d, and an agent has %d at most", n, mostSTAMP)
		return errors.Join(errs...) // and no list of them
	}
	all := c.all()
	names, singles := map[string]int{}, map[string]int{}
	for k := range c.Sessions {
		s := &c.Sessions[k]
		if !hostPort(s.reflector()) {
			wrong("sessions[%d]: %q is not HOST or HOST:PORT", k, s.To)
		}
		if s.From != "" {
			from, err := netip.ParseAddr(s.From)
			if err != nil {
				wrong("sessions[%d]: from is no address: %q", k, s.From)
			}
			if to, terr := netip.ParseAddrPort(s.reflector()); err == nil && terr == nil && from.Unmap().Is4() != to.Addr().Unmap().Is4() {
				wrong("sessions[%d]: of from %s and to %s one is IPv4 and one IPv6", k, s.From, s.To)
			}
		}
		if at, twice := names[s.name()]; twice {
			wrong("sessions[%d]: sessions[%d] has the name %q too; give each a name", k, at, s.name())
		}
		names[s.name()] = k
		for _, x := range s.singles() {
			if at, twice := singles[x.Name]; twice && s.name() != c.Sessions[at].name() {
				wrong("sessions[%d]: sessions[%d] has a session with the name %q too; give one of them another name", k, at, x.Name)
			}
			singles[x.Name] = k
		}
		for i := range c.Sessions[:k] {
			if o := &c.Sessions[i]; s.sharesPort(o) {
				wrong("sessions[%d]: sessions[%d] sends from one of its ports to %s too, and one of them would have no answers", k, i, s.reflector())
			}
		}
	}
	if len(c.Sessions) > 0 {
		var keys *probe.Keys
		if c.Keys != "" {
			keys = new(probe.Keys) // the size alone depends on them
		}
		p := c.plan(0, &all[0], keys)
		if err := p.Check(); err != nil {
			wrong("%w", err)
		}
	}
	return errors.Join(errs...)
}

// checkHeaders finds what is wrong with the DSCP values and the extension headers of a session.
func (s *STAMPSession) checkHeaders(wrong func(format string, args ...any)) {
	if len(s.DSCPs) > 0 && s.DSCP != 0 {
		wrong("dscp and dscps exclude each other; add %d to dscps", s.DSCP)
	}
	for i, d := range s.DSCPs {
		if slices.Contains(s.DSCPs[:i], d) {
			wrong("dscps has %d twice", d)
			break
		}
	}
	if len(s.Segments) > stamp.MostSegments {
		wrong("%d segments, and a request has at most %d", len(s.Segments), stamp.MostSegments)
	}
	for i, text := range s.Segments {
		if _, err := stamp.Segment(text); err != nil {
			wrong("segments[%d]: %w", i, err)
			break
		}
	}
	if !s.IOAM && len(s.Segments) == 0 {
		return
	}
	what := "segments need"
	if s.IOAM {
		what = "ioam needs"
	}
	if to, err := netip.ParseAddrPort(s.reflector()); err == nil && to.Addr().Unmap().Is4() {
		wrong("%s IPv6, and to is %s", what, s.To)
	}
	if from, err := netip.ParseAddr(s.From); err == nil && from.Unmap().Is4() {
		wrong("%s IPv6, and from is %s", what, s.From)
	}
}

// Validate finds what is wrong beyond the ranges of single values.
func (c *STAMPReflector) Validate() error {
	var errs []error
	for k, a := range c.Listen {
		if _, err := listenAddress(a); err != nil {
			errs = append(errs, fmt.Errorf("listen[%d]: %w", k, err))
		}
	}
	for k, a := range c.Allow {
		if p, err := netip.ParsePrefix(a); err != nil || p.Addr().Is4In6() {
			errs = append(errs, fmt.Errorf("allow[%d]: %q is no network such as 192.0.2.0/24", k, a))
		}
	}
	return errors.Join(errs...)
}

// CheckFiles reads the file of keys.
func (c *STAMPReflector) CheckFiles() error { return checkKeys(c.Keys) }

// CheckFiles reads the file of keys of sessions.
func (c *STAMP) CheckFiles() error { return checkKeys(c.Keys) }

func checkKeys(path string) error {
	if _, err := probe.ReadKeys(path); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return nil
}

// load is the load of all sessions: packets a second, and bits including the overhead of a frame on a line.
func (c *STAMP) load() (perSecond, bps float64) {
	if n := c.count(); n == 0 || n > mostSTAMP { // too many are another error
		return 0, 0
	}
	all := c.all()
	const around = 24 + 14 + 40 + 8 // a line, Ethernet, IPv6 as the longer one, UDP
	var keys *probe.Keys
	if c.Keys != "" {
		keys = new(probe.Keys)
	}
	size := 0
	for k := range all {
		p := c.plan(k, &all[k], keys)
		size += p.Size + around
		if x, err := c.socket(&all[k], &p); err == nil { // what is wrong with it is another error
			size += len(x.hops) + len(x.route)
		}
	}
	perSecond = 1 / c.Interval.Seconds()
	return perSecond * float64(len(all)), perSecond * float64(size) * 8
}

// sharesPort reports whether s and o have a socket of the same addresses and ports, as far as the settings have these.
func (s *STAMPSession) sharesPort(o *STAMPSession) bool {
	return s.Port > 0 && o.Port > 0 && s.reflector() == o.reflector() && s.From == o.From &&
		s.Port < o.Port+o.sockets() && o.Port < s.Port+s.sockets()
}

func (s *STAMPSession) name() string {
	if s.Name == "" {
		return s.To
	}
	return s.Name
}

// reflector is the address of the reflector with its port.
func (s *STAMPSession) reflector() string {
	if a, err := netip.ParseAddr(s.To); err == nil {
		return netip.AddrPortFrom(a, stamp.Port).String()
	}
	if _, _, err := net.SplitHostPort(s.To); err != nil && s.To != "" {
		return net.JoinHostPort(s.To, strconv.Itoa(stamp.Port))
	}
	return s.To
}

// listenAddress reads an address of the reflector.
func listenAddress(s string) (netip.AddrPort, error) {
	if port, err := strconv.ParseUint(s, 10, 16); err == nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return a, fmt.Errorf("%q is neither ADDRESS:PORT nor a port", s)
	}
	return a, nil
}
