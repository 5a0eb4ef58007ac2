package pathtrace

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// sendIf sends the next packet whose writers, instance by instance, are as wanted.
func (l *lab) sendIf(path []uint32, want func(writers uint64) bool) Event {
	for {
		id, ok := l.r.Uint32(), true
		for inst := range l.scheme.Instances() {
			p := l.scheme.Packet(id, inst)
			ok = ok && want(l.scheme.Writers(&p, len(path)))
		}
		if ok {
			return l.tracer.Add(&l.flow, id, len(path), l.scheme.Digest(id, path))
		}
	}
}

// Digests that two hops wrote together agree with a path on which the two are exchanged, however many there are. They
// take no mark away.
func TestExchangedHopsStayMarked(t *testing.T) {
	for round := range uint64(20) {
		seed := testkit.Seed(t) + round
		l := newLab(t, seed, 8, 2, prior.Distance)
		reported := shortestPath(l.r, l.m, -1, 0, 9)
		a := l.r.IntN(8)
		b := a + 1 + l.r.IntN(8-a)
		real := slices.Clone(reported)
		real[a], real[b] = real[b], real[a]
		both := uint64(1)<<a | 1<<b
		for n := range 300 {
			l.sendIf(real, func(w uint64) bool { return w&both == 0 || w&both == both })
			s, ok := l.tracer.Path(&l.flow, 0, nil)
			if ok && s.Complete && s.Marked&both == 0 && !slices.Equal(s.Nodes, real) {
				t.Fatalf("seed %d: digest %d: hops %d and %d of %d have no mark, want %d", seed, n, a+1, b+1, s.Nodes, real)
			}
		}
	}
}

// A digest of several writers that contradicts a path marks them. The marks stay until each of them is confirmed anew,
// not until others have agreed for a while.
func TestContradictedHopsStayMarked(t *testing.T) {
	for round := range uint64(20) {
		seed := testkit.Seed(t) + round
		l := newLab(t, seed, 8, 2, prior.Distance)
		path := shortestPath(l.r, l.m, -1, 0, 9)
		for range 300 {
			l.send(path)
		}
		if s, _ := l.tracer.Path(&l.flow, 0, nil); s.Marked != 0 {
			t.Fatalf("seed %d: hops %b are marked after 300 digests", seed, s.Marked)
		}
		a := l.r.IntN(8)
		both := uint64(3) << a
		real := slices.Clone(path)
		real[a], real[a+1] = 1+l.r.Uint32N(4000), 1+l.r.Uint32N(4000)
		for e := Verified; e == Verified; {
			e = l.sendIf(real, func(w uint64) bool { return w&both == 0 || bits.OnesCount64(w) > 1 })
		}
		if s, _ := l.tracer.Path(&l.flow, 0, nil); s.Marked&both == 0 {
			t.Fatalf("seed %d: hops %d and %d have no mark after a digest that contradicts them", seed, a+1, a+2)
		}
		for range 200 {
			l.sendIf(real, func(w uint64) bool { return w&both == 0 })
		}
		if s, _ := l.tracer.Path(&l.flow, 0, nil); s.Marked&both == 0 {
			t.Fatalf("seed %d: hops %d and %d have no mark any more", seed, a+1, a+2)
		}
	}
}

// However many flows one source has, they take no mark from the flows of others.
func TestOneSourceConfirmsNothing(t *testing.T) {
	l := newLab(t, testkit.Seed(t), 8, 2, prior.Distance)
	path := shortestPath(l.r, l.m, -1, 0, 9)
	for _, source := range []uint32{0, 7} {
		for range 400 {
			l.flow.Source = source
			for range 80 {
				l.send(path)
			}
			l.tracer.Release(&l.flow)
		}
	}
	for h := range path {
		if trust := l.tracer.trust(path, h); trust > 1 {
			t.Errorf("seed %d: two sources give %.1f bits for hop %d", l.seed, trust, h+1)
		}
	}
}

// Other codings and networks, and errors that come in mid-life or two at once: hardly any path without a mark is wrong.
// An error in mid-life counts from the first digest that differs from what the map's path would have brought. The
// stated confidence allows 0.003 wrong paths of 960 flows that all meet an error: two or more are less likely than
// 10⁻⁵.
func TestMarksElsewhere(t *testing.T) {
	var wrong []string
	for i, coding := range [][2]int{{8, 1}, {2, 8}, {16, 1}, {4, 4}} {
		for j, shape := range []string{"wide area", "star", "ring", "grid"} {
			seed := testkit.Seed(t) + uint64(4*i+j)
			l := newShape(t, seed, shape, coding[0], coding[1])
			for n := range 60 {
				k := min(2+l.r.IntN(7), l.longest())
				l.flow = Flow{Source: l.r.Uint32()}
				skipped := 0
				path := shortestPath(l.r, l.m, -1, 0, k)
				real := slices.Clone(path)
				if n%2 == 0 { // until the error is there, the map is right
					for range 40 {
						l.send(path)
					}
				}
				for range 1 + n%3 {
					switch h := l.r.IntN(len(real)); l.r.IntN(4) {
					case 0:
						real[h] = 1 + l.r.Uint32N(4000)
					case 1:
						g := l.r.IntN(len(real))
						real[h], real[g] = real[g], real[h]
					case 2:
						skipped = 1 + l.r.IntN(2)
					default:
						real[h] = l.m.Nodes[l.r.IntN(len(l.m.Nodes))]
					}
				}
				began := slices.Equal(real, path) && skipped == 0
				for range 150 {
					id := l.r.Uint32()
					digest := shifted(l.scheme, id, real, skipped)
					l.tracer.Add(&l.flow, id, len(real)+skipped, digest)
					began = began || skipped > 0 || digest != l.scheme.Digest(id, path)
					s, _ := l.tracer.Path(&l.flow, 0, nil)
					if !began || !s.Complete || s.Marked != 0 || len(s.Nodes) != len(real)+skipped {
						continue
					}
					if skipped > 0 || !slices.Equal(s.Nodes, real) {
						wrong = append(wrong, fmt.Sprintf("seed %d: %s, %d x %d bits: %d has no mark, want %d after %d silent hops", seed, shape, coding[1], coding[0], s.Nodes, real, skipped))
						break
					}
				}
				l.tracer.Release(&l.flow)
			}
		}
	}
	if len(wrong) > 1 {
		t.Errorf("%d wrong paths without a mark, want 1 at most:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
}

// newShape is a lab in a network of another shape.
func newShape(t *testing.T, seed uint64, shape string, bits, instances int) *lab {
	r := rand.New(rand.NewPCG(seed, 4))
	c := sparse(r, 60)
	switch shape {
	case "star":
		c.Links = nil
		for u := int32(1); u < 60; u++ {
			c.Links = append(c.Links, [2]int32{0, u})
		}
	case "ring":
		c.Links = nil
		for u := range int32(60) {
			c.Links = append(c.Links, [2]int32{u, (u + 1) % 60})
		}
	case "grid":
		c.Links = nil
		for u := range int32(60) {
			if u%6 < 5 {
				c.Links = append(c.Links, [2]int32{u, u + 1})
			}
			if u < 54 {
				c.Links = append(c.Links, [2]int32{u, u + 6})
			}
		}
	}
	p := pint.Published(bits)
	p.Instances, p.Seed = instances, r.Uint32()
	scheme, err := pint.New(p)
	if err != nil {
		t.Fatal(err)
	}
	c.Scheme, c.Routing = scheme, prior.Routing(seed%3)
	m, err := prior.NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, r: r, seed: seed, scheme: scheme, m: m, tracer: New(m)}
}

// longest is the number of hops of the longest shortest path, 8 at most.
func (l *lab) longest() int {
	most := 0
	for u := range l.m.Nodes {
		for w := range l.m.Nodes {
			if d := l.m.Distance(uint16(u), uint16(w)); d != prior.Far {
				most = max(most, d)
			}
		}
	}
	return min(most+1, 8)
}
