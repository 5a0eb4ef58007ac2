package planner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
)

type element = planner.Element

func steps(text string) (list []planner.Step) {
	for _, s := range strings.Fields(text) {
		op := map[byte]planner.Op{'+': planner.OpAdd, '-': planner.OpRemove, '~': planner.OpChange}[s[0]]
		list = append(list, planner.Step{Op: op, ID: s[1:]})
	}
	return list
}

func stepText(list []planner.Step) string {
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s%s ", map[planner.Op]string{planner.OpAdd: "+", planner.OpRemove: "-", planner.OpChange: "~"}[s.Op], s.ID)
	}
	return strings.TrimSpace(b.String())
}

func TestTransition(t *testing.T) {
	before := []element{{ID: "a", Covers: []string{"x", "y"}}, {ID: "b", Covers: []string{"z"}, Form: "1"}, {ID: "c", Covers: []string{"u", "u"}}}
	after := []element{{ID: "d", Covers: []string{"y", "x"}}, {ID: "c", Covers: []string{"u"}}, {ID: "b", Covers: []string{"z"}, Form: "2"}}
	got, err := planner.NewTransition(before, after, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	const want = `{"add":["d"],"remove":["a"],"change":["b"],"keep":["c"],"steps":[{"op":"add","id":"d"},{"op":"change","id":"b"},{"op":"remove","id":"a"}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if text, _ := json.Marshal(must(planner.NewTransition(nil, nil, nil))); string(text) != `{"add":[],"remove":[],"change":[],"keep":[],"steps":[]}` {
		t.Errorf("of nothing: %s", text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestOrder has the cases that decide what an order is.
func TestOrder(t *testing.T) {
	uses := func(r string, x float64) map[string]float64 { return map[string]float64{r: x} }
	for _, tt := range []struct {
		name          string
		before, after []element
		capacity      map[string]float64
		want          string // steps, or the beginning of the error
	}{
		{"add before remove", []element{{ID: "a", Covers: []string{"x"}}}, []element{{ID: "b", Covers: []string{"x"}}}, nil, "+b -a"},
		{"room first", []element{{ID: "a", Uses: uses("r", 2)}}, []element{{ID: "b", Uses: uses("r", 2)}}, uses("r", 3), "-a +b"},
		{"neither", []element{{ID: "a", Covers: []string{"x"}, Uses: uses("r", 2)}}, []element{{ID: "b", Covers: []string{"x"}, Uses: uses("r", 2)}}, uses("r", 3),
			"there is no order of steps in which nothing is ever uncovered and no capacity exceeded: add b: needs 2 more of r, where 2 of 3 are in use; remove a: nothing else covers x"},
		{"a change is one step", []element{{ID: "a", Covers: []string{"x"}, Uses: uses("r", 2)}}, []element{{ID: "a", Covers: []string{"x"}, Uses: uses("r", 3)}}, uses("r", 3), "~a"},
		{"two changes that wait for each other", []element{{ID: "a", Covers: []string{"x"}}, {ID: "b", Covers: []string{"y"}}},
			[]element{{ID: "a", Covers: []string{"y"}}, {ID: "b", Covers: []string{"x"}}}, nil, "there is no order"},
		{"and a third that helps", []element{{ID: "a", Covers: []string{"x"}}, {ID: "b", Covers: []string{"y"}}},
			[]element{{ID: "a", Covers: []string{"y"}}, {ID: "b", Covers: []string{"x"}}, {ID: "c", Covers: []string{"x"}}}, nil, "+c ~a ~b"},
		{"what only one plan covers", []element{{ID: "a", Covers: []string{"x"}}}, nil, nil, "-a"},
		{"above its capacity already", []element{{ID: "a", Uses: uses("r", 5)}, {ID: "b", Uses: uses("r", 5)}}, []element{{ID: "a", Uses: uses("r", 3)}, {ID: "b", Uses: uses("r", 4)}}, uses("r", 4), "~a ~b"},
		{"needs the search", // to remove a first would leave b without one that covers x meanwhile, and c without room
			[]element{{ID: "a", Covers: []string{"x"}, Uses: uses("s", 1)}, {ID: "b", Covers: []string{"x"}, Uses: uses("r", 1)}, {ID: "w", Uses: uses("s", 1)}},
			[]element{{ID: "b", Uses: uses("q", 1)}, {ID: "c", Covers: []string{"x"}, Uses: uses("r", 1)}},
			map[string]float64{"r": 1, "s": 2}, "~b +c -a -w"},
		{"id twice", []element{{ID: "a"}, {ID: "a"}}, nil, nil, `old plan: the id "a" is of two elements`},
		{"no id", nil, []element{{}}, nil, "new plan: element 1 has no id"},
		{"less than nothing", nil, []element{{ID: "a", Uses: uses("r", -1)}}, nil, "new plan: element a uses -1 of r"},
		{"no capacity at all", nil, []element{{ID: "a"}}, uses("r", -1), "the capacity of r is -1"},
	} {
		got, err := planner.Order(tt.before, tt.after, tt.capacity)
		if err != nil {
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		if text := stepText(got); text != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, text, tt.want)
		}
		if err := planner.Simulate(tt.before, tt.after, got, tt.capacity); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestSimulate takes wrong steps.
func TestSimulate(t *testing.T) {
	before := []element{{ID: "a", Covers: []string{"x"}, Uses: map[string]float64{"r": 1}}, {ID: "b", Form: "1"}, {ID: "k"}}
	after := []element{{ID: "c", Covers: []string{"x"}, Uses: map[string]float64{"r": 1}}, {ID: "b", Form: "2"}, {ID: "k"}}
	for _, tt := range []struct {
		steps string
		room  float64
		want  string // nothing: these are right
	}{
		{"+c ~b -a", 2, ""},
		{"+c -a ~b", 2, ""},
		{"-a +c ~b", 2, "step 1, remove a: nothing covers x"},
		{"+c ~b -a", 1, "step 1, add c: 2 of r are used, which has 1"},
		{"+c ~b", 2, "after all steps something of the old plan is still there"},
		{"+c -a", 2, "after all steps the new plan is not there"},
		{"~b -a", 2, "step 2, remove a: nothing covers x"},
		{"+c +c ~b -a", 2, "step 2, add c: there is no such step"},
		{"+c ~b ~b -a", 2, "step 3, change b: there is no such step"},
		{"+c -k ~b -a", 2, "step 2, remove k: there is no such step"},
		{"+d", 2, "step 1, add d: there is no such step"},
		{"~d", 2, "step 1, change d: there is no such step"},
		{"-d", 2, "step 1, remove d: there is no such step"},
		{"?c", 2, "there is no such step"},
	} {
		err := planner.Simulate(before, after, steps(tt.steps), map[string]float64{"r": tt.room})
		if text := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(text, tt.want) {
			t.Errorf("%s with %v: %v, want %q", tt.steps, tt.room, err, tt.want)
		}
	}
	if planner.Simulate(append(before, before[0]), after, nil, nil) == nil || planner.Simulate(before, append(after, after[0]), nil, nil) == nil {
		t.Error("an id that is there twice is no error")
	}
}

// randomElements makes two plans with few things and little room, so that many have an order and many have none.
func randomElements(r *rand.Rand) (before, after []element, capacity map[string]float64) {
	one := func(id int) element {
		e := element{ID: fmt.Sprint("e", id), Uses: map[string]float64{}}
		for _, c := range []string{"x", "y", "z"} {
			if r.IntN(3) == 0 {
				e.Covers = append(e.Covers, c)
			}
		}
		for _, c := range []string{"r", "s"} {
			if r.IntN(2) == 0 {
				e.Uses[c] = float64(1 + r.IntN(3))
			}
		}
		return e
	}
	for id := range 2 + r.IntN(7) {
		switch r.IntN(4) {
		case 0:
			before = append(before, one(id))
		case 1:
			after = append(after, one(id))
		default:
			before, after = append(before, one(id)), append(after, one(id))
		}
	}
	capacity = map[string]float64{}
	for _, c := range []string{"r", "s"} { // just enough for both plans, or a little more, or less
		sums := [2]float64{}
		for k, plan := range [...][]element{before, after} {
			for _, e := range plan {
				sums[k] += e.Uses[c]
			}
		}
		capacity[c] = max(0, max(sums[0], sums[1])+float64(r.IntN(4)-1))
	}
	return before, after, capacity
}

// possible tries everything: it takes every step that is right in every state that can be reached.
func possible(before, after []element, capacity map[string]float64) bool {
	type pair struct{ old, now *element }
	pairs := map[string]*pair{}
	var ids []string
	get := func(id string) *pair {
		if pairs[id] == nil {
			pairs[id] = new(pair)
			ids = append(ids, id)
		}
		return pairs[id]
	}
	inBefore, inAfter := map[string]bool{}, map[string]bool{}
	for k := range before {
		get(before[k].ID).old = &before[k]
		for _, c := range before[k].Covers {
			inBefore[c] = true
		}
	}
	for k := range after {
		get(after[k].ID).now = &after[k]
		for _, c := range after[k].Covers {
			inAfter[c] = true
		}
	}
	measure := func(state int) (covered map[string]bool, used map[string]float64) {
		covered, used = map[string]bool{}, map[string]float64{}
		for k, id := range ids {
			e := pairs[id].old
			if state>>k&1 == 1 {
				e = pairs[id].now
			}
			if e == nil {
				continue
			}
			for _, c := range e.Covers {
				covered[c] = true
			}
			for r, x := range e.Uses {
				used[r] += x
			}
		}
		return covered, used
	}
	reached, next := map[int]bool{0: true}, []int{0}
	for len(next) > 0 {
		state := next[0]
		next = next[1:]
		_, was := measure(state)
		for k := range ids {
			then := state | 1<<k
			if reached[then] {
				continue
			}
			covered, used := measure(then)
			ok := true
			for c := range inBefore {
				ok = ok && (!inAfter[c] || covered[c])
			}
			for r, x := range used {
				ok = ok && (x <= capacity[r] || x <= was[r])
			}
			if ok {
				reached[then] = true
				next = append(next, then)
			}
		}
	}
	return reached[1<<len(ids)-1]
}

// TestOrderAgainstAll holds Order against trying everything.
func TestOrderAgainstAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	outcomes := map[bool]int{}
	for n := range 4000 {
		before, after, capacity := randomElements(r)
		want := possible(before, after, capacity)
		got, err := planner.Order(before, after, capacity)
		dead, ok := errors.AsType[*planner.Deadlock](err)
		switch {
		case err != nil && (!ok || !dead.Proven || len(dead.Blocked) == 0):
			t.Fatalf("instance %d: %v", n, err)
		case (err == nil) != want:
			t.Fatalf("instance %d: %v, there is an order: %v\n%v\n%v\n%v", n, err, want, before, after, capacity)
		case err == nil && planner.Simulate(before, after, got, capacity) != nil:
			t.Fatalf("instance %d: %s: %v", n, stepText(got), planner.Simulate(before, after, got, capacity))
		}
		outcomes[want]++
		if second, _ := planner.Order(before, after, capacity); !reflect.DeepEqual(second, got) {
			t.Fatalf("instance %d: another order the second time", n)
		}
	}
	if outcomes[true] < 500 || outcomes[false] < 500 {
		t.Errorf("%d have an order and %d have none, want many of both", outcomes[true], outcomes[false])
	}
}

// TestOrderLarge replaces all of a large plan by another, through a bottleneck.
func TestOrderLarge(t *testing.T) {
	const n = 50_000
	before, after := make([]element, n), make([]element, n)
	capacity := map[string]float64{"all": n + 10}
	for k := range n {
		links := []string{fmt.Sprint("l", k), fmt.Sprint("l", (k+1)%n)}
		before[k] = element{ID: fmt.Sprint("a", k), Covers: links, Uses: map[string]float64{"all": 1}}
		after[n-1-k] = element{ID: fmt.Sprint("b", k), Covers: links, Uses: map[string]float64{"all": 1}}
	}
	got, err := planner.Order(before, after, capacity)
	if err != nil {
		t.Fatal(err)
	}
	if err := planner.Simulate(before, after, got, capacity); err != nil {
		t.Fatal(err)
	}
}
