package emu

import "time"

// DemoConfig is a fat-tree of 20 switches with 200 flows and about 4000 reports a second, and a script of 170 seconds
// that repeats: after a quiet beginning a line is congested, a link fails and returns, an access list drops packets, a
// switch becomes slow, reports of one exporter are lost, and another falls silent, with quiet times in between.
//
// Lines are slow (10 Mbit/s), so that a laptop sends enough packets to fill them: latencies are milliseconds.
func DemoConfig() Config {
	c := DefaultConfig()
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
	c.Script = []Fault{
		{Kind: CrossTraffic, At: 20 * s, For: 14 * s, Node: "agg-0-0", Peer: "core-0", Value: 0.95},
		{Kind: LinkDown, At: 46 * s, For: 14 * s, Node: "edge-1-0", Peer: "agg-1-0"},
		{Kind: DenyFlows, At: 72 * s, For: 8 * s, Node: "agg-2-1", Value: 0.25},
		{Kind: SlowSwitch, At: 92 * s, For: 12 * s, Node: "core-3", Delay: 8 * time.Millisecond},
		{Kind: LoseReports, At: 116 * s, For: 10 * s, Node: "edge-3-0", Value: 0.2},
		{Kind: SilenceReports, At: 138 * s, For: 16 * s, Node: "edge-2-1"},
	}
	c.Repeat = 170 * s
	c.Probes = demoProbes()
	return c
}

// demoProbes send one probe a pod: from its first edge switch up to a core switch, down into the next pod, and out to
// the first host there.
func demoProbes() []Probe {
	var p []Probe
	for pod := range 4 {
		next := (pod + 1) % 4
		p = append(p, Probe{
			From: []string{"edge-0-0", "edge-1-0", "edge-2-0", "edge-3-0"}[pod], Every: 200 * time.Millisecond,
			Ports: []int{3, 3, next + 1, 1, 1},
		})
	}
	return p
}

// Demo builds the network of DemoConfig. Device clocks begin at epoch.
func Demo(seed uint64, epoch time.Time) (*Network, error) {
	c := DemoConfig()
	c.Epoch = epoch
	return New(c, seed)
}
