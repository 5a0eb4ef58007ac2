package detect

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// Limits of a table.
const (
	maxTableHops   = 1 << 17
	maxTableWindow = 1e7
)

// tableColumns are those that a table must have, and lowColumn one that it may have: the least value, or one below
// which hardly any are.
var tableColumns = []string{"hop", "window", "count", "p50", "p90", "p99"}

const lowColumn = "min"

// Read takes the rows of a table in CSV as they come.
func (d *Table) Read(in io.Reader) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	header, err := r.Read()
	if err == io.EOF {
		return fmt.Errorf("the table is empty; its first line names the columns: %v", tableColumns)
	}
	if err != nil {
		return err
	}
	at := tableAt{low: slices.Index(header, lowColumn)}
	for k, name := range tableColumns {
		if at.columns[k] = slices.Index(header, name); at.columns[k] < 0 {
			return fmt.Errorf("line 1: there is no column %q among %q", name, header)
		}
		if slices.Contains(header[at.columns[k]+1:], name) {
			return fmt.Errorf("line 1: there are two columns %q", name)
		}
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the packed file is cut off")
		}
		if err != nil {
			return err
		}
		if err := d.row(row, at); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// tableAt holds the places of the columns of a table.
type tableAt struct {
	columns [6]int // in the order of tableColumns
	low     int    // -1 if there is none
}

func (d *Table) row(row []string, at tableAt) error {
	field := func(k int) string { return row[at.columns[k]] }
	window, err := strconv.Atoi(field(1))
	if err != nil || window < 0 || window > maxTableWindow {
		return fmt.Errorf("window %q is not a whole number up to %d: windows are counted, times have to be divided by a window's length", field(1), int(maxTableWindow))
	}
	var w Window
	if w.Count, err = strconv.ParseUint(field(2), 10, 64); err != nil {
		return fmt.Errorf("count %q is not a whole number", field(2))
	}
	for k, v := range []*float64{&w.P50, &w.P90, &w.P99} {
		if *v, err = strconv.ParseFloat(field(3+k), 64); w.Count > 0 && (err != nil || !(*v >= 0 && *v <= 1e18)) {
			return fmt.Errorf("%s %q is not a number from 0 to 1e18", tableColumns[3+k], field(3+k))
		}
	}
	if at.low >= 0 && w.Count > 0 {
		if w.Low, err = strconv.ParseFloat(row[at.low], 64); err != nil || !(w.Low >= 0 && w.Low <= 1e18) {
			return fmt.Errorf("%s %q is not a number from 0 to 1e18", lowColumn, row[at.low])
		}
		w.HasLow = true
	}
	d.survey.observe(&w)
	k, ok := d.byName[field(0)]
	if !ok {
		if k = len(d.hops); k == maxTableHops {
			return fmt.Errorf("more than %d hops", maxTableHops)
		}
		name := string([]byte(field(0)))
		d.byName[name] = k
		d.hops = append(d.hops, tableHop{name: name, next: window, open: -1})
	}
	h := &d.hops[k]
	if window < h.next {
		return fmt.Errorf("window %d of hop %q comes after window %d", window, h.name, h.next-1)
	}
	for h.next < window {
		d.add(h, Window{})
	}
	d.add(h, w)
	switch {
	case w.Count < d.cfg.MinCount:
		d.tooFew++
	case h.state.Warming(d.cfg):
		d.tooYoung++
	}
	d.Windows++
	d.last = max(d.last, window)
	return nil
}

// Table runs a detector for each hop of a table.
type Table struct {
	cfg      *Config
	hops     []tableHop // in the order in which they first occur
	byName   map[string]int
	last     int // window of the table
	Windows  int // rows
	tooYoung int // rows of hops that are too young
	tooFew   int // rows without values
	Findings []tableFinding
	survey   Survey
}

type tableHop struct {
	name  string
	state Hop
	next  int // window
	open  int // index of its open finding, or -1
}

// tableFinding is a finding about a hop of a table.
type tableFinding struct {
	Hop       string `json:"hop"`
	Start     int    `json:"start"`
	End       *int   `json:"end"` // null while it lasts
	Kind      string `json:"kind"`
	Statistic string `json:"statistic,omitempty"`
	Severity  string `json:"severity"`
}

// NewTable makes a table without rows.
func NewTable(cfg *Config) *Table {
	return &Table{cfg: cfg, byName: map[string]int{}, Findings: []tableFinding{}}
}

// add passes the next window of a hop to its detector.
func (d *Table) add(h *tableHop, w Window) {
	window := h.next
	h.next++
	event := h.state.Add(d.cfg, d.cfg.At(int64(h.next)*int64(d.cfg.Window)), w)
	switch event {
	case Begun:
		f, _ := h.state.Open()
		h.open = len(d.Findings)
		row := tableFinding{Hop: h.name, Start: window, Kind: f.Cause.String()}
		if f.Cause == Rise || f.Cause == Fall {
			row.Statistic = f.Statistic.String()
		}
		d.Findings = append(d.Findings, row)
	case Ended:
		d.Findings[h.open].End = &window
		h.open = -1
	}
	if _, open := h.state.Open(); open {
		severity := inference.Warning
		if h.state.Grave(d.cfg, &w) {
			severity = inference.Critical
		}
		if row := &d.Findings[h.open]; row.Severity != inference.Critical.String() {
			row.Severity = severity.String()
		}
	}
}

// silence is how many windows a hop is followed at most behind its last one: it is found to be silent before that.
const silence = 100

// Finish lets hops that end before the table does be silent.
func (d *Table) Finish() {
	for k := range d.hops {
		h := &d.hops[k]
		for n := 0; h.next <= d.last && n < silence; n++ {
			d.add(h, Window{})
		}
	}
	slices.SortStableFunc(d.Findings, func(a, b tableFinding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(d.byName[a.Hop], d.byName[b.Hop]))
	})
}

// Hops returns the number of hops in the table.
func (d *Table) Hops() int { return len(d.hops) }

// judged is how many rows were compared with what was usual before.
func (d *Table) judged() int { return d.Windows - d.tooYoung - d.tooFew }

// Survey is the summary of a table before it is judged.
type Survey struct {
	Hops  int
	rows  int // with values
	empty int // of these, those of which most values are 0 and some are not
}

// SurveyTable reads a table.
func SurveyTable(in io.Reader) (Survey, error) {
	cfg := Latency(time.Minute)
	d := NewTable(&cfg)
	err := d.Read(in)
	s := d.survey
	s.Hops = d.Hops()
	return s, err
}

// Queue reports whether the values can be only those of a queue. In at least one row of a hundred, most values are 0
// and others are as large as the bytes of a packet. Latencies are excluded, since no packet takes no time.
func (s *Survey) Queue() bool { return s.empty > 0 && 100*s.empty >= s.rows }

// observe counts a row.
func (s *Survey) observe(w *Window) {
	if w.Count == 0 {
		return
	}
	s.rows++
	if w.P50 == 0 && w.P99 >= 64 {
		s.empty++
	}
}

// Learning counts the hops that are too young to be judged.
func (d *Table) Learning() (n int) {
	for k := range d.hops {
		if d.hops[k].state.Warming(d.cfg) {
			n++
		}
	}
	return n
}
