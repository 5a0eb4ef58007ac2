package guess

import (
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

// plausibility tests whether the values of reports are possible. Each test counts its cases, and those that pass.
type plausibility struct {
	profile *demux.Profile
	tests   [numTests]struct{ passed, seen int }
	nodes   map[uint32]*nodeClock
	hops    int // that name their node
	zero    int // of those, hops of node 0
	digests map[uint64]bool
	writers map[uint16]bool
	left    map[int]int // remaining hop count and length of the path together, of stacks
	stacks  int
	probes  bool
}

// The tests of values.
const (
	testOrder   = iota // egress behind ingress, and not by long
	testLatency        // the latency is the difference of the times
	testRange          // a latency is less than a hundred seconds
	testClock          // the times of a node go on
	numTests
)

// nodeClock follows the clock of one node.
type nodeClock struct {
	device, receipt int64 // of the last report
	ran, waited     int64 // by both, summed over pairs of reports
}

const second = 1e9 // ns

func newPlausibility(p *demux.Profile) *plausibility {
	return &plausibility{profile: p, nodes: map[uint32]*nodeClock{}, digests: map[uint64]bool{}, writers: map[uint16]bool{}, left: map[int]int{}}
}

func (p *plausibility) count(test int, passed bool) {
	t := &p.tests[test]
	t.seen++
	if passed {
		t.passed++
	}
}

func (p *plausibility) see(r *decode.Report) {
	if r.Format == decode.PINT {
		p.digests[r.Digest.Value] = true
		p.writers[r.Digest.LastWriter] = true
	}
	if r.Kind == decode.KindProbe {
		p.probes = true
	}
	if r.Kind == decode.KindStack && r.Has&decode.HasRemainingHops != 0 {
		p.stacks++
		p.left[int(r.RemainingHops)+len(r.Hops)]++
	}
	for i := range r.Hops {
		p.hop(&r.Hops[i], r.Time)
	}
}

func (p *plausibility) hop(h *decode.Hop, receipt int64) {
	u := &p.profile.Units
	const both = decode.HopIngressTime | decode.HopEgressTime
	if h.Has&decode.HopLatency != 0 {
		p.count(testRange, float64(h.Latency)*float64(u.LatencyNS) < 100*second)
	}
	if h.Has&both == both {
		inside := float64(between(h.IngressTime, h.EgressTime, h.TimeBits)) * float64(u.TimeNS)
		p.count(testOrder, inside >= 0 && inside < 10*second)
		if h.Has&decode.HopLatency != 0 {
			d := math.Abs(inside - float64(h.Latency)*float64(u.LatencyNS))
			p.count(testLatency, d <= max(2*float64(max(u.LatencyNS, u.TimeNS)), inside/10))
		}
	}
	if h.Has&decode.HopNodeID != 0 {
		p.named(h, receipt)
	}
}

// named tests the id of a hop's node, and its clock.
func (p *plausibility) named(h *decode.Hop, receipt int64) {
	p.hops++
	if h.NodeID == 0 {
		p.zero++
	}
	clock := p.nodes[h.NodeID]
	if clock == nil {
		clock = &nodeClock{}
		p.nodes[h.NodeID] = clock
	}
	if h.Has&decode.HopIngressTime != 0 {
		p.tick(clock, h, receipt)
	}
}

// tick tests the advance of a node's clock since its last report.
func (p *plausibility) tick(c *nodeClock, h *decode.Hop, receipt int64) {
	u := &p.profile.Units
	waited := receipt - c.receipt
	if c.receipt != 0 && waited >= 0 && waited < 3600*second {
		ran := float64(between(uint64(c.device), h.IngressTime, h.TimeBits)) * float64(u.TimeNS)
		// After a narrow clock has wrapped, its difference is no evidence.
		if turn := math.Ldexp(float64(u.TimeNS), int(h.TimeBits)-1); float64(waited)+second < turn {
			// Forward it may jump: files are read faster than they were recorded.
			p.count(testClock, ran >= -second && ran <= 2*float64(waited)+3600*second)
			if math.Abs(ran) <= 4e18 {
				c.ran += int64(ran)
				c.waited += waited
			}
		}
	}
	c.device, c.receipt = int64(h.IngressTime), receipt
}

// between is to - from of a clock that is bits wide, which may have turned.
func between(from, to uint64, bits uint8) int64 {
	if bits == 0 || bits >= 64 {
		return int64(to - from)
	}
	return int64((to-from)<<(64-bits)) >> (64 - bits)
}

// result returns the share that passed in the worst test, and whether clocks go as fast as that of receipt.
func (p *plausibility) result() (share float64, clock int) {
	share = 1
	for _, t := range p.tests {
		if t.seen > 0 {
			share = min(share, float64(t.passed)/float64(t.seen))
		}
	}
	// Numbers that are no node ids are nearly all different.
	if few := max(8, p.hops/3); len(p.nodes) > few {
		share = min(share, float64(few)/float64(len(p.nodes)))
	}
	if p.hops > 0 && p.zero == p.hops && !p.probes {
		share = 0
	}
	// Sources start with few different hop limits.
	if p.stacks >= 8 {
		most := 0
		for _, n := range p.left {
			most = max(most, n)
		}
		if few := max(8, p.stacks/3); len(p.left) > few {
			share = min(share, float64(few)/float64(len(p.left)))
		}
	}
	if n := len(p.digests); n > 0 && (n < 3 || len(p.writers) > 64) {
		share = 0 // addresses of hosts, and checksums
	}
	var ran, waited int64
	for _, c := range p.nodes {
		if c.waited >= second {
			ran += c.ran / 1000
			waited += c.waited / 1000
		}
	}
	if waited == 0 {
		return share, 0
	}
	if rate := float64(ran) / float64(waited); rate > 0.8 && rate < 1.25 {
		return share, 1
	}
	return share, -1
}
