package suspicion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestNamed: links 6 and 7 are crossed by the same probes. Losses of these are evidence against both, unless an open
// finding names one of them as the place of losses. Then they are evidence against that one, until the probes are well
// again, although the finding ends before.
func TestNamed(t *testing.T) {
	place := inference.ElementOfLink(1, 2)
	finding := func(k inference.Kind) inference.Finding {
		return inference.Finding{ID: 1, Kind: k, Severity: inference.Warning, Element: place, Value: 10}
	}
	for name, tt := range map[string]struct {
		open   []inference.Finding
		during []int32 // suspected while it is open
		after  []int32 // and when it has ended
	}{
		"no finding":      {nil, []int32{6, 7}, []int32{6, 7}},
		"path change":     {[]inference.Finding{finding(inference.PathChanged)}, []int32{7}, []int32{7}},
		"two flows moved": {[]inference.Finding{{ID: 1, Kind: inference.PathChanged, Severity: inference.Info, Element: place, Value: 2}}, []int32{6, 7}, []int32{6, 7}},
		"loss":            {[]inference.Finding{finding(inference.PacketLoss)}, []int32{7}, []int32{7}},
		"latency":         {[]inference.Finding{finding(inference.HighLatency)}, []int32{6, 7}, []int32{6, 7}},
		"drops of a node": {[]inference.Finding{{ID: 1, Kind: inference.PacketDrops, Severity: inference.Warning, Element: inference.ElementOfNode(2)}}, []int32{6, 7}, []int32{6, 7}},
		"one that rests":  {[]inference.Finding{{ID: 1, Kind: inference.PacketLoss, Severity: inference.Warning, Element: place, Resting: true}}, []int32{6, 7}, []int32{6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			in, r := crossings(t), rand.New(rand.NewPCG(3, 3))
			s := New(DefaultConfig(), in, by{place: {7}, inference.ElementOfNode(2): {7}})
			now := int64(0)
			cycle := func(open []inference.Finding, lost ...int32) []int32 {
				now += 1e9
				return links(s.Step(&Cycle{Now: now, Findings: open, Rounds: lossy(in, 20, lost, 1, r)}))
			}
			for range 20 {
				cycle(nil)
			}
			var got []int32
			for range 20 {
				got = cycle(tt.open, 6)
			}
			if !slices.Equal(got, tt.during) {
				t.Errorf("while it is open, %v are suspected, want %v", got, tt.during)
			}
			for range 20 {
				got = cycle(nil, 6)
			}
			if !slices.Equal(got, tt.after) {
				t.Errorf("when it has ended, %v are suspected, want %v", got, tt.after)
			}
			for range 20 {
				got = cycle(nil)
			}
			if len(got) > 0 {
				t.Errorf("without losses, %v are suspected", got)
			}
			for range 3 { // a new fault is not that of before
				got = cycle(nil, 6)
			}
			if !slices.Equal(got, []int32{6, 7}) {
				t.Errorf("of a new fault, %v are suspected, want both", got)
			}
		})
	}
}

// TestNamedLatency: the same for the time that probes are under way, which a finding of latency explains, of a node as
// well.
func TestNamedLatency(t *testing.T) {
	place := inference.ElementOfNode(2)
	for name, tt := range map[string]struct {
		kind inference.Kind
		want []int32
	}{
		"latency":     {inference.HighLatency, []int32{7}},
		"queue":       {inference.HighQueue, []int32{7}},
		"utilisation": {inference.HighUtilization, []int32{6, 7}},
		"path change": {inference.PathChanged, []int32{6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			in := crossings(t)
			s := New(DefaultConfig(), in, by{place: {7}})
			r := rand.New(rand.NewPCG(5, 5))
			cycle := func(open []inference.Finding, slow float64) []int32 {
				c := &Cycle{Findings: open}
				for p := range in.probes {
					round := Round{Probe: int32(p), Sent: 20, Transit: 1e6 + 1e3*r.NormFloat64()}
					if slices.Contains(in.probes[p], 6) {
						round.Transit += slow
					}
					c.Rounds = append(c.Rounds, round)
				}
				return links(s.Step(c))
			}
			for range 200 {
				cycle(nil, 0)
			}
			var got []int32
			for range 5 {
				got = cycle([]inference.Finding{{ID: 1, Kind: tt.kind, Severity: inference.Info, Element: place, Value: 1}}, 1e6)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v are suspected, want %v", got, tt.want)
			}
		})
	}
}

// TestCauseOfOthers: findings that are not about packets, such as a flow that is faster than before, do not make their
// cause evidence.
func TestCauseOfOthers(t *testing.T) {
	at := inference.ElementOfHop(inference.HopKey{Node: 3, EgressIf: 1})
	s := New(DefaultConfig(), crossings(t), by{at: {3}})
	cause := inference.Finding{ID: 2, Evidence: 2, Kind: inference.HighLatency, Severity: inference.Critical, Element: at}
	for _, k := range inference.Kinds() {
		got := false
		for range 3 {
			got = len(s.Step(&Cycle{NoNewWindow: true, NoNewRounds: true, Findings: []inference.Finding{{ID: 1, Cause: 2, Kind: k, Element: at}, cause}})) > 0
		}
		if got != ofPackets(k) {
			t.Errorf("a cause of %v alone: suspected is %v", k, got)
		}
		for range 10 {
			s.Step(&Cycle{NoNewWindow: true, NoNewRounds: true})
		}
	}
}
