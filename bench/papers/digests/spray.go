package digests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathmix"
	"github.com/hopscope/hopscope/planner/topo"
)

// sprayCase is a flow whose packets are spread over several shortest paths between the same ends.
type sprayCase struct {
	paths, digests int
	least          float64 // share of the path with the smallest; 0 for equal shares
	wrong          float64 // share of digests that no switch wrote
	most           int     // runs
}

var sprayCases = []sprayCase{
	{4, 200, 0, 0, 200}, {4, 200, .1, 0, 200}, {4, 200, .1, .01, 200},
	{16, 2000, 0, 0, 40}, {16, 2000, .03, 0, 40}, {16, 2000, .03, .01, 40},
}

// sprayWidths are ways to code the path.
var sprayWidths = []struct{ bits, instances int }{{8, 2}, {8, 1}, {4, 2}, {16, 1}, {2, 8}, {1, 8}}

// sprayRun is the result of a run.
type sprayRun struct {
	exact, ghosts, open bool
	share               float64 // of ghosts
}

// spray measures how often the paths of sprayed flows are found, which the paper does not ask.
func (b *bench) spray() error {
	var fabrics []*network
	for _, k := range []int{8, 16} {
		g, err := topo.FatTree(k)
		if err != nil {
			return err
		}
		fabrics = append(fabrics, newNetwork(fmt.Sprintf("Fat-tree k = %d", k), g))
	}
	g, err := topo.LeafSpine(32, 24)
	if err != nil {
		return err
	}
	fabrics = append(fabrics, newNetwork("32 spines, 24 leaves", g))
	kdl, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return err
	}
	columns := []string{"network", "instances × bits", "paths", "smallest share, %", "wrong digests, %", "digests", "runs", "exactly found, %", "with inseparable ones, %", "share of ghosts"}
	notes := []string{"Exactly: all paths that are used and no other. Ghosts: paths that are told and not used. In brackets: 95 % confidence (Wilson)."}
	t := table{Title: "Packets spread over several shortest paths: paths found", Columns: columns, Notes: notes}
	for _, n := range fabrics {
		for _, c := range sprayCases {
			if err := b.sprayRow(&t, n, c, 8, 2); err != nil {
				return err
			}
		}
	}
	for _, c := range []sprayCase{{2, 200, 0, 0, 60}, {4, 200, 0, 0, 60}, {4, 1000, 0, 0, 20}} {
		if err := b.sprayRow(&t, kdl, c, 8, 2); err != nil {
			return err
		}
	}
	widths := table{Title: "Packets spread over several shortest paths: by the coding", Columns: columns, Notes: notes}
	for _, w := range sprayWidths {
		for _, c := range []sprayCase{{4, 200, .1, 0, 60}, {4, 800, .1, 0, 60}, {16, 2000, .03, 0, 10}} {
			if err := b.sprayRow(&widths, fabrics[0], c, w.bits, w.instances); err != nil {
				return err
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t, widths)
	return nil
}

// sprayRow repeats a case.
func (b *bench) sprayRow(t *table, n *network, c sprayCase, bits, instances int) error {
	config := pint.Published(bits)
	config.Instances, config.Seed = instances, uint32(b.o.Seed)
	scheme, err := pint.New(config)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %d × %d, %d paths, %d digests, least %v, wrong %v", n.name, instances, bits, c.paths, c.digests, c.least, c.wrong)
	runs, err := sample(b, name, name, b.runs(c.most), func() (func(*rand.Rand) (sprayRun, error), error) {
		m, err := pathmix.NewModel(pathmix.Config{Scheme: scheme, Nodes: n.nodes(), Links: n.links()})
		return func(r *rand.Rand) (sprayRun, error) { return n.sprayed(m, c, r), nil }, err
	})
	if err != nil {
		return err
	}
	exact, open, ghost := 0, 0, 0.0
	for _, x := range runs {
		if x.exact {
			exact++
		}
		if x.open {
			open++
		}
		ghost += x.share
	}
	total := float64(len(runs))
	smallest := 100 / float64(c.paths)
	if c.least > 0 {
		smallest = 100 * c.least
	}
	t.Rows = append(t.Rows, []any{n.name, fmt.Sprintf("%d × %d", instances, bits), c.paths, smallest, 100 * c.wrong, c.digests, len(runs),
		wilson(exact, len(runs)), 100 * float64(open) / total, ghost / total})
	return nil
}

// wilson is a share of runs in percent, with the interval of Wilson.
func wilson(k, of int) interval {
	const z = 1.96
	n, p := float64(of), float64(k)/float64(of)
	middle, half := p+z*z/2/n, z*math.Sqrt(p*(1-p)/n+z*z/4/n/n)
	return interval{Value: 100 * p, Low: max(0, 100*(middle-half)/(1+z*z/n)), High: min(100, 100*(middle+half)/(1+z*z/n))}
}

// sprayed makes a flow and looks for its paths.
func (n *network) sprayed(m *pathmix.Model, c sprayCase, r *rand.Rand) (x sprayRun) {
	used := n.several(c.paths, r)
	shares, sum := make([]float64, c.paths), 0.0
	for i := range shares {
		sum += float64(i)
	}
	for i := range shares {
		if shares[i] = 1 / float64(c.paths); c.least > 0 { // the others grow evenly
			shares[i] = c.least + float64(i)/sum*(1-float64(c.paths)*c.least)
		}
	}
	scheme := m.Config().Scheme
	digests := make([]pathmix.Digest, 0, c.digests)
	for range c.digests {
		id, at, path := r.Uint32(), r.Float64(), used[c.paths-1]
		for i, s := range shares {
			if at -= s; at < 0 {
				path = used[i]
				break
			}
		}
		value := scheme.Digest(id, path)
		if r.Float64() < c.wrong {
			value = r.Uint64() >> (64 - scheme.Width()*scheme.Instances())
		}
		digests = append(digests, pathmix.Digest{Value: value, ID: id, Hops: uint8(len(path))})
	}
	got := m.Fit(digests, 0, 0)
	found := 0
	for _, p := range got.Paths {
		if slices.ContainsFunc(used, func(q []uint32) bool { return slices.Equal(p.Nodes, q) }) {
			found++
		} else {
			x.ghosts = true
			x.share += p.Share
		}
	}
	x.exact = found == len(used) && !x.ghosts
	x.open = len(got.Inseparable) > 0
	return x
}

// several draws two ends with enough shortest paths between them, and as many different ones as asked for.
func (n *network) several(paths int, r *rand.Rand) (used [][]uint32) {
	for {
		length := 3 + r.IntN(n.longest()-2)
		if len(n.pairs[length]) == 0 {
			continue
		}
		pair := n.pairs[length][r.IntN(len(n.pairs[length]))]
		used = used[:0]
		for range 20 * paths {
			p := n.between(pair, r)
			if !slices.ContainsFunc(used, func(q []uint32) bool { return slices.Equal(p, q) }) {
				used = append(used, p)
			}
			if len(used) == paths {
				return used
			}
		}
	}
}
