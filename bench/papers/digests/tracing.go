package digests

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/topo"
)

// digestWidths are the digests of figure 10, b = 1, b = 4, and two of b = 8. Eight of b = 2, which fill 16 bits as
// well, are added.
var digestWidths = []struct {
	name, file      string
	bits, instances int
	ours            bool // not in the paper
}{
	{"1 bit", "1", 1, 1, false},
	{"4 bits", "4", 4, 1, false},
	{"2 × 8 bits", "2x8", 8, 2, false},
	{"8 × 2 bits", "8x2", 2, 8, true},
}

// traced is one run: how many packets it took, or that the path was wrong.
type traced struct {
	packets int
	wrong   bool
}

// giveUp is the number of packets after which a path counts as not found.
const giveUp = 100_000

// tracing makes figure 10: the number of packets until a path is known.
func (b *bench) tracing() error {
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

// pathMethod is a line of figure 10.
type pathMethod struct {
	digest, coding, name string
	width                int // index in digestWidths; -1 for curves in all charts
	charted, published   bool
	begin                func() (tracer, error)
}

// pathCoding is a coding of figure 10.
type pathCoding struct {
	name   string
	config pint.Config
	ours   bool // shown for our decoder, too
	links  bool // suits decoders best that use links
}

func pathCodings(bits, d int) []pathCoding {
	return []pathCoding{
		{"Algorithm 1", pint.MultiLayer(bits, d), true, false},
		{"Algorithm 1, one XOR layer", oneLayer(pint.MultiLayer(bits, d)), false, false},
		{"hybrid", pint.Hybrid(bits, d), true, true},
	}
}

// pathMethods are all lines for a network.
func (b *bench) pathMethods(n *network, d int) ([]pathMethod, error) {
	ams := func(m int) func() (tracer, error) {
		return func() (tracer, error) { return &amsTracer{m: m, nodes: n.nodes()}, nil }
	}
	ppm := func(fragments int) func() (tracer, error) {
		return func() (tracer, error) { return &ppmTracer{fragments: fragments}, nil }
	}
	methods := []pathMethod{
		{"16 bits", "", "PPM, 8 fragments", -1, false, true, ppm(8)},
		{"16 bits", "", "PPM, 4 fragments", -1, true, true, ppm(4)},
		{"16 bits", "", "AMS2, m = 5", -1, true, true, ams(5)},
		{"16 bits", "", "AMS2, m = 6", -1, false, true, ams(6)},
	}
	for i, w := range digestWidths {
		for _, coding := range pathCodings(w.bits, d) {
			coding.config.Seed, coding.config.Instances = uint32(b.o.Seed), w.instances
			scheme, err := pint.New(coding.config)
			if err != nil {
				return nil, err
			}
			if !w.ours {
				for _, v := range []struct {
					name  string
					nodes []uint32
				}{{"PINT, V = the path", nil}, {"PINT, V = all", n.nodes()}} {
					methods = append(methods, pathMethod{w.name, coding.name, v.name, i, coding.name == "Algorithm 1", true, func() (tracer, error) {
						return &pintTracer{scheme: scheme, candidates: v.nodes}, nil
					}})
				}
			}
			if !coding.ours {
				continue
			}
			for _, k := range knowledges {
				methods = append(methods, pathMethod{w.name, coding.name, k.name, i, k.links == coding.links, false, func() (tracer, error) {
					return newOurTracer(n, scheme, k)
				}})
			}
		}
	}
	return methods, nil
}

// mapTracing is figure 10 for the longest paths, where PINT's decoder knows the links of the network, as AMS2 does. The
// candidates of a hop are then neighbours of those of the hops beside it.
func (b *bench) mapTracing() error {
	n, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return err
	}
	t := table{
		Title:   fmt.Sprintf("Figure 10 where the links are known: packets until a path is known, %s", n.name),
		Columns: []string{"digest", "coding", "hops", "runs", "mean", "p99", "wrong"},
		Notes:   []string{"In brackets: 95 % confidence. Paths and codings as in figure 10, d = 10."},
	}
	const d = 10
	beside := n.beside()
	for _, w := range digestWidths {
		if w.ours {
			continue
		}
		for _, coding := range pathCodings(w.bits, d) {
			coding.config.Seed, coding.config.Instances = uint32(b.o.Seed), w.instances
			scheme, err := pint.New(coding.config)
			if err != nil {
				return err
			}
			for _, hops := range []int{12, n.longest()} {
				s, wrong, err := b.trace(n, hops, w.name+", "+coding.name+", links", func() (tracer, error) {
					return &pintTracer{scheme: scheme, candidates: n.nodes(), beside: beside}, nil
				})
				if err != nil {
					return err
				}
				t.Rows = append(t.Rows, []any{w.name, coding.name, hops, s.runs, s.mean, s.tail, wrong})
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// oneLayer is a coding with its first XOR layer alone. Section 6.3 states one for figure 10, as section 4.2 does for
// d ≤ 15. Algorithm 1 has two layers from d = 6 on.
func oneLayer(c pint.Config) pint.Config {
	c.P = c.P[:1]
	return c
}

// traceNetwork makes the table and the charts of one network.
func (b *bench) traceNetwork(n *network, d int, lengths []int, file string) error {
	t := table{
		Title:   fmt.Sprintf("Figure 10: packets until a path is known, %s, %d switches, paths of up to %d", n.name, n.graph.NumNodes(), n.longest()),
		Columns: []string{"digest", "coding", "method", "hops", "runs", "mean", "p99", "wrong"},
		Notes: []string{
			"In brackets: 95 % confidence. Paths are shortest paths of random pairs, ECMP choices drawn evenly. Codings are for typical paths of",
			fmt.Sprintf("d = %d hops. Ours ends when the path is certain but for 1e-6; PPM and AMS2 read in their favour (decode without errors).", d),
		},
	}
	methods, err := b.pathMethods(n, d)
	if err != nil {
		return err
	}
	charts := make([][2]Chart, len(digestWidths))
	for i, w := range digestWidths {
		charts[i][0] = Chart{File: "pint-figures-10-" + file + "-" + w.file + "-mean", Title: n.name + ", " + w.name + ": mean", X: "switches on the path", Y: "packets until the path is known", logY: true}
		charts[i][1] = charts[i][0]
		charts[i][1].File, charts[i][1].Title = "pint-figures-10-"+file+"-"+w.file+"-p99", n.name+", "+w.name+": 99th percentile"
	}
	for _, m := range methods {
		line := Series{Name: m.name, dashed: m.published}
		high := line
		for _, hops := range lengths {
			s, wrong, err := b.trace(n, hops, m.digest+", "+m.coding+", "+m.name, m.begin)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, []any{m.digest, m.coding, m.name, hops, s.runs, s.mean, s.tail, wrong})
			line.X, line.Y = append(line.X, float64(hops)), append(line.Y, s.mean.Value)
			high.X, high.Y = append(high.X, float64(hops)), append(high.Y, s.tail.Value)
		}
		for i := range charts {
			if m.charted && (m.width == i || m.width < 0) {
				charts[i][0].Series = append(charts[i][0].Series, line)
				charts[i][1].Series = append(charts[i][1].Series, high)
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	for _, c := range charts {
		b.out.Charts = append(b.out.Charts, c[:]...)
	}
	return nil
}

// trace repeats one point.
func (b *bench) trace(n *network, hops int, method string, begin func() (tracer, error)) (summary, int, error) {
	stream := fmt.Sprintf("%s, %d hops", n.name, hops)
	results, err := sample(b, stream+": "+method, stream, b.runs(10_000), func() (func(*rand.Rand) (traced, error), error) {
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
