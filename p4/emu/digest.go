package emu

import (
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
)

// hostTTL is the TTL, or hop limit, with which hosts send. The hop number of a switch follows from it: 1 for the first.
const hostTTL = 64

// planner is the part of the network that PINT's execution plan is in.
type planner struct {
	plan  *pint.Plan
	share uint64        // of flows, in 2^-64
	loops [][]pint.Slot // by set of queries: those that detect loops

	looped []time.Duration // by interface: when its next report of a loop may leave
}

const (
	pintSalt = 0x70696e74
	// All switches round their values for a packet alike, so that the largest of the codes is that of the largest value.
	roundingSalt = 0x726f756e64
	forgerySalt  = 0x666f726765
)

// SetPlan replaces the execution plan in all switches at this moment. Packets that are under way then carry what
// switches wrote by either plan, and are reported under the epoch of the new one: that is what a change-over looks like
// to a collector. A network that was built without a plan has no flows that carry digests, and stays so.
func (n *Network) SetPlan(p *pint.Plan) error {
	if p == nil || n.planner.plan == nil {
		return errors.New("set plan: a plan can only take the place of another")
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("set plan: %w", err)
	}
	n.planner.set(p)
	return nil
}

func (x *planner) set(p *pint.Plan) {
	x.plan = p
	x.loops = make([][]pint.Slot, len(p.Sets))
	for i := range p.Sets {
		for _, slot := range p.Sets[i].Slots {
			if p.Queries[slot.Query].Aggregation == pint.Loop {
				x.loops[i] = append(x.loops[i], slot)
			}
		}
	}
}

// CarriesPINT reports whether the packets of flow i carry PINT digests.
func (n *Network) CarriesPINT(i int) bool { return n.planner.chosen(n.flows[i].hash) }

func (x *planner) chosen(hash uint64) bool {
	return x.plan != nil && mix(hash^pintSalt) < x.share
}

// probability is p as a threshold for a uniform 64-bit number.
func probability(p float64) uint64 { return uint64(min(p, 1-0x1p-53) * (1 << 64)) }

// packetID is what every switch takes for the id of p, a hash of bytes that none of them changes (RFC 5475, section
// 6.2): CRC-32 over the L4 header and the first bytes of the payload. IPv4's identification would do, but IPv6 has none.
func (p *packet) packetID() uint32 { return crc32.ChecksumIEEE(p.buf[p.l4:]) }

// writeDigest is what the egress of a switch does to a packet that carries a digest: the plan, and reports.
func (n *Network) writeDigest(p *packet, d *device, h *Hop, last bool) {
	x := &n.planner
	hop := hostTTL - int(p.ttl())
	p.hop = uint8(hop)
	looped := uint8(0)
	for _, slot := range x.loops[x.plan.Set(p.digestID)] {
		l := x.plan.Queries[slot.Query].Loops
		if _, again := l.Step(x.plan.Part(p.digest, slot), p.digestID, hop, d.id); again {
			looped = uint8(l.T + 1)
		}
	}
	p.digest = x.plan.Write(p.digest, p.digestID, hop, pint.Values{
		Node: d.id, Latency: uint64(h.Latency()), Queue: uint64(h.QueueBytes),
		Utilization: uint64(h.Load),
	}, uint32(mix(uint64(p.digestID)^roundingSalt)))
	if d.forged != 0 && mix(uint64(p.digestID)^d.salt) < d.forged {
		p.digest = mix(uint64(p.digestID)^d.salt^forgerySalt) >> (64 - x.plan.Bits)
	}
	if looped > 0 {
		n.stats.LoopsDetected++
		if now := n.Now(); now >= x.looped[p.out] {
			x.looped[p.out] = now + n.cfg.LoopReportGap
			n.report(p, d, &subject{hop: *h, digest: true, looped: looped})
		}
	}
	if last && p.sampled {
		n.report(p, d, &subject{hop: *h, digest: true})
	}
}

// told is the digest of p as the last switch reports it.
func (x *planner) told(p *packet) decode.Digest {
	return decode.Digest{Epoch: x.plan.Epoch, Hops: p.hop, ID: p.digestID, Value: p.digest}
}

// checkPlan is the part of Validate about PINT.
func (c *Config) checkPlan() error {
	switch {
	case c.PINTShare != 0 && c.Plan == nil:
		return fmt.Errorf("pint_share: %v without an execution plan", c.PINTShare)
	case !(c.PINTShare >= 0 && c.PINTShare <= 1):
		return fmt.Errorf("pint_share: %v is outside 0..1", c.PINTShare)
	case c.Plan == nil:
		return nil
	}
	for _, d := range []Dialect{MD10, Local05} {
		if c.uses(d) {
			return fmt.Errorf("plan: switches of dialect %v do not send reports 2.0, which digests travel in", d)
		}
	}
	if err := c.Plan.Validate(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}
