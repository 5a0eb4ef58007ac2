package show

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/topo"
)

// failing is a writer that takes nothing.
type failing struct{}

var errFull = errors.New("no space")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestCover holds table and picture of a cover: what is in them, and that the error of a writer is returned.
func TestCover(t *testing.T) {
	g, err := topo.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	p := &cover.Problem{Graph: g}
	plan, err := solve.Plan(p, solve.Options{Method: solve.Euler, Stop: func() bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	var table, picture strings.Builder
	if err := CoverTable(&table, plan, -1); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	if !strings.HasPrefix(lines[0], "PROBE") || strings.Index(lines[0], "HOPS") != strings.Index(lines[1], strings.Fields(lines[1])[1]) {
		t.Errorf("the columns of the table do not line up:\n%s", table.String())
	}
	if !strings.Contains(table.String(), "the best there is") {
		t.Errorf("the table does not say how good the plan is:\n%s", table.String())
	}
	if err := DrawCover(&picture, p, plan); err != nil {
		t.Fatal(err)
	}
	var svg struct {
		Height float64 `xml:"height,attr"`
	}
	if err := xml.Unmarshal([]byte(picture.String()), &svg); err != nil || svg.Height <= 0 || svg.Height > MaxHeight {
		t.Errorf("a picture %v pixels high, %v", svg.Height, err)
	}
	for name, write := range map[string]func(io.Writer) error{
		"table":   func(w io.Writer) error { return CoverTable(w, plan, -1) },
		"picture": func(w io.Writer) error { return DrawCover(w, p, plan) },
	} {
		if err := write(failing{}); !errors.Is(err, errFull) {
			t.Errorf("%s into a full disk: %v", name, err)
		}
	}
}

// The list below the picture of a plan of queries has each width with its unit.
func TestDrawQueriesWidths(t *testing.T) {
	plan := &querymix.Plan{Bits: 16, Sets: []querymix.Set{{Share: 1, Slots: []querymix.Slot{{Query: "ids", Bits: 8}, {Query: "hashes", Bits: 8, Shift: 8}}}},
		Queries: []querymix.PlannedQuery{{Name: "ids", Bits: 8, Instances: 1, Fragments: 2, Share: 1}, {Name: "hashes", Bits: 4, Instances: 2, Share: 1}}}
	var b strings.Builder
	if err := DrawQueries(&b, plan); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ids: 8 bits with ids in 2 fragments on 100 % of packets", "hashes: 2x4 bits on 100 % of packets"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}

// TestHowGood holds what is said of a plan that was proven, one that was not, and one whose proof is a claim.
func TestHowGood(t *testing.T) {
	for _, c := range []struct {
		stats planner.Stats
		want  string
	}{
		{planner.Stats{}, "at least 3"},
		{planner.Stats{Optimal: true}, "the best there is"},
		{planner.Stats{Optimal: true, Proof: planner.Verified}, "the best there is (verified)"},
		{planner.Stats{Optimal: true, Proof: planner.Claimed}, "claimed to be the best there is, not verified"},
		{planner.Stats{Proof: planner.Claimed}, "at least 3 (claimed, not verified)"},
		{planner.Stats{LeftOut: 2, LeftOutBound: 1}, "at least 3; it leaves out at least 1, and this one 2"},
	} {
		if got := howGood(&c.stats, "at least 3"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.stats, got, c.want)
		}
	}
}

// TestShorten holds how long lists and paths get.
func TestShorten(t *testing.T) {
	long := strings.Fields("a b c d e f g h i j")
	for want, got := range map[string]string{
		"a > b > c > d > e > f > ... > j": shorten(long),
		"a b c d and 6 more":              shortenList(long),
		"none":                            shortenList(nil),
		"a, b and c":                      enumerate(long[:3]),
		"1.5 Mbit/s":                      BitRate(1.5e6),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
