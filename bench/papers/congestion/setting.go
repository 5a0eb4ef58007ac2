// Package congestion simulates flows with windows in a fabric: TCP Reno, and HPCC's law with all stamps of INT or with
// PINT's digest. The figures of PINT that are of completion and goodput come from it.
package congestion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Bytes of the packets of figures 7, 8 and 11, as in the simulation that PINT's authors published: 1,000 of payload
// behind Ethernet, IP, UDP and a sequence header. HPCC's own INT has 8 for each of five hops and 2 for their number.
const (
	INTBytes   = 42
	PINTBytes  = 1
	MixedBytes = 2 // the three queries of section 6.4
)

// fabricOfHPCC is a small one like the paper's: 3 pods (paper: 5) of 2 (paper: 4) top-of-rack and aggregation switches,
// with 8 (paper: 16) servers a rack. The lines have the paper's rates and delays. There is as much room towards the
// core as in racks, as in the paper's. 68 % of pairs of servers are in different pods, and 80 % in the paper's.
var fabricOfHPCC = fabric{pods: 3, half: 2, servers: 8, hostRate: 100e9, coreRate: 400e9, delay: microsecond}

// fabricOfReno has the 64 hosts, five switches on a path and 10 Gb/s of figures 1 and 2. The rest is ours: the text has
// neither the other lines nor delays.
var fabricOfReno = fabric{pods: 4, half: 4, servers: 4, hostRate: 10e9, coreRate: 10e9, delay: microsecond}

// HPCC is the setting of section 6.1: W_AI of 80 bytes, maxStage 0, η = 95 %, T = 13 µs. The load is of payload alone. Of
// Hadoop, whose flows are a thirteenth as long, ten times as many flows are measured.
func HPCC(workload string, load float64, sender Sender, share float64, overhead, flows int, seed uint64) Setting {
	if workload == "Hadoop" {
		flows *= 10
	}
	return Setting{
		fabric: fabricOfHPCC, workload: workload, load: load,
		sender: sender, share: share, overhead: overhead, onACK: true,
		payload: 1000, header: 48, ackSize: 46, leastACK: 60,
		rtt: 13 * microsecond, eta: 0.95, increase: 80, measured: flows, seed: seed,
	}
}

// TCP is the setting of section 2: packets of 1,500 bytes and as many more as the overhead, the load without it. Queues hold
// 100 packets, as those of ns-3 do, and the retransmission timeout is 10 ms at least.
func TCP(load float64, overhead, flows int, seed uint64) Setting {
	return Setting{
		fabric: fabricOfReno, workload: "web search", load: load, counted: true,
		sender: Reno, overhead: overhead,
		payload: 1460, header: 40, ackSize: 40, leastACK: 40, limit: 100,
		rtt: 26 * microsecond, timeout: 10 * millisecond, measured: flows, seed: seed,
	}
}

func (c Setting) String() string {
	kind := "PINT"
	switch c.sender {
	case Reno:
		kind = "Reno"
	case INT:
		kind = "INT"
	}
	return fmt.Sprintf("%s, %s at %g %% load, %d bytes, share %g", kind, c.workload, 100*c.load, c.overhead, c.share)
}

// Left is the share of a host's line that is left for more flows, in the mean.
func (c Setting) Left() float64 {
	ack := max(c.ackSize+c.overhead, c.leastACK)
	return c.eta - c.load*float64(c.payload+c.header+c.overhead+ack)/float64(c.payload)
}

// Result is what figures need of a simulation. Its completions are in the order of the flows' identities, so that those of
// two simulations with the same seed, workload and load are of the same flows.
type Result struct {
	Done          []Completion
	Sent, Dropped int64 // packets and acknowledgements
	Queue         int64 // bytes, the largest
}

// Simulate runs a setting until the flows that are measured have ended.
func Simulate(ctx context.Context, c Setting) (*Result, error) {
	s, err := simulate(ctx, c)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.done, func(a, b Completion) int { return cmp.Compare(a.ID, b.ID) })
	return &Result{Done: s.done, Sent: s.sent, Dropped: s.dropped, Queue: s.mostQueue()}, nil
}

// SizeAt returns the size, in bytes, that so many percent of the flows of a workload do not exceed.
func SizeAt(workload string, percent float64) float64 { return flowSizes[workload].at(percent) }
