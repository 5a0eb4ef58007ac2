package events

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// linkWorld is a link between two switches with clocks that differ and run apart.
type linkWorld struct {
	rng    *rand.Rand
	period uint64
	offset int64   // of the peer's clock
	drift  float64 // of it, too
	start  int64
	window int64
	spread float64 // of the times on the link, ns: packets differ in length
	packet float64 // packets of a direction in a window
}

// shows returns what packets of a window show that take so much longer in each direction.
func (x *linkWorld) shows(n int, longer [2]int64) *inference.Window {
	from := x.start + int64(n)*x.window
	w := &inference.Window{Start: from, End: from + x.window}
	key := inference.LinkKey{Node: 17, EgressIf: 3, Peer: 18, PeerIf: 1, Period: x.period}
	for way, k := range [2]inference.LinkKey{key, key.Reverse()} {
		l := inference.LinkStats{LinkKey: k, Count: 1 + uint64(x.rng.ExpFloat64()*x.packet)}
		for i := range l.Count {
			at := from + x.rng.Int64N(x.window)
			apart := x.offset + int64(x.drift*float64(at-x.start))
			if way == 1 {
				apart = -apart
			}
			d := around(20_000+int64(x.rng.Float64()*x.spread)+longer[way]+apart, x.period)
			if i == 0 || d < l.Least {
				l.Least, l.At = d, at
			}
		}
		w.Links = append(w.Links, l)
	}
	slices.SortFunc(w.Links, func(a, b inference.LinkStats) int { return a.Compare(b.LinkKey) })
	return w
}

func linkWorlds(seed uint64) []*linkWorld {
	var all []*linkWorld
	for _, x := range []linkWorld{
		{period: 1 << 32, offset: 3e9, drift: 50e-6, window: 1e10, spread: 12_000, packet: 30},
		{period: 1 << 32, offset: 1<<31 - 5000, drift: -100e-6, window: 1e9, spread: 300_000, packet: 5},
		{period: 1 << 48, offset: 1 << 40, drift: 0, window: 1e10, spread: 1000, packet: 100},
		{offset: -7e17, drift: 100e-6, window: 1e10, spread: 12_000, packet: 2},
		{period: 1 << 32, window: 1e9, packet: 10},
	} {
		seed++
		x.rng, x.start = rand.New(rand.NewPCG(seed, 12)), 1_700_000_000e9
		all = append(all, &x)
	}
	return all
}

// A direction of a link that takes longer is found, published once and named, whatever the clocks show, and ends.
func TestLinkDirection(t *testing.T) {
	for seed := range uint64(4) {
		for i, x := range linkWorlds(seed << 8) {
			for slow := range 2 {
				t.Run(fmt.Sprintf("seed %d, world %d, direction %d", seed, i, slow), func(t *testing.T) {
					d := New(DefaultConfig())
					const quiet, lasts = 400, 30
					var reported []inference.Finding
					for n := range quiet + lasts + 60 {
						var longer [2]int64
						if n >= quiet && n < quiet+lasts {
							longer[slow] = 5e6
						}
						for _, f := range d.Step(x.shows(n, longer)) {
							if n < quiet {
								t.Errorf("window %d: %s", n, f.Text)
							}
							if !f.Resting || f.End != 0 {
								reported = append(reported, f)
							}
						}
					}
					if len(reported) != 2 || reported[1].End == 0 {
						t.Fatalf("reported %d times, want a beginning and an end: %+v", len(reported), reported)
					}
					f, from, to := reported[0], "node 17", "to node 18"
					if slow == 1 {
						from, to = "node 18", "to node 17"
					}
					if f.Kind != inference.HighLatency || f.Element != inference.ElementOfLink(17, 18) || f.Learning ||
						!strings.Contains(f.Text, "packets from "+from+" "+to+" take ") {
						t.Errorf("%v of %v: %s", f.Kind, f.Element, f.Text)
					}
					if late := (f.Start-x.start)/x.window - quiet; late > 6 {
						t.Errorf("found after %d windows", late)
					}
				})
			}
		}
	}
}

// Clocks that differ, run apart and are set now and then make no finding.
func TestQuietLinks(t *testing.T) {
	for seed := range uint64(3) {
		for i, x := range linkWorlds(100 + seed<<8) {
			d := New(DefaultConfig())
			for n := range 20_000 {
				if n%997 == 996 { // set by up to a second, and running otherwise from then on
					x.offset += x.rng.Int64N(2e9) - 1e9
				}
				if n%3001 == 3000 {
					to := (x.rng.Float64() - .5) * 2e-4
					x.offset += int64((x.drift - to) * float64(int64(n)*x.window))
					x.drift = to
				}
				for _, f := range d.Step(x.shows(n, [2]int64{})) {
					t.Errorf("seed %d, world %d, window %d: %s", seed, i, n, f.Text)
				}
			}
			if d.Stats().Links != 1 {
				t.Errorf("%d links are watched, want 1", d.Stats().Links)
			}
		}
	}
}

// Where one direction reports no times, nothing is judged; and what is remembered is the same after it was kept.
func TestLinksOneWay(t *testing.T) {
	x := linkWorlds(7)[0]
	d := New(DefaultConfig())
	for n := range 200 {
		w := x.shows(n, [2]int64{int64(n/100) * 1e9, 0})
		w.Links = w.Links[:1]
		if reported := d.Step(w); len(reported) > 0 || d.Stats().Links != 0 {
			t.Fatalf("window %d: %+v, %+v", n, reported, d.Stats())
		}
	}
	one := New(DefaultConfig())
	for n := range 420 {
		one.Step(x.shows(n, [2]int64{0, int64(n/400) * 5e6}))
	}
	two := New(DefaultConfig())
	if err := two.ReadState(one.AppendState(nil)); err != nil {
		t.Fatal(err)
	}
	if len(two.Open()) != 1 {
		t.Fatalf("%d findings are open, want 1", len(two.Open()))
	}
	for n := 420; n < 520; n++ {
		w := x.shows(n, [2]int64{})
		if a, b := fmt.Sprintf("%+v", one.Step(w)), fmt.Sprintf("%+v", two.Step(w)); a != b {
			t.Fatalf("window %d: %s\nafter the state was read %s", n, a, b)
		}
	}
}
