package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/ingest"
)

// Values of [Config].Steering.
const (
	SteerHash   = "hash"
	SteerSpread = "spread"
)

// drainTime bounds how long a stopping worker hands over the datagrams in its sockets. Only a receiver that is far too
// slow needs it all. The remaining datagrams then count as dropped.
const drainTime = 2 * time.Second

// Config is the settings of the addresses, sockets and workers.
type Config struct {
	Listen             []string      `yaml:"listen" doc:"Further UDP addresses, as IP:port or [IPv6]:port. They disable the default of ports. [::]:port includes IPv4 unless 0.0.0.0:port is listed too."`
	Workers            int           `yaml:"workers" range:"0..256" doc:"Sockets an address, each with a worker. 0 is one a CPU, at most 8."`
	CPUs               []uint16      `yaml:"cpus" range:"0..1023" doc:"CPUs of workers in turns (Linux): a worker runs on its CPU only, with memory of that NUMA node. Empty leaves both to the system."`
	Steering           string        `yaml:"steering" oneof:"hash|spread" doc:"Worker of a datagram: hash keeps an address and port in order at one worker, spread picks at random, so that all share a loud exporter."`
	ReceiveBufferBytes int           `yaml:"receive_buffer_bytes" range:"4096..1073741823" doc:"Receive buffer of a socket; above net.core.rmem_max with CAP_NET_ADMIN. 16 MiB hold about 43000 datagrams of 200 bytes."`
	MaxDatagramBytes   int           `yaml:"max_datagram_bytes" range:"64..65535" doc:"Longer datagrams are cut to this size and counted."`
	BatchSize          int           `yaml:"batch_size" range:"1..1024" doc:"Datagrams taken with one system call."`
	Nap                time.Duration `yaml:"nap" range:"0s..100ms" doc:"Pause after a partial batch. 0 waits for the next datagram, at more cost and with more loss in a flood."`
	Ports              []Port        // beside those of Listen, by the list of ports of all sources
	AllowSources       []string      `yaml:"allow_sources" doc:"Prefixes (192.0.2.0/24, 2001:db8::/32) or addresses of accepted senders; other datagrams are dropped. Empty accepts all."`
}

// Port is an address to receive on.
type Port struct {
	Addr  netip.AddrPort
	Only  ingest.Kind // what alone may come in
	Spare bool        // where another program has it, the others are received on without it
}

// DefaultConfig receives telemetry reports for this machine alone.
func DefaultConfig() Config {
	return Config{
		Listen:             []string{"127.0.0.1:32766"},
		Steering:           SteerHash,
		ReceiveBufferBytes: 16 << 20,
		MaxDatagramBytes:   9216,
		BatchSize:          64,
		Nap:                time.Millisecond,
	}
}

// SetDefaults sets c to the default settings. It has no addresses: the list of ports of all sources has those.
func (c *Config) SetDefaults() {
	*c = DefaultConfig()
	c.Listen = nil
}

// Open makes a [Source] of these settings, with its sockets open; nil where they name no address.
func (c Config) Open() (ingest.Source, error) {
	if len(c.Listen)+len(c.Ports) == 0 {
		return nil, nil
	}
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Metrics are the numbers that are published about this kind of source.
func (c Config) Metrics() []ingest.Metric {
	return []ingest.Metric{
		{Name: "datagrams_total", Help: "Datagrams received.", Value: func(s *ingest.Stats) uint64 { return s.Frames }},
		{Name: "bytes_total", Help: "Bytes of received datagrams.", Value: func(s *ingest.Stats) uint64 { return s.Bytes }},
		{Name: "kernel_dropped_total", Help: "Datagrams dropped by the kernel: the socket buffer was full.", Value: func(s *ingest.Stats) uint64 { return s.KernelDropped }},
		{Name: "truncated_total", Help: "Datagrams longer than udp.max_datagram_bytes.", Value: func(s *ingest.Stats) uint64 { return s.Truncated }},
		{Name: "refused_total", Help: "Datagrams from sources that udp.allow_sources does not name.", Value: func(s *ingest.Stats) uint64 { return s.Refused }},
	}
}

// Validate returns every problem that ranges do not show, all at once.
func (c *Config) Validate() error {
	_, err := c.addresses()
	_, perr := c.prefixes()
	return errors.Join(err, perr)
}

// ranges guards New against a configuration that was not checked against the ranges of its tags.
func (c *Config) ranges() error {
	var errs []error
	if len(c.Listen)+len(c.Ports) == 0 {
		errs = append(errs, errors.New("listen: no address given; 127.0.0.1:32766 receives from this machine, [::]:32766 from everywhere"))
	}
	if c.Steering != SteerHash && c.Steering != SteerSpread {
		errs = append(errs, fmt.Errorf("steering: %q is neither %q nor %q", c.Steering, SteerHash, SteerSpread))
	}
	for _, n := range []struct {
		key         string
		v, min, max int
	}{
		{"workers", c.Workers, 0, 256},
		{"receive_buffer_bytes", c.ReceiveBufferBytes, 4096, 1<<30 - 1},
		{"max_datagram_bytes", c.MaxDatagramBytes, 64, 65535},
		{"batch_size", c.BatchSize, 1, 1024},
		{"nap", int(c.Nap), 0, int(100 * time.Millisecond)},
	} {
		if n.v < n.min || n.v > n.max {
			errs = append(errs, fmt.Errorf("%s: %d is outside %d..%d", n.key, n.v, n.min, n.max))
		}
	}
	return errors.Join(errs...)
}

// addresses parses Listen.
func (c *Config) addresses() ([]netip.AddrPort, error) {
	var (
		out  []netip.AddrPort
		errs []error
	)
	for _, s := range c.Listen {
		a, err := parseListen(s)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("listen: %w", err))
		case a.Port() != 0 && slices.Contains(out, a):
			errs = append(errs, fmt.Errorf("listen: %s is listed twice", s))
		default:
			out = append(out, a)
		}
	}
	return out, errors.Join(errs...)
}

// ports are all addresses: those of Listen, and Ports. Listen is valid.
func (c *Config) ports() (list []Port) {
	addrs, _ := c.addresses()
	for _, a := range addrs {
		list = append(list, Port{Addr: a})
	}
	return append(list, c.Ports...)
}

// ParseAddr reads IP:port or [IPv6]:port. The error contains the right form.
func ParseAddr(s string) (netip.AddrPort, error) { return parseListen(s) }

func parseListen(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a, fmt.Errorf("%q has no port: write %q", s, netip.AddrPortFrom(ip, 32766))
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return a, fmt.Errorf("%q has no port: write \"%s:32766\", with an IPv6 address in brackets", s, s)
	}
	host, port := s[:i], s[i+1:]
	if text := wrongPort(port); text != "" {
		return a, fmt.Errorf("%q: %s", s, text)
	}
	if host == "" || host == "*" {
		return a, fmt.Errorf("%q has no address: write \"[::]:%s\" for all addresses of this machine", s, port)
	}
	inner, open := strings.CutPrefix(host, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	switch ip, err := netip.ParseAddr(inner); {
	case err == nil && ip.Is6() && !(open && closed):
		return a, fmt.Errorf("%q: an IPv6 address stands in brackets: write \"[%s]:%s\"", s, ip, port)
	case err == nil:
		return a, fmt.Errorf("%q: only an IPv6 address stands in brackets: write \"%s:%s\"", s, ip, port)
	case strings.Trim(inner, "0123456789.") == "" || strings.Contains(inner, ":"):
		return a, fmt.Errorf("%q: %q is no IP address", s, inner)
	}
	return a, fmt.Errorf("%q: %q is a name, and names are not looked up: write an IP address of this machine", s, inner)
}

// wrongPort returns the error in a port, or "".
func wrongPort(port string) string {
	n, err := strconv.ParseUint(port, 10, 64)
	switch {
	case port == "":
		return "the port is missing"
	case strings.Trim(port, "0123456789") != "":
		return fmt.Sprintf("port %q is no number", port)
	case err != nil || n > 65535:
		return "port " + port + " is above 65535"
	}
	return ""
}

// prefixes parses AllowSources.
func (c *Config) prefixes() ([]netip.Prefix, error) {
	return ingest.Prefixes("allow_sources", c.AllowSources)
}

// admission decides which sources are received. It remembers its last answer, since exporters send in runs.
type admission struct {
	prefixes []netip.Prefix
	last     netip.Addr
	lastOK   bool
}

func (a *admission) admits(src netip.Addr) bool {
	if a.prefixes == nil {
		return true
	}
	if src != a.last {
		a.last = src
		a.lastOK = slices.ContainsFunc(a.prefixes, func(p netip.Prefix) bool { return p.Contains(src) })
	}
	return a.lastOK
}

// maxAutoWorkers is the most workers that are started when the configuration has no number. Receiving stops getting
// faster well before that, and decoding shards need CPUs, too.
const maxAutoWorkers = 8

// workers returns the number of workers of an address by the configuration.
func (c *Config) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return min(runtime.GOMAXPROCS(0), maxAutoWorkers)
}

// Readers returns the number of goroutines that read, and the longest frame that they hand over.
func (c *Config) Readers() (n, maxFrame int) {
	return c.workers() * (len(c.Listen) + len(c.Ports)), c.MaxDatagramBytes
}

// Memory is the memory of the buffers that datagrams are read into, in bytes.
func (c *Config) Memory() int64 {
	n, frame := c.Readers()
	return int64(n) * int64(c.BatchSize) * int64(frame+256)
}

// Wakes returns the number of workers that a load wakes, and how long each pauses after a batch that is not full.
func (c *Config) Wakes() (workers int, nap time.Duration) {
	if len(c.Listen)+len(c.Ports) == 0 {
		return 0, c.Nap
	}
	return c.workers(), c.Nap
}
