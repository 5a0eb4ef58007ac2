package afxdp

import (
	"errors"
	"runtime"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
)

// Values of [Config].Mode.
const (
	ModeAuto    = "auto"
	ModeDriver  = "driver"
	ModeGeneric = "generic"
)

// Values of [Config].Copy.
const (
	CopyAuto   = "auto"
	CopyAlways = "always"
	CopyNever  = "never"
)

// Config is the settings of the interfaces that are read, of the packets taken from them, and of the rings. Those of package
// afpacket are of the rings beside, which have what is not steered.
type Config struct {
	afpacket.Config `yaml:""`
	SteerEtherTypes bool          `yaml:"steer_ether_types" doc:"Steer ether_types around the kernel, too. Probe agents and bridges of this machine then have none of them."`
	Mode            string        `yaml:"mode" oneof:"auto|driver|generic" doc:"Where the XDP program runs: in the driver, or in the kernel behind it. auto tries the driver first."`
	Copy            string        `yaml:"copy" oneof:"auto|always|never" doc:"Whether the kernel copies frames into the ring. never requires a driver with zero-copy, auto uses it where it is."`
	Queues          int           `yaml:"queues" range:"0..64" doc:"Receive queues of an interface that have a ring, from the first on. 0 is one a CPU. Packets of others come through AF_PACKET."`
	UMEMBytes       int           `yaml:"umem_bytes" range:"262144..1073741824" doc:"Memory for the frames of a ring, a power of two or the next below. A frame takes 2048 bytes."`
	NeedWakeup      bool          `yaml:"need_wakeup" doc:"Let drivers sleep until they are woken for more room. Kernels without it (before 5.4) never sleep."`
	BusyPoll        time.Duration `yaml:"busy_poll" range:"0s..10ms" doc:"Time for which an idle worker polls the driver before it sleeps. 0 waits for interrupts, and costs least."`
}

// DefaultConfig reads no interface.
func DefaultConfig() Config {
	c := Config{Config: afpacket.DefaultConfig(), Mode: ModeAuto, Copy: CopyAuto, UMEMBytes: 16 << 20, NeedWakeup: true}
	c.Section = "afxdp"
	return c
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Doc is the meaning of the settings that differ from those of package afpacket.
func (c Config) Doc(key string) string {
	return map[string]string{
		"interfaces": "Interfaces read through AF_XDP, or through AF_PACKET where that is not possible. They need Linux, CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF.",
		"ports":      "UDP destination ports to steer, to any address, as PORT [TYPE], beside those of ports and udp.listen. Sockets of this machine have none of these datagrams.",
		"workers":    "Workers for the rings of all queues, and as many for those of AF_PACKET. 0 is one a CPU, at most 8.",
		"ring_bytes": "Kernel memory of a ring of AF_PACKET, of which each worker has one an interface. These have fragments, frames above 1792 bytes, and whatever is not steered.",
	}[key]
}

// Validate returns every problem that ranges do not show, all at once.
func (c *Config) Validate() error {
	err := c.Config.Validate()
	if c.Mode == ModeGeneric && c.Copy == CopyNever {
		err = errors.Join(err, errors.New("copy: never requires a driver, and mode is generic"))
	}
	return err
}

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
	return append(c.Config.Metrics(),
		ingest.Metric{Name: "steered_total", Help: "Frames read from rings of AF_XDP. The others came through AF_PACKET.", Value: func(s *ingest.Stats) uint64 { return s.Steered }},
		ingest.Metric{Name: "ring_dropped_total", Help: "Frames dropped by the kernel, because no chunk of the memory was free (afxdp.umem_bytes).", Value: func(s *ingest.Stats) uint64 { return s.RingDropped }},
		ingest.Metric{Name: "ring_full_total", Help: "Frames dropped by the kernel, because the ring of received frames was full.", Value: func(s *ingest.Stats) uint64 { return s.RingFull }},
		ingest.Metric{Name: "fill_ring_empty_total", Help: "Attempts of the kernel to take a chunk from an empty fill ring.", Value: func(s *ingest.Stats) uint64 { return s.FillEmpty }},
		ingest.Metric{Name: "invalid_descriptors_total", Help: "Chunks that the kernel refused.", Value: func(s *ingest.Stats) uint64 { return s.InvalidDescriptors }})
}

const (
	chunkBytes = 2048 // of a frame, with the room before it
	// roomBytes is the longest frame in a chunk, behind what the kernel keeps for headers (XDP_PACKET_HEADROOM).
	roomBytes = chunkBytes - 256
	maxQueues = 64
)

// queues returns the number of queues of an interface that have a ring, if there are so many.
func (c *Config) queues() int {
	if c.Queues > 0 {
		return c.Queues
	}
	return min(runtime.NumCPU(), maxQueues)
}

// chunks is the number of frames that the memory of a ring holds, a power of two.
func (c *Config) chunks() int {
	n := 1
	for 2*n*chunkBytes <= c.UMEMBytes {
		n *= 2
	}
	return n
}

// Memory is the most memory of frames, in all rings.
func (c *Config) Memory() int64 {
	return int64(len(c.Interfaces)) * int64(c.queues()) * int64(c.chunks()) * chunkBytes
}

// Readers returns the number of goroutines that read, and the longest frame that they hand over.
func (c *Config) Readers() (n, maxFrame int) {
	n, maxFrame = c.Config.Readers()
	return 2 * n, maxFrame
}
