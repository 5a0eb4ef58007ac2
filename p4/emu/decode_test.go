package emu

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/planner/topo"
)

func parse(spec string) (*topo.Graph, error) { return topo.Parse(spec) }

// edgeName picks a switch that has hosts.
func edgeName(g *topo.Graph, r *rand.Rand) string {
	var names []string
	tiers := g.Tier(0) != topo.NoTier
	for i := range g.NumNodes() {
		if !tiers || g.Tier(i) == topo.Edge {
			names = append(names, g.NodeName(i))
		}
	}
	return names[r.IntN(len(names))]
}

func profile(t testing.TB, name string) demux.Profile {
	p, ok := demux.Lookup(name)
	if !ok {
		t.Fatalf("there is no profile %q", name)
	}
	return p
}

// decodeStrictly decodes by the profile that reads the specifications to the letter, and fails on any error.
func decodeStrictly(t *testing.T, n *Network, d Datagram, seed uint64) []*decode.Report {
	t.Helper()
	var b decode.Batch
	if d.Probe {
		demux.New(profile(t, "int-path")).Frame(&b, 1, appendFrame(nil, d, n.cfg.Exporters, 1), 42+len(d.Payload), 0)
	} else {
		demux.New(profile(t, "auto")).Datagram(&b, decode.AddrFrom(d.From.Addr()), d.Payload, 0)
	}
	if len(b.Reports) == 0 {
		t.Fatalf("seed %d: no report in %x", seed, d.Payload)
	}
	for _, r := range b.Reports {
		if err := r.Error(); err != nil || r.Flags&decode.Truncated != 0 {
			t.Fatalf("seed %d: %v, flags %v: %x", seed, err, r.Flags.AppendNames(nil), d.Payload)
		}
	}
	return b.Reports
}

// expected is a report that a packet's journey should lead to.
type expected struct {
	node uint32
	id   uint16 // IPv4 identification
	hops []decode.Hop
}

// expect returns h as a decoder should read it from a block or a report header that holds what bitmap says.
func (n *Network) expect(h *Hop, bitmap uint16, bits uint8) decode.Hop {
	d := &n.switches[h.Node]
	e := decode.Hop{Has: decode.HopNodeID, NodeID: h.NodeID}
	if bitmap&insLevel1 != 0 {
		e.Has |= decode.HopIngressIf | decode.HopEgressIf
		e.IngressIf, e.EgressIf = h.ingressPort, h.EgressPort
	}
	if bitmap&insLatency != 0 {
		e.Has |= decode.HopLatency
		e.Latency = uint32(h.Egress - h.Ingress)
	}
	if bitmap&insQueue != 0 {
		e.Has |= decode.HopQueueID | decode.HopQueueOccupancy
		e.QueueOccupancy = h.QueueBytes
	}
	mask := uint64(1)<<(bits-1)<<1 - 1
	if bitmap&insIngress != 0 {
		e.Has |= decode.HopIngressTime
		e.IngressTime, e.TimeBits = uint64(d.clock+int64(h.Ingress))&mask, bits
	}
	if bitmap&insEgress != 0 {
		e.Has |= decode.HopEgressTime
		e.EgressTime, e.TimeBits = uint64(d.clock+int64(h.Egress))&mask, bits
	}
	if bitmap&insLevel2 != 0 {
		e.Has |= decode.HopL2IngressIf | decode.HopL2EgressIf
		e.L2IngressIf, e.L2EgressIf = d.logical(h.ingressPort), d.logical(h.EgressPort)
	}
	if bitmap&insTx != 0 {
		e.Has |= decode.HopTxUtilization
		e.TxUtilization = h.Utilization
	}
	return e
}

// reported returns what a report of switch d should hold in its header for hop h.
func (n *Network) reported(d *device, h *Hop) decode.Hop {
	switch d.dialect {
	case md10: // the header always has the ingress time
		return n.expect(h, n.cfg.Instructions&(insLevel1|insLatency|insQueue|insEgress|insTx)|insIngress, 32)
	case local05:
		return n.expect(h, insLevel1|insQueue|insIngress|insEgress, 32)
	}
	return n.expect(h, n.cfg.Instructions, 64)
}

type truthCase struct {
	name string
	edit func(*Config)
}

func truthCases() []truthCase {
	var cases []truthCase
	add := func(name string, edit func(*Config)) { cases = append(cases, truthCase{name, edit}) }
	for d := md21; d < Off; d++ {
		add(d.String(), func(c *Config) { c.Dialect = d })
		add(d.String()+" from IP", func(c *Config) { c.Dialect, c.IPReports = d, true })
		add(d.String()+" with payload", func(c *Config) { c.Dialect, c.InnerBytes = d, 1400 })
		add(d.String()+" by port", func(c *Config) { c.Dialect, c.Marker = d, MarkPort })
		add(d.String()+" complement", func(c *Config) { c.Dialect = d; c.Instructions |= insComplement })
		add(d.String()+" level 2", func(c *Config) { c.Dialect = d; c.Instructions |= insLevel2 })
		add(d.String()+" grouped", func(c *Config) { c.Dialect, c.ReportsPerDatagram, c.HardwareIDs = d, 7, 3 })
		add(d.String()+" sink in header", func(c *Config) { c.Dialect, c.SinkInHeader = d, true })
		add(d.String()+" two hops at most", func(c *Config) { c.Dialect, c.MaxHops = d, 2 })
		add(d.String()+" small MTU", func(c *Config) { c.Dialect, c.MTU = d, 1300 })
		add(d.String()+" sampled", func(c *Config) { c.Dialect, c.SampleEvery = d, 3 })
	}
	add("mixed", func(c *Config) {
		c.Dialects = map[string]Dialect{
			"core-0": Off, "core-1": XD20, "agg-1-0": local05, "edge-2-0": md10, "agg-2-0": md10, "edge-2-1": mx21, "edge-3-0": XD20,
			"edge-3-1": local05, "agg-0-1": mx21, "edge-1-1": Off,
		}
	})
	return cases
}

// Every report is compared with what truly happened, and every packet that switches were to report on is looked for.
func TestReportsReportTheTruth(t *testing.T) {
	for _, tt := range truthCases() {
		t.Run(tt.name, func(t *testing.T) { compareWithTruth(t, tt.edit) })
	}
}

func compareWithTruth(t *testing.T, edit func(*Config)) {
	const seed = 5
	cfg := DefaultConfig()
	cfg.IPv6Share, cfg.ClockSkew, cfg.DropReports = 0.3, time.Second, false
	cfg.PacketRate, cfg.LinkRate = 6000, 10e6
	cfg.InnerBytes = 8
	edit(&cfg)
	var n *Network
	want := map[decode.FlowKey][]expected{}
	var delivered, journeys, limited, oversize int
	cfg.Observe = func(j *Journey) {
		delivered++
		if j.Outcome != Delivered || !j.Sampled {
			return
		}
		journeys++
		for i := range j.Hops {
			if hops := n.reportOf(j, i); hops != nil {
				want[j.Key] = append(want[j.Key], expected{j.Hops[i].NodeID, j.PacketID, hops})
			}
		}
		switch recorded := len(n.stackOf(j, len(j.Hops)-1)); {
		case recorded == len(j.Hops):
		case recorded == n.cfg.MaxHops:
			limited++
		default:
			oversize++
		}
	}
	n = mustNew(t, cfg, seed)
	var sent []Datagram
	keep := func(d Datagram) {
		d.Payload = bytes.Clone(d.Payload)
		sent = append(sent, d)
	}
	n.Run(400*time.Millisecond, keep)
	n.cfg.PacketRate = 1e-6 // let the network run dry, so that nothing is on its way
	n.Run(10*time.Second, keep)
	got := 0
	for _, d := range sent {
		for _, r := range decodeStrictly(t, n, d, seed) {
			got++
			matchReport(t, r, want)
		}
	}
	for k, w := range want {
		if len(w) > 0 {
			t.Errorf("%d reports about %v are missing, the first of node %d about packet %d", len(w), k, w[0].node, w[0].id)
		}
	}
	if every := delivered / cfg.SampleEvery; cfg.MTU == 1500 && (journeys < every || journeys > every+cfg.Flows) {
		t.Errorf("%d of %d packets were sampled, want one of %d", journeys, delivered, cfg.SampleEvery)
	}
	if journeys < 500 || got < 100 {
		t.Errorf("only %d packets and %d reports", journeys, got)
	}
	if cfg.MaxHops < 5 && cfg.Dialect.Stacks() && limited == 0 {
		t.Error("no packet met the hop limit")
	}
	if cfg.MTU < 1500 && cfg.Dialect.Stacks() && oversize == 0 {
		t.Error("no packet met the MTU")
	}
}

// reportOf returns the hops that the switch at place i of j's path should report for that packet, or nil for no report.
func (n *Network) reportOf(j *Journey, i int) []decode.Hop {
	source, d := n.switches[j.Hops[0].Node].dialect, &n.switches[j.Hops[i].Node]
	stack := source.Stacks()
	own := n.reported(d, &j.Hops[i])
	switch {
	case d.dialect == XD20, d.dialect == local05, d.dialect == mx21 && source == mx21:
		return append(n.stackOf(j, i), own)
	case d.dialect == Off || !stack || i < len(j.Hops)-1:
		return nil
	case d.dialect != source || d.ours || n.cfg.SinkInHeader:
		return append(n.stackOf(j, i), own)
	}
	return n.stackOf(j, i)
}

// stackOf returns the blocks that are in the packet when the switch at place i of j's path has sent it on.
func (n *Network) stackOf(j *Journey, i int) (hops []decode.Hop) {
	bits := uint8(64)
	if n.switches[j.Hops[0].Node].dialect == md10 {
		bits = 32
	}
	for k := range j.Hops[:i+1] {
		if j.Hops[k].recorded {
			hops = append(hops, n.expect(&j.Hops[k], n.cfg.Instructions, bits))
		}
	}
	return hops
}

// matchReport finds the packet that r is about and takes it out of want.
func matchReport(t *testing.T, r *decode.Report, want map[decode.FlowKey][]expected) {
	t.Helper()
	list := want[r.Flow]
	for i, w := range list {
		if w.node == r.NodeID && (r.Has&decode.HasPacketID == 0 || w.id == r.PacketID) && slices.Equal(w.hops, r.Hops) {
			want[r.Flow] = slices.Delete(list, i, i+1)
			return
		}
	}
	t.Fatalf("no packet fits the report of node %d about %v, packet %d: %+v", r.NodeID, r.Flow, r.PacketID, r.Hops)
}
