package pipeline

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

const (
	pathHops = 5
	hopBytes = 16
	groupAt  = 0
	reportAt = 8
	ipAt     = reportAt + 12
	udpAt    = ipAt + 20
	shimAt   = udpAt + 8
	stackAt  = shimAt + 4 + 12
	size     = stackAt + pathHops*hopBytes
	intPort  = 17768
)

// generator writes datagrams about flows of a fat-tree of k-port switches: edge, aggregation, core, aggregation, edge.
type generator struct {
	flows, k int
	seed     uint64
	rng      *rand.PCG
	template [size]byte
	seq      []uint32      // by edge switch, which reports
	values   [4096]float64 // quantiles of an exponential distribution
}

func newGenerator(flows, k int, seed uint64) *generator {
	g := &generator{flows: flows, k: k, seed: seed, rng: rand.NewPCG(seed, 1), seq: make([]uint32, k*k/2)}
	for i := range g.values {
		g.values[i] = -math.Log(1 - (float64(i)+0.5)/float64(len(g.values)))
	}
	be, b := binary.BigEndian, g.template[:]
	words := (size - reportAt - 4) / 4
	copy(b[reportAt:], []byte{0x14, byte(words), 0, 0x20}) // INT inside an IPv4 packet, tracked flow
	ip := b[ipAt:]
	ip[0], ip[8], ip[9] = 0x45, 60, 17
	be.PutUint16(ip[2:], size-ipAt)
	copy(ip[16:], []byte{10, 200, 0, 1})
	be.PutUint16(b[udpAt+2:], intPort)
	be.PutUint16(b[udpAt+4:], size-udpAt)
	copy(b[shimAt:], []byte{0x14, 3 + pathHops*hopBytes/4, 0x12, 0xb5, 0x20, 0, hopBytes / 4, 3, 0xf0})
	return g
}

// write writes the next datagram into b.
func (g *generator) write(b []byte) {
	be, k := binary.BigEndian, uint64(g.k)
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
	be.PutUint32(b[groupAt:], 2<<28|g.seq[dst]&(1<<22-1))
	g.seq[dst]++
	be.PutUint32(b[groupAt+4:], uint32(dst)+1)
	be.PutUint16(b[ipAt+4:], uint16(r))
	be.PutUint32(b[ipAt+12:], 10<<24|uint32(flow))
	be.PutUint16(b[udpAt:], uint16(h>>20))
	for i, p := range path {
		if i%3 == 0 {
			r = g.rng.Uint64()
		}
		m := b[stackAt+i*hopBytes:]
		be.PutUint32(m, uint32(p[0])+1)
		be.PutUint32(m[4:], uint32(p[1]+1))
		be.PutUint32(m[8:], 500+uint32(1000*g.values[r&4095]))
		be.PutUint32(m[12:], uint32(20*g.values[r>>12&4095]))
		r >>= 20
	}
}
