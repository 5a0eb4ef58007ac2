package window

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// fillFewSights adds what nodes saw of flows, each of them at no more places than are kept.
func fillFewSights(p *Partial, rng *rand.Rand) { fillSightsOf(p, rng, inference.MostSights/4) }

func fillSights(p *Partial, rng *rand.Rand) { fillSightsOf(p, rng, 3) }

// fillSightsOf adds what nodes saw of flows, at four places of each.
func fillSightsOf(p *Partial, rng *rand.Rand, nodes uint32) {
	for range rng.IntN(20) {
		r := decode.Report{Flow: flowKey(rng.Uint32N(8)), NodeID: rng.Uint32N(nodes), Weight: rng.Uint32N(1000)}
		t := r.AddTraffic()
		t.Ingress, t.Egress, t.Octets = rng.Uint32N(2), rng.Uint32N(2), rng.Uint64N(1<<40)
		if rng.IntN(2) == 0 {
			t.Start = 1e18 + rng.Int64N(1e9)
			t.End = t.Start + rng.Int64N(1e9)
		}
		t.Delay = decode.PathDelay{Has: decode.DelayField(rng.IntN(16)), Mean: 5 + rng.Uint64N(9), Min: 1 + rng.Uint64N(4), Max: 20, Sum: rng.Uint64N(1e6), Packets: rng.Uint64N(9)}
		x := FlowSights{Flow: r.Flow}
		s := inference.SightOf(&r)
		x.Add(&s)
		p.AddSights(&x)
	}
}

// TestMostSights holds that of more places the first ones are kept, whatever the order in which they come.
func TestMostSights(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		x := FlowSights{Flow: flowKey(1)}
		for _, node := range rng.Perm(3 * inference.MostSights) {
			x.Add(&inference.FlowSight{Node: uint32(node), Records: 1})
		}
		for i := range x.Sight {
			if x.Count != inference.MostSights || x.Sight[i].Node != uint32(i) {
				t.Fatalf("%d places are kept: %+v", x.Count, x.Sight)
			}
		}
	}
}

// Sights of a flow add up by place. They are listed with the flow where that is listed, the place with most packets
// first. The bounds of a delay are absent where no record has any.
func TestSights(t *testing.T) {
	report := func(node, weight uint32, octets uint64, d decode.PathDelay) inference.FlowSight {
		r := decode.Report{Flow: flowKey(1), NodeID: node, Weight: weight}
		*r.AddTraffic() = decode.Traffic{Ingress: 3, Egress: 4, Octets: octets, Start: 1e18, End: 1e18 + 5, Delay: d}
		return inference.SightOf(&r)
	}
	const all = decode.DelayMean | decode.DelayMin | decode.DelayMax | decode.DelaySum
	var p Partial
	for _, s := range []inference.FlowSight{
		report(7, 10, 1000, decode.PathDelay{}),
		report(8, 100, 0, decode.PathDelay{Has: all, Mean: 50, Min: 20, Max: 90, Sum: 500, Packets: 10}),
		report(8, 100, 9000, decode.PathDelay{Has: decode.DelayMean, Mean: 100, Packets: 40}),
	} {
		x := FlowSights{Flow: flowKey(1)}
		x.Add(&s)
		p.AddSights(&x)
	}
	p.AddFlow(&FlowPart{Key: flowKey(1), Packets: 210, Last: 1e18})
	w := read(t, encode(t, &p)).Window(wide)
	if len(w.Flows) != 1 || len(w.Flows[0].Sights) != 2 {
		t.Fatalf("%+v", w.Flows)
	}
	s := w.Flows[0].Sights
	want := inference.FlowSight{Node: 8, Ingress: 3, Egress: 4, Records: 2, Packets: 200, Octets: 9000, First: 1e18, Last: 1e18 + 5, Delayed: 50, DelaySum: 4500, DelayMin: 20, DelayMax: 100}
	if !reflect.DeepEqual(s[0], want) || s[0].DelayMean() != 90 || !s[0].HasDelayBounds() {
		t.Errorf("%+v, want %+v", s[0], want)
	}
	if s[1].Node != 7 || s[1].Octets != 1000 || s[1].HasDelayBounds() || s[1].Delayed != 0 {
		t.Errorf("%+v", s[1])
	}
	const golden = "testdata/partial-v3-sights.bin"
	var g Partial
	fillSights(&g, rand.New(rand.NewPCG(5, 16)))
	if *update {
		if err := os.WriteFile(golden, encode(t, &g), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != string(encode(t, &g)) {
		t.Errorf("%s holds other bytes: %v", golden, err)
	}
}
