package window

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

func fillNameless(p *Partial, rng *rand.Rand) {
	u := &decode.DefaultUnits
	for range rng.IntN(20) {
		h := decode.Hop{Has: decode.HopLatency | decode.HopQueueOccupancy, Latency: rng.Uint32N(1 << 16), QueueOccupancy: rng.Uint32N(1 << 20)}
		h.Has &= decode.HopField(rng.Uint64())
		var exporter decode.Addr
		if n := rng.IntN(4); n > 0 {
			exporter = decode.Addr{15: byte(n)}
		}
		p.AddNameless(exporter, 1+rng.IntN(3), u, &h)
	}
}

// Hops without a node id are separate by exporter and position, with the quantiles of all their values, and are no hop
// of a node. Those without room are one.
func TestNameless(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 17))
	var p Partial
	values := map[inference.NamelessKey][]uint64{}
	for range 5000 {
		k := inference.NamelessKey{Exporter: decode.Addr{15: byte(rng.IntN(3))}, Position: uint8(1 + rng.IntN(3))}
		v := rng.Uint32N(1000) << (4 * k.Position)
		values[k] = append(values[k], uint64(v))
		p.AddNameless(k.Exporter, int(k.Position), &decode.DefaultUnits, &decode.Hop{Has: decode.HopLatency, Latency: v})
	}
	w := read(t, encode(t, &p)).Window(wide)
	if len(w.Hops) != 0 || len(w.Nameless) != len(values) || !slices.IsSortedFunc(w.Nameless, func(a, b inference.NamelessStats) int { return a.NamelessKey.Compare(b.NamelessKey) }) {
		t.Fatalf("hops %+v, without an id %+v", w.Hops, w.Nameless)
	}
	for _, s := range w.Nameless {
		all := values[s.NamelessKey]
		slices.Sort(all)
		for _, q := range []struct {
			is float64
			v  uint64
		}{{.5, s.Latency.P50}, {.99, s.Latency.P99}} {
			want := float64(all[int(math.Ceil(q.is*float64(len(all))))-1])
			if math.Abs(float64(q.v)-want) > want*quantile.DenseRelativeError {
				t.Errorf("%v: quantile %v is %d, want %v", s.NamelessKey, q.is, q.v, want)
			}
		}
		if s.Count != uint64(len(all)) || s.Queue.Count != 0 {
			t.Errorf("%+v, want %d records", s, len(all))
		}
	}

	var full Partial
	for n := range 3 * maxNameless {
		full.AddNameless(decode.Addr{0: byte(n >> 8), 1: byte(n), 2: 1}, 300, &decode.DefaultUnits, &decode.Hop{Has: decode.HopLatency, Latency: 5})
	}
	all := NewTotals(1)
	all.Add(&full)
	all.Add(&full)
	list := all.Nameless()
	if w := full.Window(wide); len(w.Nameless) != maxNameless+1 || w.Nameless[0].NamelessKey != (inference.NamelessKey{}) || w.Nameless[0].Count != 2*maxNameless || w.Nameless[1].Position != 255 {
		t.Errorf("%d places, the first are %+v", len(w.Nameless), w.Nameless[:2])
	}
	if n := len(list); n > maxNameless+1 || list[0].Position != 0 || list[0].Count+2*uint64(n-1) != 6*maxNameless || list[1].Count != 2 {
		t.Errorf("totals of %d places, the first are %+v", len(list), list[:2])
	}

	const golden = "testdata/partial-v3-nameless.bin"
	var g Partial
	fillNameless(&g, rand.New(rand.NewPCG(5, 17)))
	if *update {
		if err := os.WriteFile(golden, encode(t, &g), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != string(encode(t, &g)) {
		t.Errorf("%s holds other bytes: %v", golden, err)
	}
}
