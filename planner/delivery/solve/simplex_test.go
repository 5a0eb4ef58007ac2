package solve

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestSimplexAgainstVertices compares with the best vertex of small random programmes, rows and bounds added step by step.
func TestSimplexAgainstVertices(t *testing.T) {
	infeasibles := 0
	for seed := range uint64(testkit.Rounds(600, 3000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		n := 1 + rng.IntN(3)
		lo, hi, cost := make([]float64, n), make([]float64, n), make([]float64, n)
		for v := range n {
			lo[v] = float64(rng.IntN(3)) - 1
			hi[v] = lo[v] + float64(rng.IntN(4))
			cost[v] = float64(rng.IntN(7) - 3)
		}
		type row struct {
			a      []float64
			lo, hi float64
		}
		var rows []row
		for v := range n {
			a := make([]float64, n)
			a[v] = 1
			rows = append(rows, row{a, lo[v], hi[v]})
		}
		l := newProgram(lo, hi, cost)
		for range 1 + rng.IntN(5) {
			if rng.IntN(4) == 0 {
				v := rng.IntN(n)
				x := lo[v] + float64(rng.IntN(int(hi[v]-lo[v])+1))
				lo[v], hi[v] = x, x
				rows[v].lo, rows[v].hi = x, x
				l.fix(int32(v), x)
			} else {
				r := row{a: make([]float64, n), lo: math.Inf(-1), hi: math.Inf(1)}
				var terms []term
				for v := range n {
					if r.a[v] = float64(rng.IntN(5) - 2); r.a[v] != 0 {
						terms = append(terms, term{int32(v), r.a[v]})
					}
				}
				at := float64(rng.IntN(9) - 4)
				switch rng.IntN(3) {
				case 0:
					r.lo = at
				case 1:
					r.hi = at
				default:
					r.lo, r.hi = at, at+float64(rng.IntN(2))
				}
				rows = append(rows, r)
				l.addRow(terms, r.lo, r.hi)
			}
			// The best vertex: n of the bounds of rows hold exactly.
			want := math.Inf(1)
			var choose func(from int, m [][]float64)
			choose = func(from int, m [][]float64) {
				if len(m) == n {
					x, ok := solveSquare(m)
					if !ok {
						return
					}
					sum := 0.0
					for v := range n {
						sum += cost[v] * x[v]
					}
					for _, r := range rows {
						s := 0.0
						for v := range n {
							s += r.a[v] * x[v]
						}
						if s < r.lo-1e-7 || s > r.hi+1e-7 {
							return
						}
					}
					want = min(want, sum)
					return
				}
				for i := from; i < len(rows); i++ {
					for _, b := range []float64{rows[i].lo, rows[i].hi} {
						if !math.IsInf(b, 0) {
							choose(i+1, append(m[:len(m):len(m)], append(append([]float64{}, rows[i].a...), b)))
						}
					}
				}
			}
			choose(0, nil)
			got := math.Inf(1)
			switch l.solve() {
			case optimal:
				got = l.objective()
			case stalled:
				t.Fatalf("seed %d: stalled", seed)
			}
			if math.IsInf(want, 1) {
				infeasibles++
			}
			if !(math.Abs(got-want) < 1e-5) && !(math.IsInf(got, 1) && math.IsInf(want, 1)) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
			if math.IsInf(want, 1) {
				break
			}
		}
	}
	if infeasibles < testkit.Rounds(100, 500) {
		t.Errorf("only %d programmes were infeasible", infeasibles)
	}
}

// solveSquare solves rows of coefficients, each followed by its right side.
func solveSquare(rows [][]float64) (x []float64, ok bool) {
	n := len(rows)
	m := make([][]float64, n)
	for i := range rows {
		m[i] = append([]float64{}, rows[i]...)
	}
	for c := range n {
		p := c
		for i := c; i < n; i++ {
			if math.Abs(m[i][c]) > math.Abs(m[p][c]) {
				p = i
			}
		}
		if math.Abs(m[p][c]) < 1e-9 {
			return nil, false
		}
		m[c], m[p] = m[p], m[c]
		for i := range n {
			if i == c {
				continue
			}
			f := m[i][c] / m[c][c]
			for j := c; j <= n; j++ {
				m[i][j] -= f * m[c][j]
			}
		}
	}
	for i := range n {
		x = append(x, m[i][n]/m[i][i])
	}
	return x, true
}
