package events

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// fabric is four leaves with two uplinks each, two spines and three hosts a leaf. Flows between all hosts of different
// leaves pass one of the spines by a hash. Leaves are 1 to 4, spines 11 and 12, and port 100 + h of a leaf leads to its
// host h.
type fabric struct {
	rng   *rand.Rand
	now   int64
	flows []inference.FlowLoss
	lose  func(f *inference.FlowLoss) float64 // share of the packets of a flow that vanish
	since int                                 // windows since something happens to packets, of which the first one has this part
	part  float64                             // with it
	odd   func(f *inference.FlowLoss) oddity  // how packets of a flow arrive
}

// oddity is an event on the way of packets.
type oddity uint8

const (
	asTheyWere oddity = iota
	renumbered        // with other identifications
	translated        // from another address
)

func host(leaf, h uint32) decode.Addr { return decode.AddrFrom4([]byte{10, 0, byte(leaf), byte(h)}) }

func newFabric(seed uint64) *fabric {
	s := &fabric{rng: rand.New(rand.NewPCG(seed, 25))}
	for a := range uint32(12) {
		for b := range uint32(12) {
			from, to := 1+a/3, 1+b/3
			if from == to {
				continue
			}
			spine := 11 + uint32(s.rng.IntN(2))
			s.flows = append(s.flows, inference.FlowLoss{
				Flow:    decode.FlowKey{Src: host(from, a%3), Dst: host(to, b%3), SrcPort: uint16(1000 + s.rng.IntN(9000)), DstPort: 80, Proto: 6, IPVersion: 4},
				Packets: 10 + uint64(s.rng.IntN(30)),
				Path:    []inference.HopKey{{Node: from, EgressIf: spine}, {Node: spine, EgressIf: to}, {Node: to, EgressIf: 100 + b%3}},
			})
		}
	}
	return s
}

func (s *fabric) window() *inference.Window {
	w := &inference.Window{Start: s.now, End: s.now + 1e9}
	s.now = w.End
	s.since++
	for n := range uint32(4) {
		e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n + 1}, Reports: 1000, Sequenced: true, Last: s.now}
		e.Addr[15] = byte(n + 1)
		w.Exporters = append(w.Exporters, e)
	}
	for _, f := range s.flows {
		share := 0.0
		if s.lose != nil {
			share = s.lose(&f)
		}
		f.Lost = binomial(s.rng, f.Packets, share)
		arrive := inference.FlowStats{Key: f.Flow, Packets: f.Packets - f.Lost}
		for _, h := range f.Path {
			arrive.Hops = append(arrive.Hops, inference.FlowHop{HopKey: h, Latency: inference.Summary{Count: arrive.Packets}})
		}
		if s.odd != nil {
			switch s.odd(&f) {
			case renumbered:
				f.Lost = f.Packets
			case translated:
				f.Lost = f.Packets
				arrive.Key.Src, arrive.Key.SrcPort = host(200, 1), arrive.Key.SrcPort+1
			}
		}
		if arrive.Packets > 0 {
			w.Flows = append(w.Flows, arrive)
		}
		if s.since < 2 && f.Lost == f.Packets { // what was on its way when it began is settled as it was
			f.Lost = binomial(s.rng, f.Packets, .3+.4*s.part)
		}
		w.Losses = append(w.Losses, f)
	}
	return w
}

func binomial(r *rand.Rand, n uint64, p float64) (k uint64) {
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// reported returns the findings of losses that start in some windows.
func (s *fabric) reported(d *Detector, windows int) (reported []inference.Finding) {
	for range windows {
		for _, f := range d.Step(s.window()) {
			if f.End == 0 && (f.Kind == inference.PacketLoss || f.Kind == inference.BlackHole) {
				reported = append(reported, f)
			}
		}
	}
	return reported
}

// TestPortsOfOneSwitch: if several ports of a switch lose packets and others lose none, the ports are named and not the
// switch. That holds also if the first windows were too few to distinguish them. If all of them lose packets, it is the
// switch.
func TestPortsOfOneSwitch(t *testing.T) {
	for _, x := range []struct {
		name  string
		share [3]float64 // that ports 100 to 102 of node 3 lose
		least int        // seeds of 20
	}{
		{"two of three", [3]float64{.1, .1, 0}, 20},
		{"two, one of them more", [3]float64{.05, .2, 0}, 20},
		{"two, by little", [3]float64{0, .03, .03}, 12}, // which is fewer than ten packets in a window
		{"all", [3]float64{.1, .1, .1}, 20},
	} {
		right := 0
		const seeds = 20
		for seed := range uint64(seeds) {
			s, d := newFabric(seed), New(DefaultConfig())
			s.reported(d, 10)
			s.lose = func(f *inference.FlowLoss) float64 {
				if sink := f.Path[len(f.Path)-1]; sink.Node == 3 {
					return x.share[sink.EgressIf-100]
				}
				return 0
			}
			s.reported(d, 30)
			want, got := map[inference.Element]bool{}, map[inference.Element]bool{}
			for port, share := range x.share {
				if share > 0 {
					want[inference.ElementOfHop(inference.HopKey{Node: 3, EgressIf: 100 + uint32(port)})] = true
				}
			}
			if len(want) == len(x.share) {
				want = map[inference.Element]bool{inference.ElementOfNode(3): true}
			}
			for _, f := range d.Open() {
				if f.Cause == 0 {
					got[f.Element] = true
				}
			}
			if maps.Equal(got, want) {
				right++
			} else {
				t.Logf("%s, seed %d: %v", x.name, seed, got)
			}
		}
		if right < x.least {
			t.Errorf("%s: right with %d of %d seeds, want %d", x.name, right, seeds, x.least)
		}
	}
}

// TestLossBehindTheLastSwitch: if a port, a host or the reports of a switch lose packets, no link is accused of it, and
// nothing is critical. Losses of a link meanwhile are found all the same.
func TestLossBehindTheLastSwitch(t *testing.T) {
	testkit.Long(t)
	sink := func(f *inference.FlowLoss) inference.HopKey { return f.Path[len(f.Path)-1] }
	burst := map[int64]float64{}
	for _, x := range []struct {
		name string
		want inference.Element
		lose func(r *rand.Rand, s *fabric, f *inference.FlowLoss) float64
	}{
		{"a tenth is dropped at a port", inference.ElementOfHop(inference.HopKey{Node: 3, EgressIf: 101}), func(_ *rand.Rand, _ *fabric, f *inference.FlowLoss) float64 {
			if sink(f) == (inference.HopKey{Node: 3, EgressIf: 101}) {
				return .1
			}
			return 0
		}},
		{"incast at a port, twice in three windows", inference.ElementOfHop(inference.HopKey{Node: 3, EgressIf: 101}), func(_ *rand.Rand, s *fabric, f *inference.FlowLoss) float64 {
			if sink(f) == (inference.HopKey{Node: 3, EgressIf: 101}) && s.now/1e9%3 > 0 {
				return .25
			}
			return 0
		}},
		{"the last switch reports one of ten", inference.ElementOfNode(3), func(_ *rand.Rand, _ *fabric, f *inference.FlowLoss) float64 {
			if sink(f).Node == 3 {
				return .9
			}
			return 0
		}},
		{"reports of the last switch are policed", inference.ElementOfNode(3), func(r *rand.Rand, s *fabric, f *inference.FlowLoss) float64 {
			if _, known := burst[s.now]; !known {
				burst[s.now] = .3 + .4*r.Float64()
			}
			if sink(f).Node == 3 {
				return min(1, burst[s.now]*(.8+.4*r.Float64())) // by bursts, so that flows differ
			}
			return 0
		}},
		{"reports of the last switch come in batches", inference.ElementOfNode(3), func(_ *rand.Rand, s *fabric, f *inference.FlowLoss) float64 {
			if sink(f).Node == 3 && s.now/1e9%3 == 0 {
				return 1
			}
			return 0
		}},
	} {
		named, red, found, other := 0, 0, 0, 0
		const kinds = 2
		seeds := testkit.Rounds(10, 20)
		for seed := range uint64(seeds) {
			for fault := range kinds {
				clear(burst)
				s, d := newFabric(seed), New(DefaultConfig())
				r := rand.New(rand.NewPCG(seed, 3))
				s.reported(d, 10)
				s.lose = func(f *inference.FlowLoss) float64 {
					p := x.lose(r, s, f)
					if fault == 1 && over(f.Path, 2, 11) {
						p = 1 - (1-p)*.9
					}
					return p
				}
				first, link := true, false
				for _, f := range s.reported(d, 60) {
					right := f.Element == inference.ElementOfLink(2, 11)
					switch {
					case fault == 1 && right:
						link = true
						continue
					case f.Severity == inference.Critical:
						red++
					case first && (f.Element == x.want || fault == 1 && f.Element == inference.ElementOfNode(x.want.Node)): // of two faults it can be the node
						named++
					case !first && f.Element.Node != x.want.Node:
						other++
					}
					first = false
				}
				if link {
					found++
				}
			}
		}
		line := fmt.Sprintf("%s: named %d of %d, critical about others %d, other warnings %d, a link that loses a tenth found %d of %d", x.name, named, 2*seeds, red, other, found, seeds)
		t.Log(line)
		if named < 2*seeds*9/10 || red > 0 || found < seeds*9/10 {
			t.Error(line)
		}
	}
}

// TestPacketsThatArriveAsOthers: a link behind which packets have other identifications or addresses is not accused. A
// link that loses a tenth of its packets, or a flow that vanishes, is found beside it.
func TestPacketsThatArriveAsOthers(t *testing.T) {
	for _, x := range []struct {
		name string
		odd  func(f *inference.FlowLoss) oddity
	}{
		{"identifications are written anew on a link", func(f *inference.FlowLoss) oddity {
			if over(f.Path, 12, 3) {
				return renumbered
			}
			return asTheyWere
		}},
		{"addresses are translated on a link", func(f *inference.FlowLoss) oddity {
			if over(f.Path, 12, 3) {
				return translated
			}
			return asTheyWere
		}},
		{"addresses of a host are translated", func(f *inference.FlowLoss) oddity {
			if f.Flow.Src == host(1, 1) {
				return translated
			}
			return asTheyWere
		}},
	} {
		seeds := testkit.Rounds(10, 20)
		red, said, links, flows := 0, 0, 0, 0
		for seed := range uint64(seeds) {
			for fault := range 3 {
				s, d := newFabric(seed), New(DefaultConfig())
				s.reported(d, 10)
				s.odd, s.since, s.part = x.odd, 0, s.rng.Float64()
				gone := slices.IndexFunc(s.flows, func(f inference.FlowLoss) bool { return f.Path[0].Node == 4 && x.odd(&f) == asTheyWere })
				s.lose = func(f *inference.FlowLoss) float64 {
					switch {
					case fault == 1 && over(f.Path, 2, 11):
						return .1
					case fault == 2 && f.Flow == s.flows[gone].Flow:
						return 1
					}
					return 0
				}
				link, flow, odd := false, false, false
				for _, f := range s.reported(d, 60) {
					switch {
					case fault == 1 && f.Element == inference.ElementOfLink(2, 11):
						link = true
					case fault == 2 && f.Element == inference.ElementOfFlow(s.flows[gone].Flow):
						flow = true
					case f.Severity == inference.Critical:
						red++
						t.Log(seed, fault, f.Text)
					case strings.Contains(f.Text, "not recognised"):
						odd = true
					}
				}
				for i, found := range [3]bool{odd, link, flow} {
					if found {
						*[3]*int{&said, &links, &flows}[i]++
					}
				}
			}
		}
		line := fmt.Sprintf("%s: said %d of %d, critical about others %d, a link that loses a tenth found %d of %d, a flow that vanishes %d of %d", x.name, said, 3*seeds, red, links, seeds, flows, seeds)
		t.Log(line)
		if red > 0 || said < 3*seeds*9/10 || links < seeds*9/10 || flows < seeds*9/10 {
			t.Error(line)
		}
	}
}

// TestPacketsThatArriveAsOthersForAWhile: a device writes other identifications behind one switch to which few packets
// come, and ceases to. It begins and ends within a window, of which flows then lose a part. No link is accused of more
// than a warning, and its finding ends once packets are not recognised behind it. A cause of both stays.
func TestPacketsThatArriveAsOthersForAWhile(t *testing.T) {
	for seed := range uint64(testkit.Rounds(20, 200)) {
		s, d := newFabric(seed), New(DefaultConfig())
		for i := range s.flows {
			if f := &s.flows[i]; f.Path[2].Node == 3 {
				spine := uint32(12)
				if f.Packets = 2 + uint64(s.rng.IntN(8)); s.rng.IntN(8) == 0 {
					spine, f.Packets = 11, 2
				}
				f.Path[0].EgressIf, f.Path[1].Node = spine, spine
			}
		}
		s.reported(d, 20)
		s.odd, s.since, s.part = func(f *inference.FlowLoss) oddity {
			if f.Path[2].Node == 3 {
				return renumbered
			}
			return asTheyWere
		}, 0, s.rng.Float64()
		list := s.reported(d, 30)
		for _, f := range d.Open() {
			if f.Element.Kind == inference.LinkElement && f.Evidence == 0 {
				t.Errorf("seed %d: still open: %s", seed, f.Text)
			}
		}
		was := s.odd
		s.odd, s.since = nil, 0
		s.lose = func(f *inference.FlowLoss) float64 { // of the window in which it ends
			if s.since == 1 && was(f) == renumbered {
				return .3
			}
			return 0
		}
		list = append(list, s.reported(d, 90)...)
		for _, f := range list {
			if f.Severity == inference.Critical {
				t.Errorf("seed %d: critical: %s", seed, f.Text)
			}
		}
	}
}

// TestIncompleteReports: where an exporter loses reports, packets that its switch does not report are no packets that arrive
// with other identifications. A finding of such packets from before stays, since nothing shows that they are recognised.
func TestIncompleteReports(t *testing.T) {
	for _, before := range []int{0, 10} {
		s, d := newFabric(1), New(DefaultConfig())
		s.reported(d, 10)
		s.odd, s.since = func(f *inference.FlowLoss) oddity {
			if over(f.Path, 12, 3) {
				return renumbered
			}
			return asTheyWere
		}, 0
		list := s.reported(d, before)
		for range 30 {
			w := s.window()
			w.Exporters[2].Lost = 500
			for _, f := range d.Step(w) {
				if f.Kind == inference.PacketLoss || f.Kind == inference.BlackHole {
					list = append(list, f)
				}
			}
		}
		if (len(list) > 0) != (before > 0) {
			t.Errorf("%d windows before reports are lost: %v", before, list)
		}
		for _, f := range list {
			if f.End != 0 {
				t.Errorf("ended: %s", f.Text)
			}
		}
	}
}

// TestArrivalsOfLaterWindows: packets of a flow that arrive as others can be counted in another window than the one in which
// they are settled. Windows in which few arrive are no evidence that the flow vanishes.
func TestArrivalsOfLaterWindows(t *testing.T) {
	for seed := range uint64(5) {
		s, d := newFabric(seed), New(DefaultConfig())
		thin := slices.IndexFunc(s.flows, func(f inference.FlowLoss) bool { return over(f.Path, 12, 3) })
		s.flows[thin].Packets = 2
		s.reported(d, 10)
		s.odd, s.since = func(f *inference.FlowLoss) oddity {
			if f.Path[2].Node == 3 {
				return renumbered
			}
			return asTheyWere
		}, 0
		late := uint64(0)
		for range 60 {
			w := s.window()
			at := slices.IndexFunc(w.Flows, func(f inference.FlowStats) bool { return f.Key == s.flows[thin].Flow })
			arrive := &w.Flows[at]
			if late += arrive.Packets; s.rng.IntN(2) == 0 { // all come in a later window
				w.Flows = slices.Delete(w.Flows, at, at+1)
			} else {
				arrive.Packets = late
				arrive.Hops[2].Latency.Count = late
				late = 0
			}
			for _, f := range d.Step(w) {
				if f.Severity == inference.Critical {
					t.Errorf("seed %d: %s", seed, f.Text)
				}
			}
		}
	}
}

// TestSeveralFlows: one flow that vanishes is critical, and so are two. Of several to one last switch at once it is not known
// whether that switch reports them.
func TestSeveralFlows(t *testing.T) {
	for n, want := range map[int]inference.Severity{1: inference.Critical, 2: inference.Critical, 6: inference.Warning} {
		s, d := newFabric(1), New(DefaultConfig())
		s.reported(d, 10)
		gone := map[decode.FlowKey]bool{}
		for i := range s.flows {
			if f := &s.flows[i]; f.Path[2].Node == 3 && len(gone) < n {
				gone[f.Flow] = true
			}
		}
		s.lose = func(f *inference.FlowLoss) float64 {
			if gone[f.Flow] {
				return 1
			}
			return 0
		}
		found := 0
		for _, f := range s.reported(d, 30) {
			if f.Kind == inference.BlackHole && f.Evidence == 0 {
				found++
				if f.Severity != want {
					t.Errorf("%d flows: %s: %s", n, f.Severity, f.Text)
				}
			}
		}
		if found < n {
			t.Errorf("%d of %d flows are found", found, n)
		}
	}
}

// TestLinkBesideSampling: last switches report a share of all packets from some window on, and a link loses packets ahead
// of one of them. The link is named beside the switches, and nothing else is, whatever the shares are and whether they
// change from window to window, also where they report some flows and others not. Where no link loses packets, no link is
// named.
func TestLinkBesideSampling(t *testing.T) {
	last := func(f *inference.FlowLoss) uint32 { return f.Path[len(f.Path)-1].Node }
	const fewFlows = "one of ten flows" // of which one or two pass the link, so that it can be their receivers as well
	for _, x := range []struct {
		name  string
		share func(s *fabric, f *inference.FlowLoss) float64 // that is reported
	}{
		{"all report one of ten", func(*fabric, *inference.FlowLoss) float64 { return .1 }},
		{"one reports one of ten", func(_ *fabric, f *inference.FlowLoss) float64 {
			if last(f) == 3 {
				return .1
			}
			return 1
		}},
		{"each reports another share", func(_ *fabric, f *inference.FlowLoss) float64 { return []float64{.1, .4, .05, .2}[last(f)-1] }},
		{"shares change", func(s *fabric, f *inference.FlowLoss) float64 {
			return []float64{.1, .3, .5}[(uint64(s.now)/1e9+uint64(last(f)))%3]
		}},
		{"one of two flows", func(_ *fabric, f *inference.FlowLoss) float64 {
			if f.Flow.SrcPort%2 == 0 {
				return 1
			}
			return 0
		}},
		{fewFlows, func(_ *fabric, f *inference.FlowLoss) float64 {
			if f.Flow.SrcPort%10 == 0 {
				return 1
			}
			return 0
		}},
	} {
		for _, lossy := range []bool{true, false} {
			found := 0
			seeds := testkit.Rounds(5, 5)
			for seed := range uint64(seeds) {
				s, d := newFabric(seed), New(DefaultConfig())
				s.reported(d, 10)
				s.lose = func(f *inference.FlowLoss) float64 { return 1 - x.share(s, f) }
				list := s.reported(d, 20)
				s.lose = func(f *inference.FlowLoss) float64 {
					if lossy && over(f.Path, 11, 3) {
						return 1 - .5*x.share(s, f)
					}
					return 1 - x.share(s, f)
				}
				list = append(list, s.reported(d, 30)...)
				right := false
				for _, f := range list {
					switch {
					case f.Element == inference.ElementOfLink(3, 11) && lossy:
						right = true
					case f.Element.Kind == inference.LinkElement || f.Severity == inference.Critical:
						t.Errorf("%s, lossy %v, seed %d: %s at %s: %s", x.name, lossy, seed, f.Severity, f.Element, f.Text)
					}
				}
				if right {
					found++
				}
				if !right {
					continue
				}
				s.lose = func(f *inference.FlowLoss) float64 { return 1 - x.share(s, f) }
				s.reported(d, 30)
				for _, f := range d.Open() {
					if f.Element.Kind == inference.LinkElement && f.Evidence == 0 { // a cause lasts as long as any of its evidence
						t.Errorf("%s, seed %d: still open: %s", x.name, seed, f.Text)
					}
				}
			}
			if want := map[bool]int{true: seeds - 1}[lossy && x.name != fewFlows]; found < want {
				t.Errorf("%s: the link is found with %d of %d seeds, want %d", x.name, found, seeds, want)
			}
		}
	}
}
