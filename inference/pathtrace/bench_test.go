package pathtrace

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// grid is a network of rows of nodes, each linked with the next ones in its row and its column.
func grid(rows, columns int) (nodes []uint32, links [][2]int32) {
	for r := range rows {
		for c := range columns {
			u := int32(len(nodes))
			nodes = append(nodes, uint32(1000+u))
			if c > 0 {
				links = append(links, [2]int32{u - 1, u})
			}
			if r > 0 {
				links = append(links, [2]int32{u - int32(columns), u})
			}
		}
	}
	return nodes, links
}

func benchScheme(b testing.TB, bits, instances int, vectors bool) *pint.Scheme {
	c := pint.Published(bits)
	c.Instances, c.Vectors = instances, vectors
	s, err := pint.New(c)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// row is a path along the first row of a grid.
func row(nodes []uint32, hops int) []uint32 { return nodes[:hops] }

// A digest of a flow whose path is known.
func BenchmarkVerify(b *testing.B) {
	for _, vectors := range []bool{false, true} {
		for _, hops := range []int{5, 12, 24, 36, 59} {
			for _, instances := range []int{1, 2} {
				b.Run(fmt.Sprintf("vectors=%v/hops=%d/instances=%d", vectors, hops, instances), func(b *testing.B) {
					scheme := benchScheme(b, 8, instances, vectors)
					nodes, links := grid(2, 64)
					m, err := prior.NewModel(prior.Config{Scheme: scheme, Nodes: nodes, Links: links, Routing: prior.Distance})
					if err != nil {
						b.Fatal(err)
					}
					t := New(m)
					path := row(nodes, hops)
					var f Flow
					id := uint32(0)
					for ; !f.Known() || f.undecided() || id < 2000; id++ { // until no digest is kept any more
						t.Add(&f, id, hops, scheme.Digest(id, path))
					}
					const n = 4096
					digests := make([]uint64, n)
					for i := range digests {
						digests[i] = scheme.Digest(id+uint32(i), path)
					}
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						if e := t.Add(&f, id+uint32(i), hops, digests[i]); e != Verified {
							b.Fatal(e)
						}
						i = (i + 1) % n
					}
				})
			}
		}
	}
}

// Whole flows from the first digest to the path, through a network of 754 nodes; the time is that of one digest.
func BenchmarkUndecided(b *testing.B) {
	nodes, links := grid(13, 58)
	for _, c := range []struct {
		name    string
		routing prior.Routing
	}{{"links", prior.None}, {"distance", prior.Distance}} {
		for _, width := range [][2]int{{1, 1}, {8, 2}} {
			b.Run(fmt.Sprintf("%s/bits=%dx%d", c.name, width[1], width[0]), func(b *testing.B) {
				scheme := benchScheme(b, width[0], width[1], false)
				m, err := prior.NewModel(prior.Config{Scheme: scheme, Nodes: nodes, Links: links, Routing: c.routing})
				if err != nil {
					b.Fatal(err)
				}
				t := New(m)
				r := rand.New(rand.NewPCG(1, 2))
				path := row(nodes, 58)
				const n = 1 << 14
				digests := make([]uint64, n)
				ids := make([]uint32, n)
				for i := range digests {
					ids[i] = r.Uint32()
					digests[i] = scheme.Digest(ids[i], path)
				}
				var f Flow
				i, flows := 0, 0
				b.ReportAllocs()
				for b.Loop() {
					t.Add(&f, ids[i], 58, digests[i])
					if i = (i + 1) % n; f.Known() {
						t.Release(&f)
						flows++
					}
				}
				if flows > 0 {
					b.ReportMetric(float64(b.N)/float64(flows), "digests/flow")
				}
			})
		}
	}
}
