package atlas

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// A map that is too large is not drawn, and what does not fit together is left out.
func TestBounds(t *testing.T) {
	huge := newAtlas(&Map{Nodes: make([]Node, maxNodes+1)}, "topology")
	if huge.doc.Problem == "" || len(huge.doc.Nodes) != 0 || len(huge.body) > 1000 {
		t.Errorf("a map that is too large: %.200s", huge.body)
	}
	odd := newAtlas(&Map{Nodes: []Node{{ID: 1, Name: "a"}, {ID: 1, Name: "b"}, {ID: 2}}, Links: []Link{
		{A: LinkEnd{1, 1}, B: LinkEnd{9, 1}}, {A: LinkEnd{1, 1}, B: LinkEnd{1, 2}}, {A: LinkEnd{1, 1}, B: LinkEnd{2, 1}, Speed: math.NaN()},
	}}, "topology")
	if len(odd.doc.Nodes) != 2 || len(odd.doc.Links) != 1 || !json.Valid(odd.body) {
		t.Errorf("%s", odd.body)
	}
}

// Places on the earth keep their shape, also across the date line, and what has none stands amid its neighbours.
func TestPlaces(t *testing.T) {
	in := []Node{
		{ID: 1, Placed: true, Longitude: 170, Latitude: -60}, {ID: 2, Placed: true, Longitude: -170, Latitude: -60},
		{ID: 3, Placed: true, Longitude: 180, Latitude: -50}, {ID: 4}, {ID: 5, Placed: true, Longitude: 170, Latitude: -60}, {ID: 6},
	}
	a := newAtlas(&Map{Nodes: in, Links: []Link{{A: LinkEnd{1, 0}, B: LinkEnd{4, 0}}, {A: LinkEnd{4, 0}, B: LinkEnd{2, 0}}}}, "topology")
	n := a.doc.Nodes
	if a.doc.Layout != places {
		t.Fatalf("layout %q", a.doc.Layout)
	}
	if w, h := n[1].X-n[0].X, n[0].Y-n[2].Y; h != 10 || math.Abs(w-20*math.Cos(58*math.Pi/180)) > 0.5 {
		t.Errorf("20 degrees of longitude and 10 of latitude are %v and %v", w, h)
	}
	if mid := (n[0].X + n[1].X) / 2; math.Abs(n[3].X-mid) > 0.2 || n[3].Y != 60 {
		t.Errorf("what is linked to both stands at %v, %v", n[3].X, n[3].Y)
	}
	if d := math.Hypot(n[4].X-n[0].X, n[4].Y-n[0].Y); d == 0 || d > 1 {
		t.Errorf("nodes in one place are %v apart", d)
	}
}

// Where there is no room for neighbours, it is looked for once a window, and not once for each of a flood of them.
func TestLooksForRoomOnce(t *testing.T) {
	key := func(node uint32) Neighbour { return Neighbour{inference.HopKey{Node: node, EgressIf: 1}, 99} }
	a := NewAdjacency(1)
	a.add(5, 5, key(1))
	a.add(5, 5, key(2))
	a.seen[key(1)] = 4 // by now there would be room
	a.add(5, 5, key(3))
	if _, there := a.seen[key(1)]; !there {
		t.Error("room was looked for again in one window")
	}
	a.add(6, 6, key(3))
	if _, there := a.seen[key(3)]; !there || len(a.seen) != 1 {
		t.Errorf("in the next window: %v", a.seen)
	}
}
