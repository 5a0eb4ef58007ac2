package solve

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/querymix"
)

// How many paths are traced: for each width, and for each width and coding while codings are compared.
const (
	tracedPaths = 500
	triedPaths  = 100
)

// Measure sets the packets of all static queries of p that have none, as t estimates them, and chooses their coding if
// they have none. It changes p. Before each estimate it calls step, which may be nil, with the name of the query and
// the coding.
func Measure(p *querymix.Problem, t querymix.Tracer, step func(query string, c querymix.PathCoding)) error {
	for i := range p.Queries {
		q := &p.Queries[i]
		if q.Aggregation != querymix.Static {
			continue
		}
		var open []int // widths
		for k, w := range q.Widths {
			if w.Packets == 0 && w.Total() <= p.Bits {
				open = append(open, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		m := measurement{p: p, q: q, tracer: t, step: step}
		if q.Tau == 0 && q.XOR == nil {
			if err := m.choose(open); err != nil {
				return err
			}
		}
		for _, k := range open {
			var err error
			if q.Widths[k].Packets, err = m.packets(k, tracedPaths, math.Inf(1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// measurement is that of one query.
type measurement struct {
	p      *querymix.Problem
	q      *querymix.Query
	tracer querymix.Tracer
	step   func(query string, c querymix.PathCoding)
}

// choose finds the coding with the fewest packets, as the geometric mean over widths, among the published one and those
// of the tracer.
func (m *measurement) choose(widths []int) error {
	q := m.q
	tau, xor := Hybrid(q.Hops)
	codings := append([]querymix.PathCoding{{Tau: tau, XOR: xor}}, m.tracer.Codings(q.Hops)...)
	best, least := codings[0], math.Inf(1)
	fewest := slices.Repeat([]float64{math.Inf(1)}, len(q.Widths)) // by width
	for _, c := range codings {
		q.Tau, q.XOR = c.Tau, c.XOR
		sum := 0.0
		for _, k := range widths {
			n, err := m.packets(k, triedPaths, 2*fewest[k])
			if err != nil {
				return err
			}
			sum += math.Log(n)
			if fewest[k] = min(fewest[k], n); math.IsInf(n, 1) {
				break
			}
		}
		if sum < least {
			best, least = c, sum
		}
	}
	q.Tau, q.XOR = best.Tau, best.XOR
	return nil
}

// packets estimates one width in the present coding.
func (m *measurement) packets(width, paths int, limit float64) (float64, error) {
	q := m.q
	c := querymix.PathCoding{Hash: m.p.Hash, Seed: m.p.Seed, Hops: q.Hops, Width: q.Widths[width], Tau: q.Tau, XOR: q.XOR}
	if m.step != nil {
		m.step(q.Name, c)
	}
	n, err := m.tracer.Packets(c, paths, limit)
	if err != nil {
		return 0, fmt.Errorf("query %q: width %s: %w", q.Name, c.Width, err)
	}
	return n, nil
}
