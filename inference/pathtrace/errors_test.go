package pathtrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// If the map is wrong, hardly any wrong path is published without a mark. Nearly all flows are published right or with
// the wrong hop named. The stated confidence allows one wrong path in a million flows of which three in ten meet an
// error. Here all do, which makes 0.008 wrong paths in all rows: three or more are less likely than 10⁻⁷. The limit for
// the others is what 300 flows with a true share of 97 % miss once in a million.
func TestMapErrors(t *testing.T) {
	var wrong []string
	row := uint64(0)
	for _, c := range []struct {
		name  string
		wrong func(l *lab, path []uint32) (real []uint32, unknown uint64, skipped int)
	}{
		{"none", func(_ *lab, path []uint32) ([]uint32, uint64, int) { return path, 0, 0 }},
		{"node renumbered", func(l *lab, path []uint32) ([]uint32, uint64, int) {
			h := l.r.IntN(len(path))
			path[h] = 1 + l.r.Uint32N(4000)
			return path, 1 << h, 0
		}},
		{"neighbours swapped", func(l *lab, path []uint32) ([]uint32, uint64, int) {
			h := l.r.IntN(len(path) - 1)
			path[h], path[h+1] = path[h+1], path[h]
			return path, 0, 0
		}},
		{"TTL 254", func(_ *lab, path []uint32) ([]uint32, uint64, int) { return path, 1, 1 }},
		{"detour by a node elsewhere", func(l *lab, path []uint32) ([]uint32, uint64, int) {
			for h := l.r.IntN(len(path)); ; {
				if id := l.m.Nodes[l.r.IntN(len(l.m.Nodes))]; !slices.Contains(path, id) {
					path[h] = id
					return path, 0, 0
				}
			}
		}},
	} {
		for _, routing := range []prior.Routing{prior.None, prior.Distance} {
			const flows = 300
			seed := testkit.Seed(t) + row
			row++
			l := newLab(t, seed, 8, 2, routing)
			found, deviations := 0, 0
			for range flows {
				real, unknown, skipped := c.wrong(l, shortestPath(l.r, l.m, -1, l.r.IntN(150), 5+l.r.IntN(5)))
				l.flow = Flow{}
				right, misled := false, false
				for n := range 200 {
					id := l.r.Uint32()
					l.tracer.Add(&l.flow, id, len(real)+skipped, shifted(l.scheme, id, real, skipped))
					s, _ := l.tracer.Path(&l.flow, 0, nil)
					right = s.Complete && s.Known == hops(len(s.Nodes))&^unknown
					for h := range s.Nodes {
						right = right && (s.Known>>h&1 == 0 || s.Nodes[h] == real[h-skipped])
					}
					if s.Complete && s.Marked == 0 && (!right || unknown != 0) && !misled {
						misled = true
						wrong = append(wrong, fmt.Sprintf("seed %d: %s, %v, digest %d: %d has no mark, want %d", seed, c.name, routing, n, s.Nodes, real))
					}
				}
				if d, ok := l.tracer.Deviation(&l.flow, nil); ok && d.Kind != noDeviation {
					deviations++
				}
				if right {
					found++
				}
				l.tracer.Release(&l.flow)
			}
			if found < flows*90/100 || (deviations == 0) != (c.name == "none") {
				t.Errorf("seed %d: %s, %v: %d of %d flows are right, %d deviate", seed, c.name, routing, found, flows, deviations)
			}
		}
	}
	if len(wrong) > 2 {
		t.Errorf("%d wrong paths without a mark, want 2 at most:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
}

// shifted is a digest of which the first switch believes that so many were before it.
func shifted(s *pint.Scheme, id uint32, path []uint32, skipped int) (digest uint64) {
	for h, node := range path {
		digest = s.Write(digest, id, h+1+skipped, node)
	}
	return digest
}

// Many flows that confirm a place of the map take its mark away sooner.
func TestTrust(t *testing.T) {
	l := newLab(t, testkit.Seed(t), 8, 2, prior.Distance)
	path := shortestPath(l.r, l.m, -1, 0, 9)
	needed := func(flows int) (sum int) {
		for range flows {
			l.flow.Source = l.r.Uint32()
			for n := 1; ; n++ {
				if l.send(path); n > 2000 {
					t.Fatalf("seed %d: not certain after %d digests", l.seed, n)
				}
				if s, _ := l.tracer.Path(&l.flow, 0, nil); s.Complete && s.Marked == 0 {
					sum += n
					break
				}
			}
			for range 60 { // until digests alone have confirmed it
				l.send(path)
			}
			l.tracer.Release(&l.flow)
		}
		return sum
	}
	fresh := needed(20)
	for range 300 { // other flows confirm what else may be there
		p := shortestPath(l.r, l.m, -1, l.r.IntN(150), 9)
		l.flow.Source = l.r.Uint32()
		for range 80 {
			l.send(p)
		}
		l.tracer.Release(&l.flow)
	}
	needed(200)
	if warm := needed(20); warm >= fresh {
		t.Errorf("seed %d: %d digests for 20 flows, %d with what others confirmed", l.seed, fresh, warm)
	}
}

// The next flow is expected to meet what other flows met. Flows of many sources without an error remove marks sooner,
// those of one source do not, and contradictions restore the marks.
func TestExperience(t *testing.T) {
	var many, one experience
	for n := range 8000 {
		many.agreed(uint32(n) * 2654435761)
		one.agreed(7)
	}
	if one.guard() < prior.Touched/2 {
		t.Errorf("8000 flows of one source leave a share of errors of %.2g, want %.2g at least", one.guard(), prior.Touched/2)
	}
	if many.guard() > 1e-3 {
		t.Errorf("8000 flows of as many sources leave a share of errors of %.2g, want 0.001 at most", many.guard())
	}
	for range 200 {
		many.contradicted++
	}
	if many.guard() != prior.Touched {
		t.Errorf("200 contradicted flows of 8200 give a share of errors of %.2g, want %v", many.guard(), prior.Touched)
	}
}

// If an error comes up in a network that many flows have confirmed, hardly any path is published wrong without a mark
// because of that. Only a hop of the first flows that meet it may lose its mark with a single digest. That happens by
// chance once in 256 times, if it has no second one by then. There are a handful of such flows in each of twelve
// rounds, which makes 0.02 wrong paths on average. Even if it were 0.06, four or more would be less likely than 10⁻⁶.
func TestErrorsInMidLife(t *testing.T) {
	seed := testkit.Seed(t)
	wrong, reported := 0, 0
	for round := range uint64(12) {
		l := newLab(t, seed+round, 8, 2, prior.Distance)
		for range 2500 {
			l.flow.Source = l.r.Uint32()
			path := shortestPath(l.r, l.m, -1, 0, 7)
			for range 60 {
				l.send(path)
			}
			l.tracer.Release(&l.flow)
		}
		if g := l.tracer.experience.guard(); g > .01 {
			t.Fatalf("seed %d: the share of errors is believed to be %.2g, want 0.01 at most", seed, g)
		}
		moved := map[uint32]uint32{}
		for _, id := range l.m.Nodes {
			if l.r.IntN(20) == 0 {
				moved[id] = 5000 + id
			}
		}
		for range 250 {
			path, touched := shortestPath(l.r, l.m, -1, 0, 7), false
			for h, id := range path {
				if now, ok := moved[id]; ok {
					path[h], touched = now, true
				}
			}
			if !touched {
				continue
			}
			reported++
			l.flow.Source = l.r.Uint32()
			bad := false
			for range 80 {
				l.send(path)
				s, _ := l.tracer.Path(&l.flow, 0, nil)
				bad = bad || s.Complete && s.Marked == 0
			}
			if bad {
				wrong++
			}
			l.tracer.Release(&l.flow)
		}
	}
	t.Logf("%d of %d flows", wrong, reported)
	if wrong > 3 || reported < 300 {
		t.Errorf("seed %d: %d of %d flows with an unknown node were reported without a mark", seed, wrong, reported)
	}
}
