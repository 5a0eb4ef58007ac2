package udp

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/ingest"
)

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // parts of the error; none: valid
	}{
		{name: "default", change: func(*Config) {}},
		{name: "several", change: func(c *Config) { c.Listen = []string{"[::]:1", "0.0.0.0:1", "[fe80::1%lo]:2"} }},
		{name: "port 0 twice", change: func(c *Config) { c.Listen = []string{"127.0.0.1:0", "127.0.0.1:0"} }},
		{name: "prefixes", change: func(c *Config) { c.AllowSources = []string{"192.0.2.0/24", "2001:db8::/32", "::1", "192.0.2.9"} }},
		{name: "no address", change: func(c *Config) { c.Listen = nil }}, // other sources may be all
		{name: "no port", change: func(c *Config) { c.Listen = []string{"127.0.0.1"} },
			want: []string{`listen: "127.0.0.1" has no port: write "127.0.0.1:32766"`}},
		{name: "no host", change: func(c *Config) { c.Listen = []string{":32766"} },
			want: []string{`listen: ":32766" has no address: write "[::]:32766"`}},
		{name: "name", change: func(c *Config) { c.Listen = []string{"localhost:32766"} },
			want: []string{`"localhost" is a name`, "names are not looked up"}},
		{name: "port out of range", change: func(c *Config) { c.Listen = []string{"127.0.0.1:70000"} }, want: []string{`"127.0.0.1:70000": port 70000 is above 65535`}},
		{name: "port far out of range", change: func(c *Config) { c.Listen = []string{"[::]:99999999999999999999"} }, want: []string{"port 99999999999999999999 is above 65535"}},
		{name: "name and port out of range", change: func(c *Config) { c.Listen = []string{"localhost:99999"} }, want: []string{"port 99999 is above 65535"}},
		{name: "port by name", change: func(c *Config) { c.Listen = []string{"127.0.0.1:http"} }, want: []string{`port "http" is no number`}},
		{name: "no digits", change: func(c *Config) { c.Listen = []string{"127.0.0.1:"} }, want: []string{"the port is missing"}},
		{name: "negative port", change: func(c *Config) { c.Listen = []string{"127.0.0.1:-1"} }, want: []string{`port "-1" is no number`}},
		{name: "star", change: func(c *Config) { c.Listen = []string{"*:7"} }, want: []string{`"*:7" has no address: write "[::]:7"`}},
		{name: "four numbers", change: func(c *Config) { c.Listen = []string{"127.0.0.256:7"} }, want: []string{`"127.0.0.256" is no IP address`}},
		{name: "IPv4 in brackets", change: func(c *Config) { c.Listen = []string{"[127.0.0.1]:7"} }, want: []string{`write "127.0.0.1:7"`}},
		{name: "IPv6 without port", change: func(c *Config) { c.Listen = []string{"[::1]"} }, want: []string{`has no port: write "[::1]:32766"`}},
		{name: "bare IPv6", change: func(c *Config) { c.Listen = []string{"::1:32766"} }, want: []string{`write "[::1]:32766"`}},
		{name: "twice", change: func(c *Config) { c.Listen = []string{"127.0.0.1:5", "[::ffff:127.0.0.1]:5"} }, want: []string{"listed twice"}},
		{name: "all problems at once", change: func(c *Config) {
			c.Listen, c.AllowSources = []string{"a", "b:1"}, []string{"10.0.0.0/33", "x"}
		}, want: []string{`"a"`, `"b:1"`, `"10.0.0.0/33"`, `"x"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			tt.change(&c)
			err := c.Validate()
			if (err != nil) != (len(tt.want) > 0) {
				t.Fatalf("Validate() = %v, want %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Validate() = %q, which does not say %q", err, want)
				}
			}
		})
	}
}

// Metrics read the number that they are named after.
func TestMetrics(t *testing.T) {
	st := ingest.Stats{Frames: 1, Bytes: 2, KernelDropped: 3, Truncated: 4, Refused: 5, Damaged: 6}
	got := map[string]uint64{}
	for _, m := range (Config{}).Metrics() {
		got[m.Name] = m.Value(&st)
	}
	want := map[string]uint64{"datagrams_total": 1, "bytes_total": 2, "kernel_dropped_total": 3, "truncated_total": 4, "refused_total": 5}
	if !maps.Equal(got, want) {
		t.Errorf("Metrics() give %v, want %v", got, want)
	}
}

// Notices belong to the addresses in their order; those that are left over, to the last.
func TestInputProblems(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.1:2")
	sockets := []socketStats{{Addr: a, Stats: ingest.Stats{Frames: 1}}, {Addr: b, Stats: ingest.Stats{Frames: 2}},
		{Addr: a, Worker: 1, Stats: ingest.Stats{Frames: 4}}, {Addr: b, Worker: 1, Stats: ingest.Stats{Frames: 8}}}
	for _, tt := range []struct{ notices, want []string }{
		{nil, []string{"", ""}},
		{[]string{"x"}, []string{"x", ""}},
		{[]string{"x", "y"}, []string{"x", "y"}},
		{[]string{"x", "y", "z"}, []string{"x", "z"}},
	} {
		want := []ingest.Input{{Name: a.String(), Frames: 5, Problem: tt.want[0]}, {Name: b.String(), Frames: 10, Problem: tt.want[1]}}
		if got := inputs(sockets, tt.notices); !slices.Equal(got, want) {
			t.Errorf("inputs with notices %q = %+v, want %+v", tt.notices, got, want)
		}
	}
}

// Open returns no source at all with an error, not an interface that holds nil.
func TestConfigOpen(t *testing.T) {
	var c Config
	c.SetDefaults()
	c.Listen = []string{"127.0.0.1:0"}
	s, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	s.(*Source).Close()
	c.Steering = ""
	if s, err := c.Open(); s != nil || err == nil {
		t.Errorf("Open() = %v, %v", s, err)
	}
}

// A configuration out of range is refused and not divided by, allocated or looped over.
func TestRanges(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"workers": func(c *Config) { c.Workers = -1 }, "receive_buffer_bytes": func(c *Config) { c.ReceiveBufferBytes = 1 << 30 },
		"max_datagram_bytes": func(c *Config) { c.MaxDatagramBytes = 0 }, "batch_size": func(c *Config) { c.BatchSize = 0 },
		"nap": func(c *Config) { c.Nap = -1 }, "steering": func(c *Config) { c.Steering = "" },
		"listen": func(c *Config) { c.Listen = nil },
	} {
		c := DefaultConfig()
		change(&c)
		for _, impl := range implementations {
			if _, err := impl.open(c); err == nil || !strings.HasPrefix(err.Error(), name+":") {
				t.Errorf("%s: error %v, want one that begins with %q", impl.name, err, name)
			}
		}
	}
}

func TestAdmission(t *testing.T) {
	c := Config{AllowSources: []string{"192.0.2.128/25", "2001:db8::/32", "::ffff:198.51.100.7"}}
	prefixes, err := c.prefixes()
	if err != nil {
		t.Fatal(err)
	}
	a := admission{prefixes: prefixes}
	for _, tt := range []struct {
		src  string
		want bool
	}{
		{"192.0.2.128", true}, {"192.0.2.128", true}, {"192.0.2.127", false}, {"192.0.2.127", false}, {"192.0.2.255", true},
		{"2001:db8:ffff::", true}, {"2001:db9::", false}, {"198.51.100.7", true}, {"198.51.100.8", false},
	} {
		if got := a.admits(netip.MustParseAddr(tt.src)); got != tt.want {
			t.Errorf("admits(%s) = %v, want %v", tt.src, got, tt.want)
		}
	}
}

// A drop counter follows the kernel's across its wrap, and an old sample changes nothing.
func TestDropCounter(t *testing.T) {
	var d dropCounter
	for _, tt := range []struct {
		kernel uint32
		want   uint64
	}{
		{0, 0}, {5, 5}, {3, 5}, {5, 5}, {1 << 31, 1 << 31}, {1<<32 - 2, 1<<32 - 2},
		{3, 1<<32 + 3}, {1<<32 - 1, 1<<32 + 3}, {4, 1<<32 + 4}, {1 << 31, 1<<32 + 1<<31}, {1<<32 - 1, 1<<33 - 1}, {0, 1 << 33},
	} {
		d.observe(tt.kernel)
		if got := d.total.Load(); got != tt.want {
			t.Errorf("after %d: total %d, want %d", tt.kernel, got, tt.want)
		}
	}
}
