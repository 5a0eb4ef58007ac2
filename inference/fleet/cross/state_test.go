package cross

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// crossed is a Cross that has seen exporters and flows of several collectors.
func crossed(seed uint64) *Crossing {
	rng := rand.New(rand.NewPCG(seed, 51))
	limits := DefaultLimits()
	limits.Exporters, limits.Flows, limits.Runs = 50, 50, 16
	c := New(limits)
	end := int64(1.7e18)
	for range 10 {
		end += 1e9
		c.Begin(end)
		var p window.Partial
		for from := range 3 {
			var q window.Partial
			for range 10 {
				k := inference.ExporterKey{Node: 1 + rng.Uint32N(20)}
				q.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: 5, Sequenced: true, Lost: 1}})
				n := window.Numbers{ExporterKey: k, Width: 22, To: rng.Uint64N(2), First: rng.Uint32N(1 << 22), Anew: rng.IntN(3) == 0, Unknown: rng.IntN(9) == 0}
				for at := uint64(0); !n.Unknown && at < 500; at += 2 + rng.Uint64N(100) {
					n.Runs = append(n.Runs, window.Run{First: at, Last: at, Count: 1})
				}
				q.AddNumbers(&n)
				q.AddArrival(&window.Arrival{Time: end, Flow: flowOf(rng.Uint32N(80)), PathID: rng.Uint64N(3), Path: []inference.HopKey{{Node: 1}, {Node: 2, Other: true}}})
			}
			c.Add(fmt.Sprint(from), &q)
			p.Merge(&q)
		}
		c.Finish(&p)
	}
	return c
}

// TestCrossState: the state is refused wherever it is cut, and read by a Cross that was used before.
func TestCrossState(t *testing.T) {
	c := crossed(1)
	b := c.AppendState(nil)
	other := crossed(2)
	if err := other.ReadState(b); err != nil || !bytes.Equal(other.AppendState(nil), b) {
		t.Fatalf("a state is read as another one: %v", err)
	}
	if x, y := c.Stats(), other.Stats(); x.Exporters != y.Exporters || x.Flows != y.Flows || x.Shared != y.Shared || x.Exporters == 0 || x.Flows == 0 || x.Shared == 0 {
		t.Errorf("%+v became %+v", x, y)
	}
	for n := range b {
		var at *state.Error
		if err := other.ReadState(b[:n]); !errors.As(err, &at) || !errors.Is(err, state.ErrShort) || at.Offset > n {
			t.Fatalf("cut at %d of %d: %v", n, len(b), err)
		}
		if got := other.Stats(); got.Exporters+got.Flows != 0 {
			t.Fatalf("cut at %d: %+v is left", n, got)
		}
	}
	for name, tt := range map[string]struct {
		b    []byte
		want error
	}{
		"another version": {append([]byte{crossVersion + 1}, b[1:]...), state.ErrVersion},
		"a byte too many": {append(bytes.Clone(b), 0), state.ErrRange},
		"nothing":         {nil, state.ErrShort},
	} {
		if err := other.ReadState(tt.b); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	small := New(Limits{Exporters: 5, Flows: 50, Runs: 16})
	if err := small.ReadState(b); !errors.Is(err, state.ErrRange) {
		t.Errorf("more exporters than the limit: %v", err)
	}
}

// TestCrossHostile: states with some bytes changed are refused, or Cross goes on with their content.
func TestCrossHostile(t *testing.T) {
	limits := DefaultLimits()
	limits.Exporters, limits.Flows, limits.Runs = 50, 50, 16
	good, accepted := crossed(3).AppendState(nil), 0
	rng := rand.New(rand.NewPCG(1, 53))
	for range 2000 {
		b := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] = []byte{byte(rng.IntN(256)), 0, 1, 127, 128, 255}[rng.IntN(6)]
		}
		if livesOn(t, limits, b) {
			accepted++
		}
	}
	if accepted == 0 || accepted == 2000 {
		t.Errorf("%d of 2000 are accepted", accepted)
	}
}

// TestCrossExporters: exporters beyond the limit pass as they are reported.
func TestCrossExporters(t *testing.T) {
	limits := DefaultLimits()
	limits.Exporters = 3
	c := New(limits)
	for end := int64(1e9); end < 5e9; end += 1e9 {
		c.Begin(end)
		var p window.Partial
		for from := range 2 {
			var q window.Partial
			for node := range uint32(5) {
				k := inference.ExporterKey{Node: node + 1}
				q.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: 5, Lost: 5, Sequenced: true}})
				q.AddNumbers(&window.Numbers{ExporterKey: k, Width: 32, First: uint32(end/1e9) * 10, Runs: []window.Run{{First: 0, Last: 9, Count: 10}}})
			}
			c.Add(fmt.Sprint(from), &q)
			p.Merge(&q)
		}
		c.Finish(&p)
		corrected := 0
		for _, e := range p.Window(window.Limits{}).Exporters {
			if e.Lost == 0 && e.Duplicated == 10 {
				corrected++
			} else if e.Lost != 10 || e.Duplicated != 0 {
				t.Errorf("%+v", e)
			}
		}
		if got := c.Stats(); corrected != 3 || got.Exporters != 3 || got.refused != 2*uint64(end/1e9) {
			t.Errorf("%d are corrected, %+v", corrected, got)
		}
	}
}

// FuzzCrossState reads anything. An accepted state is written and read again as the same, and goes on.
func FuzzCrossState(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(crossed(seed).AppendState(nil))
	}
	limits := DefaultLimits()
	limits.Exporters, limits.Flows, limits.Runs = 50, 50, 16
	f.Fuzz(func(t *testing.T, b []byte) { livesOn(t, limits, b) })
}

// livesOn reads a state that may be anything, and goes on from it if it is accepted.
func livesOn(t *testing.T, limits Limits, b []byte) (accepted bool) {
	t.Helper()
	c, d := New(limits), New(limits)
	if err := c.ReadState(b); err != nil {
		var at *state.Error
		if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(b) {
			t.Fatalf("%v in %d bytes", err, len(b))
		}
		return false
	}
	first := c.AppendState(nil)
	if err := d.ReadState(first); err != nil || !bytes.Equal(d.AppendState(nil), first) {
		t.Fatalf("a state is read as another one: %v", err)
	}
	c.Begin(c.end + 1e9)
	var p window.Partial
	for k := range c.exporters {
		q := &window.Partial{}
		q.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: 1, Sequenced: true}})
		q.AddNumbers(&window.Numbers{ExporterKey: k, Width: 22, First: 7, Runs: []window.Run{{First: 0, Last: 1 << 20, Count: 9}}})
		c.Add("x", q)
		p.Merge(q)
	}
	c.Finish(&p)
	return true
}

// FuzzCross lets two collectors report anything that a partial can hold.
func FuzzCross(f *testing.F) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 52))
		var p window.Partial
		for range 5 {
			k := inference.ExporterKey{Node: 1 + rng.Uint32N(2)}
			p.AddExporters([]inference.ExporterStats{{ExporterKey: k, Reports: 5, Sequenced: true}})
			p.AddNumbers(&window.Numbers{ExporterKey: k, Width: 22, First: rng.Uint32N(1 << 22), Runs: []window.Run{{First: 0, Last: 7, Count: 8}, {First: 10, Last: 17, Count: 3}}})
			p.AddArrival(&window.Arrival{Flow: flowOf(1), PathID: rng.Uint64N(3)})
		}
		b, err := p.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, b)
	}
	wide := window.Limits{Hops: 100, Flows: 100, Paths: 100, Drops: 100, Faults: 100, Exporters: 100, Numbers: 100, Arrivals: 100}
	limits := DefaultLimits()
	limits.Exporters, limits.Flows, limits.Runs = 4, 4, 8
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var a, b window.Partial
		if a.ReadBinary(first, wide) != nil || b.ReadBinary(second, wide) != nil {
			return
		}
		c := New(limits)
		for i := range int64(3) {
			var p window.Partial
			c.Begin(i * 1e9)
			c.Add("a", &a)
			c.Add("b", &b)
			p.Merge(&a)
			p.Merge(&b)
			c.Finish(&p)
			d := New(limits)
			state := c.AppendState(nil)
			if err := d.ReadState(state); err != nil || !bytes.Equal(d.AppendState(nil), state) {
				t.Fatalf("a state is read as another one: %v", err)
			}
		}
	})
}
