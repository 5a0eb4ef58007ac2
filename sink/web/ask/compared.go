package ask

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/inference"
)

// Compared holds the differences of a row from the same row of the earlier time that compare= asks for.
type Compared struct {
	Changes map[string]Value `json:"changes,omitempty"` // by column: the value less the earlier one, absent where either is; no column where the row is not of the earlier time
}

func (c *Compared) compared() *Compared { return c }

// Earlier is the time that a range is compared with.
type Earlier struct {
	FromMS int64    `json:"from_ms"`
	ToMS   int64    `json:"to_ms"`
	Merged uint64   `json:"merged"` // windows of it
	Gone   int      `json:"gone"`   // rows of the earlier time that are not of the range
	Lacks  []string `json:"lacks"`  // sentences on what is not known of it
}

// changeSuffix marks the column of the differences of a column.
const changeSuffix = "_change"

// steady are the columns with numbers whose differences mean nothing.
var steady = []string{"state", "last_ms", "speed_bps"}

// ChangeOf returns the column whose differences the column sort holds, or sort itself.
func ChangeOf(sort string) string { return strings.TrimSuffix(sort, changeSuffix) }

// withChanges returns columns, with one for the differences of each that has numbers.
func withChanges[R any](columns []Column[R], of func(*R) *Compared) []Column[R] {
	out := columns
	for _, c := range columns {
		if c.Number != nil && !slices.Contains(steady, c.Name) {
			out = append(out, Column[R]{Name: c.Name + changeSuffix, Number: func(r *R) float64 {
				if v, ok := of(r).Changes[c.Name]; ok {
					return float64(v)
				}
				return math.NaN()
			}})
		}
	}
	return out
}

// errNoChanges is the error of an order by differences that nothing asks for.
var errNoChanges = errors.New("sort: differences need from and compare, as in from=1800000000000&compare=86400000 for the day before")

// before returns the span that r is compared with.
func (r Span) before() Span { return Span{From: r.From - r.Back, To: r.To - r.Back} }

// row is a row of a table of a range.
type row interface {
	compared() *Compared
	key() string // equal for the same row of another time
}

// compare gives rows the differences from those of the earlier time, which list makes of its window, and writes into about what that time is.
func compare[R any, P interface {
	*R
	row
}](ctx context.Context, p *Past, r Span, about *Range, rows []R, columns []Column[R], list func(w *inference.Window) []R) error {
	if r.Back == 0 {
		return nil
	}
	w, was, err := p.sum(ctx, r.before())
	if err != nil {
		return err
	}
	earlier := list(&w)
	byKey := make(map[string]*R, len(earlier))
	for i := range earlier {
		byKey[P(&earlier[i]).key()] = &earlier[i]
	}
	for i := range rows {
		old, ok := byKey[P(&rows[i]).key()]
		if !ok {
			continue
		}
		delete(byKey, P(&rows[i]).key())
		changes := map[string]Value{}
		for _, c := range columns {
			if c.Number != nil && !strings.HasSuffix(c.Name, changeSuffix) && !slices.Contains(steady, c.Name) {
				changes[c.Name] = Value(c.Number(&rows[i]) - c.Number(old))
			}
		}
		P(&rows[i]).compared().Changes = changes
	}
	about.Compared = &Earlier{was.FromMS, was.ToMS, was.Merged, len(byKey), was.Lacks}
	return nil
}
