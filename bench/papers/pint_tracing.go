package papers

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/topo"
)

// digestWidths are the digests of figure 10: b = 1, b = 4, and two of b = 8.
var digestWidths = []struct {
	name            string
	bits, instances int
}{
	{"1 bit", 1, 1},
	{"4 bits", 4, 1},
	{"2 × 8 bits", 8, 2},
}

// traced is one run: how many packets it took, or that the path was wrong.
type traced struct {
	packets int
	wrong   bool
}

// giveUp is when a path counts as not found.
const giveUp = 100_000

// tracing makes figure 10: how many packets it takes until a path is known.
func (b *pintBench) tracing() error {
	kdl, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return err
	}
	carrier, err := readNetwork("US Carrier", "uscarrier.txt")
	if err != nil {
		return err
	}
	tree, err := topo.FatTree(8)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		n       *network
		d       int // PINT's typical path length for its constants
		lengths []int
		file    string
	}{
		{kdl, 10, []int{6, 12, 24, 36, 48, 59}, "kdl"},
		{carrier, 10, []int{4, 12, 20, 28, 36}, "uscarrier"},
		{newNetwork("Fat-tree k = 8", tree), 5, []int{3, 5}, "fattree"},
	} {
		if err := b.traceNetwork(c.n, c.d, c.lengths, c.file); err != nil {
			return err
		}
	}
	return nil
}

// traceNetwork makes the table and the charts of one network.
func (b *pintBench) traceNetwork(n *network, d int, lengths []int, file string) error {
	t := PINTTable{
		Title:   fmt.Sprintf("Figure 10: packets until a path is known, %s, %d switches, paths of up to %d", n.name, n.graph.NumNodes(), n.longest()),
		Columns: []string{"digest", "method", "hops", "runs", "mean", "p99", "wrong"},
		Notes:   []string{"In brackets: 95 % confidence. Paths are shortest paths of random pairs, ECMP choices drawn evenly."},
	}
	mean := Chart{File: "pint-figures-10-" + file + "-mean", Title: n.name + ": mean", X: "switches on the path", Y: "packets until the path is known", LogY: true}
	tail := mean
	tail.File, tail.Title = "pint-figures-10-"+file+"-p99", n.name+": 99th percentile"
	add := func(digest, method string, published bool, begin func() (tracer, error)) error {
		line := Series{Name: digest + ", " + method, Dashed: published}
		high := line
		for _, hops := range lengths {
			s, wrong, err := b.trace(n, hops, digest+", "+method, begin)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, []any{digest, method, hops, s.runs, s.mean, s.tail, wrong})
			line.X, line.Y = append(line.X, float64(hops)), append(line.Y, s.mean.Value)
			high.X, high.Y = append(high.X, float64(hops)), append(high.Y, s.tail.Value)
		}
		mean.Series, tail.Series = append(mean.Series, line), append(tail.Series, high)
		return nil
	}
	for _, m := range []struct {
		name  string
		begin func() (tracer, error)
	}{
		{"PPM, 8 fragments", func() (tracer, error) { return &ppmTracer{fragments: 8}, nil }},
		{"PPM, 4 fragments", func() (tracer, error) { return &ppmTracer{fragments: 4}, nil }},
		{"AMS2, m = 5", func() (tracer, error) { return &amsTracer{m: 5, nodes: n.nodes()}, nil }},
		{"AMS2, m = 6", func() (tracer, error) { return &amsTracer{m: 6, nodes: n.nodes()}, nil }},
	} {
		if err := add("16 bits", m.name, true, m.begin); err != nil {
			return err
		}
	}
	for _, w := range digestWidths {
		config := pint.MultiLayer(w.bits, d) // the evaluation names d alone
		config.Seed, config.Instances = uint32(b.o.Seed), w.instances
		scheme, err := pint.New(config)
		if err != nil {
			return err
		}
		for _, v := range []struct {
			name  string
			nodes []uint32
		}{{"PINT, V = the path", nil}, {"PINT, V = all", n.nodes()}} {
			if err := add(w.name, v.name, true, func() (tracer, error) {
				return &pintTracer{scheme: scheme, candidates: v.nodes}, nil
			}); err != nil {
				return err
			}
		}
		for _, k := range knowledges {
			if err := add(w.name, k.name, false, func() (tracer, error) { return newOurTracer(n, scheme, k) }); err != nil {
				return err
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	b.out.Charts = append(b.out.Charts, mean, tail)
	return nil
}

// trace repeats one point.
func (b *pintBench) trace(n *network, hops int, method string, begin func() (tracer, error)) (summary, int, error) {
	point := fmt.Sprintf("%s, %d hops: %s", n.name, hops, method)
	results, err := sample(b, point, b.runs(10_000), func() (func(*rand.Rand) (traced, error), error) {
		t, err := begin()
		return func(r *rand.Rand) (traced, error) {
			path := n.path(hops, r)
			if err := t.begin(path); err != nil {
				return traced{}, err
			}
			for k := 1; k < giveUp; k++ {
				if got, done := t.packet(r); done {
					return traced{k, !slices.Equal(got, path)}, nil
				}
			}
			return traced{giveUp, true}, nil
		}, err
	})
	if err != nil {
		return summary{}, 0, err
	}
	packets := make([]int, len(results))
	wrong := 0
	for i, t := range results {
		packets[i] = t.packets
		if t.wrong {
			wrong++
		}
	}
	return summarize(packets), wrong, nil
}
