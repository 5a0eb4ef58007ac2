package fleet

import (
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// A document lists the hops that are learning: by name, or as all or none of them.
func TestDocumentLearning(t *testing.T) {
	key := func(i int) inference.HopKey { return inference.HopKey{Node: uint32(i / 7), EgressIf: uint32(i % 7)} }
	for _, x := range []struct {
		hops   int
		learns func(i int) bool
		named  int // of them
	}{
		{10, func(int) bool { return false }, 0},
		{10, func(int) bool { return true }, 10},
		{100, func(i int) bool { return i%3 == 0 }, 34},
		{3 * maxLearningHops, func(int) bool { return true }, 3 * maxLearningHops},
		{3 * maxLearningHops, func(i int) bool { return i > 0 }, maxLearningHops},
	} {
		w := &inference.Window{}
		for i := range x.hops {
			w.Hops = append(w.Hops, inference.HopStats{HopKey: key(i), Learning: x.learns(i)})
		}
		text, err := NewDocument("fleet", &Assembled{}, w, nil).AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := readDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for i := range x.hops {
			if d.Learns(key(i)) {
				named++
				if !x.learns(i) {
					t.Fatalf("hop %d is not learning", i)
				}
			}
		}
		if named != x.named {
			t.Errorf("of %d hops %d are known to be learning, want %d", x.hops, named, x.named)
		}
	}
	var none *Document
	if none.Learns(key(1)) {
		t.Error("no document, and a hop is learning")
	}
	// Other programs may write any number.
	long := &Document{Version: documentVersion, Totals: Totals{Hops: 1 << 20, Learning: 1 << 19}, LearningHops: map[uint32][]uint32{7: make([]uint32, 2*maxLearningHops)}}
	text, err := long.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := readDocument(text); err != nil || d.LearningHops != nil {
		t.Errorf("%d names: %v", len(d.LearningHops), err)
	}
}
