package harness

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// Papers are the published results of five texts about telemetry: each figure, table, algorithm, theorem and stated result,
// in the order of their pages, with the place of ours in the files of bench/results. [PapersPage] writes docs/papers.md
// from both.
var Papers = []Paper{intPath, intProbe, into, pint, fant, rft}

// Paper is a publication.
type Paper struct {
	Name, Title string
	Of          map[string]int // how many figures, tables, algorithms and theorems it has: each is the place of an item
	Items       []PaperItem
}

// PaperItem is a figure, table, algorithm, theorem or stated result.
type PaperItem struct {
	Place  string // "Figure 16", "Section 6.3"
	What   string
	Values []PaperValue
	Test   string     // package and name of the test that holds what has no figure to compare
	State  PaperState // of an item with neither values nor a test
	Why    string     // why it is not reproduced, with the measured figure
	Note   string     // what else has to be known of it
}

// PaperState is the state of an item's reproduction.
type PaperState string

// States of items. Of one with values, those and the files decide.
const (
	Reproduced PaperState = "reproduced"
	Outside    PaperState = "not reproduced"
	Tested     PaperState = "held by a test"
	Unmeasured PaperState = "not measured yet"
	Missing    PaperState = "missing"
	Drawing    PaperState = "nothing to measure" // a drawing, a definition, a list
)

// PaperValue is a published figure.
type PaperValue struct {
	What      string
	Published string  // as printed, or as read off
	Low, High float64 // its range, by its digits, the reading of its curve and the draws of its experiment
	At        At
}

// At is the place of our figure: a column of a row of a table of a file. It is divided by the figure at Over, or less
// that at Less. The table is the one whose title holds Table, and the row the one whose first cells are Row.
type At struct {
	File, Table, Row, Column string
	Over, Less               *At
}

// PaperCommands has a line for each file of bench/results that items need: its name, and the command that writes it.
//
//go:embed papers_commands.txt
var PaperCommands string

// PaperCommand returns the command that writes a file, or "".
func PaperCommand(file string) string {
	for line := range strings.Lines(PaperCommands) {
		if name, command, _ := strings.Cut(strings.TrimSpace(line), " "); name == file {
			return "hopscope-bench " + command
		}
	}
	return ""
}

// ResultFiles returns the result of a file of bench/results, or an error that is fs.ErrNotExist.
type ResultFiles func(file string) (*Result, error)

// Ours returns the text at a place.
func (a At) Ours(read ResultFiles) (float64, error) {
	r, err := read(a.File)
	if err != nil {
		return 0, err
	}
	v, err := a.in(r)
	if err != nil {
		return 0, fmt.Errorf("%s.json, table %q, row %q, column %q: %w", a.File, a.Table, a.Row, a.Column, err)
	}
	if a.Over != nil {
		below, err := a.Over.Ours(read)
		return v / below, err
	}
	if a.Less != nil {
		less, err := a.Less.Ours(read)
		return v - less, err
	}
	return v, nil
}

func (a At) in(r *Result) (float64, error) {
	var cells []any
	for _, t := range r.Tables {
		if !strings.Contains(t.Title, a.Table) {
			continue
		}
		c := t.Index(a.Column)
		if c < 0 {
			return 0, fmt.Errorf("there is no such column; there are %s", strings.Join(t.Columns, " | "))
		}
		for _, row := range t.Rows {
			if !begins(row, a.Row) {
				continue
			}
			if cells != nil {
				return 0, errors.New("there are several")
			}
			if c >= len(row) {
				return 0, errors.New("the cell is empty")
			}
			cells = []any{row[c]}
		}
	}
	if cells == nil {
		return 0, errors.New("there is no such row")
	}
	return figureIn(cells[0])
}

// begins reports whether the first cells of a row are these, with bars between.
func begins(row []any, cells string) bool {
	k := 0
	for want := range strings.SplitSeq(cells, " | ") {
		if k >= len(row) || Cell(row[k]) != want {
			return false
		}
		k++
	}
	return true
}

// figureIn is the number that a cell is, or begins with.
func figureIn(cell any) (float64, error) {
	switch v := cell.(type) {
	case float64:
		return v, nil
	case Interval:
		return v.Value, nil
	case string:
		word, _, _ := strings.Cut(strings.TrimSpace(v), " ")
		return strconv.ParseFloat(word, 64)
	}
	return 0, fmt.Errorf("%v is no number", cell)
}

// Within reports whether a figure is a possible value of the published one.
func (v *PaperValue) Within(ours float64) bool { return ours >= v.Low && ours <= v.High }

// Judge returns the state of an item, and the figures of its values: NaN if its file is missing.
func (i *PaperItem) Judge(read ResultFiles) (state PaperState, ours []float64, err error) {
	if len(i.Values) == 0 {
		if i.Test != "" {
			return Tested, nil, nil
		}
		return i.State, nil, nil
	}
	state = Reproduced
	for k := range i.Values {
		v := &i.Values[k]
		x, err := v.At.Ours(read)
		if errors.Is(err, fs.ErrNotExist) {
			x, err = math.NaN(), nil
			if state == Reproduced {
				state = Unmeasured
			}
		} else if err == nil && !v.Within(x) {
			state = Outside
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", i.Place, err)
		}
		ours = append(ours, x)
	}
	return state, ours, nil
}
