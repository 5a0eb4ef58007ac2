package planner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
)

func probe(id string, nodes ...string) planner.Probe {
	return planner.Probe{ID: id, Nodes: nodes, Agent: nodes[0], Collector: nodes[len(nodes)-1]}
}

func TestDiff(t *testing.T) {
	a, b, c := probe("p1", "x", "y"), probe("p2", "y", "z"), probe("p3", "z", "x")
	longer := probe("p2", "y", "z", "x")
	for _, tt := range []struct {
		name     string
		old, new []planner.Probe
		want     planner.Changes
	}{
		{"nothing", nil, nil, planner.Changes{}},
		{"the same", []planner.Probe{a, b}, []planner.Probe{a, b}, planner.Changes{}},
		{"another order", []planner.Probe{a, b}, []planner.Probe{b, a}, planner.Changes{}},
		{"from nothing", nil, []planner.Probe{b, a}, planner.Changes{Added: []planner.Probe{b, a}}},
		{"to nothing", []planner.Probe{b, a}, nil, planner.Changes{Removed: []planner.Probe{b, a}}},
		{"all at once", []planner.Probe{a, b}, []planner.Probe{c, longer},
			planner.Changes{Added: []planner.Probe{c}, Removed: []planner.Probe{a}, Changed: []planner.Change{{Old: b, New: longer}}}},
		{"an empty list", []planner.Probe{a}, []planner.Probe{{ID: "p1", Nodes: a.Nodes, Ports: []int{}, Agent: "x", Collector: "y"}}, planner.Changes{}},
		{"another route", []planner.Probe{a}, []planner.Probe{{ID: "p1", Nodes: a.Nodes, Agent: "x", Collector: "y", Route: "01"}},
			planner.Changes{Changed: []planner.Change{{Old: a, New: planner.Probe{ID: "p1", Nodes: a.Nodes, Agent: "x", Collector: "y", Route: "01"}}}}},
	} {
		got, err := planner.Diff(tt.old, tt.new)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: Diff = %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
		if got.Empty() != reflect.DeepEqual(tt.want, planner.Changes{}) {
			t.Errorf("%s: Empty() = %v", tt.name, got.Empty())
		}
	}
}

// Every field of a probe counts: one that is added to the struct is compared without a line here or there.
func TestDiffSeesEveryField(t *testing.T) {
	old := probe("p1", "x", "y")
	for i := range reflect.TypeFor[planner.Probe]().NumField() {
		now := old
		f := reflect.ValueOf(&now).Elem().Field(i)
		name := reflect.TypeFor[planner.Probe]().Field(i).Name
		switch f.Kind() {
		case reflect.String:
			f.SetString("else")
		case reflect.Int:
			f.SetInt(f.Int() + 1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			t.Fatalf("field %s is a %s, which this test does not know", name, f.Kind())
		}
		c, err := planner.Diff([]planner.Probe{old}, []planner.Probe{now})
		if err != nil || c.Empty() || (name == "ID") == (len(c.Changed) == 1) {
			t.Errorf("another %s: Diff = %+v, %v", name, c, err)
		}
	}
}

func TestDiffErrors(t *testing.T) {
	a, none := probe("p1", "x", "y"), probe("", "x", "y")
	for _, tt := range []struct {
		old, new []planner.Probe
		want     string
	}{
		{[]planner.Probe{a, none}, nil, "old probes: probe 2 of the list has no id"},
		{[]planner.Probe{a}, []planner.Probe{a, a}, `new probes: the id "p1" is of two probes`},
	} {
		if _, err := planner.Diff(tt.old, tt.new); err == nil || err.Error() != tt.want {
			t.Errorf("Diff: %v, want %q", err, tt.want)
		}
	}
}

// Applied changes turn the old list into the new one, whatever the two lists are. The same lists have the same changes.
func TestDiffApplied(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func() (list []planner.Probe) {
		for _, n := range rng.Perm(12)[:rng.IntN(12)] {
			list = append(list, probe(fmt.Sprintf("p%d", n), "x", fmt.Sprintf("n%d", rng.IntN(3))))
		}
		return list
	}
	for range 2000 {
		old, now := draw(), draw()
		c, err := planner.Diff(old, now)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		have := map[string]planner.Probe{}
		for _, p := range old {
			have[p.ID] = p
		}
		for _, p := range c.Removed {
			delete(have, p.ID)
		}
		for _, p := range c.Added {
			if _, there := have[p.ID]; there {
				t.Fatalf("seed %d: %s is added, but there", seed, p.ID)
			}
			have[p.ID] = p
		}
		for _, x := range c.Changed {
			if !reflect.DeepEqual(have[x.Old.ID], x.Old) {
				t.Fatalf("seed %d: %s was not what is changed", seed, x.Old.ID)
			}
			have[x.New.ID] = x.New
		}
		want := map[string]planner.Probe{}
		for _, p := range now {
			want[p.ID] = p
		}
		if !reflect.DeepEqual(have, want) {
			t.Fatalf("seed %d: changes of %v to %v give %v", seed, old, now, have)
		}
		second, _ := planner.Diff(slices.Clone(old), slices.Clone(now))
		one, err1 := json.Marshal(c)
		two, err2 := json.Marshal(second)
		if err1 != nil || err2 != nil || string(one) != string(two) {
			t.Fatalf("seed %d: %s and then %s", seed, one, two)
		}
	}
}

func TestErrors(t *testing.T) {
	var e planner.Errors
	if e.Join() != nil {
		t.Error("no errors are an error")
	}
	for k := range 25 {
		e.Add("problem %d", k)
	}
	for range 2 { // Join changes nothing
		text := e.Join().Error()
		if lines := strings.Split(text, "\n"); len(lines) != 21 || lines[0] != "problem 0" || lines[20] != "5 further problems" {
			t.Errorf("Join() = %q, want 20 problems and how many more there are", text)
		}
	}
}
