package solve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestCategorizeAgainstBruteForce compares with all choices of basic metrics.
func TestCategorizeAgainstBruteForce(t *testing.T) {
	for seed := range uint64(testkit.Rounds(200, 1000)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(9)
		m := &Metrics{}
		shows := make([]uint, n)
		for i, bit := range rng.Perm(16)[:n] {
			m.Metrics = append(m.Metrics, Metric{Name: fmt.Sprint("m", i), Bit: bit, Bytes: 1 + rng.IntN(8), Required: rng.IntN(5) == 0})
			shows[i] = 1 << i
		}
		for range rng.IntN(2 * n) {
			a, b := rng.IntN(n), rng.IntN(n)
			if a != b {
				m.Relations = append(m.Relations, Relation{Shows: fmt.Sprint("m", a), Of: fmt.Sprint("m", b)})
				shows[a] |= 1 << b
			}
		}
		for range rng.IntN(n) { // cycles, too
			a, b := rng.IntN(n), rng.IntN(n)
			if a != b {
				m.Metrics[a].DependsOn = append(m.Metrics[a].DependsOn, fmt.Sprint("m", b))
			}
		}
		has := func(set uint, name string) bool {
			return set>>slices.IndexFunc(m.Metrics, func(x Metric) bool { return x.Name == name })&1 == 1
		}
		least := 1 << 20
		for set := range uint(1) << n {
			var seen uint
			bytes, ok := 0, true
			for i, x := range m.Metrics {
				if set>>i&1 == 1 {
					seen |= shows[i]
					bytes += x.Bytes
					for _, name := range x.DependsOn {
						ok = ok && has(set, name)
					}
				} else if x.Required {
					ok = false
				}
			}
			if ok && seen == 1<<n-1 {
				least = min(least, bytes)
			}
		}
		c, err := Categorize(m)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if c.Instructions.BasicBytes != least || len(c.Basic)+len(c.Detailed) != n {
			t.Fatalf("seed %d: %d bytes with %v, least is %d", seed, c.Instructions.BasicBytes, c.Basic, least)
		}
		for i, x := range m.Metrics {
			if !slices.Contains(c.Basic, x.Name) {
				continue
			}
			for _, name := range x.DependsOn {
				if by := c.NeededBy[name]; !slices.Contains(c.Basic, name) || !slices.Contains(c.Basic, by) {
					t.Fatalf("seed %d: %s depends on %s, which is said to be needed by %q: %v", seed, m.Metrics[i].Name, name, by, c.Basic)
				}
			}
		}
		for _, d := range c.Detailed {
			by := c.ShownBy[d]
			if !slices.Contains(c.Basic, by) || !slices.Contains(m.Relations, Relation{Shows: by, Of: d}) {
				t.Fatalf("seed %d: %s is said to be shown by %q", seed, d, by)
			}
		}
	}
}

func TestMetricsErrors(t *testing.T) {
	ok := Metric{Name: "a", Bytes: 4}
	tests := []struct {
		name, want string
		m          Metrics
	}{
		{"none", "0 metrics", Metrics{}},
		{"twice", "a is there twice", Metrics{Metrics: []Metric{ok, {Name: "a", Bit: 1, Bytes: 4}}}},
		{"one bit", "a and b have the same bit 0", Metrics{Metrics: []Metric{ok, {Name: "b", Bytes: 4}}}},
		{"bit", "a has bit 16", Metrics{Metrics: []Metric{{Name: "a", Bit: 16, Bytes: 4}}}},
		{"bytes", "a has 0 bytes", Metrics{Metrics: []Metric{{Name: "a"}}}},
		{"unknown", `metric "b"`, Metrics{Metrics: []Metric{ok}, Relations: []Relation{{"a", "b"}}}},
		{"depends on", `a depends on "b", which is not there`, Metrics{Metrics: []Metric{{Name: "a", Bytes: 4, DependsOn: []string{"b"}}}}},
		{"depends on itself", "a depends on itself", Metrics{Metrics: []Metric{{Name: "a", Bytes: 4, DependsOn: []string{"a"}}}}},
		{"itself", "with itself", Metrics{Metrics: []Metric{ok}, Relations: []Relation{{"a", "a"}}}},
		{"no name", "metric 1 has no name", Metrics{Metrics: []Metric{{Bytes: 1}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Categorize(&tt.m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Categorize: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestPublishedCategories holds FANT's algorithm 1, line by line. A metric from which another is inferred is basic, of
// metrics that show each other the smallest is, and so are their dependencies. Our choice is cheaper where one metric
// is enough to show another.
func TestPublishedCategories(t *testing.T) {
	metric := func(name string, bytes int) Metric { return Metric{Name: name, Bytes: bytes} }
	for _, tt := range []struct {
		name      string
		metrics   []Metric
		relations []Relation
		ours      []string
		published []string // nil for the same
	}{
		{"lines 8 and 9", []Metric{metric("a", 4), metric("b", 4), metric("c", 4)}, []Relation{{"a", "c"}, {"b", "c"}, {"a", "b"}}, []string{"a"}, []string{"a", "b"}},
		{"lines 10 and 11", []Metric{{Name: "a", Bytes: 4, Required: true}, metric("b", 4)}, []Relation{{"a", "b"}}, []string{"a"}, nil},
		{"lines 12 to 14", []Metric{{Name: "a", Bytes: 4, DependsOn: []string{"c"}}, metric("b", 4), metric("c", 2)}, []Relation{{"a", "b"}, {"b", "c"}, {"a", "c"}}, []string{"a", "c"}, []string{"a", "b", "c"}},
		{"lines 15 to 18", []Metric{metric("a", 8), metric("b", 2), metric("c", 4)}, []Relation{{"a", "b"}, {"b", "a"}, {"a", "c"}, {"c", "a"}, {"b", "c"}, {"c", "b"}}, []string{"b"}, nil},
		{"no relation", []Metric{{Name: "a", Bytes: 4, Required: true}, metric("b", 4)}, nil, []string{"a", "b"}, []string{"a"}},
	} {
		for i := range tt.metrics {
			tt.metrics[i].Bit = i
		}
		c, err := Categorize(&Metrics{tt.metrics, tt.relations})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if c.Published != nil {
			got = c.Published.Basic
		}
		if !slices.Equal(c.Basic, tt.ours) || !slices.Equal(got, tt.published) {
			t.Errorf("%s: ours %q, published %q; want %q and %q", tt.name, c.Basic, got, tt.ours, tt.published)
		}
	}
}
