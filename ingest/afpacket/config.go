package afpacket

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/hopscope/hopscope/ingest"
)

// Config is the settings of the interfaces that are read, and of the packets taken from them.
type Config struct {
	Interfaces    []string      `yaml:"interfaces" doc:"Interfaces read through rings: Ethernet, loopback, or tunnels of IP. They need Linux and CAP_NET_RAW."`
	Everything    bool          `yaml:"everything" doc:"Take all packets, beyond the settings below: for INT in TCP or in tunnels."`
	Ports         []string      `yaml:"ports" doc:"UDP destination ports to take, to any address, as PORT [TYPE], beside those of ports and udp.listen."`
	EtherTypes    []uint16      `yaml:"ether_types" range:"1536..65535" doc:"EtherTypes to take: 0x0700 and 0x0701 of INT-Probe, 0x1337 of PINT on Tofino."`
	Protocols     []uint8       `yaml:"protocols" range:"0..255" doc:"IP protocols and IPv6 next headers to take: 0 and 60 are options with IOAM, 253 is IFA, 6 is all of TCP."`
	Addresses     []string      `yaml:"addresses" doc:"Prefixes or addresses from or to which IP packets are taken. Empty takes all."`
	Promiscuous   bool          `yaml:"promiscuous" doc:"Take packets to other Ethernet addresses, as a mirror port delivers them."`
	Workers       int           `yaml:"workers" range:"0..64" doc:"Rings an interface, each with a worker. 0 is one a CPU, at most 8."`
	CPUs          []uint16      `yaml:"cpus" range:"0..1023" doc:"CPUs of workers in turns: a worker runs on its CPU only, with rings in memory of that NUMA node. Empty leaves both to the system."`
	RingBytes     int           `yaml:"ring_bytes" range:"1048576..1073741824" doc:"Kernel memory of a ring. 16 MiB hold about 50000 frames of 242 bytes."`
	MaxFrameBytes int           `yaml:"max_frame_bytes" range:"64..65535" doc:"Longer frames are cut to this size and counted."`
	Wait          time.Duration `yaml:"wait" range:"1ms..1s" doc:"Longest time that frames wait in a partly filled block of a ring."`

	Datagrams map[uint16]ingest.Kind // UDP destination ports of datagrams to take, with what alone may come to each
	Section   string                 // of the settings, which errors name
}

// Loopback is the name of the loopback interface, on Linux.
const Loopback = "lo"

// DefaultConfig reads no interface.
func DefaultConfig() Config {
	return Config{
		Section:    "afpacket",
		EtherTypes: []uint16{0x0700, 0x0701, 0x1337}, Protocols: []uint8{0, 60, 253}, Promiscuous: true,
		RingBytes: 16 << 20, MaxFrameBytes: 9216, Wait: 10 * time.Millisecond,
	}
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate returns every problem that ranges do not show, all at once.
func (c *Config) Validate() error {
	var errs []error
	for i, name := range c.Interfaces {
		switch {
		case name == "":
			errs = append(errs, errors.New("interfaces: one has no name"))
		case slices.Contains(c.Interfaces[:i], name):
			errs = append(errs, fmt.Errorf("interfaces: %s is listed twice", name))
		}
	}
	_, err := c.prefixes()
	if err == nil {
		_, err = c.filter(true)
	}
	return errors.Join(append(errs, err)...)
}

// ports are the UDP ports to take, in ascending order.
func (c *Config) ports() []uint16 {
	return slices.Sorted(maps.Keys(c.Datagrams))
}

// prefixes parses Addresses.
func (c *Config) prefixes() ([]netip.Prefix, error) { return ingest.Prefixes("addresses", c.Addresses) }

// Open makes a [Source] of these settings, with its rings open; nil where they name no interface.
func (c Config) Open() (ingest.Source, error) {
	if len(c.Interfaces) == 0 {
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
		{Name: "frames_total", Help: "Frames read from interfaces.", Value: func(s *ingest.Stats) uint64 { return s.Frames }},
		{Name: "bytes_total", Help: "Bytes of frames read from interfaces.", Value: func(s *ingest.Stats) uint64 { return s.Bytes }},
		{Name: "kernel_dropped_total", Help: "Frames dropped by the kernel: the ring was full.", Value: func(s *ingest.Stats) uint64 { return s.KernelDropped }},
		{Name: "truncated_total", Help: "Frames longer than " + c.Section + ".max_frame_bytes.", Value: func(s *ingest.Stats) uint64 { return s.Truncated }},
	}
}

// maxAutoWorkers is the most workers that are started when the configuration has no number.
const maxAutoWorkers = 8

// workers returns the number of workers by the configuration.
func (c *Config) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return min(runtime.GOMAXPROCS(0), maxAutoWorkers)
}

// Readers returns the number of goroutines that read, and the longest frame that they hand over.
func (c *Config) Readers() (n, maxFrame int) {
	if len(c.Interfaces) == 0 {
		return 0, 0
	}
	return c.workers(), c.MaxFrameBytes
}
