package harness

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page has the content of the list and the files of results.
func TestPapersPage(t *testing.T) {
	const path = "../../docs/papers.md"
	now, err := PapersPage(readFile)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if now != string(was) {
		t.Errorf("%s is not what the list and bench/results have (-update writes it)", path)
	}
}

// An item that is not reproduced has a reason, and one that is reproduced has none. A file has a command, and a test
// exists.
func TestPaperItems(t *testing.T) {
	for _, text := range Papers {
		for k := range text.Items {
			i := &text.Items[k]
			state, _, err := i.Judge(readFile)
			if err != nil {
				t.Errorf("%s, %v", text.Name, err)
				continue
			}
			name := text.Name + ", " + i.Place + ", " + i.What
			switch state {
			case Outside, Missing, Drawing:
				if i.Why == "" {
					t.Errorf("%s: %s, without a reason", name, state)
				}
			case Unmeasured: // it may be known why from earlier runs
			case Reproduced, Tested:
				if i.Why != "" {
					t.Errorf("%s: %s, with the reason %q why it is not", name, state, i.Why)
				}
			default:
				t.Errorf("%s: state %q", name, state)
			}
			if (len(i.Values) > 0 || i.Test != "") && i.State != "" {
				t.Errorf("%s: a state beside values or a test", name)
			}
			for _, v := range i.Values {
				if v.Low > v.High || v.Published == "" {
					t.Errorf("%s, %s: published %q, %g to %g", name, v.What, v.Published, v.Low, v.High)
				}
				for _, a := range []*At{&v.At, v.At.Over, v.At.Less} {
					if a != nil && PaperCommand(a.File) == "" {
						t.Errorf("%s: no command writes %s.json", name, a.File)
					}
				}
			}
			if i.Test != "" && !hasTest(t, i.Test) {
				t.Errorf("%s: there is no test %s", name, i.Test)
			}
		}
	}
}

func hasTest(t *testing.T, test string) bool {
	t.Helper()
	pkg, name, _ := strings.Cut(test, " ")
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "func "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// Each figure, table, algorithm and theorem of a text is the place of an item.
func TestPapersAreComplete(t *testing.T) {
	for _, text := range Papers {
		for kind, n := range text.Of {
			for k := 1; k <= n; k++ {
				place := regexp.MustCompile(fmt.Sprintf(`^%s %d\b`, kind, k))
				found := false
				for _, i := range text.Items {
					found = found || place.MatchString(i.Place)
				}
				if !found {
					t.Errorf("%s: no item at %s %d", text.Name, kind, k)
				}
			}
		}
	}
}

// A place gives the number of its cell, and an error names what is not there.
func TestAt(t *testing.T) {
	r := &Result{Tables: []Table{
		{Title: "Figure 1: a", Columns: []string{"x", "y", "y"}, Rows: [][]any{{"p", 10., "41.8 %"}, {"q", Interval{Value: 4, Low: 3, High: 5}, "28 of 40"}}},
		{Title: "Figure 2: b", Columns: []string{"x", "y"}, Rows: [][]any{{"p", "none"}, {"q"}}}}}
	read := func(name string) (*Result, error) {
		if name != "f" {
			return nil, os.ErrNotExist
		}
		return r, nil
	}
	for _, c := range []struct {
		row, column string
		want        float64
	}{{"p", "y", 10}, {"q", "y", 4}, {"p", "y (column 3)", 41.8}, {"q", "y (column 3)", 28}, {"p | 10", "y", 10}} {
		if got, err := (At{File: "f", Table: "Figure 1", Row: c.row, Column: c.column}).Ours(read); err != nil || got != c.want {
			t.Errorf("%s, %s: %v, %v; want %v", c.row, c.column, got, err, c.want)
		}
	}
	a := At{File: "f", Table: "Figure 1", Row: "p", Column: "y", Over: &At{File: "f", Table: "Figure 1", Row: "q", Column: "y"}}
	if got, err := a.Ours(read); err != nil || got != 2.5 {
		t.Errorf("a quotient: %v, %v", got, err)
	}
	a.Over, a.Less = nil, a.Over
	if got, err := a.Ours(read); err != nil || got != 6 {
		t.Errorf("a difference: %v, %v", got, err)
	}
	for want, a := range map[string]At{
		"no such column": {File: "f", Table: "Figure 1", Row: "p", Column: "z"},
		"no such row":    {File: "f", Table: "Figure 3", Row: "p", Column: "y"},
		"invalid syntax": {File: "f", Table: "Figure 2", Row: "p", Column: "y"},
		"is empty":       {File: "f", Table: "Figure 2", Row: "q", Column: "y"},
		"several":        {File: "f", Table: "Figure", Row: "p", Column: "y"},
	} {
		if _, err := a.Ours(read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
	item := PaperItem{Place: "Figure 1", Values: []PaperValue{{Low: 9, High: 11, At: At{File: "f", Table: "Figure 1", Row: "p", Column: "y"}}, {At: At{File: "g"}}}}
	if state, ours, err := item.Judge(read); state != Unmeasured || len(ours) != 2 || !math.IsNaN(ours[1]) || err != nil {
		t.Errorf("%v, %v, %v", state, ours, err)
	}
	item.Values[0].High = 9.5
	if state, _, err := item.Judge(read); state != Outside || err != nil {
		t.Errorf("%v, %v", state, err)
	}
}
