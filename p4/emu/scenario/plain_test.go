package scenario

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/emu"
)

// plainCounts are what agents reported of probes whose way passes a fault, or does not.
type plainCounts struct{ sent, received, lost, forward, back, delays, slow int }

func (c *plainCounts) add(p *decode.ProbeCounts, slow time.Duration) {
	c.sent += int(p.Sent)
	c.received += int(p.Received)
	c.lost += int(p.Missed) - int(p.Late)
	c.forward += int(p.Forward)
	c.back += int(p.Back)
	for _, d := range p.Delays {
		c.delays += int(d.Count)
		if decode.LongestDelay(d.Code) >= uint64(slow) {
			c.slow += int(d.Count)
		}
	}
}

// TestPlain plays one round of the script. What agents report shows each fault in its time, and nothing at other times.
func TestPlain(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	p, err := NewPlain(1, start, false)
	if err != nil {
		t.Fatal(err)
	}
	script := p.Script()
	lossy, down, slow, off := script[0], script[1], script[2], script[3]
	if lossy.Kind != emu.LosePackets || down.Kind != emu.LinkDown || slow.Kind != emu.DelayLine || off.Off == "" {
		t.Fatalf("script %+v", script)
	}
	auto, now, epochs := reader(t, "auto"), time.Duration(0), map[[3]int]uint32{}
	var b decode.Batch
	var quiet, over, beside, late, fault plainCounts
	silent, moved := 0, 0
	within := func(f PlainFault) bool { return now >= f.From+2*plainTimeout && now < f.Until-plainTurn }
	calm := func() bool {
		return !slices.ContainsFunc(script, func(f PlainFault) bool { return now >= f.From && now < f.Until+3*plainTimeout })
	}
	for ; now < plainRepeat; now += plainTurn {
		p.Run(now+plainTurn, func(k int, payload []byte) {
			b.Reset()
			auto.Datagram(&b, decode.AddrFrom(PlainSource(k)), payload, 0)
			for i := range b.Reports {
				r := b.Reports[i]
				if err := r.Error(); err != nil {
					t.Fatalf("at %v: %v: %x", now, err, payload)
				}
				if r.Kind != decode.KindProbes {
					continue
				}
				to := int(r.Flow.Dst.Netip().As4()[3]) - 1
				s := p.agents[k].sessions[slices.IndexFunc(p.agents[k].sessions, func(s *plainSession) bool { return s.to == to && s.port == r.Flow.SrcPort })]
				n := r.Rare.Probes
				if key := [3]int{k, to, int(s.port)}; n.Epoch != epochs[key] {
					if epochs[key] > 0 {
						moved++
					}
					epochs[key] = n.Epoch
				}
				switch {
				case calm():
					quiet.add(n, 4*time.Millisecond)
				case within(lossy) && slices.Contains(s.watch.Hops, p.Towards(lossy.Node, lossy.Peer)):
					over.add(n, 4*time.Millisecond)
				case within(lossy):
					beside.add(n, 4*time.Millisecond)
				case within(slow) && slices.Contains(s.watch.Hops, p.Towards(slow.Node, slow.Peer)):
					late.add(n, 8*time.Millisecond)
				case within(off) && p.agents[to].edge == off.Off:
					fault.add(n, 0)
				}
				if within(off) && p.agents[k].edge == off.Off {
					silent++
				}
			}
		})
	}
	if quiet.sent < 100_000 || quiet.lost != 0 || quiet.slow != 0 || quiet.delays < quiet.sent*9/10 {
		t.Errorf("without a fault %+v", quiet)
	}
	if share := float64(over.forward) / float64(over.sent); math.Abs(share-lossy.Value) > .02 || over.sent < 1000 {
		t.Errorf("over the lossy direction %+v, which loses %v", over, lossy.Value)
	}
	if beside.forward != 0 || beside.back == 0 { // some answers take the lossy direction
		t.Errorf("beside it %+v", beside)
	}
	if late.sent < 100 || late.slow != late.delays {
		t.Errorf("over the slow direction %+v", late)
	}
	if fault.received != 0 || fault.lost < 1000 || silent != 0 {
		t.Errorf("to the host that is off %+v, and it sent %d reports", fault, silent)
	}
	if moved < 20 {
		t.Errorf("%d sessions took another way for the link that failed", moved)
	}
}
