package window

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

func fillLinks(p *Partial, rng *rand.Rand) {
	for range rng.IntN(20) {
		p.AddLink(&inference.LinkStats{
			LinkKey: inference.LinkKey{Node: rng.Uint32N(3), EgressIf: rng.Uint32N(2), Peer: rng.Uint32N(3), PeerIf: rng.Uint32N(2), Period: rng.Uint64N(2) << 32},
			Count:   1 + rng.Uint64N(9), Least: rng.Int64N(3) - 1<<(rng.UintN(62)), At: 1e18 + rng.Int64N(20),
		})
	}
}

// Times on links come through bytes, slices and merges in any order and grouping: packets are added up, and the least
// difference counts.
func TestLinks(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 13))
		parts := make([]Partial, 4)
		want := map[inference.LinkKey]inference.LinkStats{}
		var all Partial
		fillGolden(&all, rng)
		for i := range parts {
			fillLinks(&parts[i], rng)
			for _, l := range parts[i].links.items {
				old, known := want[l.LinkKey]
				if known && (old.Least < l.Least || old.Least == l.Least && old.At < l.At) {
					l.Least, l.At = old.Least, old.At
				}
				l.Count += old.Count
				want[l.LinkKey] = l
			}
		}
		for _, i := range rng.Perm(len(parts)) {
			all.Merge(&parts[i])
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
		if len(w.Links) != len(want) {
			t.Fatalf("seed %d: %d links, want %d", seed, len(w.Links), len(want))
		}
		for i, l := range w.Links {
			if l != want[l.LinkKey] || i > 0 && w.Links[i-1].Compare(l.LinkKey) >= 0 {
				t.Fatalf("seed %d: %+v, want %+v", seed, l, want[l.LinkKey])
			}
		}
		whole.Reset()
		if w := whole.Window(wide); len(w.Links) != 0 {
			t.Fatalf("seed %d: %+v after it was emptied", seed, w.Links)
		}
	}
}

// Bytes that are not as they are written are refused, and so is more than fits.
func TestLinksAreChecked(t *testing.T) {
	var p, q Partial
	a, b := inference.LinkStats{LinkKey: inference.LinkKey{Node: 5, Peer: 6}, Count: 77, Least: -4, At: 9}, inference.LinkStats{LinkKey: inference.LinkKey{Node: 6, Peer: 5}, Count: 78, Least: 4, At: 9}
	p.AddLink(&a)
	p.AddLink(&b)
	good := encode(t, &p)
	if err := q.ReadBinary(good, Limits{Hops: 1}); !errors.Is(err, ErrLimit) {
		t.Errorf("the limit is not held: %v", err)
	}
	if err := q.ReadBinary(good, Limits{Hops: 2}); err != nil || !reflect.DeepEqual(q.Window(wide).Links, []inference.LinkStats{a, b}) {
		t.Errorf("%v: %+v", err, q.Window(wide).Links)
	}
	for n := range good {
		if err := q.ReadBinary(good[:n], wide); err == nil && len(q.links.items) > 0 {
			t.Errorf("%d bytes of %d are read", n, len(good))
		}
	}
	for name, change := range map[string][2]byte{"no packets": {77, 0}, "not in order": {5, 7}} {
		bad := bytes.Clone(good)
		bad[bytes.IndexByte(bad, change[0])] = change[1]
		if err := q.ReadBinary(bad, wide); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A reader without the section passes over it, so that old and new members of a fleet work side by side. The bytes
// without it are those of the partial without.
func TestLinksAreLast(t *testing.T) {
	const file = "testdata/partial-v3-links.bin"
	rng := rand.New(rand.NewPCG(4, 5))
	var p Partial
	fillGolden(&p, rng)
	fillSpreads(&p, rng)
	without := encode(t, &p)
	fillLinks(&p, rng)
	with := encode(t, &p)
	if len(p.links.items) == 0 || !bytes.HasPrefix(with, without) || with[len(without)] != 12 {
		t.Errorf("%d links in %d bytes behind %d", len(p.links.items), len(with), len(without))
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
