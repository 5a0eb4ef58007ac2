package events

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestAccept has hops that get slow, hops that no packets pass any more, and a flow that gets slow. An accepted finding
// ends with the next window and does not come back. One that was not accepted, or began after that, stays open. A state
// that was saved meanwhile goes on likewise.
func TestAccept(t *testing.T) {
	d := New(DefaultConfig())
	rng := rand.New(rand.NewPCG(1, 2))
	n := 0
	step := func(slow map[uint32]float64, silent uint32) (found []inference.Finding) {
		n++
		w := &inference.Window{Start: int64(n-1) * 1e10, End: int64(n) * 1e10}
		for node := uint32(1); node <= 4; node++ {
			if node == silent {
				continue
			}
			f := slow[node]
			if f == 0 {
				f = 1
			}
			base := f * (20_000 + 400*rng.NormFloat64())
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: node, EgressIf: 1}, Count: 1000,
				Latency: inference.Summary{Count: 1000, P50: uint64(base), P90: uint64(1.5 * base), P99: uint64(2 * base), Min: uint64(base / 2)}})
		}
		return append(found, d.Step(w)...)
	}
	run := func(windows int, slow map[uint32]float64, silent uint32) (begun []string) {
		for range windows {
			for _, f := range step(slow, silent) {
				if f.End == 0 && f.Evidence == 0 && f.Start == f.Updated {
					begun = append(begun, f.Kind.String()+" "+f.Element.String())
				}
			}
		}
		return begun
	}
	if begun := run(400, nil, 0); len(begun) > 0 {
		t.Fatalf("in quiet begin %q", begun)
	}
	slow := map[uint32]float64{1: 4, 2: 4}
	run(30, slow, 3)
	open := func() string {
		var all []string
		for _, f := range d.Open() {
			if f.Evidence == 0 {
				all = append(all, f.Kind.String()+" "+f.Element.String())
			}
		}
		return strings.Join(all, ", ")
	}
	if got, want := open(), "high-latency interface 1:1, high-latency interface 2:1, hop-silence interface 3:1"; got != want {
		t.Fatalf("open are %s, and not %s", got, want)
	}
	now := int64(n) * 1e10
	all := []Acceptance{
		{Kind: inference.HighLatency, Element: inference.ElementOfHop(inference.HopKey{Node: 1, EgressIf: 1}), By: "ann", At: now},
		{Kind: inference.HighLatency, Element: inference.ElementOfHop(inference.HopKey{Node: 2, EgressIf: 1}), At: 1}, // before it began
		{Kind: inference.HopSilence, Element: inference.ElementOfHop(inference.HopKey{Node: 3, EgressIf: 1}), At: now},
	}
	d.Accept(all)
	texts := ""
	for _, f := range step(slow, 3) {
		if f.End != 0 {
			texts += f.Text + "\n"
		}
	}
	if want := "high-latency of interface 1:1 was accepted as normal by ann\n"; !strings.Contains(texts, want) {
		t.Errorf("the end is reported as %q, without %q", texts, want)
	}
	if got, want := open(), "high-latency interface 2:1"; got != want {
		t.Errorf("open are %s, and not %s", got, want)
	}
	b := d.AppendState(nil)
	d = New(DefaultConfig())
	if err := d.ReadState(b); err != nil {
		t.Fatal(err)
	}
	d.Accept(all)
	if begun := run(200, slow, 3); len(begun) > 0 {
		t.Errorf("what was accepted begins again: %q", begun)
	}
	slow[1] = 1
	if begun := run(100, slow, 3); len(begun) > 0 {
		t.Errorf("the way back begins %q", begun)
	}
	slow[1] = 40
	if begun := run(10, slow, 3); len(begun) != 1 {
		t.Errorf("ten times as far as what was accepted begins %q", begun)
	}
}
