package rate

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

const (
	pathHops = 5
	hopBytes = 16
	ipAt     = telemetry.GroupLen + 12
	stackAt  = ipAt + packet.IPv4Len + packet.UDPLen + 4 + 12
	size     = stackAt + pathHops*hopBytes
	intPort  = 17768
)

// intHeader asks for node, interfaces, latency and queue.
var intHeader = intmd.Header{Version: decode.V21, NPT: 1, Original: 4789, Instructions: 0xf000, RemainingHops: 3}

// generator writes datagrams about flows of a fat-tree of k-port switches: edge, aggregation, core, aggregation, edge.
type generator struct {
	flows, k int
	seed     uint64
	rng      *rand.PCG
	template [size]byte
	seq      []uint32      // by edge switch, which reports
	values   [4096]float64 // quantiles of an exponential distribution
	ip       packet.IPv4
	hops     [pathHops]decode.Hop
}

func newGenerator(flows, k int, seed uint64) *generator {
	g := &generator{flows: flows, k: k, seed: seed, rng: rand.NewPCG(seed, 1), seq: make([]uint32, k*k/2)}
	for i := range g.values {
		g.values[i] = -math.Log(1 - (float64(i)+0.5)/float64(len(g.values)))
	}
	g.ip = packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Dst: [4]byte{10, 200, 0, 1}}
	for i := range g.hops {
		g.hops[i].Has = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
	}
	b := telemetry.AppendGroup(g.template[:0], 0, 0, 0)
	b = telemetry.Append20(b, &telemetry.Header{Inner: telemetry.InnerIPv4, Flags: decode.Tracked}, size-ipAt)
	b = packet.AppendIPv4(b, &g.ip, size-ipAt-packet.IPv4Len)
	b = packet.AppendUDP(b, 0, intPort, size-ipAt-packet.IPv4Len-packet.UDPLen)
	intmd.AppendHeader(b, &intHeader, pathHops*hopBytes)
	return g
}

// write writes the next datagram into b.
func (g *generator) write(b []byte) {
	k := uint64(g.k)
	copy(b, g.template[:])
	r := g.rng.Uint64()
	flow := r >> 32 * uint64(g.flows) >> 32
	h := (flow + g.seed) * 0x9e3779b97f4a7c15
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 32

	src, dst := h%(k*k/2), h>>16%(k*k/2) // edge switches, k/2 in each of k pods
	up, core := h>>32%(k/2), h>>40%(k/2)
	agg := k*k/2 + src/(k/2)*(k/2) + up
	down := k*k/2 + dst/(k/2)*(k/2) + up
	path := [pathHops][2]uint64{ // newest first: switch, egress interface
		{dst, h >> 48 % (k / 2)},
		{down, dst % (k / 2)},
		{k*k + up*(k/2) + core, dst / (k / 2)},
		{agg, k/2 + core},
		{src, k/2 + up},
	}
	telemetry.AppendGroup(b[:0], 0, g.seq[dst], uint32(dst)+1)
	g.seq[dst]++
	g.ip.ID = uint16(r)
	binary.BigEndian.PutUint32(g.ip.Src[:], 10<<24|uint32(flow))
	ip := packet.AppendIPv4(b[:ipAt], &g.ip, size-ipAt-packet.IPv4Len)
	packet.AppendUDP(ip, uint16(h>>20), intPort, size-ipAt-packet.IPv4Len-packet.UDPLen)
	for i, p := range path {
		if i%3 == 0 {
			r = g.rng.Uint64()
		}
		h := &g.hops[pathHops-1-i]
		h.NodeID, h.EgressIf = uint32(p[0])+1, uint16(p[1]+1)
		h.Latency, h.QueueOccupancy = 500+uint32(1000*g.values[r&4095]), uint32(20*g.values[r>>12&4095])
		r >>= 20
	}
	intmd.AppendStack(b[:stackAt], &intHeader, g.hops[:])
}
