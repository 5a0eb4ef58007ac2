package window

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

func fillStrays(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		p.AddStray(&inference.Stray{
			StrayKey: inference.StrayKey{Rule: []string{"a", "web", "x y"}[rng.IntN(3)], Reason: inference.StrayReason(rng.IntN(int(inference.NumStrayReasons))), Node: rng.Uint32N(3)},
			Flows:    1 + rng.Uint64N(9), Flow: decode.FlowKey{SrcPort: uint16(rng.Uint32N(5))}, Path: []inference.HopKey{{Node: rng.Uint32N(4)}, {Node: 9, EgressIf: 2}}[:rng.IntN(3)],
		})
	}
}

// Broken rules of flows pass through bytes, slices and merges in any order and grouping. Flows are added up, and the
// least key is the example.
func TestStrays(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 14))
		parts := make([]Partial, 4)
		want := map[inference.StrayKey]inference.Stray{}
		var all, within Partial
		fillGolden(&all, rng)
		within.Merge(&all)
		for i := range parts {
			fillStrays(&parts[i], rng)
			for _, s := range parts[i].strays.items {
				if old, known := want[s.StrayKey]; known {
					s.Flows += old.Flows
					if old.Flow.Compare(&s.Flow) < 0 {
						s.Flow = old.Flow
					}
				}
				want[s.StrayKey] = s
			}
		}
		for _, i := range rng.Perm(len(parts)) {
			all.Merge(&parts[i])
			within.MergeWithin(&parts[i], wide)
		}
		var other, read, whole Partial
		if err := read.ReadBinary(encode(t, &all), wide); err != nil {
			t.Fatal(err)
		}
		slicer := NewSlicer(seed, 3)
		into := []*Partial{{}, {}, {}}
		read.Split(&slicer, into)
		for _, i := range rng.Perm(len(into)) {
			whole.Merge(into[i])
		}
		for i := range into {
			other.Merge(into[i])
		}
		if a, b := encode(t, &all), encode(t, &whole); !bytes.Equal(a, b) || !bytes.Equal(a, encode(t, &other)) {
			t.Fatalf("seed %d: %d bytes are %d after they were split", seed, len(a), len(b))
		}
		w := whole.Window(wide)
		if len(w.Strays) != len(want) || !reflect.DeepEqual(w.Strays, within.Window(wide).Strays) {
			t.Fatalf("seed %d: %d strays, want %d", seed, len(w.Strays), len(want))
		}
		for i, s := range w.Strays {
			if x := want[s.StrayKey]; s.Flows != x.Flows || s.Flow != x.Flow || i > 0 && w.Strays[i-1].Compare(s.StrayKey) >= 0 {
				t.Fatalf("seed %d: %+v, want %+v", seed, s, x)
			}
		}
		whole.Reset()
		if w := whole.Window(wide); len(w.Strays) != 0 {
			t.Fatalf("seed %d: %+v after it was emptied", seed, w.Strays)
		}
	}
}

// Bytes that are not as they are written are refused, and so is more than fits.
func TestStraysAreChecked(t *testing.T) {
	var p, q Partial
	a, b := inference.Stray{StrayKey: inference.StrayKey{Rule: "q", Node: 5}, Flows: 77, Path: []inference.HopKey{{Node: 3}}}, inference.Stray{StrayKey: inference.StrayKey{Rule: "q", Node: 6}, Flows: 78, Path: []inference.HopKey{{Node: 4}}}
	p.AddStray(&a)
	p.AddStray(&b)
	good := encode(t, &p)
	if err := q.ReadBinary(good, Limits{Paths: 1}); !errors.Is(err, ErrLimit) {
		t.Errorf("the limit is not held: %v", err)
	}
	if err := q.ReadBinary(good, Limits{Paths: 2}); err != nil || !reflect.DeepEqual(q.Window(wide).Strays, []inference.Stray{a, b}) {
		t.Errorf("%v: %+v", err, q.Window(wide).Strays)
	}
	for n := range good {
		if err := q.ReadBinary(good[:n], wide); err == nil && len(q.strays.items) > 0 {
			t.Errorf("%d bytes of %d are read", n, len(good))
		}
	}
	for name, change := range map[string][2]byte{"no flows": {77, 0}, "not in order": {5, 7}} {
		bad := bytes.Clone(good)
		bad[bytes.IndexByte(bad, change[0])] = change[1]
		if err := q.ReadBinary(bad, wide); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A reader without the section passes over it, so that old and new members of a fleet work side by side. The bytes
// without it are those of the partial without.
func TestStraysAreLast(t *testing.T) {
	const file = "testdata/partial-v3-strays.bin"
	rng := rand.New(rand.NewPCG(6, 7))
	var p Partial
	fillGolden(&p, rng)
	fillLinks(&p, rng)
	without := encode(t, &p)
	fillStrays(&p, rng)
	with := encode(t, &p)
	if len(p.strays.items) == 0 || !bytes.HasPrefix(with, without) || with[len(without)] != 13 {
		t.Errorf("%d strays in %d bytes behind %d", len(p.strays.items), len(with), len(without))
	}
	if *update {
		if err := os.WriteFile(file, with, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, with) {
		t.Errorf("%s: %v, %d bytes, want %d", file, err, len(got), len(with))
	}
}

// Flows whose keys fall, each of which becomes the example, do not make a window's memory grow with their number.
func TestStraysOfFallingKeys(t *testing.T) {
	var p Partial
	p.Bound(Limits{Paths: 8})
	path := make([]inference.HopKey, 9)
	const flows = 10_000
	for i := range flows {
		path[0].Node = uint32(flows - i)
		p.AddStray(&inference.Stray{StrayKey: inference.StrayKey{Rule: "r"}, Flows: 1, Flow: flowKey(uint32(flows - i)), Path: path[:1+i%len(path)]})
	}
	if x := p.strays.items[0]; x.Flows != flows || x.Path[0].Node != 1 || len(x.Path) != 1+(flows-1)%len(path) {
		t.Errorf("%+v", x)
	}
	if most := len(path) * (len(path) + 1) / 2; len(p.strays.memory.hops) > most {
		t.Errorf("%d hops are kept, want at most %d", len(p.strays.memory.hops), most)
	}
}
