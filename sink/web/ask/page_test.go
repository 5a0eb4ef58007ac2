package ask

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

type shelf struct {
	name string
	of   InterfaceRow
}

// TestSort sorts by every kind of column, in both directions: what is absent comes last in both, and equal rows keep their order.
func TestSort(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	rows := func() []shelf {
		return []shelf{
			{"a", InterfaceRow{Node: "10", Interface: "2", Utilization: 0.5, InErrors: n(3), Speed: 1e9}},
			{"b", InterfaceRow{Node: "9", Interface: "10", Utilization: Absent, InErrors: n(3)}},
			{"c", InterfaceRow{Node: "9", Interface: "9", Utilization: 0, Speed: 4e10}},
			{"d", InterfaceRow{Node: "09", Interface: "11", Utilization: 0.9, InErrors: n(0)}},
		}
	}
	for _, c := range []struct{ query, want string }{
		{"", "abcd"}, {"sort=interface", "cbda"}, {"sort=interface&order=desc", "adbc"},
		{"sort=tx_utilization", "dacb"}, {"sort=tx_utilization&order=asc", "cadb"},
		{"sort=in_errors", "abdc"}, {"sort=in_errors&order=asc", "dabc"}, {"sort=speed_bps&order=asc", "acbd"},
		{"sort=in_errors&limit=2&offset=1", "bd"}, {"sort=in_errors&offset=4", ""},
	} {
		q, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadPage(q, InterfaceColumns)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		list, got := rows(), ""
		Sort(list, InterfaceColumns, func(s *shelf) *InterfaceRow { return &s.of }, p)
		for _, s := range Cut(list, p) {
			got += s.name
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	for query, want := range map[string]string{
		"sort=nonsense": "is not one of [interface speed_bps", "order=up": "order: ", "order=asc": "needs sort", "sort=interface&order=ASC": "is not one of [asc desc]", "limit=0": "1..200", "offset=-1": "0..",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadPage(q, InterfaceColumns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", query, err, want)
		}
	}
}

// FuzzCompareText holds that texts have one order, in which numbers count as such.
func FuzzCompareText(f *testing.F) {
	for _, s := range [][3]string{{"10.0.0.9", "10.0.0.10", "10.0.0.100"}, {"a", "a1", ""}, {"007", "7", "07x"}, {"Ethernet10/2", "Ethernet9/3", "é"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba, bc, ac := compareText(a, b), compareText(b, a), compareText(b, c), compareText(a, c)
		if ab != -ba || compareText(a, a) != 0 || ab <= 0 && bc <= 0 && ac > 0 || ab < 0 && bc < 0 && ac >= 0 {
			t.Errorf("%q, %q, %q: %d %d %d %d", a, b, c, ab, ba, bc, ac)
		}
	})
	if compareText("10.0.0.9:80 > 10.0.0.1:5 tcp", "10.0.0.10:80 > 10.0.0.1:5 tcp") >= 0 || compareText(fmt.Sprint(uint64(1)<<63, "0"), fmt.Sprint(uint64(1)<<63)) <= 0 {
		f.Error("numbers are not in their order")
	}
}

// TestColumns sorts by every column of every list, as the page and the API may ask for it.
func TestColumns(t *testing.T) {
	n := 0
	n += eachColumn(t, FlowColumns)
	n += eachColumn(t, ExporterColumns)
	n += eachColumn(t, InterfaceColumns)
	n += eachColumn(t, ProbedColumns)
	if n < 40 {
		t.Errorf("%d columns", n)
	}
}

func eachColumn[R any](t *testing.T, columns []Column[R]) int {
	for i, c := range columns {
		if (c.Number == nil) == (c.Text == nil) || c.Name == "" {
			t.Errorf("column %d of %T, %q: a number, a text, or both", i, columns, c.Name)
		}
		Sort(make([]R, 3), columns, func(r *R) *R { return r }, Page{Sort: c.Name})
	}
	return len(columns)
}
