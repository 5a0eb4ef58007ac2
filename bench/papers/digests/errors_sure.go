package digests

import (
	"fmt"
	"math/rand/v2"

	"github.com/hopscope/hopscope/inference/pathtrace"
)

// warmFlows is how many flows a tracer has seen that is not fresh.
const warmFlows = 20_000

// certainTable measures the number of digests until a path is published, and until it has no mark.
func (b *bench) certainTable(n *network) error {
	t := table{
		Title:   fmt.Sprintf("Packets until a path is told, and until it has no mark, %s, 2 × 8 bits", n.name),
		Columns: []string{"known", "tracer", "hops", "runs", "told: mean", "p99", "without a mark: mean", "p99"},
	}
	for _, k := range knowledges[2:] {
		for _, warm := range []int{0, warmFlows} {
			if b.o.Runs > 0 {
				warm = min(warm, 40*b.o.Runs)
			}
			name := "fresh"
			if warm > 0 {
				name = fmt.Sprintf("after %d flows", warm)
			}
			for _, hops := range []int{12, 59} {
				published, certain, err := b.certainAt(n, k, hops, warm, min(b.runs(500), 500))
				if err != nil {
					return err
				}
				a, c := summarize(published), summarize(certain)
				t.Rows = append(t.Rows, []any{k.name, name, hops, a.runs, a.mean, a.tail, c.mean, c.tail})
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// certainAt follows flows of one tracer after a number of others. A fresh one has no other flow.
func (b *bench) certainAt(n *network, k knowledge, hops, warm, runs int) (published, certain []int, err error) {
	scheme, err := errorScheme(b.o.Seed)
	if err != nil {
		return nil, nil, err
	}
	our, err := newOurTracer(n, scheme, k)
	if err != nil {
		return nil, nil, err
	}
	b.progress(fmt.Sprintf("certain paths of %d hops, %s, after %d flows", hops, k.name, warm))
	w, r, t := newErrorWorld(n), rand.New(rand.NewPCG(b.o.Seed, uint64(hops))), our.tracer
	for i := range warm {
		if i%100 == 0 && b.ctx.Err() != nil {
			return nil, nil, b.ctx.Err()
		}
		w.trace(t, scheme, w.any(r), 0, 200, r, nil, nil)
	}
	m := t.Model()
	for range runs {
		if warm == 0 {
			t = pathtrace.New(m)
		}
		var path []int32
		for _, u := range n.path(hops, r) {
			path = append(path, int32(u))
		}
		f := w.trace(t, scheme, path, 0, errorDigests, r, nil, nil)
		if f.certainAt == 0 || !f.published {
			return nil, nil, fmt.Errorf("a path of %d hops is not certain after %d digests", hops, errorDigests)
		}
		published, certain = append(published, f.publishedAt), append(certain, f.certainAt)
	}
	return published, certain, nil
}
