package suspicion

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
)

// ring is a ring of links, each of which two probes cross, and two links at its end that the same probes cross.
func crossings(t *testing.T) *Incidence {
	t.Helper()
	in, err := NewIncidence(8, [][]int32{{0, 1, 2}, {2, 3, 4}, {4, 5, 0}, {1, 3, 5}, {6, 7}, {6, 7, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// rounds of all probes, of which those that cross a link lose a share.
func lossy(in *Incidence, sent uint64, links []int32, share float64, r *rand.Rand) (list []Round) {
	for p := range in.probes {
		round := Round{Probe: int32(p), Sent: sent}
		for range sent {
			for _, l := range in.probes[p] {
				if slices.Contains(links, l) && r.Float64() < share {
					round.Lost++
					break
				}
			}
		}
		list = append(list, round)
	}
	return list
}

func links(list []Suspect) (out []int32) {
	for _, s := range list {
		out = append(out, s.Link)
	}
	return out
}

// A link that loses everything is suspected with the first cycle, and cleared after it is well again.
func TestLinkDown(t *testing.T) {
	in, r := crossings(t), rand.New(rand.NewPCG(1, 1))
	s := New(DefaultConfig(), in, nil)
	now := int64(0)
	cycle := func(lost []int32, share float64) []Suspect {
		now += 1e9
		return s.Step(&Cycle{Now: now, Rounds: lossy(in, 20, lost, share, r)})
	}
	for range 100 {
		if got := cycle(nil, 0); len(got) > 0 {
			t.Fatalf("%+v without a loss", got)
		}
	}
	for k := range 30 {
		got := cycle([]int32{3}, 1)
		if !slices.Equal(links(got), []int32{3}) || got[0].Confidence < .99 || got[0].Since != 101e9 || got[0].Weight < 3.9 {
			t.Fatalf("cycle %d of the fault: %+v", k, got)
		}
		if !strings.Contains(got[0].Why, "got lost") {
			t.Errorf("why: %q", got[0].Why)
		}
	}
	for k := range 600 {
		if got := cycle(nil, 0); len(got) > 0 && k > DefaultConfig().ClearAfter+1 {
			t.Fatalf("cycle %d after the fault: %+v", k, got)
		}
	}
}

// A loss of one in a hundred is found when there is enough of it; links that the same probes cross share the confidence.
func TestWeakLoss(t *testing.T) {
	in, r := crossings(t), rand.New(rand.NewPCG(2, 1))
	for _, c := range []struct {
		lossy, want []int32
		sure        float64
	}{{[]int32{3}, []int32{3}, .95}, {[]int32{7}, []int32{6, 7}, .45}} {
		s := New(DefaultConfig(), in, nil)
		found := 0
		for k := 1; k <= 100; k++ {
			got := s.Step(&Cycle{Now: int64(k) * 1e9, Rounds: lossy(in, 20, c.lossy, .01, r)})
			if len(got) == 0 {
				continue
			}
			if !slices.Equal(links(got), c.want) || got[0].Confidence < c.sure {
				t.Fatalf("cycle %d: %+v, want %v", k, got, c.want)
			}
			if len(c.want) > 1 && !strings.Contains(got[0].Why, "cannot be distinguished") {
				t.Errorf("why: %q", got[0].Why)
			}
			if found == 0 {
				found = k
			}
		}
		if found == 0 || found > 60 {
			t.Errorf("links %v: found in cycle %d", c.lossy, found)
		}
	}
}

// Losses that are normal are no evidence: at the accepted share, a million rounds of each probe.
func TestNormalLosses(t *testing.T) {
	in, r := crossings(t), rand.New(rand.NewPCG(3, 1))
	cfg := DefaultConfig()
	cfg.Loss = 1e-3
	s := New(cfg, in, nil)
	lost := uint64(0)
	for k := range 20_000 {
		var list []Round
		for p := range in.probes {
			x := Round{Probe: int32(p), Sent: 50}
			for range x.Sent {
				if r.Float64() < cfg.Loss {
					x.Lost++
				}
			}
			lost += x.Lost
			list = append(list, x)
		}
		if got := s.Step(&Cycle{Now: int64(k) * 1e9, Rounds: list}); len(got) > 0 {
			t.Fatalf("cycle %d: %+v", k, got)
		}
	}
	if lost < 5000 {
		t.Errorf("only %d rounds were lost", lost)
	}
}

// A false culprit comes less often than the sum of the chances of all fits of a cycle. That holds also if each is
// judged in every cycle. The test uses chances that are large enough to see, and the real one.
func TestFalseLosses(t *testing.T) {
	in, r := crossings(t), rand.New(rand.NewPCG(8, 1))
	cfg := DefaultConfig()
	cfg.Loss = 1e-3
	for _, c := range []struct {
		alarm  float64 // of a cycle
		cycles int
		least  int // false culprits, so that the test sees any
	}{{.3, 40_000, 20}, {.03, 30_000, 2}, {1e-6, 100_000, 0}} {
		s := New(cfg, in, nil)
		s.losses.alarm = c.alarm / lossScales
		found, were := 0, 0
		list := make([]Round, len(in.probes))
		for k := range c.cycles {
			for p := range list {
				list[p] = Round{Probe: int32(p), Sent: 20}
				for range list[p].Sent {
					if r.Float64() < cfg.Loss {
						list[p].Lost++
					}
				}
			}
			s.Step(&Cycle{Now: int64(k) * 1e9, Rounds: list})
			now := len(s.losses.culprits)
			found += max(0, now-were)
			were = now
		}
		if most := c.alarm * float64(c.cycles); float64(found) > most+4*math.Sqrt(most) || found < c.least {
			t.Errorf("%d false culprits in %d cycles, at most %g of which may have one", found, c.cycles, c.alarm)
		}
		t.Logf("%d false culprits in %d cycles; %g of them may have one", found, c.cycles, c.alarm)
	}
}

// Losses that begin within a block of cycles do not wait for its end. Two losses every third cycle are found by the
// third time, whenever they begin.
func TestLossesDoNotWait(t *testing.T) {
	for begin := 100; begin < 164; begin += 7 {
		in, s := crossings(t), New(DefaultConfig(), crossings(t), nil)
		found := 0
		for k := 1; k < begin+60 && found == 0; k++ {
			var list []Round
			for p := range in.probes {
				x := Round{Probe: int32(p), Sent: 20}
				if k >= begin && (k-begin)%3 == 0 && slices.Contains(in.probes[p], 3) {
					x.Lost = 1
				}
				list = append(list, x)
			}
			if got := s.Step(&Cycle{Now: int64(k) * 1e9, Rounds: list}); len(got) > 0 {
				if !slices.Equal(links(got), []int32{3}) {
					t.Fatalf("from cycle %d on: %+v", begin, got)
				}
				found = k
			}
		}
		if late := found - begin; found == 0 || late > 6 { // two losses at a time, in cycles 0, 3 and 6
			t.Errorf("from cycle %d on: found after %d cycles", begin, late)
		}
	}
}

// noise returns the values of a link without an event.
func noise(r *rand.Rand, link int32, more float64) Hop {
	w := func(at, spread float64) detect.Window {
		v := at * (1 + spread*r.NormFloat64()/8)
		return detect.Window{Count: 40, P50: v + more, P90: 1.5*v + more, P99: 2*v + more}
	}
	return Hop{Link: link, Latency: w(50_000, .5), Queue: detect.Window{Count: 40}, Line: detect.Window{Count: 1, P50: 2_000_000 + 1000*r.NormFloat64()}}
}

// A link whose time in the switch, or on the line, grows is suspected for that, and no other one.
func TestHops(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	in := crossings(t)
	for _, line := range []bool{false, true} {
		s := New(DefaultConfig(), in, nil)
		for k := range 200 {
			var hops []Hop
			for l := range int32(8) {
				h := noise(r, l, 0)
				if l == 5 && k >= 120 && line {
					h.Line.P50 += 5e6
				} else if l == 5 && k >= 120 {
					h = noise(r, l, 3e6)
				}
				hops = append(hops, h)
			}
			got := links(s.Step(&Cycle{Now: int64(k) * 1e9, Hops: hops}))
			switch {
			case k < 120 && len(got) > 0:
				t.Fatalf("cycle %d: %v", k, got)
			case k >= 121 && !slices.Equal(got, []int32{5}):
				t.Fatalf("line %v, cycle %d: %v, want link 5", line, k, got)
			}
		}
	}
}

// Both directions of a link together show a change that is less than what clocks may drift by, and of no drift. It is
// the direction that takes longer which is suspected.
func TestPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	in := crossings(t)
	if err := in.Pair([]int32{1, 0, 3, 2, -1, 6, 5, -1}); err != nil {
		t.Fatal(err)
	}
	s := New(DefaultConfig(), in, nil)
	for k := range 200 {
		var hops []Hop
		for l := range int32(8) {
			h := noise(r, l, 0)
			drift := 400 * float64(k) // ns a cycle
			switch {
			case l == 0:
				h.Line.P50 += drift
			case l == 1:
				h.Line.P50 -= drift
			case l == 5 && k >= 120:
				h.Line.P50 += 40_000
			}
			hops = append(hops, h)
		}
		got := s.Step(&Cycle{Now: int64(k) * 1e9, Hops: hops})
		switch {
		case k < 120 && len(got) > 0:
			t.Fatalf("cycle %d: %+v", k, got)
		case k >= 121 && (!slices.Equal(links(got), []int32{5}) || got[0].Confidence < .9):
			t.Fatalf("cycle %d: %+v, want link 5", k, got)
		}
	}
	for _, wrong := range [][]int32{{1, 0}, {1, 2, 0, -1, -1, -1, -1, -1}, {0, -1, -1, -1, -1, -1, -1, -1}, {8, -1, -1, -1, -1, -1, -1, -1}, {-2, -1, -1, -1, -1, -1, -1, -1}} {
		if in.Pair(wrong) == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

// Transit times alone show which link grew slow.
func TestTransits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	in := crossings(t)
	s := New(DefaultConfig(), in, nil)
	for k := range 200 {
		var list []Round
		for p := range in.probes {
			v := 1e6 + 5000*r.NormFloat64()
			if k >= 120 && slices.Contains(in.probes[p], 2) {
				v += 4e5
			}
			list = append(list, Round{Probe: int32(p), Sent: 20, Transit: v})
		}
		got := s.Step(&Cycle{Now: int64(k) * 1e9, Rounds: list})
		if want := k >= 120; want != slices.Equal(links(got), []int32{2}) || !want && len(got) > 0 {
			t.Fatalf("cycle %d: %+v", k, got)
		}
	}
}

// by names links as its keys do.
type by map[inference.Element][]int32

func (b by) Links(to []int32, f *inference.Finding) []int32 { return append(to, b[f.Element]...) }

// Findings count by their severity, for all links of their element; evidence of others, reports, and what is over do not.
func TestFindings(t *testing.T) {
	link, node, flow := inference.ElementOfLink(1, 2), inference.ElementOfNode(3), inference.Element{Kind: inference.FlowElement}
	port := inference.ElementOfHop(inference.HopKey{Node: 9, EgressIf: 1})
	s := New(DefaultConfig(), crossings(t), by{link: {0, 1}, node: {2, 3, 99, -1}, flow: {4, 5, 6}, port: {7}})
	step := func(all ...inference.Finding) []Suspect { return slices.Clone(s.Step(&Cycle{Findings: all})) }
	of := func(k inference.Kind, v inference.Severity, e inference.Element) inference.Finding {
		return inference.Finding{ID: 7, Kind: k, Severity: v, Element: e, Text: "text"}
	}
	got := step(of(inference.PacketDrops, inference.Critical, node), of(inference.HighQueue, inference.Warning, link))
	if !slices.Equal(links(got), []int32{0, 1, 2, 3}) || got[0].Weight != 2 || got[2].Weight != 4 {
		t.Errorf("%+v", got)
	}
	if want := "finding 7, drops of node 3: text"; got[2].Why != want {
		t.Errorf("why: %q, want %q", got[2].Why, want)
	}
	s = New(DefaultConfig(), crossings(t), s.places)
	caused, over := of(inference.HighQueue, inference.Critical, port), of(inference.HighQueue, inference.Critical, link)
	caused.Cause, over.End = 7, 1
	for range 3 {
		if got := step(caused, over, of(inference.ExporterLoss, inference.Critical, node), of(inference.PathChanged, inference.Info, link), of(inference.BlackHole, inference.Info, flow)); len(got) > 0 {
			t.Errorf("%+v", got)
		}
	}
	if got := step(of(inference.BlackHole, inference.Warning, flow)); len(got) > 0 {
		t.Errorf("one of three links, after a cycle: %+v", got)
	}
	if got := step(of(inference.BlackHole, inference.Warning, flow)); !slices.Equal(links(got), []int32{4, 5, 6}) || got[0].Confidence > .34 {
		t.Errorf("one of three links, after two cycles: %+v", got)
	}
}

// Suspicion is raised after some cycles in a row and cleared after some without; a gap that is shorter does not clear it.
func TestHysteresis(t *testing.T) {
	e := inference.ElementOfLink(1, 2)
	cfg := DefaultConfig()
	cfg.RaiseAfter, cfg.ClearAfter = 3, 4
	s := New(cfg, crossings(t), by{e: {2}})
	said := ""
	for _, c := range "xx.xxx...x....xxx....x" {
		var all []inference.Finding
		if c == 'x' {
			all = append(all, inference.Finding{Kind: inference.HighQueue, Severity: inference.Warning, Element: e})
		}
		if len(s.Step(&Cycle{Findings: all})) > 0 {
			said += "!"
		} else {
			said += "-"
		}
	}
	if want := "-----!!!!!!!!---!!!!--"; said != want {
		t.Errorf("%s, want %s", said, want)
	}
}

// If windows of probes are longer than cycles, the last window's reports stay valid in the cycles between. The suspect
// stays, no detector learns the same values again, and repetition does not turn doubt into certainty.
func TestStands(t *testing.T) {
	in := crossings(t)
	s, plain := New(DefaultConfig(), in, nil), New(DefaultConfig(), in, nil)
	now := int64(0)
	for k := range 200 {
		v := 5000.
		if k >= 150 && k < 180 {
			v = 80_000
		}
		hop := []Hop{{Link: 3, Latency: detect.Window{Count: 20, P50: v, P90: 2 * v, P99: 3 * v}}}
		now += 1e9
		want := links(plain.Step(&Cycle{Now: now, Hops: hop}))
		c := Cycle{Now: now, Hops: hop}
		for range 10 {
			if got := links(s.Step(&c)); k < 180 && !slices.Equal(got, want) || k == 199 && len(got) > 0 {
				t.Fatalf("window %d: suspects %v, want %v", k, got, want)
			}
			c = Cycle{Now: c.Now + 1e8, NoNewWindow: true, NoNewRounds: true}
		}
		if (k > 150 && k < 180) != slices.Equal(want, []int32{3}) && k != 150 && k < 180 {
			t.Fatalf("window %d: suspects %v", k, want)
		}
	}
	// A state that takes over what is known, with other numbers of links, takes over what stands.
	known := New(DefaultConfig(), in, nil)
	for k := range 160 {
		v := 5000.
		if k >= 150 {
			v = 80_000
		}
		now += 1e9
		known.Step(&Cycle{Now: now, Hops: []Hop{{Link: 3, Latency: detect.Window{Count: 20, P50: v, P90: 2 * v, P99: 3 * v}}, {Link: 5, Latency: detect.Window{Count: 20, P50: v, P90: 2 * v, P99: 3 * v}}}})
	}
	next := New(DefaultConfig(), in, nil)
	next.Inherit(known, []int32{-1, 3, -1, -1, -1, -1, 0, 7})
	for k := range 20 {
		now += 1e9
		if got := links(next.Step(&Cycle{Now: now, NoNewWindow: true, NoNewRounds: true})); !slices.Equal(got, []int32{1}) {
			t.Fatalf("cycle %d after another one took over: suspects %v", k, got)
		}
	}
	for range 20 {
		now += 1e9
		next.Step(&Cycle{Now: now, Hops: []Hop{{Link: 1, Latency: detect.Window{Count: 20, P50: 5000, P90: 10_000, P99: 15_000}}}})
	}
	if got := next.Suspects(); len(got) > 0 {
		t.Fatalf("well again, and suspected: %+v", got)
	}
	// Three links that the same probes cross have a third of the confidence each, and wait for a second window.
	in, err := NewIncidence(3, [][]int32{{0, 1, 2}, {2, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	s = New(DefaultConfig(), in, nil)
	lost := []Round{{Probe: 0, Sent: 50, Lost: 50}, {Probe: 1, Sent: 50, Lost: 50}}
	s.Step(&Cycle{Now: now, Rounds: lost})
	for range 5 {
		now += 1e9
		if got := s.Step(&Cycle{Now: now, NoNewWindow: true, NoNewRounds: true}); len(got) > 0 {
			t.Fatalf("suspected for what stands: %+v", got)
		}
	}
	if got := s.Step(&Cycle{Now: now + 1e9, Rounds: lost}); !slices.Equal(links(got), []int32{0, 1, 2}) {
		t.Fatalf("a second window of losses: %+v", got)
	}
	// A link with a floor of its own is not suspected for what is far below that.
	floors := DefaultConfig()
	floors.Floors = []float64{0, 0, 0, 1.2e6}
	s = New(floors, crossings(t), nil)
	for k := range 200 {
		v := 5000.
		if k >= 150 {
			v = 80_000
		}
		w := detect.Window{Count: 20, P50: v, P90: 2 * v, P99: 3 * v}
		got := links(s.Step(&Cycle{Now: now + int64(k)*1e9, NoNewRounds: true, Hops: []Hop{{Link: 3, Latency: w}, {Link: 5, Latency: w}}}))
		if slices.Contains(got, 3) || k > 151 && !slices.Contains(got, 5) {
			t.Fatalf("cycle %d: suspects %v", k, got)
		}
	}
	// Rounds come at other times than reports of hops: either stays valid while the other one is judged.
	s = New(DefaultConfig(), crossings(t), nil)
	for k := range 320 {
		c := Cycle{Now: now + int64(k)*1e9, NoNewWindow: k%2 != 0, NoNewRounds: k%3 != 0, Hops: []Hop{{Link: 3, Latency: detect.Window{Count: 20, P50: 5000, P90: 10_000, P99: 15_000}}}}
		for p := range s.incidence.probes {
			r := Round{Probe: int32(p), Sent: 50}
			if slices.Contains(s.incidence.probes[p], 5) && k >= 252 {
				r.Lost = 25
			}
			c.Rounds = append(c.Rounds, r)
		}
		if k >= 280 {
			c.Hops[0].Latency = detect.Window{Count: 20, P50: 80_000, P90: 160_000, P99: 240_000}
		}
		got := links(s.Step(&c))
		if want := k >= 252; slices.Contains(got, 5) != want {
			t.Fatalf("cycle %d: suspects %v", k, got)
		}
		if want := k >= 280; slices.Contains(got, 3) != want {
			t.Fatalf("cycle %d: suspects %v", k, got)
		}
	}
}
