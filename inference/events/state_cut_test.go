package events

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestStateAtEveryWindow stops a detector before every window of a network in which everything goes wrong. Another one
// goes on from its state for some windows. It finds the same, with the same ids, times and texts, as the one that never
// stopped. So does one that restarts from its own state in every window, since all of a detector's memory is in its
// state.
func TestStateAtEveryWindow(t *testing.T) {
	const windows, beyond = 180, 12
	stride := 6 // other cuts for each network
	if testkit.Night() {
		stride = 1
	}
	reported := map[inference.Kind]int{}
	for i, cfg := range worldConfigs() {
		for seed := range uint64(2) {
			w := newWorld(20 + seed)
			inputs := make([]*inference.Window, windows+beyond)
			for k := range inputs {
				inputs[k] = w.next()
			}
			a, restarted := New(cfg), New(cfg)
			states, want, open := make([][]byte, len(inputs)), make([]string, len(inputs)), make([][]inference.Finding, len(inputs))
			for k, in := range inputs {
				states[k] = a.AppendState(nil)
				fresh := New(cfg)
				if err := fresh.ReadState(restarted.AppendState(nil)); err != nil {
					t.Fatal(err)
				}
				restarted = fresh
				findings := a.Step(in)
				for _, f := range findings {
					reported[f.Kind]++
				}
				want[k], open[k] = fmt.Sprint(findings), a.Open()
				if got := fmt.Sprint(restarted.Step(in)); got != want[k] {
					t.Fatalf("settings %d seed %d, restarted in every window, window %d:\n%s, want\n%s", i, seed, k, got, want[k])
				}
			}
			for cut := (i + int(seed)) % stride; cut < windows; cut += stride {
				b := New(cfg)
				if err := b.ReadState(states[cut]); err != nil {
					t.Fatal(err)
				}
				for k := cut; k < cut+beyond; k++ {
					if got := fmt.Sprint(b.Step(inputs[k])); got != want[k] {
						t.Fatalf("settings %d seed %d, cut at window %d, window %d:\n%s, want\n%s", i, seed, cut, k, got, want[k])
					}
					if !reflect.DeepEqual(b.Open(), open[k]) {
						t.Fatalf("settings %d seed %d, cut at window %d, window %d: other findings are open", i, seed, cut, k)
					}
				}
				if !bytes.Equal(b.AppendState(nil), states[cut+beyond]) {
					t.Fatalf("settings %d seed %d, cut at window %d: another state after %d windows", i, seed, cut, beyond)
				}
			}
		}
	}
	for _, k := range []inference.Kind{inference.HighLatency, inference.HighQueue, inference.PathChanged, inference.PacketDrops,
		inference.StrangeDigests, inference.RoutingLoop, inference.ExporterLoss, inference.ExporterSilence} {
		if reported[k] < 4 {
			t.Errorf("%v was reported %d times, too seldom to prove anything", k, reported[k])
		}
	}
}

// The state of a network of 640 hops and 100 exporters, all with histories, stays below two megabytes. So it can be
// saved with each window.
func TestStateSize(t *testing.T) {
	cfg := DefaultConfig()
	d, rng := New(cfg), rand.New(rand.NewPCG(1, 2))
	for n := range uint64(uint(cfg.Warmup) + 5) {
		w := &inference.Window{Start: int64(n) * 1e10, End: int64(n+1) * 1e10}
		for i := range uint32(640) {
			s := inference.Summary{Count: 1000, P99: 1000 + rng.Uint64N(1000)}
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: i / 16, EgressIf: i % 16}, Count: 1000, Latency: s, Queue: s,
				Utilization: float64(rng.Uint64N(100)) / 100, HasUtilization: i%4 == 0})
		}
		for i := range uint32(100) {
			w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: i}, Reports: 1000, Lost: int64(n % 2), Sequenced: true})
		}
		d.Step(w)
	}
	state := d.AppendState(nil)
	t.Logf("%d bytes", len(state))
	if len(state) > 3<<20 {
		t.Errorf("the state has %d bytes", len(state))
	}
}
