package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Config is the settings of a [Generator].
type Config struct {
	Seed      uint64
	Flows     int // distinct flows, picked at random for every datagram
	Hops      int // of the INT stack; 0 makes postcards
	Exporters int // reporting nodes; flow f is reported by exporter f modulo Exporters
	Bytes     int // UDP payload of every datagram; the inner packet is padded up to it
}

// DefaultConfig is the load of the published figures: reports of 200 bytes with five hops.
func DefaultConfig() Config { return Config{Seed: 1, Flows: 10_000, Hops: 5, Exporters: 4, Bytes: 200} }

// Limits of a Config. A flow's number stands in its source address 10.0.0.0/8; INT's length field counts 255 words; a
// datagram larger than this does not fit IPv4.
const (
	maxFlows     = 1 << 24
	maxHops      = 63
	maxExporters = 1 << 16
	maxBytes     = 65504
)

// What the reports hold. A postcard has interfaces, hop latency and queue of the reporting node in its header; with INT, the
// stack has node IDs besides.
const (
	postcardMetadata = telemetry.MDInterfaces | telemetry.MDLatency | telemetry.MDQueue
	instructions     = 0x8000 | postcardMetadata // the bits have the same places
	hopLen           = 16
	seqMask          = 1<<22 - 1
	dscpINT          = 0x17 // marks INT over UDP (INT v2.1 §4.6.1 gives this as its example)

	// A network of the size of a fat-tree with k = 8: switches at each distance from the exporter, interfaces of a switch.
	nodesPerHop = 16
	interfaces  = 8
)

// header is the common header of every report, without the values of a postcard.
func header(hops int) telemetry.Header {
	if hops == 0 {
		return telemetry.Header{Inner: telemetry.InnerIPv4, Metadata: postcardMetadata}
	}
	return telemetry.Header{Inner: telemetry.InnerIPv4, Flags: decode.Tracked}
}

// intHeader is the INT header of the source node.
var intHeader = intmd.Header{Version: decode.V21, Instructions: instructions, RemainingHops: 8}

// minBytes is the shortest datagram that holds a report with so many hops.
func minBytes(hops int) int {
	h := header(hops)
	n := telemetry.GroupLen + 4 + 4*h.Words(packet.IPv4Len+packet.UDPLen)
	if hops > 0 {
		n += intHeader.Len() + hops*hopLen
	}
	return n
}

// Validate returns every problem at once.
func (c *Config) Validate() error {
	var errs []error
	for _, n := range []struct {
		name        string
		v, min, max int
	}{
		{"flows", c.Flows, 1, maxFlows},
		{"hops", c.Hops, 0, maxHops},
		{"exporters", c.Exporters, 1, min(maxExporters, c.Flows)},
		{"bytes", c.Bytes, minBytes(c.Hops), maxBytes},
	} {
		if n.v < n.min || n.v > n.max {
			errs = append(errs, fmt.Errorf("traffic: %s: %d is outside %d..%d", n.name, n.v, n.min, n.max))
		}
	}
	if c.Bytes%4 != 0 {
		errs = append(errs, fmt.Errorf("traffic: bytes: %d is not a multiple of 4; report 2.0 counts words", c.Bytes))
	}
	return errors.Join(errs...)
}

// Generator writes datagrams. It belongs to one goroutine.
type Generator struct {
	cfg      Config
	template []byte // everything that all datagrams share
	header   telemetry.Header
	ip       packet.IPv4
	ipAt     int // offset of the inner packet
	stackAt  int
	hops     []decode.Hop // of the stack
	seq      []uint32
	turn     int
	rng      uint64
	tail     [1024]uint32 // quantiles of an exponential distribution with mean 1000
}

var _ Datagrams = (*Generator)(nil)

// New makes a generator whose exporters begin at sequence number 0.
func New(cfg Config) (*Generator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Generator{cfg: cfg, header: header(cfg.Hops), seq: make([]uint32, cfg.Exporters), rng: cfg.Seed}
	for i := range g.tail {
		g.tail[i] = uint32(-1000 * math.Log1p(-(float64(i)+0.5)/float64(len(g.tail))))
	}
	g.ip = packet.IPv4{DontFragment: true, TTL: uint8(64 - cfg.Hops), Proto: packet.ProtoUDP}
	if cfg.Hops > 0 {
		g.ip.TOS = dscpINT << 2
	}
	g.hops = make([]decode.Hop, cfg.Hops)
	for i := range g.hops {
		g.hops[i].Has = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
	}
	g.header.Hop.Has = decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
	g.template = g.newTemplate()
	return g, nil
}

// newTemplate writes a datagram without the values that change, and notes where those stand.
func (g *Generator) newTemplate() []byte {
	b := telemetry.AppendGroup(nil, 0, 0, 0)
	b = telemetry.Append20(b, &g.header, g.cfg.Bytes-telemetry.GroupLen-4-4*g.header.Words(0))
	g.ipAt = len(b)
	inner := g.cfg.Bytes - g.ipAt
	b = packet.AppendIPv4(b, &g.ip, inner-packet.IPv4Len)
	b = packet.AppendUDP(b, 0, 443, inner-packet.IPv4Len-packet.UDPLen)
	if g.cfg.Hops > 0 {
		b = intmd.AppendHeader(b, &intHeader, g.cfg.Hops*hopLen)
		g.stackAt = len(b)
		b = append(b, make([]byte, g.cfg.Hops*hopLen)...)
	}
	for i := 0; len(b) < g.cfg.Bytes; i++ {
		b = append(b, 'a'+uint8(i%26))
	}
	return b
}

// Bytes is the length of every datagram.
func (g *Generator) Bytes() int { return g.cfg.Bytes }

// Exporters is the number of exporters.
func (g *Generator) Exporters() int { return g.cfg.Exporters }

// Next writes the next datagram into buf, which is grown when it is too small, and returns the part written. The exporters
// take turns.
func (g *Generator) Next(buf []byte) []byte {
	e := g.turn
	if g.turn++; g.turn == g.cfg.Exporters {
		g.turn = 0
	}
	return g.NextFrom(e, buf)
}

// NextFrom is Next for one exporter, which must be below Exporters.
func (g *Generator) NextFrom(exporter int, buf []byte) []byte {
	buf = append(buf[:0], g.template...)
	g.rng += golden
	random := mix(g.rng)

	telemetry.AppendGroup(buf[:0], 0, g.seq[exporter]&seqMask, uint32(exporter+1))
	g.seq[exporter]++

	// The flows of an exporter are the numbers that leave it as remainder.
	each := uint64((g.cfg.Flows - exporter + g.cfg.Exporters - 1) / g.cfg.Exporters)
	flow := int(random>>40*each>>24)*g.cfg.Exporters + exporter
	h := mix(g.cfg.Seed ^ uint64(flow)*golden)

	src, dst, sport := addresses(flow, h)
	g.ip.ID = uint16(random)
	binary.BigEndian.PutUint32(g.ip.Src[:], src)
	binary.BigEndian.PutUint32(g.ip.Dst[:], dst)
	inner := len(buf) - g.ipAt - packet.IPv4Len
	ip := packet.AppendIPv4(buf[:g.ipAt], &g.ip, inner)
	packet.AppendUDP(ip, sport, 443, inner-packet.UDPLen)

	g.rng += golden
	random = mix(g.rng) // values that do not hang together with the flow
	if g.cfg.Hops == 0 {
		g.values(&g.header.Hop, mix(h), random)
		telemetry.Append20(buf[:telemetry.GroupLen], &g.header, len(buf)-g.ipAt)
		return buf
	}
	// The newest hop, which is the reporting node itself, comes first.
	for i := range g.cfg.Hops {
		h = mix(h)
		hop := &g.hops[g.cfg.Hops-1-i]
		hop.NodeID = node(exporter, i, h)
		g.values(hop, h, random)
		random = random>>20 | random<<44
		if i%3 == 2 { // three hops have used up the random bits
			g.rng += golden
			random = mix(g.rng)
		}
	}
	intmd.AppendStack(buf[:g.stackAt], &intHeader, g.hops)
	return buf
}

// values sets level 1 interfaces, hop latency (ns) and queue of a hop. Interfaces and the shortest latency belong to
// the flow's hop h. The excess over that comes from the low 20 bits of random.
func (g *Generator) values(hop *decode.Hop, h, random uint64) {
	hop.IngressIf, hop.EgressIf = uint16(h>>8%interfaces+1), uint16(h>>16%interfaces+1)
	hop.Latency = 500 + uint32(h>>32&1023) + g.tail[random&1023]
	hop.QueueID, hop.QueueOccupancy = uint8(h>>24&7), g.tail[random>>10&1023]/64
}

// addresses returns a flow's inner source and destination address and its source port.
func addresses(flow int, h uint64) (src, dst uint32, sport uint16) {
	return 10<<24 | uint32(flow), 172<<24 | 16<<16 | uint32(h)&0xfffff, uint16(1024 + h>>20%60000)
}

// node returns the node ID of a hop, counted from the reporting node back.
func node(exporter, hop int, h uint64) uint32 {
	if hop == 0 {
		return uint32(exporter + 1)
	}
	return maxExporters + uint32(hop)<<8 + uint32(h%nodesPerHop)
}

// Flow is the expected content of the reports about one flow.
type Flow struct {
	Exporter int
	Src, Dst netip.AddrPort
	Nodes    []uint32 // the path, first hop first
}

// Flow describes flow number i, below Config.Flows.
func (g *Generator) Flow(i int) Flow {
	h := mix(g.cfg.Seed ^ uint64(i)*golden)
	src, dst, sport := addresses(i, h)
	addr := func(v uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	}
	f := Flow{
		Exporter: i % g.cfg.Exporters,
		Src:      netip.AddrPortFrom(addr(src), sport),
		Dst:      netip.AddrPortFrom(addr(dst), 443),
		Nodes:    make([]uint32, g.cfg.Hops),
	}
	for hop := range f.Nodes {
		h = mix(h)
		f.Nodes[len(f.Nodes)-1-hop] = node(f.Exporter, hop, h)
	}
	return f
}

// golden and mix are SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
