package window

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// fillSpreads adds the evidence of digests about other paths of some flows.
func fillSpreads(p *Partial, rng *rand.Rand) {
	nodes := func() (out []uint32) {
		for range rng.IntN(5) {
			out = append(out, rng.Uint32()>>rng.IntN(32))
		}
		return out
	}
	for range rng.IntN(12) {
		x := Spread{Flow: flowKey(rng.Uint32N(8)), Last: 1e18 + rng.Int64N(20), Digests: rng.Uint64N(99), Share: float64(rng.IntN(3)) / 2,
			Confidence: float64(rng.IntN(3)) / 2, Unexplained: rng.Float64(), Unsettled: rng.IntN(2) == 0}
		for range rng.IntN(4) {
			x.Others = append(x.Others, inference.FlowPath{Nodes: nodes(), Share: rng.Float64(), Confidence: rng.Float64()})
		}
		for range rng.IntN(3) {
			set := inference.FlowPaths{Share: rng.Float64()}
			for range 1 + rng.IntN(3) {
				set.Paths = append(set.Paths, nodes())
			}
			x.Inseparable = append(x.Inseparable, set)
		}
		p.AddSpread(&x)
	}
}

// Several paths of a flow pass through bytes, slices and merges in any order and grouping. They stay as the owner that
// saw the flow last reported them. The window lists them with no flow that was seen later without.
func TestSpreads(t *testing.T) {
	reported := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 12))
		parts := make([]Partial, 4)
		latest := map[uint32]*Spread{}
		var flows, all Partial
		fillGolden(&flows, rng)
		for i := range parts {
			fillSpreads(&parts[i], rng)
			for k := range parts[i].spreads.items {
				x := &parts[i].spreads.items[k]
				if old := latest[uint32(x.Flow.SrcPort)]; old == nil || compareSpreads(old, x) < 0 {
					latest[uint32(x.Flow.SrcPort)] = x
				}
			}
		}
		all.Merge(&flows)
		for _, i := range rng.Perm(len(parts)) {
			all.Merge(&parts[i])
		}
		var other, pair, byBytes, rest Partial
		pair.Merge(&parts[2])
		pair.Merge(&parts[0])
		other.Merge(&parts[3])
		other.MergeWithin(&flows, wide)
		other.Merge(&pair)
		if err := byBytes.MergeBinary(encode(t, &other), wide, &rest); err != nil {
			t.Fatal(err)
		}
		if err := byBytes.MergeBinary(encode(t, &parts[1]), wide, &rest); err != nil {
			t.Fatal(err)
		}
		if a, b := encode(t, &all), encode(t, &byBytes); !bytes.Equal(a, b) {
			t.Fatalf("seed %d: the order of merging matters", seed)
		}
		q := read(t, encode(t, &all))
		slicer := NewSlicer(seed, 3)
		into := []*Partial{{}, {}, {}}
		q.Split(&slicer, into)
		var joined Partial
		for _, s := range into {
			joined.Merge(s)
		}
		if !bytes.Equal(encode(t, &joined), encode(t, &all)) {
			t.Fatalf("seed %d: the slices are not the whole", seed)
		}
		w := joined.Window(wide)
		for i := range w.Flows {
			f := &w.Flows[i]
			x := latest[uint32(f.Key.SrcPort)]
			if x == nil || x.Last != f.Last {
				x = &Spread{}
			} else {
				reported++
			}
			if f.Share != x.Share || f.Confidence != x.Confidence || f.Unexplained != x.Unexplained || f.Unsettled != x.Unsettled ||
				!reflect.DeepEqual(f.Others, x.Others) || !reflect.DeepEqual(f.Inseparable, x.Inseparable) {
				t.Fatalf("seed %d: %+v, want %+v", seed, f, x)
			}
		}
	}
	if reported < 20 {
		t.Errorf("%d flows with several paths", reported)
	}
}

// Bytes that are not as they are written are refused, and so is more than fits.
func TestSpreadsAreChecked(t *testing.T) {
	one := func() Spread {
		return Spread{Flow: flowKey(1), Last: 5, Share: .5, Others: []inference.FlowPath{{Nodes: []uint32{1, 2}, Share: .25}}, Inseparable: []inference.FlowPaths{{Paths: [][]uint32{{1, 3}}, Share: .25}}}
	}
	var p Partial
	x := one()
	p.AddSpread(&x)
	good := encode(t, &p)
	var q Partial
	if err := q.ReadBinary(good, Limits{}); !errors.Is(err, ErrLimit) {
		t.Errorf("the limit is not held: %v", err)
	}
	at := bytes.LastIndex(good, []byte{0, 0, 0, 0, 0, 0, 0xe0, 0x3f}) // the share of 0.5
	if at < 0 {
		t.Fatal("no share")
	}
	for name, bits := range map[string]uint64{"above 1": math.Float64bits(1.5), "no number": math.Float64bits(math.NaN()), "below 0": math.Float64bits(-.5),
		"minus 0": math.Float64bits(math.Copysign(0, -1)), "infinite": math.Float64bits(math.Inf(1))} {
		b := bytes.Clone(good)
		for i := range 8 {
			b[at+i] = byte(bits >> (8 * i))
		}
		if err := q.ReadBinary(b, wide); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a share that is %s: %v", name, err)
		}
	}
	for n := range good {
		if err := q.ReadBinary(good[:n], wide); err == nil && len(q.spreads.items) > 0 {
			t.Errorf("%d bytes of %d are read", n, len(good))
		}
	}
	x = one()
	for range MaxSpread {
		x.Others = append(x.Others, x.Others[0])
	}
	p.Reset()
	p.AddSpread(&x)
	if err := q.ReadBinary(encode(t, &p), wide); !errors.Is(err, ErrLimit) {
		t.Errorf("%d paths: %v", len(x.Others), err)
	}
	x.Others = x.Others[:MaxSpread]
	p.Reset()
	p.AddSpread(&x)
	if err := q.ReadBinary(encode(t, &p), wide); !errors.Is(err, ErrLimit) {
		t.Errorf("a set beside %d paths: %v", len(x.Others), err)
	}
	x.Trim()
	p.Reset()
	p.AddSpread(&x)
	if err := q.ReadBinary(encode(t, &p), wide); err != nil || len(x.Others) != MaxSpread || len(x.Inseparable) != 0 {
		t.Errorf("trimmed: %v, %d paths and %d sets", err, len(x.Others), len(x.Inseparable))
	}
}

// A reader without the section passes over it, so that old and new members of a fleet work side by side. The bytes
// without it are those of the partial without.
func TestSpreadsAreLast(t *testing.T) {
	const file = "testdata/partial-v3-spreads.bin"
	rng := rand.New(rand.NewPCG(4, 4))
	var p Partial
	fillGolden(&p, rng)
	without := encode(t, &p)
	fillSpreads(&p, rng)
	with := encode(t, &p)
	if len(p.spreads.items) == 0 || !bytes.HasPrefix(with, without) || with[len(without)] != 11 {
		t.Errorf("%d spreads in %d bytes behind %d", len(p.spreads.items), len(with), len(without))
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
