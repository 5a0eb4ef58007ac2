package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// discovery is the share of false changes among those that a comparison calls changes.
const discovery = 0.05

// Read reads the results of a file: one, or several of the same bench, one after the other.
func Read(r io.Reader) (list []*Result, err error) {
	d := json.NewDecoder(r)
	for {
		x := &Result{}
		if err := d.Decode(x); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("result %d, %w; it is read as hopscope-bench writes it with --format json", len(list)+1, located(err, d.InputOffset()))
		}
		if x.Bench == "" || x.Tables == nil {
			return nil, fmt.Errorf("result %d has no bench and no tables: it is none of hopscope-bench --format json", len(list)+1)
		}
		list = append(list, x)
	}
	if len(list) == 0 {
		return nil, errors.New("it holds no result")
	}
	if len(figuresOf(list).order) == 0 {
		return nil, errors.New("its results have no figure: there is nothing to compare")
	}
	return list, nil
}

// located adds the byte and the value of an error in JSON, because the decoder's own text has types of Go.
func located(err error, offset int64) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("byte %d: %w", s.Offset, err)
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if t.Field == "" {
			return fmt.Errorf("byte %d: %s where an object is wanted", offset, t.Value)
		}
		return fmt.Errorf("byte %d: %s cannot be %s", offset, t.Field, t.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("byte %d on: the file ends before the result does", offset)
	}
	return fmt.Errorf("byte %d: %w", offset, err)
}

// place is the place of a figure.
type place struct {
	table, row, column string
	nth                int // number in the cell, from 0
}

// figures are the figures of one or more results, by place.
type figures struct {
	order  []place
	values map[place][]float64
	spread map[place]float64    // standard error of one value, by its interval
	shape  map[place]string     // of the text around a number
	names  map[[2]string]string // of rows, for people, by table and row
}

var number = regexp.MustCompile(`[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`)

// figuresOf gathers the figures of results.
func figuresOf(list []*Result) *figures {
	f := &figures{values: map[place][]float64{}, spread: map[place]float64{}, shape: map[place]string{}, names: map[[2]string]string{}}
	for _, r := range list {
		seen := map[string]int{} // tables and rows of the same name
		numbered := func(name string) string {
			seen[name]++
			if n := seen[name]; n > 1 {
				return fmt.Sprintf("%s (%d)", name, n)
			}
			return name
		}
		for i := range r.Tables {
			t := &r.Tables[i]
			title, _, _ := strings.Cut(t.Title, "\n")
			title = numbered(title)
			for _, row := range t.Rows {
				name := numbered(title + "\x00" + label(row))[len(title)+1:]
				f.names[[2]string{title, name}] = described(row)
				for c, v := range row {
					at := place{table: title, row: name, column: t.column(c)}
					switch v := v.(type) {
					case float64:
						f.add(at, v)
					case Interval:
						if f.add(at, v.Value); v.High > v.Low {
							f.spread[at] = (v.High - v.Low) / (2 * 1.96)
						}
					case []float64:
						f.add(at, v...)
					case string:
						f.text(at, v)
					}
				}
			}
			for k, n := range t.Notes {
				f.names[[2]string{title, "notes"}] = "notes"
				f.text(place{table: title, row: "notes", column: strconv.Itoa(k + 1)}, n)
			}
		}
	}
	return f
}

// label is the subject of a row: its first cell.
func label(row []any) string {
	if len(row) == 0 {
		return ""
	}
	return Cell(row[0])
}

// described is the subject of a row for people: the first two of its cells, as far as they are text.
func described(row []any) string {
	text := label(row)
	if len(row) > 2 {
		_, first := row[0].(string)
		if more, ok := row[1].(string); ok && first && more != "" {
			text += ", " + more
		}
	}
	return text
}

func (f *figures) add(at place, v ...float64) {
	if _, ok := f.values[at]; !ok {
		f.order = append(f.order, at)
	}
	f.values[at] = append(f.values[at], v...)
}

// text reads the numbers of a cell, in its order.
func (f *figures) text(at place, text string) {
	shape := number.ReplaceAllString(text, "#")
	for k, n := range number.FindAllString(text, -1) {
		if v, err := strconv.ParseFloat(n, 64); err == nil {
			at.nth = k
			f.add(at, v)
			f.shape[at] = shape
		}
	}
}

// Change is a figure that differs.
type Change struct {
	Table  string  `json:"table"`
	Row    string  `json:"row"`
	Column string  `json:"column"`
	Before float64 `json:"before"` // means, where there are several values
	After  float64 `json:"after"`
	Values [2]int  `json:"values"`      // number of them, before and after
	P      float64 `json:"p,omitempty"` // of the test; 0 where there was no noise at all
}

// Comparison is the differences between two sets of results.
type Comparison struct {
	Before, After *Result `json:"-"` // the first of each

	Equal   int      `json:"equal"`   // figures of the same value, or whose difference is within their noise
	Changed []Change `json:"changed"` // beyond noise
	Unknown []Change `json:"unknown"` // different, with one value before or after and no interval: nothing is known of noise
	Missing []string `json:"missing"` // in one of the two alone

	Mixed []string `json:"mixed,omitempty"` // commands of the results of a file, where these differ in more than the seed
}

// Compare returns the changes beyond noise. If both sides have several values (lists in a cell, or several results),
// Welch's test decides. If both have an interval, the normal distribution does. Of all changes that it lists, 5 % are
// false by the procedure of Benjamini and Hochberg.
func Compare(before, after []*Result) *Comparison {
	c := &Comparison{Before: before[0], After: after[0], Changed: []Change{}, Unknown: []Change{}, Missing: []string{}}
	c.mixed("before", before)
	c.mixed("after", after)
	a, b := figuresOf(before), figuresOf(after)
	var tested []Change
	for _, at := range a.order {
		x, y := a.values[at], b.values[at]
		if y == nil || a.shape[at] != b.shape[at] {
			c.Missing = append(c.Missing, "before: "+at.String())
			continue
		}
		d := Change{Table: at.table, Row: a.names[[2]string{at.table, at.row}], Column: at.named(), Before: mean(x), After: mean(y), Values: [2]int{len(x), len(y)}}
		sx, sy := a.spread[at], b.spread[at]
		switch {
		case len(x) > 1 && len(y) > 1:
			d.P = welch(x, y)
			tested = append(tested, d)
		case len(x) == 1 && len(y) == 1 && sx > 0 && sy > 0:
			d.P = math.Erfc(math.Abs(x[0]-y[0]) / math.Hypot(sx, sy) / math.Sqrt2)
			tested = append(tested, d)
		case d.Before == d.After:
			c.Equal++
		default:
			c.Unknown = append(c.Unknown, d)
		}
	}
	for _, at := range b.order {
		if a.values[at] == nil || a.shape[at] != b.shape[at] {
			c.Missing = append(c.Missing, "after: "+at.String())
		}
	}
	slices.SortStableFunc(tested, func(x, y Change) int {
		switch {
		case x.P < y.P:
			return -1
		case x.P > y.P:
			return 1
		}
		return 0
	})
	listed := 0
	for k, d := range tested {
		if d.P <= discovery*float64(k+1)/float64(len(tested)) {
			listed = k + 1
		}
	}
	c.Changed = append(c.Changed, tested[:listed]...)
	c.Equal += len(tested) - listed
	return c
}

// seeded is the flag in which the commands of results of one bench may differ.
var seeded = regexp.MustCompile(` --seed=\d+`)

// mixed notes the first result of a file that is of another command, whose figures are no further values of the same.
func (c *Comparison) mixed(side string, list []*Result) {
	for k, r := range list {
		if seeded.ReplaceAllString(r.Bench, "") != seeded.ReplaceAllString(list[0].Bench, "") {
			c.Mixed = append(c.Mixed, fmt.Sprintf("%s: result 1 is of %q, result %d of %q; figures of the same name are taken for values of one", side, list[0].Bench, k+1, r.Bench))
			return
		}
	}
}

func (at place) String() string { return fmt.Sprintf("%s | %s | %s", at.table, at.row, at.named()) }

// named is the column, with the number in the cell behind the first.
func (at place) named() string {
	if at.nth == 0 {
		return at.column
	}
	return fmt.Sprintf("%s, number %d", at.column, at.nth+1)
}

// Table is a comparison as a table.
func (c *Comparison) Table() Table {
	t := Table{
		Title:   fmt.Sprintf("%s: %d figures changed beyond noise, %d did not, %d differ with noise unknown, %d are in one of the two alone", c.After.Bench, len(c.Changed), c.Equal, len(c.Unknown), len(c.Missing)),
		Columns: []string{"", "table", "row", "column", "before", "after", "change", "values", "p"},
	}
	for _, x := range []struct {
		what string
		list []Change
	}{{"changed", c.Changed}, {"unknown", c.Unknown}} {
		for _, d := range x.list {
			p := ""
			if x.what == "changed" {
				p = fmt.Sprintf("%.2g", d.P)
			}
			t.Rows = append(t.Rows, []any{x.what, short(d.Table), short(d.Row), short(d.Column), d.Before, d.After, d.relative(), fmt.Sprintf("%d, %d", d.Values[0], d.Values[1]), p})
		}
	}
	for _, m := range c.Missing[:min(len(c.Missing), 20)] {
		t.Notes = append(t.Notes, "only "+m)
	}
	if n := len(c.Missing) - 20; n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("and %d more", n))
	}
	t.Notes = append(t.Notes, c.Mixed...)
	if c.Before.Machine != c.After.Machine {
		t.Notes = append(t.Notes, fmt.Sprintf("two machines: times are not of the versions alone. Before: %s; after: %s", &c.Before.Machine, &c.After.Machine))
	}
	if c.Before.Bench != c.After.Bench {
		t.Notes = append(t.Notes, "two commands: before "+c.Before.Bench+"; after "+c.After.Bench)
	}
	t.Notes = append(t.Notes, "versions: before "+c.Before.Version+", after "+c.After.Version)
	if len(c.Unknown) > 0 {
		t.Notes = append(t.Notes, "unknown: several results in each file, one after the other, or seeds, say how much a figure varies by itself")
	}
	return t
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

func (d *Change) relative() string {
	if d.Before == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(d.After-d.Before)/math.Abs(d.Before))
}

func mean(v []float64) float64 {
	sum := 0.
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// welch is the probability that means of samples of the same expectation differ as much. It is by Welch's test, which
// does not assume equal variances. Samples without any variance differ or do not.
func welch(x, y []float64) float64 {
	squared := func(v []float64) float64 { // of the standard error
		m, sum := mean(v), 0.
		for _, x := range v {
			sum += (x - m) * (x - m)
		}
		return sum / float64(len(v)-1) / float64(len(v))
	}
	a, b := squared(x), squared(y)
	if a+b == 0 {
		if mean(x) == mean(y) {
			return 1
		}
		return 0
	}
	t := (mean(x) - mean(y)) / math.Sqrt(a+b)
	freedom := (a + b) * (a + b) / (a*a/float64(len(x)-1) + b*b/float64(len(y)-1))
	return student(t, freedom)
}

// student is the probability of a value of Student's distribution farther from 0 than t. It is the regularised
// incomplete beta function at n/(n+t²), of n/2 and 1/2.
func student(t, n float64) float64 {
	return incompleteBeta(n/(n+t*t), n/2, .5)
}

// incompleteBeta is the regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun, 26.5.8).
func incompleteBeta(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1., 1., 0.
	for m := range 1000 {
		k := float64(m / 2)
		coefficient := 1.
		switch {
		case m == 0:
		case m%2 == 0:
			coefficient = k * (b - k) * x / ((a + 2*k - 1) * (a + 2*k))
		default:
			coefficient = -(a + k) * (a + b + k) * x / ((a + 2*k) * (a + 2*k + 1))
		}
		if d = 1 + coefficient*d; math.Abs(d) < tiny {
			d = tiny
		}
		if c = 1 + coefficient/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}
