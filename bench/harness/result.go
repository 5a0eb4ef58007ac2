// Package harness is the common part of all benches. A bench returns a [Result]: tables with their machine, version
// and seed, as text, JSON and CSV. The package also compares two such results, and writes the two pages of results:
// bench/RESULTS.md, and docs/papers.md, which has the published results of [Papers] beside ours.
//
// A [Program] is an algorithm of another origin, in any language, over the instances of the benches. It reads a
// [Question] as one JSON object from standard input and prints its answer as another. The benches define questions
// and judge answers: papers for plans, papers/digests for digests, findings for series, loop for suspects. The
// formats are in docs/harness.md.
package harness

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Formats are those of all benches.
var Formats = []string{"table", "json", "csv"}

// Machine is where something was measured.
type Machine struct {
	Processor string `json:"processor,omitempty"`
	Cores     int    `json:"cores"`
	System    string `json:"system"` // operating system and architecture
	Kernel    string `json:"kernel,omitempty"`
	Go        string `json:"go"`
}

// ThisMachine describes this one, as far as its system does.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel, _, _ = strings.Cut(strings.TrimSpace(string(b)), "-") // the part behind the number is the builder's
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, name, _ := strings.Cut(string(b), "model name")
		name, _, _ = strings.Cut(name, "\n")
		m.Processor = strings.Trim(name, "\t :")
	}
	return m
}

func (m *Machine) String() string {
	text := fmt.Sprintf("%d cores, %s, %s", m.Cores, m.System, m.Go)
	if m.Processor != "" {
		text = m.Processor + ", " + text
	}
	if m.Kernel != "" {
		text += ", kernel " + m.Kernel
	}
	return text
}

// Result is the result of one run of a bench.
type Result struct {
	Bench   string  `json:"bench"` // the command, with its arguments
	Version string  `json:"version"`
	Machine Machine `json:"machine"`
	Seed    *uint64 `json:"seed,omitempty"` // null for a bench that draws nothing
	Tables  []Table `json:"tables"`
}

// Table is a table of a result.
type Table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns,omitempty"`
	Rows    [][]any  `json:"rows,omitempty"` // strings, numbers, Intervals and lists of numbers, which are samples of one figure
	Notes   []string `json:"notes,omitempty"`

	Detail json.RawMessage `json:"detail,omitempty"` // the value that the rows are the numbers of
}

// Interval is a measured figure with its 95 % confidence interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Print writes a table as text.
func (t *Table) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n", t.Title)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(t.Columns) > 0 {
		fmt.Fprintln(tab, strings.Join(t.Columns, "\t"))
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Line(Cell(c))
		}
		fmt.Fprintln(tab, strings.Join(cells, "\t"))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, n := range t.Notes {
		if _, err := fmt.Fprintf(w, "  %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a result as JSON or CSV. A line of CSV is a cell, since tables have different columns.
func (r *Result) Write(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"bench", "version", "machine", "seed", "table", "row", "first", "column", "value", "low", "high"}) // Error has what failed
	seed := ""
	if r.Seed != nil {
		seed = strconv.FormatUint(*r.Seed, 10)
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		line := func(row int, first, column, value, low, high string) {
			_ = out.Write([]string{r.Bench, r.Version, r.Machine.String(), seed, t.Title, strconv.Itoa(row), first, column, value, low, high})
		}
		for k, row := range t.Rows {
			for c, v := range row {
				if x, ok := v.(Interval); ok {
					line(k+1, Cell(row[0]), t.column(c), plain(x.Value), plain(x.Low), plain(x.High))
				} else if list, ok := v.([]float64); ok {
					for _, x := range list {
						line(k+1, Cell(row[0]), t.column(c), plain(x), "", "")
					}
				} else if x, ok := v.(float64); ok {
					line(k+1, Cell(row[0]), t.column(c), plain(x), "", "")
				} else {
					line(k+1, Cell(row[0]), t.column(c), Cell(v), "", "")
				}
			}
		}
		for k, n := range t.Notes {
			line(0, strconv.Itoa(k+1), "note", n, "", "")
		}
	}
	out.Flush()
	return out.Error()
}

// column is the name of a column, with its number where it has none, or where an earlier one has the same.
func (t *Table) column(c int) string {
	if c >= len(t.Columns) || t.Columns[c] == "" {
		return "column " + strconv.Itoa(c+1)
	}
	if slices.Index(t.Columns, t.Columns[c]) < c {
		return fmt.Sprintf("%s (column %d)", t.Columns[c], c+1)
	}
	return t.Columns[c]
}

// Index is the number of the column with a name, as the method column returns it, or -1.
func (t *Table) Index(name string) int {
	for c := range t.Columns {
		if t.column(c) == name {
			return c
		}
	}
	return -1
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Cell writes a cell for people.
func Cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return Number(v)
	case Interval:
		if v.Low == v.High {
			return Number(v.Value)
		}
		return fmt.Sprintf("%s [%s, %s]", Number(v.Value), Number(v.Low), Number(v.High))
	case []float64:
		texts := make([]string, len(v))
		for i, x := range v {
			texts[i] = Number(x)
		}
		return strings.Join(texts, ", ")
	}
	return fmt.Sprint(v)
}

// Line is a text without characters that end a cell or a line of a table, or move a cursor. Control characters become
// spaces, and bytes that are no UTF-8 become U+FFFD.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Number formats v with at most four digits, and integers in full.
func Number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if a := math.Abs(v); a >= 100 && a < 1e9 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// UnmarshalJSON makes a table whose cells have the types that they were written with.
func (t *Table) UnmarshalJSON(b []byte) error {
	type table Table
	if err := json.Unmarshal(b, (*table)(t)); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for c, v := range row {
			switch v := v.(type) {
			case map[string]any:
				x := Interval{math.NaN(), math.NaN(), math.NaN()}
				for key, to := range map[string]*float64{"value": &x.Value, "low": &x.Low, "high": &x.High} {
					if n, ok := v[key].(float64); ok {
						*to = n
					}
				}
				if math.IsNaN(x.Value + x.Low + x.High) {
					return fmt.Errorf("table %.80q: a cell is an object without value, low and high", t.Title)
				}
				row[c] = x
			case []any:
				list := make([]float64, len(v))
				for i, n := range v {
					var ok bool
					if list[i], ok = n.(float64); !ok {
						return fmt.Errorf("table %.80q: a cell is a list of other things than numbers", t.Title)
					}
				}
				row[c] = list
			case nil, string, float64, bool:
			}
		}
	}
	return nil
}
