package papers

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// shapes: networks of many forms, within the limit of time.
func (r *coverRun) shapes(w io.Writer) error {
	fmt.Fprintln(w, "topology\tlinks\tprobes\tlengths\tms\thops 16\tbound\tms\tdepots 10 %: traversals\tbound\tms\t")
	for _, spec := range shown(r.o, 4,
		"grid:10,10", "grid:50,50", "grid:51,50", "grid:100,100", "grid:101,37", "grid:2,500", "torus:30,30", "torus:31,3", "hypercube:7", "hypercube:9",
		"ring of rings:40", "caterpillar:200", "tree:1000", "parallel:60", "fat-tree:30", "random:20000,100000,1", "random:60000,100000,1", "grid:224,224", "fat-tree:58",
	) {
		g, err := shape(spec, r.o.Seed)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t", spec, g.NumLinks())
		depots := &cover.Problem{Graph: g, Depots: everyTenth(g, r.o.Seed)}
		for k, c := range []struct {
			p *cover.Problem
			o solve.Options
		}{{&cover.Problem{Graph: g}, solve.Options{Balanced: true}}, {&cover.Problem{Graph: g, MaxHops: 16}, solve.Options{}}, {depots, solve.Options{}}} {
			plan, took, stopped, err := r.repeat(c.p, c.o, 1, r.o.limit())
			if err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
			s, note := plan.Stats, ""
			if stopped {
				note = " (stopped)"
			}
			if k == 0 {
				fmt.Fprintf(w, "%d\t%d-%d\t%.0f%s\t", s.Probes, s.Shortest, s.Longest, ms(took), note)
			} else {
				fmt.Fprintf(w, "%.0f\t%.0f (%.2f %%)\t%.0f%s\t", s.Objective, s.LowerBound, 100*(s.Objective/s.LowerBound-1), ms(took), note)
			}
		}
		fmt.Fprintln(w)
	}
	return nil
}

// everyTenth draws a tenth of the nodes.
func everyTenth(g *topo.Graph, seed uint64) []int {
	return rand.New(rand.NewPCG(seed, 0x74656e)).Perm(g.NumNodes())[:max(1, g.NumNodes()/10)]
}

// shape generates topologies that the topology generators lack.
func shape(spec string, seed uint64) (*topo.Graph, error) {
	if topo.IsGenerator(spec) {
		return topo.Parse(spec)
	}
	b, n := topo.NewBuilder(spec), 0
	node := func() int {
		n++
		return b.AddNode(fmt.Sprint("n", n), topo.NoTier)
	}
	link := func(x, y int) { b.AddLink(topo.LinkEnd{Node: x}, topo.LinkEnd{Node: y}) }
	var size int
	scan := func(format string) bool {
		_, err := fmt.Sscanf(spec, format, &size)
		return err == nil
	}
	r := rand.New(rand.NewPCG(seed, 0x7368617065))
	switch {
	case scan("hypercube:%d"):
		for v := range 1 << size {
			node()
			for bit := range size {
				if v>>bit&1 == 1 {
					link(v, v&^(1<<bit))
				}
			}
		}
	case scan("ring of rings:%d"): // the first switch of every ring is in the ring of all
		for k := range size {
			for i := range 10 {
				if v := node(); i > 0 {
					link(v-1, v)
				}
			}
			link(10*k, 10*k+9)
		}
		for k := range size {
			link(10*k, 10*((k+1)%size))
		}
	case scan("caterpillar:%d"): // a backbone with up to three sites a node
		last := node()
		for range size {
			for range r.IntN(4) {
				link(last, node())
			}
			next := node()
			link(last, next)
			last = next
		}
	case scan("tree:%d"):
		node()
		for range size {
			v := node()
			link(r.IntN(v), v)
		}
	case scan("parallel:%d"): // parallel links, and links from a node to itself
		for range size {
			node()
		}
		for k := range 5 * size {
			x, y := k%size, (k+1+r.IntN(3))%size
			for range 1 + r.IntN(3) {
				link(x, y)
			}
			if r.IntN(5) == 0 {
				link(x, x)
			}
		}
	}
	return b.Build()
}

// growth: how the time for a link changes from a thousand links to a hundred thousand.
func (r *coverRun) growth(w io.Writer) error {
	fmt.Fprintln(w, "plan\tnetwork\t1000\t10 000\t100 000\tmost / least\t")
	random := func(links int) (*topo.Graph, error) { return topo.Random(links/5, links, r.o.Seed) }
	grid := func(links int) (*topo.Graph, error) {
		side := 2
		for 2*side*(side-1) < links {
			side++
		}
		return topo.Grid(side, side)
	}
	for _, c := range []struct {
		name, network string
		make          func(links int) (*topo.Graph, error)
		p             cover.Problem
		o             solve.Options
		depots        bool
	}{
		{"plain", "random", random, cover.Problem{}, solve.Options{}, false},
		{"balanced", "random", random, cover.Problem{}, solve.Options{Balanced: true}, false},
		{"balanced", "grid", grid, cover.Problem{}, solve.Options{Balanced: true}, false},
		{"directed", "random", random, cover.Problem{Directed: true}, solve.Options{}, false},
		{"16 hops", "random", random, cover.Problem{MaxHops: 16}, solve.Options{}, false},
		{"16 hops, directed", "random", random, cover.Problem{MaxHops: 16, Directed: true}, solve.Options{}, false},
		{"depots", "random", random, cover.Problem{}, solve.Options{}, true},
		{"depots", "grid", grid, cover.Problem{}, solve.Options{}, true},
		{"redundant", "random", random, cover.Problem{Redundant: true}, solve.Options{}, false},
		{"DFS", "random", random, cover.Problem{}, solve.Options{Method: solve.DFS}, false},
	} {
		fmt.Fprintf(w, "%s\t%s\t", c.name, c.network)
		var least, most float64
		for k, links := range shown(r.o, 2, 1000, 10_000, 100_000) {
			g, err := c.make(links)
			if err != nil {
				return err
			}
			p := c.p
			if p.Graph = g; c.depots {
				p.Depots = everyTenth(g, r.o.Seed)
			}
			_, took, stopped, err := r.repeat(&p, c.o, 3, 20*time.Second)
			if err != nil {
				return err
			}
			each, note := 1000*ms(took)/float64(g.NumLinks()), ""
			if stopped {
				note = " (stopped)"
			}
			if most = max(most, each); k == 0 || each < least {
				least = each
			}
			fmt.Fprintf(w, "%.2f%s\t", each, note)
		}
		fmt.Fprintf(w, "%.1f\t\n", most/least)
	}
	return nil
}
