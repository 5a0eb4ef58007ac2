package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// TestHeaderSettings finds what is wrong with traces, segments and classes, where it is, and what is right.
func TestHeaderSettings(t *testing.T) {
	for _, c := range []struct {
		want string
		set  func(s *STAMPSession, c *Config)
	}{
		{"stamp.sessions[0]: ioam needs IPv6, and to is 192.0.2.1", func(s *STAMPSession, _ *Config) { s.To, s.IOAM = "192.0.2.1", true }},
		{"stamp.sessions[0]: segments need IPv6, and from is 192.0.2.1", func(s *STAMPSession, _ *Config) {
			s.To, s.From, s.Segments = "host", "192.0.2.1", []string{"2001:db8::7"}
		}},
		{`stamp.sessions[0]: segments[1]: "192.0.2.1" is no segment, which is an IPv6 address that is routed`, func(s *STAMPSession, _ *Config) { s.Segments = []string{"2001:db8::7", "192.0.2.1"} }},
		{`segments[0]: "fe80::1%lo" is no segment`, func(s *STAMPSession, _ *Config) { s.Segments = []string{"fe80::1%lo"} }},
		{`segments[0]: "ff02::1" is no segment`, func(s *STAMPSession, _ *Config) { s.Segments = []string{"ff02::1"} }},
		{`segments[0]: "x" is no segment`, func(s *STAMPSession, _ *Config) { s.Segments = []string{"x"} }},
		{"stamp.sessions[0]: 17 segments, and a request has at most 16", func(s *STAMPSession, _ *Config) { s.Segments = slices.Repeat([]string{"2001:db8::7"}, 17) }},
		{`stamp.ioam.trace_type: "0x1000000" is no trace type of 24 bits, such as 0xc20000`, func(_ *STAMPSession, c *Config) { c.STAMP.IOAM.Type = "0x1000000" }},
		{`stamp.ioam.trace_type: "0" is no trace type`, func(_ *STAMPSession, c *Config) { c.STAMP.IOAM.Type = "0" }},
		{`stamp.ioam.trace_type: "0x810801" asks for 0x010801, of which collectors read nothing`, func(_ *STAMPSession, c *Config) { c.STAMP.IOAM.Type = "0x810801" }},
		{"stamp.ioam.nodes: 21 routers with 12 bytes each are more than the 244 bytes that routers take; there is room for 20", func(_ *STAMPSession, c *Config) { c.STAMP.IOAM.Nodes = 21 }},
		{"stamp.sessions[0]: dscp and dscps exclude each other; add 46 to dscps", func(s *STAMPSession, _ *Config) { s.DSCP, s.DSCPs = 46, []int{0, 10} }},
		{`stamp.sessions[1]: sessions[0] has a session with the name "2001:db8::1 dscp 46" too`, func(s *STAMPSession, c *Config) {
			s.DSCPs = []int{10, 46}
			c.STAMP.Sessions = append(c.STAMP.Sessions, STAMPSession{To: "b", Name: "2001:db8::1 dscp 46"})
		}},
		{"stamp.sessions[0]: dscps has 10 twice", func(s *STAMPSession, _ *Config) { s.DSCPs = []int{10, 46, 10} }},
		{"stamp.sessions[0]: ports of 3 dscps end behind 65535; begin with one below 65534", func(s *STAMPSession, _ *Config) { s.DSCPs, s.Port = []int{0, 10, 46}, 65534 }},
		{"stamp.sessions: 3072, and an agent has 1024 at most", func(s *STAMPSession, _ *Config) { s.DSCPs, s.Port, s.Ports = []int{0, 10, 46}, 1024, 1024 }},
	} {
		cfg := DefaultConfig()
		cfg.STAMP.Sessions = []STAMPSession{{To: "2001:db8::1"}}
		c.set(&cfg.STAMP.Sessions[0], &cfg)
		if err := cfg.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	cfg := DefaultConfig()
	cfg.STAMP.IOAM.Nodes = 20
	cfg.STAMP.Sessions = []STAMPSession{
		{To: "2001:db8::1", IOAM: true, Segments: []string{"2001:db8:a::1"}}, {To: "host", DSCPs: []int{0, 10, 46}, Port: 65533}, {To: "other", DSCPs: []int{0, 63}, SSID: 7},
	}
	if err := cfg.check(); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	want := "sends 6 sessions of STAMP, 60 packets a second, at most 86.08 kbit/s, without authentication\n" +
		"1 of them with an IOAM trace of namespace 0 and type 0xc20000, for 20 routers with 12 bytes each; this needs CAP_NET_RAW\n1 of them over segments of SRv6\n" +
		"1 of them with both, which nodes of segments that run Linux lose\n"
	if err := cfg.STAMP.describe(&text); err != nil || text.String() != want {
		t.Errorf("%v\n%swant\n%s", err, text.String(), want)
	}
}

// TestClasses has a session of several classes and ports be one for each, with its own ports, names and paths.
func TestClasses(t *testing.T) {
	c := STAMP{Interval: time.Second, Timeout: time.Second, DSCP: 8, Sessions: []STAMPSession{
		{To: "a", DSCPs: []int{0, 46}, Port: 1024, Ports: 2}, {To: "b", DSCPs: []int{10, 0}}, {To: "c"}, {To: "d", DSCPs: []int{0, 63}, SSID: 7, Port: 2000}, {To: "e", DSCP: 5},
	}}
	type one struct {
		name string
		port int
		dscp uint8
		ssid uint16
		path string
	}
	var got []one
	all := c.all()
	for k := range all {
		p := c.plan(k, &all[k], nil)
		got = append(got, one{all[k].name(), all[k].Port, p.DSCP, p.SSID, decode.PathText(all[k].path(&p))})
	}
	want := []one{
		{"a dscp 0 port 1024", 1024, 0, 1024, "1024 with DSCP 0"}, {"a dscp 0 port 1025", 1025, 0, 1025, "1025 with DSCP 0"},
		{"a dscp 46 port 1026", 1026, 46, 1026, "1026 with DSCP 46"}, {"a dscp 46 port 1027", 1027, 46, 1027, "1027 with DSCP 46"},
		{"b dscp 10", 0, 10, 5, "5 with DSCP 10"}, {"b dscp 0", 0, 0, 6, "6 with DSCP 0"}, {"c", 0, 8, 7, "7"},
		{"d dscp 0", 2000, 0, 7, "7 with DSCP 0"}, {"d dscp 63", 2001, 63, 7, "7 with DSCP 63"}, {"e", 0, 5, 10, "10"},
	}
	if !slices.Equal(got, want) || c.count() != len(want) {
		t.Errorf("%d:\n%v\nwant\n%v", c.count(), got, want)
	}
}
