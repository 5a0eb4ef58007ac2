package emu

import (
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/p4/pintplan"
)

// hostTTL is the TTL, or hop limit, with which hosts send. The hop number of a switch follows from it: 1 for the first.
const hostTTL = 64

// planner is the network's part of PINT beside the plans, which the switches hold.
type planner struct {
	plan   *pint.Plan      // that all switches held at first; nil for a network without digests
	share  uint64          // of flows, in 2^-64
	looped []time.Duration // by interface: when its next report of a loop may leave
}

const (
	pintSalt = 0x70696e74
	// All switches round their values for a packet alike, so that the largest of the codes is that of the largest value.
	roundingSalt = 0x726f756e64
	forgerySalt  = 0x666f726765
)

// holdEverywhere lets all switches hold a plan beside the one that they stamp, and stamp the new one. It changes nothing where
// their tables have no room for both.
func (n *Network) holdEverywhere(p *pint.Plan) error {
	h := pintplan.NewHeldPlan(p)
	epoch := p.Epoch
	next := func(x *pintplan.HeldPlans) pintplan.HeldPlans {
		kept := (*pintplan.HeldPlan)(nil)
		if x.Stamp != nil {
			kept = x.Plan(*x.Stamp)
		}
		return pintplan.HeldPlans{Held: [pintplan.Plans]*pintplan.HeldPlan{h, kept}, Stamp: &epoch}
	}
	var tried []*pintplan.HeldPlan // beside h
	for i := range n.switches {
		x := next(&n.switches[i].plans)
		if slices.Contains(tried, x.Held[1]) {
			continue
		}
		tried = append(tried, x.Held[1])
		if _, err := n.ownTables(&x); err != nil {
			return fmt.Errorf("switch %s: plan of epoch %d: %w", n.graph.NodeName(i), p.Epoch, err)
		}
	}
	for i := range n.switches {
		d := &n.switches[i]
		d.plans, d.tables = next(&d.plans), nil // tables are made of the plans on demand
	}
	return nil
}

// carriesPINT reports whether the packets of flow i carry PINT digests.
func (n *Network) carriesPINT(i int) bool { return n.planner.chosen(n.flows[i].hash) }

func (x *planner) chosen(hash uint32) bool {
	return x.plan != nil && sim.Mix(uint64(hash)^pintSalt) < x.share
}

// probability is p as a threshold for a uniform 64-bit number.
func probability(p float64) uint64 { return uint64(min(p, 1-0x1p-53) * (1 << 64)) }

// packetID is the id of p for every switch, a hash of bytes that none of them changes (RFC 5475, section 6.2): CRC-32
// over the L4 header and the first bytes of the payload. IPv4's identification would suffice, but IPv6 has none.
func (p *packet) packetID() uint32 { return crc32.ChecksumIEEE(p.Buf[p.L4:]) }

// stampEpoch is the work of the first switch on a packet that carries a digest: it stamps the epoch of the plan. A
// packet without an epoch goes on without a digest.
func (n *Network) stampEpoch(p *packet, d *device) {
	x := &d.plans
	if x.Stamp == nil || x.Plan(*x.Stamp) == nil {
		n.control.stats.unstamped++
		return
	}
	p.stamped, p.epoch = true, *x.Stamp
}

// writeDigest is the work of a switch's egress on a packet that carries a digest: the plan of its epoch, and reports. A
// switch that does not hold this plan does not touch the digest, and marks the packet, as pint.p4 does with its number
// of hops. The digest would be decoded wrongly then. So no switch writes into it any more, and the last switch does not
// report it.
func (n *Network) writeDigest(p *packet, d *device, h *Hop, last bool) {
	if !p.stamped {
		return
	}
	plan := d.plans.Plan(p.epoch)
	if plan == nil {
		n.control.stats.foreign++
		p.missed = true
	}
	if p.missed {
		if last && p.sampled {
			n.control.stats.incomplete++
		}
		return
	}
	x := &n.planner
	hop := hostTTL - int(p.TTL())
	p.hop = uint8(hop)
	var looped uint8
	p.digest, looped = plan.Write(p.digest, p.digestID, hop, &pint.Values{
		Node: d.id, Latency: uint64(h.Latency()), Queue: uint64(h.QueueBytes),
		Utilization: uint64(h.Load),
	}, uint32(sim.Mix(uint64(p.digestID)^roundingSalt)))
	if d.forged != 0 && sim.Mix(uint64(p.digestID^d.salt)) < d.forged {
		p.digest = sim.Mix(uint64(p.digestID^d.salt)^forgerySalt) >> (64 - plan.Bits)
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

// reportedDigest is the digest of p as a switch reports it.
func (p *packet) reportedDigest() decode.Digest {
	return decode.Digest{Epoch: p.epoch, Hops: p.hop, ID: p.digestID, Value: p.digest}
}

// checkPlan is the part of Validate about PINT.
func (c *Config) checkPlan() error {
	switch {
	case c.PINTShare != 0 && c.Plan == nil:
		return fmt.Errorf("pint_share: %v without an execution plan", c.PINTShare)
	case c.Plan == nil:
		return nil
	}
	for _, d := range []Dialect{md10, local05} {
		if c.uses(d) {
			return fmt.Errorf("plan: switches of dialect %v do not send reports 2.0, which digests travel in", d)
		}
	}
	if err := c.Plan.Validate(); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}
