package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Student's distribution against the tables of its quantiles (two-sided).
func TestStudent(t *testing.T) {
	for _, x := range []struct{ t, n, p float64 }{
		{12.706, 1, .05}, {4.303, 2, .05}, {2.571, 5, .05}, {4.032, 5, .01}, {2.228, 10, .05}, {2.042, 30, .05}, {1.960, 1e6, .05}, {0, 7, 1}, {3.291, 1e6, .001},
	} {
		if p := student(x.t, x.n); math.Abs(p-x.p) > x.p*5e-3 {
			t.Errorf("t = %v, %v degrees of freedom: %v, want %v", x.t, x.n, p, x.p)
		}
	}
}

// Text that a bench writes becomes the same tables on a recorder.
func TestRecorder(t *testing.T) {
	write := func(w interface{ Write([]byte) (int, error) }) {
		fmt.Fprint(w, "Title\nof two lines\n\n")
		c := Columns(w, 2, 0)
		fmt.Fprintln(c, "NAME\tVALUE\t")
		fmt.Fprintln(c, "a\t1.5\t")
		fmt.Fprintln(c, "b\t2 %\t")
		c.Flush()
		fmt.Fprintln(w, "behind it")
	}
	var text bytes.Buffer
	write(&text)
	if want := "Title\nof two lines\n\nNAME  VALUE  \na     1.5    \nb     2 %    \nbehind it\n"; text.String() != want {
		t.Errorf("%q", text.String())
	}
	var r Recorder
	write(&r)
	if err := Show(&r, "object", map[string]any{"list": []int{1, 2}, "pairs": []map[string]int{{"a": 3}, {"a": 4}}, "rows": []any{map[string]any{"name": "x", "ok": true}}}, nil); err != nil {
		t.Fatal(err)
	}
	want := []Table{
		{Title: "Title\nof two lines", Columns: []string{"NAME", "VALUE"}, Rows: [][]any{{"a", 1.5}, {"b", "2 %"}}, Notes: []string{"behind it"}},
		{Title: "object", Columns: []string{"figure", "value"}, Rows: [][]any{{"list", []float64{1, 2}}, {"pairs[].a", []float64{3, 4}}, {"rows[x].ok", 1.}}, Detail: json.RawMessage(`{"list":[1,2],"pairs":[{"a":3},{"a":4}],"rows":[{"name":"x","ok":true}]}`)},
	}
	if got := r.Tables(); !reflect.DeepEqual(got, want) {
		t.Errorf("%#v", got)
	}
}

func of1(v ...any) *Result {
	return &Result{Bench: "b", Tables: []Table{{Title: "t", Columns: []string{"name", "x"}, Rows: [][]any{v}}}}
}

// JSON comes back as it was, and CSV has a line for each value.
func TestWrite(t *testing.T) {
	seed := uint64(1 << 63)
	r := of1("row, 1", 1.25, Interval{2, 1, 3}, []float64{4, 5}, "6 \"MB\"")
	r.Version, r.Machine, r.Seed = "v1", ThisMachine(), &seed
	var b bytes.Buffer
	if err := r.Write(&b, "json"); err != nil {
		t.Fatal(err)
	}
	list, err := Read(&b)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], r) {
		t.Errorf("%+v, %v", list, err)
	}
	if err := r.Write(&b, "csv"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[0], "bench,version,machine,seed,table,row") || !strings.Contains(lines[3], ",9223372036854775808,t,1,\"row, 1\",column 3,2,1,3") {
		t.Errorf("%q", lines)
	}
	for want, text := range map[string]string{
		"no result": "", "result 1, byte 0 on: the file ends before the result does": "{", "no figure": `{"bench":"b","tables":[{"rows":[["a","x"]]}]}`, "no bench": `{"x":1}`, "without value, low and high": `{"bench":"b","tables":[{"rows":[[{"low":1}]]}]}`, "other things than numbers": `{"bench":"b","tables":[{"rows":[[["x"]]]}]}`,
		"byte 24: bench cannot be number": `{"bench":5,"tables":[] }`, "byte 2: array where an object is wanted": "[]", "tables.title cannot be number": `{"bench":"b","tables":[{"title":7}]}`,
		"tables.rows cannot be number 1e999": `{"bench":"b","tables":[{"rows":[[1e999]]}]}`, "byte 8: ": `{"a":  x}`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Figures that differ beyond noise are listed as changed, and those with a single value as unknown.
func TestCompare(t *testing.T) {
	for _, x := range []struct {
		before, after           []*Result
		changed, equal, unknown int
	}{
		{[]*Result{of1("a", 1.)}, []*Result{of1("a", 1.)}, 0, 1, 0},
		{[]*Result{of1("a", 1.)}, []*Result{of1("a", 2.)}, 0, 0, 1},
		{[]*Result{of1("a", "7 of 12")}, []*Result{of1("a", "8 of 12")}, 0, 1, 1},
		{[]*Result{of1("a", []float64{1, 1.1, .9})}, []*Result{of1("a", []float64{1.05, .95, 1})}, 0, 1, 0},
		{[]*Result{of1("a", []float64{1, 1.1, .9})}, []*Result{of1("a", []float64{3, 3.1, 2.9})}, 1, 0, 0},
		{[]*Result{of1("a", 1.), of1("a", 1.1), of1("a", .9)}, []*Result{of1("a", 3.), of1("a", 3.1), of1("a", 2.9)}, 1, 0, 0},
		{[]*Result{of1("a", 1.), of1("a", 1.)}, []*Result{of1("a", 3.), of1("a", 3.)}, 1, 0, 0},
		{[]*Result{of1("a", Interval{1, .9, 1.1})}, []*Result{of1("a", Interval{1.05, .95, 1.15})}, 0, 1, 0},
		{[]*Result{of1("a", Interval{1, .9, 1.1})}, []*Result{of1("a", Interval{1.5, 1.4, 1.6})}, 1, 0, 0},
	} {
		c := Compare(x.before, x.after)
		if len(c.Changed) != x.changed || c.Equal != x.equal || len(c.Unknown) != x.unknown || len(c.Missing) != 0 {
			t.Errorf("%v and %v: %+v", x.before[0].Tables, x.after[0].Tables, c)
		}
		if table := c.Table(); len(table.Rows) != x.changed+x.unknown {
			t.Errorf("%+v", table)
		}
	}
	twice := &Result{Bench: "b", Tables: []Table{{Columns: []string{"name", "x", "x"}, Rows: [][]any{{"a", 1., 2.}}}}} // two figures, and not two values of one
	if c := Compare([]*Result{twice}, []*Result{twice}); c.Equal != 2 {
		t.Errorf("%+v", c)
	}
	c := Compare([]*Result{of1("a", 1., "2 MB")}, []*Result{of1("b", 1., "2 MB")})
	if len(c.Missing) != 4 {
		t.Errorf("%q", c.Missing)
	}
	c = Compare([]*Result{of1("a", "7 of 12")}, []*Result{of1("a", "7 in 12")})
	if got := strings.Join(c.Missing, "; "); got != "before: t | a | x; before: t | a | x, number 2; after: t | a | x; after: t | a | x, number 2" {
		t.Errorf("another text: %s", got)
	}
	if c := Compare([]*Result{of1("a", -2.)}, []*Result{of1("a", -1.)}); c.Unknown[0].relative() != "+50.0 %" {
		t.Errorf("-2 to -1: %s", c.Unknown[0].relative())
	}
	other := of1("a", 1.)
	other.Bench = "b --runs=2 --seed=3"
	second := of1("a", 1.)
	second.Bench = "b --seed=2"
	if c := Compare([]*Result{of1("a", 1.), second}, []*Result{second, of1("a", 1.), other}); len(c.Mixed) != 1 || c.Mixed[0] != `after: result 1 is of "b --seed=2", result 3 of "b --runs=2 --seed=3"; figures of the same name are taken for values of one` {
		t.Errorf("%q", c.Mixed)
	}
	if b, err := json.Marshal(c); err != nil || !strings.Contains(string(b), `"changed":[]`) {
		t.Errorf("%s, %v", b, err)
	}
}

// Of figures that do not change, almost none is listed. The procedure holds the share of false changes at 5 %, so
// that most comparisons without any change list none.
func TestCompareNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	listed := 0
	for range 200 {
		var sides [2][]*Result
		for s := range sides {
			x := &Result{Bench: "b", Tables: []Table{{Title: "t", Columns: []string{"name", "x"}}}}
			for i := range 50 {
				list := make([]float64, 5)
				for k := range list {
					list[k] = 100 + r.NormFloat64()
				}
				x.Tables[0].Rows = append(x.Tables[0].Rows, []any{fmt.Sprint("row ", i), list})
			}
			sides[s] = []*Result{x}
		}
		if len(Compare(sides[0], sides[1]).Changed) > 0 {
			listed++
		}
	}
	if listed > 25 { // 200 comparisons, each with 5 %: 10, and five standard deviations
		t.Errorf("%d of 200 comparisons of the same list a change", listed)
	}
}

// Foreign text is one cell of one row, for any content.
func TestPrintLines(t *testing.T) {
	var b bytes.Buffer
	table := Table{Title: "t", Columns: []string{"x", "y"}, Rows: [][]any{{"a\tb\nc\v\f\xffd", nil}, {"e", 1.}}}
	if err := table.Print(&b); err != nil || b.String() != "t\nx          y\na b c  \uFFFDd  \ne          1\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
