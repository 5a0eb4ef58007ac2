package papers

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/hopscope/hopscope/decode/pint"
)

// codingHops is k and d of figure 5.
const codingHops = 25

// codings are the lines of figure 5 and ours. The paper's constants: XOR with 1/d; hybrid with τ = 3/4 and ln ln d / ln d
// (section 4.2); multi-layer with τ = ln log* d / (1 + ln log* d) and, revised, (1 + ln log* d) / (2 + ln log* d), where
// layer ℓ has p = e↑↑(ℓ-1) / d (appendix).
var codings = []struct {
	name, paper string
	tau         float64
	p           []float64
	eliminate   bool // by Gaussian elimination, not by peeling
}{
	{name: "Baseline", paper: "89 / 189", tau: 1},
	{name: "XOR, p = 1/d", p: []float64{1. / codingHops}},
	{name: "Hybrid", paper: "41 / 68", tau: 0.75, p: []float64{lnln / ln}},
	{name: "Multi-layer, τ", tau: star / (1 + star), p: []float64{1. / codingHops, math.E / codingHops}},
	{name: "Multi-layer, revised τ", tau: (1 + star) / (2 + star), p: []float64{1. / codingHops, math.E / codingHops}},
	{name: "Hybrid, Gaussian elimination", tau: 0.75, p: []float64{lnln / ln}, eliminate: true},
	{name: "Ours: hybrid τ = 0.1, elimination", tau: 0.1, p: []float64{lnln / ln}, eliminate: true},
	{name: "Ours: linear network coding, p = 1/2", p: []float64{0.5}, eliminate: true},
}

var (
	ln   = math.Log(codingHops)
	lnln = math.Log(ln)
	star = math.Log(3) // log* 25 = 3
)

// coding makes figure 5: how fast 25 values arrive that fit into a digest each.
func (b *pintBench) coding() error {
	t := PINTTable{
		Title:   fmt.Sprintf("Figure 5: packets until %d hops with values of the digest's width are known", codingHops),
		Columns: []string{"scheme", "τ", "p", "runs", "mean", "median", "p99", "paper: median / p99"},
		Notes:   []string{"In brackets: 95 % confidence. Writers are chosen by decode/pint; a digest of one unknown writer is peeled, or all are eliminated."},
	}
	missing := Chart{File: "pint-figures-5a", Title: "Hops still unknown", X: "packets", Y: "expected missing hops"}
	decoded := Chart{File: "pint-figures-5b", Title: "Path decoded", X: "packets", Y: "probability"}
	for _, c := range codings {
		scheme, err := pint.New(pint.Config{Seed: uint32(b.o.Seed), Bits: 8, Instances: 1, Tau: c.tau, P: c.p})
		if err != nil {
			return err
		}
		progress, err := sample(b, c.name, b.runs(10_000), func() func(*rand.Rand) []uint8 {
			return func(r *rand.Rand) []uint8 { return receive(scheme, c.eliminate, r) }
		})
		if err != nil {
			return err
		}
		packets := make([]int, len(progress))
		for i, p := range progress {
			packets[i] = len(p)
		}
		s := summarize(packets)
		t.Rows = append(t.Rows, []any{c.name, c.tau, layers(c.p), s.runs, s.mean, s.median, s.tail, c.paper})
		line := Series{Name: c.name, Dashed: !c.eliminate}
		var left []float64
		var share []float64
		for n := range 201 {
			sum := 0
			for _, p := range progress {
				switch {
				case n == 0:
					sum += codingHops
				case n <= len(p):
					sum += int(p[n-1])
				}
			}
			line.X = append(line.X, float64(n))
			left = append(left, float64(sum)/float64(s.runs))
			share = append(share, s.share(n))
		}
		line.Y = left
		missing.Series = append(missing.Series, line)
		line.Y = share
		decoded.Series = append(decoded.Series, line)
	}
	b.out.Tables = append(b.out.Tables, t)
	b.out.Charts = append(b.out.Charts, missing, decoded)
	return nil
}

// layers names the probabilities of the XOR layers.
func layers(p []float64) string {
	var s []string
	for _, p := range p {
		s = append(s, number(p))
	}
	return strings.Join(s, ", ")
}

// receive takes packets until all hops are known, and gives how many were not after each.
func receive(s *pint.Scheme, eliminate bool, r *rand.Rand) (missing []uint8) {
	var e eliminator
	var p peeler
	for {
		packet := s.Packet(r.Uint32(), 0)
		writers := s.Writers(&packet, codingHops)
		var known uint64
		if eliminate {
			known = e.add(writers)
		} else {
			known = p.add(writers)
		}
		missing = append(missing, uint8(codingHops-bits.OnesCount64(known)))
		if known == 1<<codingHops-1 {
			return missing
		}
	}
}

// peeler knows the value of a hop when it is the only unknown one in a digest.
type peeler struct {
	known   uint64
	waiting []uint64 // writers of digests with several unknown ones
}

func (p *peeler) add(writers uint64) (known uint64) {
	p.waiting = append(p.waiting, writers)
	for again := true; again; {
		again = false
		keep := p.waiting[:0]
		for _, w := range p.waiting {
			switch w &^= p.known; {
			case w == 0:
			case w&(w-1) == 0:
				p.known |= w
				again = true
			default:
				keep = append(keep, w)
			}
		}
		p.waiting = keep
	}
	return p.known
}

// eliminator solves the linear equations over GF(2). Its rows are in reduced echelon form: the lowest bit of row i is bit i,
// and in no other row.
type eliminator struct{ row [pint.MaxHops]uint64 }

func (e *eliminator) add(writers uint64) (known uint64) {
	for w := writers; w != 0; w &= w - 1 {
		if i := bits.TrailingZeros64(w); e.row[i] != 0 {
			writers ^= e.row[i]
		}
	}
	if writers != 0 {
		pivot := bits.TrailingZeros64(writers)
		for i, r := range e.row {
			if r>>pivot&1 == 1 {
				e.row[i] ^= writers
			}
		}
		e.row[pivot] = writers
	}
	for i, r := range e.row {
		if r == 1<<i {
			known |= r
		}
	}
	return known
}
