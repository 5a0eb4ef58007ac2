package ask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// drawn returns a film of random links, of which some are parallel and some values absent.
func drawn(r *rand.Rand, nodes, links, windows int) *Film {
	f := &Film{Metric: "queue_p99", Unit: "B"}
	for i := range nodes {
		f.Nodes = append(f.Nodes, FilmNode{uint32(100 + i), fmt.Sprintf("switch-%d", i)})
	}
	for range links {
		f.Directions = append(f.Directions, [2]int{r.IntN(nodes), r.IntN(nodes)})
	}
	for w := range windows {
		values := make([]Value, links)
		for i := range values {
			if values[i] = Value(r.IntN(100_000)); r.IntN(4) == 0 {
				values[i] = Absent
			}
		}
		f.Windows, f.Values = append(f.Windows, int64(1_700_000_000_000+1000*w)), append(f.Values, values)
	}
	return f
}

// cells is a matrix by a slower way: the greatest value by pair of switches.
func cells(f *Film, w int) map[[2]int]float32 {
	all := map[[2]int]float32{}
	for i, d := range f.Directions {
		v := float32(f.Values[w][i])
		if before, known := all[d]; v == v && (!known || v > before) {
			all[d] = v
		}
	}
	return all
}

func TestFilmMatrix(t *testing.T) {
	f := drawn(rand.New(rand.NewPCG(1, 1)), 9, 60, 5)
	var m []float32
	for w := range f.Windows {
		m = f.Matrix(w, m)
		want := cells(f, w)
		for i, v := range m {
			x, there := want[[2]int{i / 9, i % 9}]
			if there != (v == v) || there && x != v {
				t.Fatalf("window %d, cell %d: %v, want %v %v", w, i, v, x, there)
			}
		}
	}
}

// Other programs read what is written: NumPy the tensor, pyarrow the rows. Both give the sum and the number of values.
func TestFilmReaders(t *testing.T) {
	f := drawn(rand.New(rand.NewPCG(2, 2)), 12, 80, 7)
	dir := t.TempDir()
	var sum float64
	n := 0
	rows := 0
	for w := range f.Windows {
		for _, v := range cells(f, w) {
			sum, n = sum+float64(v), n+1
		}
		for _, v := range f.Values[w] {
			if v == v {
				rows++
			}
		}
	}
	write := func(name string, write func(w *os.File) error) string {
		file, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = write(file)
		}
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		return file.Name()
	}
	npy := write("a.npy", func(w *os.File) error { return f.WriteNumPy(w) })
	arrow := write("a.arrow", func(w *os.File) error { return f.WriteArrow(w) })
	out, err := exec.Command(testkit.Python(t), "-c", `
import sys, numpy, pyarrow
a = numpy.load(sys.argv[1])
print(a.shape, a.dtype, int(numpy.isfinite(a).sum()), int(numpy.nansum(a.astype("f8"))))
t = pyarrow.ipc.open_file(sys.argv[2]).read_all()
best = {}
for r in t.to_pylist():
    k = (r["end"], r["row"], r["column"])
    best[k] = max(best.get(k, 0), r["value"])
    assert r["from"] == 100 + r["row"] and r["to_name"] == "switch-%d" % r["column"]
print(t.num_rows, len(best), int(sum(best.values())), t.schema.metadata, t.schema.field("end").type)
`, npy, arrow).CombinedOutput()
	want := fmt.Sprintf("(7, 12, 12) float32 %d %d\n%d %d %d {b'metric': b'queue_p99', b'unit': b'B'} timestamp[ms, tz=UTC]\n", n, int64(sum), rows, n, int64(sum))
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

// A picture is darker for greater values, white without one, and grey on its diagonal.
func TestFilmPNG(t *testing.T) {
	f := &Film{Nodes: make([]FilmNode, 3), Directions: [][2]int{{0, 1}, {1, 0}, {2, 0}, {0, 2}}, Windows: []int64{1}, Values: [][]Value{{0, 50_000, 500, Absent}}}
	var b bytes.Buffer
	if err := f.WritePNG(&b, 0); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil || img.Bounds().Dx() != 3*maxCell {
		t.Fatal(err, img.Bounds())
	}
	light := func(row, column int) uint32 {
		r, g, b, _ := img.At(column*maxCell+maxCell/2, row*maxCell+maxCell/2).RGBA()
		return r + g + b
	}
	if white := light(0, 2); white != 3*0xffff || light(1, 1) == white || light(0, 1) >= white {
		t.Error("absent, diagonal and least values look alike")
	}
	if !(light(0, 1) > light(2, 0) && light(2, 0) > light(1, 0)) {
		t.Errorf("%d, %d, %d do not get darker", light(0, 1), light(2, 0), light(1, 0))
	}
}

func TestNewFilm(t *testing.T) {
	var m atlas.Document
	text := `{"source":"topology","nodes":[{"id":7,"name":"core-0","tier":"core","plane":1},{"id":3,"name":"edge-1-0","tier":"edge","pod":1}],"links":[{"a":7,"b":3}]}`
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	f := NewFilm("queue_p99", "B", &m)
	if got := fmt.Sprint(f.Nodes, f.Directions, f.Source); got != "[{3 edge-1-0} {7 core-0}] [[1 0] [0 1]]topology" {
		t.Error(got)
	}
}

// FuzzFilm holds that an answer of any kind is refused or written, and that what is read is what was written.
func FuzzFilm(f *testing.F) {
	seed, _ := json.Marshal(drawn(rand.New(rand.NewPCG(4, 4)), 4, 6, 2))
	f.Add(string(seed))
	f.Add(`{"nodes":[{"id":1}],"directions":[[0,1]],"windows":[1],"values":[[null]]}`)
	f.Add(`{"nodes":[{"id":1}],"directions":[[0,0]],"windows":[1],"values":[[1e39,2]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var film Film
		if json.Unmarshal([]byte(text), &film) != nil || film.Check() != nil || len(film.Windows)*len(film.Nodes)*len(film.Nodes) > 1<<16 {
			return
		}
		name := filepath.Join(t.TempDir(), "film")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := film.WriteNumPy(file); err != nil {
			t.Error(err)
		}
		if err := film.WriteArrow(file); err != nil && !strings.Contains(err.Error(), "utf") {
			t.Error(err)
		}
		for w := range film.Windows {
			if err := film.WritePNG(io.Discard, w); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestFilmCheck holds that contradictions are refused.
func TestFilmCheck(t *testing.T) {
	for _, text := range []string{
		`{"nodes":[{"id":1}],"directions":[[0,1]],"windows":[1],"values":[[1]]}`, `{"directions":[[0,0]]}`, `{"nodes":[{"id":1}],"directions":[[-1,0]]}`,
		`{"windows":[1]}`, `{"values":[[]]}`, `{"nodes":[{"id":1}],"directions":[[0,0]],"windows":[1],"values":[[]]}`,
	} {
		var f Film
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		if f.Check() == nil {
			t.Errorf("%s passes", text)
		}
	}
	big := Film{Nodes: make([]FilmNode, maxNodes), Windows: make([]int64, 2), Values: make([][]Value, 2)}
	if big.Check() == nil {
		t.Error("a tensor of 8 GB passes")
	}
}
