package scenario

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
)

// seen is what truly happened to packets in some time, around the place of a trouble.
type seen struct {
	here, other map[emu.Outcome]int // packets that ended in the switch (of a link: that went over it or were to), and elsewhere
	passed      int                 // packets that left by the port of the trouble
	waits       []time.Duration     // in the queue there
	slow, calm  int                 // packets that took 8 ms and more in the pipeline of the switch, and elsewhere
	crossings   []time.Duration     // from the end of the queue there to the arrival at the other end
	swallowed   int                 // packets of the flow that arrived nowhere
	arrived     int                 // and that arrived
	looped      int                 // packets that came by the switch twice
	moved       int                 // packets that left the switch by another port than that of the trouble
}

// happen runs the trouble for some time, and as long before it.
func happen(t *testing.T, name string, seed uint64, cfg emu.Config, length time.Duration) (h *Happening, before, during seen, n *emu.Network, reports []*decode.Report) {
	t.Helper()
	trouble, ok := Lookup(name)
	if !ok {
		t.Fatalf("no trouble %q", name)
	}
	quiet := built(t, cfg, seed)
	h, err := trouble.Happen(quiet, length, rand.New(rand.NewPCG(seed, 99)))
	if err != nil {
		t.Fatal(err)
	}
	h.AddTo(&cfg)
	before, during = newSeen(), newSeen()
	var key decode.FlowKey
	cfg.Observe = func(j *emu.Journey) {
		if j.Probe {
			return
		}
		switch w := began(j); {
		case w < h.From-200*time.Millisecond:
			before.add(h, j, key)
		case w >= h.From+100*time.Millisecond && w < h.Until-100*time.Millisecond:
			during.add(h, j, key)
		}
	}
	n = built(t, cfg, seed)
	if h.At == InFlow {
		key = n.FlowKey(h.Flow)
	}
	n.Run(h.From+min(length, h.For), func(d emu.Datagram) {
		if d.At >= h.From && slices.Contains(h.Kinds, "packet-loss") {
			reports = append(reports, decoded(t, n, d, seed)...)
		}
	})
	return h, before, during, n, reports
}

func newSeen() seen { return seen{here: map[emu.Outcome]int{}, other: map[emu.Outcome]int{}} }

func (s *seen) add(h *Happening, j *emu.Journey, key decode.FlowKey) {
	visits := 0
	for i, hop := range j.Hops {
		if hop.NodeID != h.Node {
			if hop.Queued-hop.Ingress >= 8*time.Millisecond {
				s.calm++
			}
			continue
		}
		if visits++; hop.Queued-hop.Ingress >= 8*time.Millisecond {
			s.slow++
		}
		if uint32(hop.EgressPort) != h.Port {
			s.moved++
			continue
		}
		s.passed++
		s.waits = append(s.waits, hop.Egress-hop.Queued)
		if i+1 < len(j.Hops) {
			s.crossings = append(s.crossings, j.Hops[i+1].Ingress-hop.Egress)
		}
	}
	if visits > 1 {
		s.looped++
	}
	if j.Key == key {
		if j.Outcome == emu.Delivered {
			s.arrived++
		} else {
			s.swallowed++
		}
	}
	// A packet that vanished on a line has left the switch before it.
	switch at := j.Node; {
	case j.Outcome == emu.Delivered:
	case j.Outcome == emu.Vanished && len(j.Hops) > 0 && j.Hops[len(j.Hops)-1].NodeID == h.Node && uint32(j.Hops[len(j.Hops)-1].EgressPort) == h.Port,
		uint32(at)+1 == h.Node:
		s.here[j.Outcome]++
	default:
		s.other[j.Outcome]++
	}
}

func quantile(v []time.Duration, q float64) time.Duration {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}

// troubleConfig is the demonstration without its script.
func troubleConfig(t *testing.T) emu.Config {
	t.Helper()
	c, err := PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	c.Script, c.Repeat, c.SourceReports = nil, 0, true
	c.FlowPackets = 0
	return c
}

// Every fault of the table does what the table says of it, where it says so, and nowhere else.
func TestTroubles(t *testing.T) {
	testkit.Long(t)
	silent := func(s *seen) int { return s.here[emu.Vanished] + s.other[emu.Vanished] }
	total := func(s *seen) (n int) {
		for _, m := range []map[emu.Outcome]int{s.here, s.other} {
			for _, k := range m {
				n += k
			}
		}
		return n
	}
	length := map[string]time.Duration{"gray-failure-0.1": 40 * s1, "gray-failure-1": 20 * s1, "slow-drain": 40 * s1, "flapping-link": 24 * s1}
	for _, trouble := range Troubles() {
		t.Run(trouble.Name, func(t *testing.T) {
			run := length[trouble.Name]
			if run == 0 {
				run = min(trouble.For, 6*s1)
			}
			h, before, during, n, reports := happen(t, trouble.Name, 5, troubleConfig(t), run)
			if total(&before) > 0 {
				t.Errorf("%v: packets were lost before it: %v, %v", h, before.here, before.other)
			}
			stats := n.Exporter(int(h.Node) - 1)
			ok := true
			switch h.Name {
			case "congested-line", "cut-rate", "slow-drain":
				ok = quantile(during.waits, .9) > 20*ms && quantile(before.waits, .9) < 5*ms
			case "microburst":
				bursts := quantile(during.waits, .95) > 10*ms
				ok = bursts && quantile(during.waits, .5) < 2*ms && quantile(before.waits, .95) < 8*ms
			case "link-down":
				ok = during.passed == 0 && before.passed > 100
			case "flapping-link":
				ok = during.passed > before.passed*4/10 && during.passed < before.passed*8/10
			case "deny-flows":
				ok = during.here[emu.Denied] > 20 && during.other[emu.Denied] == 0
			case "withdraw-route":
				ok = during.here[emu.NoRoute] > 20 && during.other[emu.NoRoute] == 0
			case "slow-switch":
				ok = during.slow > 100 && during.calm == 0 && before.slow == 0
			case "lose-reports":
				share := float64(stats.Lost) / float64(stats.Datagrams)
				ok = stats.Lost > 50 && share < .2
			case "silence-reports":
				ok = stats.Suppressed > 200
			case "duplicate-reports":
				ok = stats.Duplicated > 50
			case "reorder-reports":
				ok = stats.Reordered > 50
			case "restart-reports":
				ok = stats.Lost == 0 && uint64(stats.BySubsystem[0].Sequence) < stats.Datagrams
			case "divert-flows":
				ok = total(&during) == 0
			case "routing-loop":
				ok = during.looped > 100 && before.looped == 0 && n.Stats().LoopsDetected > 20
			case "forge-digests":
				ok = total(&during) == 0
			case "gray-failure-1", "gray-failure-0.1":
				// Within five standard deviations of the share that the table states.
				p := h.Script[0].Value
				want := p * float64(during.passed)
				diff := float64(during.here[emu.Vanished]) - want
				ok = want > 3 && diff*diff < 25*want*(1-p) && during.other[emu.Vanished] == 0
			case "asymmetric-latency":
				gain := quantile(during.crossings, .5) - quantile(before.crossings, .5)
				ok = gain > 4900*time.Microsecond && gain < 5100*time.Microsecond && quantile(before.waits, .9)+5*ms > quantile(during.waits, .9)
			case "incast":
				ok = quantile(during.waits, .9) > 10*ms && quantile(before.waits, .99) < 8*ms && during.other[emu.QueueFull] == 0
			case "black-hole":
				ok = during.arrived == 0 && during.swallowed > 20 && before.swallowed == 0 && during.here[emu.Vanished] == during.swallowed && during.other[emu.Vanished] == 0
			default:
				t.Fatal("nothing is known of what it does")
			}
			if !ok {
				t.Errorf("%v:\nbefore %+v, waits %v %v\nduring %+v, waits %v %v\n%+v", h, before.counts(), quantile(before.waits, .5), quantile(before.waits, .95),
					during.counts(), quantile(during.waits, .5), quantile(during.waits, .95), stats)
			}
			// What vanishes is what no switch reports.
			drops := 0
			for _, r := range reports {
				if r.Kind == decode.KindDrop {
					drops++
				}
			}
			if vanished := silent(&during); vanished > 0 && drops > 0 {
				t.Errorf("%v: %d packets vanished, and %d drops were reported", h, vanished, drops)
			}
		})
	}
}

func (s seen) counts() seen {
	s.waits, s.crossings = nil, nil
	return s
}

// Places are drawn from the whole network, the same ones for the same seed, and every happening builds.
func TestTroublesHappenAnywhere(t *testing.T) {
	cfg := troubleConfig(t)
	n := built(t, cfg, 3)
	for _, trouble := range Troubles() {
		places := map[[3]uint32]bool{}
		for seed := range uint64(20) {
			h, err := trouble.Happen(n, time.Second, rand.New(rand.NewPCG(seed, 1)))
			if err != nil {
				t.Fatal(err)
			}
			second, err := trouble.Happen(n, time.Second, rand.New(rand.NewPCG(seed, 1)))
			if err != nil || second.String() != h.String() || !slices.Equal(second.Script, h.Script) || !slices.Equal(second.Flows, h.Flows) {
				t.Fatalf("%v, then %v, %v", h, second, err)
			}
			for _, f := range h.Script {
				if f.At < h.From || f.At+f.For > h.Until {
					t.Errorf("%v: %v lasts from %v for %v", h, f, f.At, f.For)
				}
			}
			c := cfg
			h.AddTo(&c)
			if _, err := emu.New(c, 3); err != nil {
				t.Errorf("%v: %v", h, err)
			}
			places[[3]uint32{h.Node, h.Port, uint32(h.Flow)}] = true
		}
		if len(places) < 5 {
			t.Errorf("%s happens at %d places only", trouble.Name, len(places))
		}
	}
}

// The first switch reports the same packets as the last one, whatever share of them is sampled.
func TestSourceReports(t *testing.T) {
	for _, every := range []int{1, 3} {
		cfg := troubleConfig(t)
		cfg.SampleEvery, cfg.Probes, cfg.ReportsPerDatagram = every, nil, 1
		sampled := map[decode.FlowKey]int{}
		delivered := map[decode.FlowKey]int{}
		cfg.Observe = func(j *emu.Journey) {
			if j.Sampled {
				sampled[j.Key]++
				if j.Outcome == emu.Delivered {
					delivered[j.Key]++
				}
			}
		}
		n := built(t, cfg, 8)
		source, sink := map[decode.FlowKey]int{}, map[decode.FlowKey]int{}
		n.Run(4*time.Second, func(d emu.Datagram) {
			for _, r := range decoded(t, n, d, 8) {
				switch {
				case r.Flags&decode.Transit != 0 && r.Kind == decode.KindPostcard:
					source[r.Flow]++
					if len(r.Hops) != 0 {
						t.Fatalf("a source report has hops: %+v", r)
					}
				case r.Kind == decode.KindStack && r.Flags&decode.Transit == 0, r.Kind == decode.KindDigest && r.Flags&decode.Loop == 0:
					sink[r.Flow]++
				}
			}
		})
		if len(sampled) < 150 {
			t.Fatalf("%d flows", len(sampled))
		}
		for k, want := range delivered {
			// What is on its way at the end is seen by the source alone.
			if sink[k] != want || source[k] < sampled[k] || source[k] > sampled[k]+5 {
				t.Errorf("1 of %d, %v: %d packets sampled, %d delivered; the source reports %d, the sink %d", every, k, sampled[k], want, source[k], sink[k])
			}
		}
	}
}
