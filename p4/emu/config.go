package emu

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/probe"
)

// Config describes a network, its traffic, its telemetry and what happens to it.
type Config struct {
	Topology     string        `yaml:"topology" doc:"Switches and links: fat-tree:K, leaf-spine:SPINES,LEAVES, grid:ROWS,COLUMNS, torus:ROWS,COLUMNS or random:NODES,LINKS,SEED."`
	HostsPerEdge int           `yaml:"hosts_per_edge" doc:"Hosts on every edge switch (on every switch, if the topology has no tiers)." range:"1..250"`
	LinkRate     int64         `yaml:"link_bits_per_second" doc:"Rate of every link." range:"100000..1000000000000"`
	LinkDelay    time.Duration `yaml:"link_delay" doc:"Propagation delay of every link." range:"0s..1s"`
	QueueBytes   int           `yaml:"queue_bytes" doc:"Capacity of every egress queue; a packet that does not fit is dropped." range:"1600..16000000"`
	Pipeline     time.Duration `yaml:"pipeline_delay" doc:"Time from a packet's arrival at a switch to its egress queue." range:"0s..1s"`
	Jitter       time.Duration `yaml:"pipeline_jitter" doc:"Upper bound of the random part of that time." range:"0s..1s"`
	MTU          int           `yaml:"mtu" doc:"Largest IP packet; a node that would exceed it sets the M bit and adds nothing." range:"576..9500"`
	Convergence  time.Duration `yaml:"convergence" doc:"Time from a link's failure or return until routes are changed." range:"0s..1m"`

	Flows          int     `yaml:"flows" doc:"Flows between random hosts on different switches." range:"0..10000000"`
	PacketRate     float64 `yaml:"packets_per_second" doc:"Packets of all those flows together; a Poisson process." range:"0..100000000"`
	Skew           float64 `yaml:"skew" doc:"Exponent of Zipf's law over the flows; 0 makes them equal." range:"0..4"`
	MinPacketBytes int     `yaml:"min_packet_bytes" doc:"Smallest packet, from the Ethernet header on." range:"128..9000"`
	MaxPacketBytes int     `yaml:"max_packet_bytes" doc:"Largest packet." range:"128..9000"`
	FlowPackets    float64 `yaml:"flow_packets" doc:"Mean number of packets after which a flow ends and another begins in its place; 0 for never." range:"0..1000000000"`
	TCPShare       float64 `yaml:"tcp_share" doc:"Share of flows that are TCP; the others are UDP." range:"0..1"`
	IPv6Share      float64 `yaml:"ipv6_share" doc:"Share of flows over IPv6." range:"0..1"`
	SampleEvery    int     `yaml:"sample_every" doc:"Telemetry for one of this many packets of a flow. INT-MD 2.1 chooses them by a hash, which may take all or none of a flow of equal packets." range:"1..1000000"`

	Dialect            Dialect            `yaml:"dialect" doc:"How switches take part in telemetry."`
	Dialects           map[string]Dialect `yaml:"dialects" doc:"Switches that differ from that, by name."`
	Marker             marker             `yaml:"-"` // of INT 2.1
	Instructions       uint16             `yaml:"instructions" doc:"Instruction bitmap of INT; also what postcards hold."`
	MaxHops            int                `yaml:"max_hops" doc:"Nodes that may add to a packet." range:"1..60"`
	InnerBytes         int                `yaml:"inner_bytes" doc:"Payload bytes that a report keeps behind headers and telemetry. Reports of INT-MD 2.1 have at most 900 bytes of a packet." range:"0..1400"`
	IPReports          bool               `yaml:"ip_reports" doc:"Reports hold the packet from its IP header on, without Ethernet (1.0 and 2.0)."`
	SinkInHeader       bool               `yaml:"sink_in_header" doc:"The sink node puts its own values into the report header, not into the stack. INT-MD 2.1 always does."`
	ReportsPerDatagram int                `yaml:"reports_per_datagram" doc:"Reports 2.0 in one datagram, at most." range:"1..100"`
	ReportHold         time.Duration      `yaml:"report_hold" doc:"Time that a report 2.0 waits for others." range:"0s..10s"`
	HardwareIDs        int                `yaml:"hardware_ids" doc:"Subsystems a switch; ingress ports are dealt out among them." range:"1..64"`
	FirstSequence      uint32             `yaml:"first_sequence" doc:"Sequence number of the first report of each subsystem."`
	DropReports        bool               `yaml:"drop_reports" doc:"Switches report packets that they drop."`
	SourceReports      bool               `yaml:"source_reports" doc:"The first switch, too, reports every packet that the last one is to report (INT-MD and PINT), so that what got lost between them shows; which packets these are is decided by a hash of the packet."`
	QueueReportBytes   int                `yaml:"queue_report_bytes" doc:"Occupancy from which INT-MD nodes report a queue by themselves; 0 for never." range:"0..16000000"`
	QueueReportGap     time.Duration      `yaml:"queue_report_gap" doc:"Least time between two such reports of a queue." range:"0s..1m"`

	// Plan is the PINT plan of all switches for the digests of packets; nil for none. The last switch reports the digests of sampled
	// packets, whatever its dialect.
	Plan          *pint.Plan    `yaml:"-"`
	PINTShare     float64       `yaml:"pint_share" doc:"Share of flows whose packets carry PINT digests, and no INT." range:"0..1"`
	LoopReportGap time.Duration `yaml:"loop_report_gap" doc:"Least time between two reports of routing loops at an interface." range:"0s..1m"`

	// A controller writes to switches with Install, Remove and ReadBack; nothing of this matters without one.
	ControlDelay  time.Duration `yaml:"control_delay" doc:"Time that a request takes from the controller to a switch, and its answer back." range:"0s..1m"`
	ControlJitter time.Duration `yaml:"control_jitter" doc:"Upper bound of the random part of that time." range:"0s..1m"`
	ControlGap    time.Duration `yaml:"control_gap" doc:"Least time between two requests: the controller turns to one switch after the other." range:"0s..1m"`
	ControlLoss   float64       `yaml:"control_loss" doc:"Probability with which a request, and its answer, gets lost." range:"0..1"`
	// OnAnswer is called with the answers of switches to requests, in the order in which they come.
	OnAnswer func(Answer) `yaml:"-"`

	Epoch     time.Time     `yaml:"-"` // device time when virtual time is 0
	ClockSkew time.Duration `yaml:"clock_skew" doc:"Bound of the difference between a device's clock and the true time." range:"0s..1h"`
	FirstNode uint32        `yaml:"first_node_id" doc:"Node id of the topology's first switch; the others follow."`

	// Exporters is the address of the first switch; the others follow. Addresses in 127.0.0.0/8 can be sent from
	// without any set-up on Linux. Hosts (which send probes) follow 2^16 addresses later, and
	// agents 2^17.
	Exporters  netip.Addr `yaml:"-"`
	ReportPort uint16     `yaml:"report_port" doc:"UDP port of the collector."`
	ProbePort  uint16     `yaml:"probe_port" doc:"UDP port of INT-path probes, in the network and at the collector."`

	ExtraFlows []Flow        `yaml:"-"`
	Probes     []Probe       `yaml:"-"`
	Agents     []Agent       `yaml:"-"`
	Script     []Fault       `yaml:"-"`
	Repeat     time.Duration `yaml:"repeat" doc:"Time after which the script begins again; 0 for never." range:"0s..24h"`

	// Observe is called for every packet that leaves the network, delivered or dropped, but not for cross traffic. The journey is
	// valid during the call.
	Observe func(*Journey) `yaml:"-"`
	// OnPlan is called with the answers of agents, in the order in which they come.
	OnPlan func(PlanAnswer) `yaml:"-"`
	// OnProbe is called for every probe that an agent reports. The arrival is valid during the call.
	OnProbe func(to string, a *probe.Arrival) `yaml:"-"`
	// OnFault is called when a fault begins and ends.
	OnFault func(at time.Duration, f Fault, begins bool) `yaml:"-"`
}

// DefaultConfig is a fat-tree of 20 switches and 16 hosts with 200 flows, INT-MD 2.1, and no faults.
func DefaultConfig() Config {
	return Config{
		Topology: "fat-tree:4", HostsPerEdge: 2,
		LinkRate: 40e6, LinkDelay: 5 * time.Microsecond, QueueBytes: 100_000,
		Pipeline: 20 * time.Microsecond, Jitter: 10 * time.Microsecond,
		MTU: 1500, Convergence: 50 * time.Millisecond,
		Flows: 200, PacketRate: 4000, Skew: 0.5, MinPacketBytes: 200, MaxPacketBytes: 1200, TCPShare: 0.5, SampleEvery: 1,
		Dialect:      md21,
		Instructions: insNodeID | insLevel1 | insLatency | insQueue | insIngress | insEgress | insTx,
		MaxHops:      8, ReportsPerDatagram: 1, ReportHold: 5 * time.Millisecond, HardwareIDs: 1,
		DropReports: true, QueueReportGap: 10 * time.Millisecond, LoopReportGap: 10 * time.Millisecond,
		Epoch: time.Unix(1_700_000_000, 0), FirstNode: 1,
		Exporters: netip.AddrFrom4([4]byte{127, 16, 0, 1}), ReportPort: 32766, ProbePort: 2222,
	}
}

// PacketTime is how long a line is busy with a packet of the greatest size.
func (c *Config) PacketTime() time.Duration {
	return time.Duration(float64(8*c.MTU) / float64(c.LinkRate) * float64(time.Second))
}

// Flow is a flow of the configuration. Unlike generated flows it never renews.
type Flow struct {
	From, To         int // hosts, counted from 0
	Proto            uint8
	SrcPort, DstPort uint16
	IPv6             bool
	Rate             float64 // packets a second
	PacketBytes      int     // from the Ethernet header on
	Packets          int     // after which the flow ends; 0 for never
	Start            time.Duration
	Poisson          bool // else paced
}

// Probe is an INT-path probe that a host on the switch From sends periodically. Ports are the egress ports of the
// switches on its way. The last one must lead to a host, which hands the probe to the collector.
type Probe struct {
	From  string
	Ports []int
	Every time.Duration
}

// hopWords is the width of one block of the given dialect, in words.
func (c *Config) hopWords(d Dialect) int {
	h := d.Header(c.Instructions)
	return h.HopWords()
}

// uses reports whether any switch is of dialect d.
func (c *Config) uses(d Dialect) bool {
	if c.Dialect == d {
		return true
	}
	for _, x := range c.Dialects {
		if x == d {
			return true
		}
	}
	return false
}

// mostDepth is above all depths of a queue that hopscope.p4 compares.
const mostDepth = 1 << 19

// ours reports whether hopscope.p4 writes INT on switches of dialect d: the sink node's own values are in the report's header.
func (c *Config) ours(d Dialect) bool {
	return (d == md21 || d == FANT && c.SinkInHeader) && c.QueueReportBytes < mostDepth
}

// only reports whether all switches are of dialect d, or only forward.
func (c *Config) only(d Dialect) bool {
	for _, x := range c.Dialects {
		if x != d && x != Off {
			return false
		}
	}
	return c.Dialect == d
}

// Validate checks the ranges of single fields, and conditions between fields. New calls it too, and checks the script
// and the probes, which need the topology.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.MinPacketBytes > c.MaxPacketBytes {
		bad("min_packet_bytes: %d is above max_packet_bytes, %d", c.MinPacketBytes, c.MaxPacketBytes)
	}
	if c.MaxPacketBytes-14 > c.MTU {
		bad("max_packet_bytes: %d does not fit an MTU of %d", c.MaxPacketBytes, c.MTU)
	}
	if c.QueueBytes < c.MTU+14 {
		bad("queue_bytes: %d does not hold one packet of the MTU, %d", c.QueueBytes, c.MTU)
	}
	if c.Flows > 0 && !(c.PacketRate > 0) {
		bad("packets_per_second: %v with %d flows", c.PacketRate, c.Flows)
	}
	if c.Instructions&insReserved != 0 && !c.only(FANT) {
		bad("instructions: %#04x has reserved bits set, which dialect %s alone knows", c.Instructions, FANT)
	}
	if !c.Exporters.Is4() {
		bad("exporters: %v is no IPv4 address", c.Exporters)
	}
	for d := md21; d.Stacks(); d++ {
		if !c.uses(d) {
			continue
		}
		w := c.hopWords(d)
		if w == 0 {
			bad("instructions: %#04x asks for nothing", c.Instructions)
		} else if most := 3 + w*c.MaxHops; most > 255 {
			bad("max_hops: %d blocks of %d words make %d, above the 255 of INT's length field", c.MaxHops, w, most)
		}
	}
	if c.uses(md10) && c.Instructions&insBuffer != 0 {
		bad("instructions: %#04x has bit 8 (buffer), which INT 1.0 does not know", c.Instructions)
	}
	if c.Dialect >= numDialects || c.Marker > MarkPort {
		bad("dialect %d or marker %d is unknown", c.Dialect, c.Marker)
	}
	if err := c.checkPlan(); err != nil {
		errs = append(errs, err)
	}
	if err := sim.CheckRanges(c); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
