package scenario

import (
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4/emu"
)

// demoConfig is a fat-tree of 20 switches with 200 flows and about 4000 reports a second, and a script of 170 seconds
// that repeats. After a quiet beginning a line is congested, a link fails and returns, and an access list drops
// packets. Then a switch becomes slow, reports of one exporter are lost, and another falls silent, with quiet times in
// between.
//
// Lines are slow (10 Mbit/s), so that a laptop sends enough packets to fill them: latencies are milliseconds.
func demoConfig() emu.Config {
	c := emu.DefaultConfig()
	c.LinkRate = 10e6
	c.QueueBytes = 64_000
	c.PacketRate = 4000
	c.FlowPackets = 5000
	c.IPv6Share = 0.1
	c.ReportsPerDatagram = 2
	c.QueueReportBytes = 32_000
	c.QueueReportGap = 50 * time.Millisecond
	c.ClockSkew = 2 * time.Millisecond
	const s = time.Second
	c.Script = []emu.Fault{
		{Kind: emu.CrossTraffic, At: 20 * s, For: 14 * s, Node: "agg-0-0", Peer: "core-0", Value: 0.95},
		{Kind: emu.LinkDown, At: 46 * s, For: 14 * s, Node: "edge-1-0", Peer: "agg-1-0"},
		{Kind: emu.DenyFlows, At: 72 * s, For: 8 * s, Node: "agg-2-1", Value: 0.25},
		{Kind: emu.SlowSwitch, At: 92 * s, For: 12 * s, Node: "core-3", Delay: 8 * time.Millisecond},
		{Kind: emu.LoseReports, At: 116 * s, For: 10 * s, Node: "edge-3-0", Value: 0.2},
		{Kind: emu.SilenceReports, At: 138 * s, For: 16 * s, Node: "edge-2-1"},
	}
	c.Repeat = 170 * s
	c.Probes = demoProbes()
	return c
}

// PINTDemo is DemoConfig with PINT digests in three of ten flows, and two more faults at the end of the script, which
// lasts 210 seconds. In these, flows take another way without a loss, and some go round in a loop.
func PINTDemo() (emu.Config, error) {
	c := demoConfig()
	plan, err := demoPlan()
	if err != nil {
		return c, err
	}
	c.Plan, c.PINTShare, c.LoopReportGap = plan, 0.3, 50*time.Millisecond
	const s = time.Second
	c.Script = append(c.Script,
		emu.Fault{Kind: emu.DivertFlows, At: 164 * s, For: 10 * s, Node: "edge-0-1", Peer: "agg-0-1", Value: 1},
		emu.Fault{Kind: emu.DivertFlows, At: 184 * s, For: 6 * s, Node: "agg-3-0", Peer: "core-1", Value: 0.3},
	)
	c.Repeat = 210 * s
	return c, nil
}

// demoPlan is a plan of 32 bits a packet. Half of them are for the path, in every packet. In one packet of two the
// others detect loops (T = 1, b = 15). In the other packets they measure hop latency and the utilisation of the busiest
// line.
func demoPlan() (*pint.Plan, error) {
	path, err := pint.New(pint.Config{Seed: 1, Bits: 8, Instances: 2, Tau: .5, P: []float64{.5}})
	if err != nil {
		return nil, err
	}
	latency, err := pint.New(pint.Config{Seed: 2, Bits: 8, Instances: 1, Tau: 1})
	if err != nil {
		return nil, err
	}
	nanoseconds, err := pint.NewCode(pint.CodeConfig{Bits: 8, Unit: 1000, Max: 10e9}) // 1 µs to 10 s
	if err != nil {
		return nil, err
	}
	load, err := pint.NewCode(pint.CodeConfig{Bits: 8, Epsilon: 0.025})
	if err != nil {
		return nil, err
	}
	return &pint.Plan{
		Epoch: 1, Bits: 32,
		Queries: []pint.Query{
			{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 16, Scheme: path},
			{Name: "loops", Value: pint.NodeValue, Aggregation: pint.Loop, Bits: 16, Loops: &pint.Loops{Seed: 3, Bits: 15, T: 1}},
			{Name: "hop latency", Value: pint.LatencyValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: latency, Code: nanoseconds},
			{Name: "bottleneck", Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: load},
		},
		Sets: []pint.Set{
			{Share: .5, Slots: []pint.Slot{{Query: 0}, {Query: 1, Shift: 16}}},
			{Share: .5, Slots: []pint.Slot{{Query: 0}, {Query: 2, Shift: 16}, {Query: 3, Shift: 24}}},
		},
	}, nil
}

// demoProbes are one probe a pod. Each goes from the first edge switch up to a core switch, down into the next pod, and
// out to the first host there.
func demoProbes() []emu.Probe {
	var p []emu.Probe
	for pod := range 4 {
		next := (pod + 1) % 4
		p = append(p, emu.Probe{
			From: []string{"edge-0-0", "edge-1-0", "edge-2-0", "edge-3-0"}[pod], Every: 200 * time.Millisecond,
			Ports: []int{3, 3, next + 1, 1, 1},
		})
	}
	return p
}
