package findings

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/p4/emu"
)

// TestPictures holds that nothing begins on quiet pictures, that a queue which rises begins one finding, at its hop, and
// that it ends and may begin again.
func TestPictures(t *testing.T) {
	e := NewEmulation(1)
	c, err := e.config()
	if err != nil {
		t.Fatal(err)
	}
	n, err := emu.New(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, k, r := newFilm(n), newKernel(), rand.New(rand.NewPCG(1, 1))
	if len(f.cells) != 2*n.Graph().NumLinks() || len(f.at) != len(f.cells) {
		t.Fatalf("%d cells and %d hops of %d links", len(f.cells), len(f.at), n.Graph().NumLinks())
	}
	in := make([][inputs]float64, len(f.cells))
	const at = 17
	step := func(factor float64) []inference.HopKey {
		w := inference.Window{}
		for i := range f.cells {
			x := math.Exp(.1 * r.NormFloat64())
			if i == at {
				x *= factor
			}
			w.Hops = append(w.Hops, inference.HopStats{HopKey: f.cells[i].hop, Count: 100,
				Queue: inference.Summary{Count: 100, P99: uint64(9000 * x)}, Latency: inference.Summary{Count: 100, P99: uint64(1e7 * x)}})
		}
		return f.watch(&k, &w, in)
	}
	for window := range 200 {
		if begun := step(1); len(begun) > 0 {
			t.Fatalf("window %d, quiet: %v", window, begun)
		}
	}
	for again := range 2 {
		var all []inference.HopKey
		for range 10 {
			all = append(all, step(8)...)
		}
		if len(all) != 1 || all[0] != f.cells[at].hop {
			t.Fatalf("time %d: %v began, want %v", again, all, f.cells[at].hop)
		}
		for range 20 {
			if begun := step(1); len(begun) > 0 {
				t.Errorf("after it passed: %v", begun)
			}
		}
	}
}

// TestPictureInputs compares what the kernel sees with a slower way: each cell and its neighbours by row and column.
func TestPictureInputs(t *testing.T) {
	c, err := new(Emulation).config()
	if err != nil {
		t.Fatal(err)
	}
	n, err := emu.New(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, r := newFilm(n), rand.New(rand.NewPCG(2, 2))
	values := map[[2]int][channels]float64{}
	for i := range f.cells {
		for k := range f.cells[i].x {
			f.cells[i].x[k] = r.NormFloat64()
		}
		values[[2]int{f.cells[i].row, f.cells[i].column}] = f.cells[i].x
	}
	in := make([][inputs]float64, len(f.cells))
	f.input(in)
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	for i := range f.cells {
		row, column := f.cells[i].row, f.cells[i].column
		for k := range channels {
			var ofRow, ofColumn, rows, columns float64
			for at, x := range values {
				if at[0] == row {
					ofRow, rows = ofRow+x[k], rows+1
				}
				if at[1] == column {
					ofColumn, columns = ofColumn+x[k], columns+1
				}
			}
			if !near(in[i][poolAt+k], ofRow/rows) || !near(in[i][poolAt+channels+k], ofColumn/columns) || in[i][backAt+k] != values[[2]int{column, row}][k] {
				t.Fatalf("cell %d, channel %d: means or the other direction differ", i, k)
			}
			for p := range patch {
				if want := values[[2]int{row + p/3 - 1, column + p%3 - 1}][k]; in[i][p*channels+k] != want {
					t.Fatalf("cell %d, channel %d, neighbour %d: %v, want %v", i, k, p, in[i][p*channels+k], want)
				}
			}
		}
		if in[i][biasAt] != 1 {
			t.Fatal("no bias")
		}
	}
}
