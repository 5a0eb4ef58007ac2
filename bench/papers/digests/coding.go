package digests

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/decode/pint"
)

// codingHops is k and d of figure 5.
const codingHops = 25

// codings are the lines of figure 5 and ours.
var codings = []struct {
	name, paper string
	config      pint.Config
	eliminate   bool // by Gaussian elimination, not by peeling
}{
	{name: "Baseline", paper: "89 / 189", config: pint.Baseline(8)},
	{name: "XOR, p = 1/d", config: pint.XOR(8, codingHops)},
	{name: "Hybrid", paper: "41 / 68", config: pint.Hybrid(8, codingHops)},
	{name: "Multi-layer", config: pint.MultiLayer(8, codingHops)},
	{name: "Multi-layer, revised", config: pint.MultiLayerRevised(8, codingHops)},
	{name: "Hybrid, Gaussian elimination", config: pint.Hybrid(8, codingHops), eliminate: true},
	{name: "Ours: hybrid τ = 0.1, elimination", config: mostlyXOR(), eliminate: true},
	{name: "Ours: linear network coding", config: pint.Linear(8, 8), eliminate: true},
}

// mostlyXOR is Hybrid for a decoder that does not need Baseline to begin.
func mostlyXOR() pint.Config {
	c := pint.Hybrid(8, codingHops)
	c.Tau = 0.1
	return c
}

// coding makes figure 5: how fast 25 values arrive that fit into a digest each.
func (b *bench) coding() error {
	t := table{
		Title:   fmt.Sprintf("Figure 5: packets until %d hops with values of the digest's width are known", codingHops),
		Columns: []string{"scheme", "τ", "p", "runs", "mean", "median", "p99", "all but 1/k", "paper: median / p99"},
		Notes:   []string{"In brackets: 95 % confidence. Writers are chosen by decode/pint; a digest of one unknown writer is peeled, or all are eliminated."},
	}
	missing := Chart{File: "pint-figures-5a", Title: "Hops still unknown", X: "packets", Y: "expected missing hops"}
	decoded := Chart{File: "pint-figures-5b", Title: "Path decoded", X: "packets", Y: "probability"}
	for _, c := range codings {
		c.config.Seed = uint32(b.o.Seed)
		scheme, err := pint.New(c.config)
		if err != nil {
			return err
		}
		progress, err := sample(b, c.name, "coding", b.runs(10_000), counting(func(r *rand.Rand) []uint8 {
			return receive(scheme, c.eliminate, r)
		}))
		if err != nil {
			return err
		}
		packets := make([]int, len(progress))
		for i, p := range progress {
			packets[i] = len(p)
		}
		s := summarize(packets)
		t.Rows = append(t.Rows, []any{c.name, c.config.Tau, layers(c.config.P), s.runs, s.mean, s.median, s.tail, orderStatistic(s.sorted, 1-1./codingHops), c.paper})
		line := Series{Name: c.name, dashed: !c.eliminate}
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
		s = append(s, harness.Number(p))
	}
	return strings.Join(s, ", ")
}

// receive reads packets until all hops are known and returns how many were unknown after each.
func receive(s *pint.Scheme, eliminate bool, r *rand.Rand) (missing []uint8) {
	var e pint.Eliminator
	var p peeler
	for {
		packet := s.Packet(r.Uint32(), 0)
		writers := s.Writers(&packet, codingHops)
		var known uint64
		if eliminate {
			e.Add(writers, 0)
			known = e.Known()
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
	for changed := true; changed; {
		changed = false
		keep := p.waiting[:0]
		for _, w := range p.waiting {
			switch w &^= p.known; {
			case w == 0:
			case w&(w-1) == 0:
				p.known |= w
				changed = true
			default:
				keep = append(keep, w)
			}
		}
		p.waiting = keep
	}
	return p.known
}
