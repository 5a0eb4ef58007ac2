package window

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// probeFlow is the flow of probes between two of a few agents.
func probeFlow(from, to int) *decode.FlowKey {
	return &decode.FlowKey{
		Src: decode.AddrFrom4([]byte{192, 0, 2, byte(from)}), Dst: decode.AddrFrom4([]byte{192, 0, 2, byte(to)}), SrcPort: 40000, DstPort: 862, Proto: 17, IPVersion: 4,
	}
}

func fillProbes(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		n := decode.ProbeCounts{
			Path: rng.Uint32N(3), Epoch: rng.Uint32N(2), Sent: rng.Uint32N(100), Received: rng.Uint32N(100), Missed: rng.Uint32N(9), Late: rng.Uint32N(9), Twice: rng.Uint32N(3),
			Corrupt: rng.Uint32N(3), Reordered: rng.Uint32N(3), Forward: rng.Int32N(9) - 4, Back: rng.Int32N(9) - 4,
		}
		for code := range uint16(rng.IntN(5)) {
			n.Delays = append(n.Delays, decode.DelayCount{Code: 100 * code, Count: uint16(rng.IntN(9))})
		}
		p.AddProbes(rng.Uint32N(3), probeFlow(1+rng.IntN(3), 9), &n)
	}
}

// TestProbes holds that counts of a path add up, and that its delays are within a part in 10 of the exact ones. Paths
// without room are one.
func TestProbes(t *testing.T) {
	var p Partial
	p.AddProbes(7, probeFlow(1, 2), &decode.ProbeCounts{Path: 3, Epoch: 1, Sent: 10, Received: 6, Missed: 4, Forward: 3, Back: 1})
	late := decode.ProbeCounts{Path: 3, Epoch: 1, Sent: 10, Received: 11, Late: 1, Forward: -1, Corrupt: 2, Twice: 3, Reordered: 4}
	for ns := uint64(1000); ns <= 10_000; ns += 1000 {
		late.Delays = append(late.Delays, decode.DelayCount{Code: decode.DelayCode(ns), Count: 10})
	}
	p.AddProbes(7, probeFlow(1, 2), &late)
	p.AddProbes(7, probeFlow(1, 2), &decode.ProbeCounts{Path: 3, Epoch: 2, Sent: 1})
	w := p.Window(wide)
	if len(w.Probes) != 2 {
		t.Fatalf("%+v", w.Probes)
	}
	got := w.Probes[0]
	if d := got.Delay; d.Count != 100 || d.P50 < 5000 || d.P50 > 5500 || d.P90 < 9000 || d.P90 > 9900 || d.Max < 10_000 || d.Max > 11_000 {
		t.Errorf("delay %+v", d)
	}
	got.Delay = inference.Summary{}
	want := inference.ProbeStats{
		ProbeKey: inference.ProbeKey{From: probeFlow(1, 2).Src, To: probeFlow(1, 2).Dst, Path: 3, Epoch: 1}, Node: 7, Flow: *probeFlow(1, 2),
		Sent: 20, Received: 17, Missed: 4, Late: 1, Twice: 3, Corrupt: 2, Reordered: 4, Forward: 2, Back: 1,
	}
	if !reflect.DeepEqual(got, want) || got.Lost() != 3 || got.InTime() != 16 {
		t.Errorf("%+v, want\n%+v", got, want)
	}

	var full Partial
	for n := range uint32(3 * maxProbes) {
		full.AddProbes(7, probeFlow(1, 2), &decode.ProbeCounts{Path: n, Sent: 2})
	}
	if w := full.Window(wide); len(w.Probes) != maxProbes+1 || !w.Probes[0].Other() || w.Probes[0].Sent != 2*2*maxProbes || w.Probes[1].Sent != 2 {
		t.Errorf("%d paths, and %+v for those without room", len(w.Probes), w.Probes[0])
	}
	a := NewAdmission(AdmissionLimits{Hops: 5, Flows: 1, Exporters: 1})
	a.Fold(&full, 1)
	sum := uint64(0)
	w = full.Window(wide)
	for _, s := range w.Probes {
		sum += s.Sent
	}
	if len(w.Probes) != 6 || sum != 6*maxProbes {
		t.Errorf("%d paths have series, and %d probes of %d are there", len(w.Probes), sum, 6*maxProbes)
	}
}

// TestProbesGolden reads what was written when the section was new.
func TestProbesGolden(t *testing.T) {
	const golden = "testdata/partial-v3-probes.bin"
	var p, q Partial
	for p.probes.items == nil {
		fillProbes(&p, rand.New(rand.NewPCG(1, 24)))
	}
	if *update {
		if err := os.WriteFile(golden, encode(t, &p), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err == nil {
		err = q.ReadBinary(b, wide)
	}
	if err != nil || !reflect.DeepEqual(p.Window(wide), q.Window(wide)) {
		t.Errorf("%v: %+v, want\n%+v", err, q.Window(wide).Probes, p.Window(wide).Probes)
	}
}
