package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
)

// Config says what a [Generator] makes.
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
	MaxFlows     = 1 << 24
	MaxHops      = 63
	MaxExporters = 1 << 16
	MaxBytes     = 65504
)

// Sizes on the wire. Report 2.0 §5, INT v2.1 §5.
const (
	groupLen    = 8
	reportLen   = 12 // first word and main contents without optional metadata
	postcardLen = 12 // level 1 interfaces, hop latency, queue
	ipv4Len     = 20
	udpLen      = 8
	shimLen     = 4
	mdLen       = 12
	hopLen      = 16 // node ID, level 1 interfaces, hop latency, queue

	ipv4Stack    = groupLen + reportLen // where the inner packet begins, with INT
	ipv4Postcard = ipv4Stack + postcardLen
	stackAt      = ipv4Stack + ipv4Len + udpLen + shimLen + mdLen

	// A network of the size of a fat-tree with k = 8: switches at each distance from the exporter, interfaces of a switch.
	nodesPerHop = 16
	interfaces  = 8

	seqMask = 1<<22 - 1
	dscpINT = 0x17 // marks INT over UDP (INT v2.1 §4.6.1 gives this as its example)
)

// MinBytes is the shortest datagram that holds a report with so many hops.
func MinBytes(hops int) int {
	if hops == 0 {
		return ipv4Postcard + ipv4Len + udpLen
	}
	return stackAt + hops*hopLen
}

// Validate gives every problem at once.
func (c *Config) Validate() error {
	var errs []error
	for _, n := range []struct {
		name        string
		v, min, max int
	}{
		{"flows", c.Flows, 1, MaxFlows},
		{"hops", c.Hops, 0, MaxHops},
		{"exporters", c.Exporters, 1, min(MaxExporters, c.Flows)},
		{"bytes", c.Bytes, MinBytes(c.Hops), MaxBytes},
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
	template []byte
	ipv4     int    // offset of the inner packet
	sum      uint32 // of the inner header's constant words
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
	g := &Generator{cfg: cfg, seq: make([]uint32, cfg.Exporters), rng: cfg.Seed}
	for i := range g.tail {
		g.tail[i] = uint32(-1000 * math.Log1p(-(float64(i)+0.5)/float64(len(g.tail))))
	}
	g.template, g.ipv4 = newTemplate(&cfg)
	for i := 0; i < ipv4Len; i += 2 {
		g.sum += uint32(binary.BigEndian.Uint16(g.template[g.ipv4+i:]))
	}
	return g, nil
}

// newTemplate writes everything that all datagrams share.
func newTemplate(cfg *Config) (b []byte, ipv4 int) {
	be := binary.BigEndian
	b = make([]byte, cfg.Bytes)
	words := (cfg.Bytes - groupLen - 4) / 4
	be.PutUint32(b[0:], 2<<28)
	b[8] = 1<<4 | 4                // RepType INT, InType IPv4
	b[9] = uint8(min(words, 0xff)) // 0xff: to the end of the datagram
	ipv4 = ipv4Stack
	tos := uint8(0)
	if cfg.Hops == 0 {
		ipv4 = ipv4Postcard
		b[10] = postcardLen / 4
		be.PutUint16(b[12:], 0x7000)
	} else {
		b[11] = 0x20 // F: INT inside
		tos = dscpINT << 2
	}
	ip := b[ipv4:]
	ip[0], ip[1] = 0x45, tos
	be.PutUint16(ip[2:], uint16(len(ip)))
	ip[6] = 0x40 // DF
	ip[8], ip[9] = uint8(64-cfg.Hops), 17
	udp := ip[ipv4Len:]
	be.PutUint16(udp[2:], 443)
	be.PutUint16(udp[4:], uint16(len(udp))) // checksum 0: none
	payload := udp[udpLen:]
	if cfg.Hops > 0 {
		shim := payload
		shim[0] = 1 << 4 // INT-MD, original DSCP 0 in byte 3
		shim[1] = uint8((mdLen + cfg.Hops*hopLen) / 4)
		md := shim[shimLen:]
		md[0], md[2], md[3] = 2<<4, hopLen/4, 8
		be.PutUint16(md[4:], 0xf000)
		payload = md[mdLen+cfg.Hops*hopLen:]
	}
	for i := range payload {
		payload[i] = 'a' + uint8(i%26)
	}
	return b, ipv4
}

// Bytes is the length of every datagram.
func (g *Generator) Bytes() int { return g.cfg.Bytes }

// Exporters is the number of exporters.
func (g *Generator) Exporters() int { return g.cfg.Exporters }

// Next writes the next datagram into buf, which is grown when it is too small, and gives the part written. The exporters
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
	be := binary.BigEndian
	buf = append(buf[:0], g.template...)
	g.rng += golden
	random := mix(g.rng)

	seq := g.seq[exporter] & seqMask
	g.seq[exporter]++
	be.PutUint32(buf[0:], 2<<28|seq)
	be.PutUint32(buf[4:], uint32(exporter+1))

	// The flows of an exporter are the numbers that leave it as remainder.
	each := uint64((g.cfg.Flows - exporter + g.cfg.Exporters - 1) / g.cfg.Exporters)
	flow := int(random>>40*each>>24)*g.cfg.Exporters + exporter
	h := mix(g.cfg.Seed ^ uint64(flow)*golden)

	ip := buf[g.ipv4 : g.ipv4+ipv4Len+udpLen]
	src, dst, sport := addresses(flow, h)
	id := uint16(random)
	be.PutUint16(ip[4:], id)
	be.PutUint32(ip[12:], src)
	be.PutUint32(ip[16:], dst)
	be.PutUint16(ip[20:], sport)
	sum := g.sum + uint32(id) + src>>16 + src&0xffff + dst>>16 + dst&0xffff
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	be.PutUint16(ip[10:], ^uint16(sum))

	g.rng += golden
	random = mix(g.rng) // values that do not hang together with the flow
	if g.cfg.Hops == 0 {
		b := buf[ipv4Stack : ipv4Stack+postcardLen]
		g.values(b, mix(h), random)
		return buf
	}
	// The newest hop, which is the reporting node itself, stands first.
	stack := buf[stackAt : stackAt+g.cfg.Hops*hopLen]
	for i := 0; i < len(stack); i += hopLen {
		b := stack[i : i+hopLen]
		h = mix(h)
		be.PutUint32(b[0:], node(exporter, i/hopLen, h))
		g.values(b[4:], h, random)
		random = random>>20 | random<<44
		if i%(3*hopLen) == 2*hopLen { // three hops have used up the random bits
			g.rng += golden
			random = mix(g.rng)
		}
	}
	return buf
}

// values writes level 1 interfaces, hop latency (ns) and queue of a hop. Interfaces and the shortest latency belong to
// the flow's hop h; what is above it comes from the low 20 bits of random.
func (g *Generator) values(b []byte, h, random uint64) {
	be := binary.BigEndian
	be.PutUint32(b[0:], uint32(h>>8%interfaces+1)<<16|uint32(h>>16%interfaces+1))
	be.PutUint32(b[4:], 500+uint32(h>>32&1023)+g.tail[random&1023])
	be.PutUint32(b[8:], uint32(h>>24&7)<<24|g.tail[random>>10&1023]/64)
}

// addresses gives a flow's inner source and destination address and its source port.
func addresses(flow int, h uint64) (src, dst uint32, sport uint16) {
	return 10<<24 | uint32(flow), 172<<24 | 16<<16 | uint32(h)&0xfffff, uint16(1024 + h>>20%60000)
}

// node gives the node ID of a hop, counted from the reporting node back.
func node(exporter, hop int, h uint64) uint32 {
	if hop == 0 {
		return uint32(exporter + 1)
	}
	return MaxExporters + uint32(hop)<<8 + uint32(h%nodesPerHop)
}

// Flow is what a receiver must find in the reports about one flow.
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
