package pathtrace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// sparse is a wide area network: a ring with some chords.
func sparse(r *rand.Rand, v int) prior.Config {
	c := prior.Config{}
	for u := range v {
		c.Nodes = append(c.Nodes, uint32(5000+3*u))
		c.Links = append(c.Links, [2]int32{int32(u), int32((u + 1) % v)})
		if r.IntN(5) == 0 {
			c.Links = append(c.Links, [2]int32{int32(u), int32((u + 2 + r.IntN(12)) % v)})
		}
	}
	return c
}

// shortestPath draws one of the shortest paths between two random nodes that has some number of hops.
func shortestPath(r *rand.Rand, m *prior.Model, from, to int, k int) []uint32 {
	v := len(m.Nodes)
	for {
		s, e := uint16(r.IntN(v)), uint16(r.IntN(v))
		if from >= 0 {
			s, e = uint16(from), uint16(to)
		}
		if m.Distance(s, e) != k-1 {
			continue
		}
		path := []uint32{m.Nodes[s]}
		for u := s; u != e; {
			var next []uint16
			for _, w := range m.Neighbours(u) {
				if m.Distance(w, e) == m.Distance(u, e)-1 {
					next = append(next, w)
				}
			}
			u = next[r.IntN(len(next))]
			path = append(path, m.Nodes[u])
		}
		return path
	}
}

// lab is a flow whose packets take paths that a test chooses.
type lab struct {
	t      *testing.T
	r      *rand.Rand
	seed   uint64
	scheme *pint.Scheme
	m      *prior.Model
	tracer *Tracer
	flow   Flow
	events [numEvents]int
}

func newLab(t *testing.T, seed uint64, bits, instances int, routing prior.Routing) *lab {
	r := rand.New(rand.NewPCG(seed, 3))
	c := sparse(r, 150)
	p := pint.Published(bits)
	p.Instances, p.Seed = instances, r.Uint32()
	scheme, err := pint.New(p)
	if err != nil {
		t.Fatal(err)
	}
	c.Scheme, c.Routing = scheme, routing
	m, err := prior.NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, r: r, seed: seed, scheme: scheme, m: m, tracer: New(m)}
}

func (l *lab) send(path []uint32) Event {
	id := l.r.Uint32()
	e := l.tracer.Add(&l.flow, id, len(path), l.scheme.Digest(id, path))
	l.events[e]++
	return e
}

func (l *lab) forge(hops int) Event {
	e := l.tracer.Add(&l.flow, l.r.Uint32(), hops, l.r.Uint64()>>(64-l.scheme.Width()*l.scheme.Instances()))
	l.events[e]++
	return e
}

// until sends packets until an event, at most n.
func (l *lab) until(want Event, n int, path func() []uint32) int {
	l.t.Helper()
	for i := range n {
		switch e := l.send(path()); e {
		case want:
			return i + 1
		case Decoded, Changed, Parallel, Revised, Untraceable:
			got, _ := l.tracer.Path(&l.flow, 0, nil)
			l.t.Fatalf("seed %d: packet %d: %v instead of %v: %d", l.seed, i, e, want, got.Nodes)
		}
	}
	l.t.Fatalf("seed %d: no %v after %d packets: %v", l.seed, want, n, l.events)
	return 0
}

func (l *lab) wantPath(i int, want []uint32) {
	l.t.Helper()
	got, ok := l.tracer.Path(&l.flow, i, nil)
	if !ok || !got.Complete || !slices.Equal(got.Nodes, want) {
		l.t.Fatalf("seed %d: path %d is %v %d, want %d", l.seed, i, ok, got.Nodes, want)
	}
}

// always and either choose paths for packets.
func always(path []uint32) func() []uint32 { return func() []uint32 { return path } }

func (l *lab) either(a, b []uint32) func() []uint32 {
	return func() []uint32 {
		if l.r.IntN(2) == 0 {
			return a
		}
		return b
	}
}

// twoPaths draws two paths, of the same or another number of hops.
func (l *lab) twoPaths(round int) (a, b []uint32) {
	a = shortestPath(l.r, l.m, -1, 0, 9)
	for {
		if b = shortestPath(l.r, l.m, -1, 0, 9+round%3); !slices.Equal(a, b) {
			return a, b
		}
	}
}

func eachLab(t *testing.T, rounds int, test func(l *lab, round int)) {
	seed := testkit.Seed(t)
	for round := range rounds {
		test(newLab(t, seed+uint64(round), []int{8, 8, 4}[round%3], []int{2, 1, 2}[round%3], prior.Routing(round%3)), round/3)
	}
}

// A flow whose path changes: the first digest that does not fit shows it, and soon the new path is known.
func TestChange(t *testing.T) {
	total := 0
	eachLab(t, 90, func(l *lab, round int) {
		a, b := l.twoPaths(round)
		l.until(Decoded, 400, always(a))
		l.wantPath(0, a)
		for range 50 {
			if e := l.send(a); e != Verified && e != Confirmed {
				t.Fatalf("seed %d: %v", l.seed, e)
			}
		}
		total += l.until(Changed, 600, always(b))
		l.wantPath(0, b)
		l.wantPath(1, a)
		if l.events[Inconsistent] != 1 {
			t.Fatalf("seed %d: %v", l.seed, l.events)
		}
		l.until(Returned, 100, always(a))
		l.wantPath(0, a)
	})
	t.Logf("%.1f packets until the new path is known", float64(total)/90)
}

// Bursts of packets take one path, then the other: both become known.
func TestFlowlets(t *testing.T) {
	eachLab(t, 45, func(l *lab, round int) {
		a, b := l.twoPaths(round)
		for range 20 {
			for range 60 {
				l.send(a)
			}
			for range 60 {
				l.send(b)
			}
		}
		l.wantPath(0, b)
		l.wantPath(1, a)
		if _, ok := l.tracer.Path(&l.flow, 2, nil); ok || l.events[Untraceable] > 0 {
			t.Fatalf("seed %d: %v", l.seed, l.events)
		}
	})
}

// One path is known, then packets are spread over two.
func TestSpreadLater(t *testing.T) {
	total := 0
	eachLab(t, 45, func(l *lab, round int) {
		a, b := l.twoPaths(round)
		l.until(Decoded, 400, always(a))
		for n := range 3000 {
			if e := l.send(l.either(a, b)()); e == Parallel || e == Changed {
				total += n + 1
				break
			}
		}
		if !l.bothKnown(a, b) {
			t.Fatalf("seed %d: not both of %d and %d are known: %v", l.seed, a, b, l.events)
		}
	})
	t.Logf("%.1f packets until the second path is known", float64(total)/45)
}

func (l *lab) bothKnown(a, b []uint32) bool {
	first, _ := l.tracer.Path(&l.flow, 0, nil)
	second, ok := l.tracer.Path(&l.flow, 1, nil)
	return ok && (slices.Equal(first.Nodes, a) && slices.Equal(second.Nodes, b) || slices.Equal(first.Nodes, b) && slices.Equal(second.Nodes, a))
}

// Packets are spread over two paths from the first one on. The first digests may fit a mixture of the two paths. Nearly
// all others fit, too, if the second mixture is the second path: that happens once in some thousand pairs.
func TestSpread(t *testing.T) {
	total, wrong := 0, 0
	eachLab(t, 45, func(l *lab, round int) {
		a, b := l.twoPaths(round)
		last := 0
		for n := range 4000 {
			if e := l.send(l.either(a, b)()); e == Parallel || e == Changed {
				last = n + 1
			}
		}
		if !l.bothKnown(a, b) {
			t.Logf("seed %d: not both of %d and %d are known: %v", l.seed, a, b, l.events)
			wrong++
		}
		total += last
	})
	if wrong > 3 {
		t.Errorf("%d pairs of paths are not known", wrong)
	}
	t.Logf("%.1f packets until both paths are known", float64(total)/45)
}

// Forged digests lead to no path, and to bounded work and memory.
func TestForged(t *testing.T) {
	eachLab(t, 30, func(l *lab, round int) {
		for range 20000 {
			if e := l.forge(8 + round%3); e == Decoded || e == Changed || e == Parallel {
				got, _ := l.tracer.Path(&l.flow, 0, nil)
				t.Fatalf("seed %d: %v %d", l.seed, e, got.Nodes)
			}
		}
		s := l.tracer.Stats()
		if s.Events[Untraceable] < 2 || s.Events[Ignored] < 10000 || s.Undecided > 1 || s.Bytes > 1<<20 {
			t.Fatalf("seed %d: %+v", l.seed, s)
		}
		if s.Steps > 20000*uint64(l.m.Config.Work) {
			t.Fatalf("seed %d: %d steps", l.seed, s.Steps)
		}
	})
}

// One in fifty digests is forged: the path stays what it is.
func TestFewForged(t *testing.T) {
	eachLab(t, 30, func(l *lab, round int) {
		a := shortestPath(l.r, l.m, -1, 0, 9)
		for n := range 4000 {
			e := Pending
			if l.r.IntN(50) == 0 && n > 0 {
				e = l.forge(9)
			} else {
				e = l.send(a)
			}
			if e == Changed || e == Parallel {
				got, _ := l.tracer.Path(&l.flow, 0, nil)
				t.Fatalf("seed %d: %v %d, want %d", l.seed, e, got.Nodes, a)
			}
		}
		l.wantPath(0, a)
	})
}

// Packets go round in a ring: that is no path without loops, however far the hops are from each other.
func TestLoop(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for _, loops := range []bool{false, true} {
		c := prior.Config{Scheme: benchScheme(t, 8, 2, false), Nodes: []uint32{1, 2, 3, 4, 5, 6, 7, 8}, Loops: loops}
		for u := range int32(8) {
			c.Links = append(c.Links, [2]int32{u, (u + 1) % 8})
		}
		m, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		tracer, path := New(m), make([]uint32, 12)
		for h := range path {
			path[h] = c.Nodes[h%8]
		}
		var f Flow
		for range 200 {
			id := r.Uint32()
			tracer.Add(&f, id, len(path), c.Scheme.Digest(id, path))
		}
		got, _ := tracer.Path(&f, 0, nil)
		if got.Complete != loops || loops && !slices.Equal(got.Nodes, path) {
			t.Errorf("seed %d: loops %v: complete %v: %d", seed, loops, got.Complete, got.Nodes)
		}
	}
}
