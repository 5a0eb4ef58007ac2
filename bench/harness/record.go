package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Recorder is a writer that makes tables of a bench's text. [Columns] and [Show] on it begin a table, whose title is
// the text before. Text before a table that has a title becomes notes of the previous table, and so does text at the
// end.
type Recorder struct {
	tables []Table
	text   strings.Builder
}

// Write records text between tables.
func (r *Recorder) Write(p []byte) (int, error) { return r.text.Write(p) }

// add adds a table under the text that was written.
func (r *Recorder) add(t Table) {
	text := strings.TrimSpace(r.text.String())
	r.text.Reset()
	if t.Title == "" {
		t.Title = text
	} else if n := len(r.tables); text != "" && n > 0 {
		r.tables[n-1].Notes = append(r.tables[n-1].Notes, strings.Split(text, "\n")...)
	} else if text != "" {
		t.Notes = append(strings.Split(text, "\n"), t.Notes...)
	}
	r.tables = append(r.tables, t)
}

// Tables are those that were recorded.
func (r *Recorder) Tables() []Table {
	if text := strings.TrimSpace(r.text.String()); text != "" {
		r.text.Reset()
		if len(r.tables) == 0 {
			r.tables = []Table{{}}
		}
		last := &r.tables[len(r.tables)-1]
		last.Notes = append(last.Notes, strings.Split(text, "\n")...)
	}
	if r.tables == nil {
		return []Table{}
	}
	return r.tables
}

// Flusher receives the rows of a table, lines of cells with tabs between, and ends it.
type Flusher interface {
	io.Writer
	Flush() error
}

// Columns begins a table: in columns on a writer of text, recorded on a [Recorder]. The first line has the names of
// the columns. Padding and flags are those of text/tabwriter.
func Columns(w io.Writer, padding int, flags uint) Flusher {
	if r, ok := w.(*Recorder); ok {
		return &recorded{to: r}
	}
	return tabwriter.NewWriter(w, 0, 0, padding, ' ', flags)
}

// PrintTable prints a title, and below it in columns the output of fill: rows of cells that all end in a tab. Rows before an
// error are printed.
func PrintTable(w io.Writer, title string, fill func(t io.Writer) error) error {
	if _, err := fmt.Fprintln(w, title); err != nil {
		return err
	}
	t := Columns(w, 2, tabwriter.AlignRight)
	err := fill(t)
	if e := t.Flush(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w)
	return err
}

// recorded is a table at work.
type recorded struct {
	to   *Recorder
	text strings.Builder
}

func (x *recorded) Write(p []byte) (int, error) { return x.text.Write(p) }

func (x *recorded) Flush() error {
	var t Table
	for line := range strings.Lines(x.text.String()) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimRight(line, "\n"), "\t"), "\t")
		if t.Columns == nil {
			for _, c := range cells {
				t.Columns = append(t.Columns, strings.TrimSpace(c))
			}
			continue
		}
		row := make([]any, len(cells))
		for i, c := range cells {
			row[i] = strings.TrimSpace(c)
			if v, err := strconv.ParseFloat(strings.TrimSpace(c), 64); err == nil && finite(v) {
				row[i] = v
			}
		}
		t.Rows = append(t.Rows, row)
	}
	x.text.Reset()
	if t.Columns != nil {
		x.to.add(t)
	}
	return nil
}

func finite(v float64) bool { return v-v == 0 }

// Show prints a value as text, by print, or records it as a table. The table has a row for each number in its JSON,
// and for each list of numbers, which are samples.
func Show(w io.Writer, title string, v any, print func(io.Writer) error) error {
	r, ok := w.(*Recorder)
	if !ok {
		return print(w)
	}
	t, err := tabulate(title, v)
	if err != nil {
		return err
	}
	r.add(t)
	return nil
}

// Add records tables.
func (r *Recorder) Add(list ...Table) {
	for _, t := range list {
		r.add(t)
	}
}

// tabulate makes a table of the JSON of a value.
func tabulate(title string, v any) (Table, error) {
	t := Table{Title: title, Columns: []string{"figure", "value"}}
	b, err := json.Marshal(v)
	if err != nil {
		return t, err
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return t, err
	}
	t.values("", tree)
	t.Detail = b
	return t, nil
}

// values adds a row for each number below a value of JSON. Elements of lists are named by the first text that each of
// them has, if these differ, and by their numbers otherwise.
func (t *Table) values(at string, v any) {
	below := func(key string) string {
		if at == "" {
			return key
		}
		return at + "." + key
	}
	switch v := v.(type) {
	case float64:
		t.Rows = append(t.Rows, []any{at, v})
	case bool:
		n := 0.
		if v {
			n = 1
		}
		t.Rows = append(t.Rows, []any{at, n})
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			t.values(below(key), v[key])
		}
	case []any:
		var samples []float64
		for _, x := range v {
			if n, ok := x.(float64); ok {
				samples = append(samples, n)
			}
		}
		if len(v) > 0 && len(samples) == len(v) {
			t.Rows = append(t.Rows, []any{at, samples})
			return
		}
		if t.rounds(at, v) {
			return
		}
		names := map[string]bool{}
		for i, x := range v {
			name := nameOf(x)
			if name == "" || names[name] {
				name = strings.TrimSpace(fmt.Sprintf("%s %d", name, i+1))
			}
			names[name] = true
			t.values(at+"["+name+"]", x)
		}
	}
}

// rounds adds a row with samples for each number of a list of objects that have no text: rounds of one measurement.
// It reports whether the list is one.
func (t *Table) rounds(at string, v []any) bool {
	samples := map[string][]float64{}
	for _, x := range v {
		m, ok := x.(map[string]any)
		if !ok {
			return false
		}
		for key, x := range m {
			n, ok := x.(float64)
			if !ok {
				return false
			}
			samples[key] = append(samples[key], n)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(samples)) {
		t.Rows = append(t.Rows, []any{at + "[]." + key, samples[key]})
	}
	return len(v) > 0
}

// nameOf is the first text of an object.
func nameOf(v any) string {
	m, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if s, ok := m[key].(string); ok {
			return s
		}
	}
	return ""
}
