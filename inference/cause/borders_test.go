package cause

import (
	"math"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

func TestBetween(t *testing.T) {
	for _, c := range [][3]uint64{{3, 0, 2}, {4, 0, 1}, {5, 0, 0}, {6, 0, 0}, {8, 0, 0}, {9, 0, 1}, {11, 0, 3}, {3, 2, 2}, {6, 5, 0}, {11, 2, 1}, {11, 3, 0}, {11, 9, 0}} {
		if far := (&Alone{Born: c[0], Late: c[1]}).between(5, 8); far != c[2] {
			t.Errorf("window %d, or up to %d before, is %d from those from 5 to 8, want %d", c[0], c[1], far, c[2])
		}
	}
}

// TestLater has a queue be the cause of findings that begin some windows after it, or before it.
func TestLater(t *testing.T) {
	behind := misfit(behindLater.Right, behindLater.Of)
	if apart(soon) <= 0 || apart(longest) <= behind {
		t.Fatalf("nothing is less likely after %d windows, or what is behind it is after %d", soon, longest)
	}
	for _, c := range []struct {
		name string
		kind inference.Kind
		born uint64
		more float64
		ok   bool
	}{
		{"something else at once", inference.PathChanged, 200, 0, true},
		{"something else soon after", inference.PathChanged, 200 + soon, apart(soon), true},
		{"something else no longer soon", inference.PathChanged, 200 + soon + 1, 0, false},
		{"something else no longer soon before", inference.PathChanged, 100 - soon - 1, 0, false},
		{"something like it then", inference.HighLatency, 200 + soon + 1, apart(soon + 1), true},
		{"less traffic then", inference.LowUtilization, 200 + soon + 1, apart(soon + 1), true},
		{"something like it at the longest", inference.HighLatency, 200 + longest, apart(longest), true},
		{"something like it later", inference.HighLatency, 200 + longest + 1, 0, false},
	} {
		cause := &Cause{Finding: &inference.Finding{ID: 7}, Born: 100, Last: 200, Kinds: []Tally{{Kind: inference.HighQueue}}}
		a := &Alone{Finding: inference.Finding{Kind: c.kind}, Born: c.born, behind: []uint64{6}}
		if more, ok := cause.later(a); ok != c.ok || ok && more != c.more {
			t.Errorf("%s: %v %v, want %v %v", c.name, more, ok, c.more, c.ok)
		}
		a.behind = append(a.behind, 7) // which is no less likely than what follows it there
		if more, ok := cause.later(a); ok != c.ok || ok && more != min(c.more, behind) {
			t.Errorf("%s, behind it: %v %v, want %v %v", c.name, more, ok, min(c.more, behind), c.ok)
		}
	}
}

// TestSavingsOrder compares all pairs of a list in the order of the heap. No entry comes before itself.
func TestSavingsOrder(t *testing.T) {
	a, b := at(0, "node 1").Element, at(0, "node 2").Element
	older, newer := &Cause{Finding: &inference.Finding{ID: 1}}, &Cause{Finding: &inference.Finding{ID: 2}}
	list := savings{{b, nil, 3}, {b, older, 2}, {a, newer, 2}, {b, newer, 2}, {a, nil, 2}, {b, nil, 2}, {a, older, 1}}
	for i := range list {
		for k := range list {
			if got := list.Less(i, k); got != (i < k) {
				t.Errorf("entry %d before entry %d: %v", i, k, got)
			}
		}
	}
}

// TestShow: a cause remembers the signs of its evidence by element, of as many elements as it may.
func TestShow(t *testing.T) {
	slow, queue := at(inference.HighLatency, "interface 4:1"), at(inference.HighQueue, "interface 4:1")
	c := &Cause{}
	for _, f := range []inference.Finding{slow, queue, at(inference.StuckValues, "node 3"), {Kind: inference.HighLatency}} {
		c.show(&f)
	}
	if want := []Showing{{slow.Element, Slow | Queues}}; !slices.Equal(c.Shown, want) {
		t.Errorf("shown is %v, want %v: the others have no sign, or no element", c.Shown, want)
	}
	for node := range uint32(2 * maxShown) {
		c.show(&inference.Finding{Kind: inference.HighLatency, Element: inference.ElementOfNode(node)})
	}
	if len(c.Shown) != maxShown {
		t.Errorf("%d elements are remembered, want %d", len(c.Shown), maxShown)
	}
}

func TestAddHops(t *testing.T) {
	var hops []inference.HopKey
	for node := range uint32(2 * maxHops) {
		one := inference.HopKey{Node: node}
		hops = addHops(hops, []inference.HopKey{one, one})
	}
	if len(hops) != maxHops || hops[maxHops-1].Node != maxHops-1 {
		t.Errorf("%d hops are kept, want the first %d, each once", len(hops), maxHops)
	}
}

// TestSavesWithinBounds: a cause takes what it saves for, the first as far as it has room.
func TestSavesWithinBounds(t *testing.T) {
	e := at(0, "node 1").Element
	c := &Cause{Finding: &inference.Finding{ID: 1}, Fits: []Fit{{e, 0}}, Kinds: []Tally{{Kind: inference.HighQueue}}}
	var list []*Alone
	for range 3 {
		list = append(list, &Alone{Finding: inference.Finding{Kind: inference.HighQueue}, fits: []Fit{{e, 0}}, alone: 1})
	}
	for open, want := range map[int]int{0: 3, maxEvidence - 2: 2, maxEvidence - 1: 1, maxEvidence: 0} {
		c.Open = make([]uint64, open)
		if saved, takes := c.saves(&Scene{Map: fabric{nodes: 9}}, c.Fits[0], list); len(takes) != want || math.Abs(saved-float64(want)) > 1e-9 {
			t.Errorf("with %d open findings %d are taken and %v is saved, want %d of them", open, len(takes), saved, want)
		}
	}
}

// TestLook: a finding that is past shows where it is as long as what was found late may have begun within its reach.
func TestLook(t *testing.T) {
	const now = 1000
	past := at(inference.HighLatency, "interface 4:1")
	for _, c := range []struct {
		name               string
		born               uint64 // of what is past
		lateBorn, lateness uint64
		shown              bool
	}{
		{"nothing late, soon enough", now - moving, now, 0, true},
		{"nothing late, too long ago", now - moving - 1, now, 0, false},
		{"late to the last window within reach", now - 50 - moving, now, 50, true},
		{"late to one window too few", now - 51 - moving, now, 50, false},
		{"late, and waited for as long as it may", now - 50 - mostPatience - moving, now - mostPatience, 50, true},
		{"late, and no longer waited for", now - 51 - mostPatience - moving, now - mostPatience - 1, 50, false},
	} {
		g := &Grouper{Windows: now}
		g.look(&Window{Map: fabric{nodes: 9}}, []*Alone{
			{Finding: past, Born: c.born, past: true},
			{Finding: at(inference.HighQueue, "interface 5:1"), Born: c.lateBorn, Late: c.lateness},
		})
		if _, shown := g.scene.Shown[past.Element]; shown != c.shown {
			t.Errorf("%s: shown %v, want %v", c.name, shown, c.shown)
		}
	}
}

func TestBegunWith(t *testing.T) {
	e := at(0, "node 1").Element
	for _, c := range []struct {
		past   bool
		gap    uint64
		misfit float64
		ok     bool
	}{
		{true, moving, 0, true}, {true, moving + 1, 0, false},
		{false, soon, 2 * unlikely, true}, {false, soon + 1, unlikely / 2, true}, {false, soon + 1, unlikely, false},
		{false, longest, unlikely / 2, true}, {false, longest + 1, 0, false},
	} {
		a := &Alone{Born: 1000 - c.gap, past: c.past, fits: []Fit{{e, c.misfit}}}
		if ok := a.begunWith(1000, e); ok != c.ok {
			t.Errorf("%+v: %v", c, ok)
		}
	}
}

// TestSavesEnough: a cause takes no finding for which it saves as little as a twentieth.
func TestSavesEnough(t *testing.T) {
	e := at(0, "node 1").Element
	c := &Cause{Finding: &inference.Finding{ID: 1}, Fits: []Fit{{e, 0}}, Kinds: []Tally{{Kind: inference.HighQueue}}}
	for alone, want := range map[float64]int{.05: 0, .0500001: 1} {
		a := &Alone{Finding: inference.Finding{Kind: inference.HighQueue}, fits: []Fit{{e, 0}}, alone: alone}
		if _, takes := c.saves(&Scene{Map: fabric{nodes: 9}}, c.Fits[0], []*Alone{a}); len(takes) != want {
			t.Errorf("saving %v: %d are taken, want %d", alone, len(takes), want)
		}
	}
}
