package orchestrate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const orchestrateJSON = `{"interfaces":[{"id":"a","demand":4},{"id":"b","demand":7.0},{"id":"c","demand":2}],
"flows":[{"id":"f","capacity":11,"interfaces":["a","b"]},{"id":"g","capacity":1e1,"rate":2.5,"interfaces":["c","b"]}]}`

func readProblem(t *testing.T, objective string) *Problem {
	t.Helper()
	p, err := Read(strings.NewReader(orchestrateJSON), objective)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRead(t *testing.T) {
	got := readProblem(t, Balance)
	want := &Problem{
		Interfaces: []Interface{{ID: "a", Demand: 4}, {ID: "b", Demand: 7}, {ID: "c", Demand: 2}},
		Flows:      []Flow{{ID: "f", Capacity: 11, Interfaces: []int32{0, 1}}, {ID: "g", Capacity: 10, Rate: 2.5, Interfaces: []int32{2, 1}}},
		Objective:  Balance,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Read = %+v, want %+v", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	const flow = `"flows":[{"id":"f","capacity":9,"interfaces":["a"]}]`
	const iface = `"interfaces":[{"id":"a","demand":4}]`
	for _, tt := range []struct{ in, want string }{
		{"", "byte 0: no JSON object"},
		{"[", "byte 1: unexpected EOF"},
		{"{" + iface + "," + flow + "}{}", "byte 92: more than one JSON value"},
		{`{"interfaces":[{"id":7}]}`, "byte 22: interfaces.id: a number cannot be a string"},
		{"[]", "byte 1: a list cannot be an object"},
		{`{"interfaces":[{"id":"a","demand":"NaN"}],` + flow + "}", `interface "a": demand: "NaN" is not a whole number`},
		{"{" + iface + `,"flows":[{"id":"f","capacity":[],"rate":"x"}]}`, "flow \"f\": capacity: [] is not a whole number up to 17592186044416\nflow \"f\": rate: \"x\" is not a number"},
		{"{" + flow + "}", `flow "f": passes interface "a", which is not listed`},
		{"{" + iface + "}", "no flows"},
		{`{"interfaces":[],"flows":[]}`, "no interfaces\nno flows"},
		{`{"interfaces":[{"demand":1}],` + flow + "}", "interface 1 of the list: no id"},
		{`{"interfaces":[{"id":"a"}],` + flow + "}", `interface "a": demand: is missing`},
		{`{"interfaces":[{"id":"a","demand":0}],` + flow + "}", `interface "a": demand 0 is outside 1..`},
		{`{"interfaces":[{"id":"a","demand":-4}],` + flow + "}", `interface "a": demand -4 is outside 1..`},
		{`{"interfaces":[{"id":"a","demand":1.5}],` + flow + "}", `interface "a": demand: 1.5 is not a whole number`},
		{`{"interfaces":[{"id":"a","demand":1e30}],` + flow + "}", `interface "a": demand: 1e30 is not a whole number`},
		{`{"interfaces":[{"id":"a","demand":NaN}],` + flow + "}", "byte 35: invalid character 'N'"},
		{`{"interfaces":[{"id":"a","demand":1},{"id":"a","demand":2}],` + flow + "}", `interface "a" is listed twice`},
		{`{"interfaces":[{"id":"a","demand":17592186044416},{"id":"b","demand":1}],` + flow + "}", `interface "b": the demands up to here are more than`},
		{`{"interfaces":[{"id":"a","demand":4,"weight":0}],` + flow + "}", `interface "a": weight: 0 is outside 1 and up`},
		{`{"interfaces":[{"id":"a","demand":4,"weight":-3}],` + flow + "}", `interface "a": weight -3 is outside 1..`},
		{"{" + iface + `,"flows":[{"capacity":9}]}`, "flow 1 of the list: no id"},
		{"{" + iface + `,"flows":[{"id":"f","interfaces":["a"]}]}`, `flow "f": capacity: is missing`},
		{"{" + iface + `,"flows":[{"id":"f","capacity":-1}]}`, `flow "f": capacity -1 is outside 0..`},
		{"{" + iface + `,"flows":[{"id":"f","capacity":1,"rate":-1}]}`, `flow "f": a rate of -1 packets a second`},
		{"{" + iface + `,"flows":[{"id":"f","capacity":1,"interfaces":["a","a"]}]}`, `flow "f": passes interface "a" twice`},
		{"{" + iface + `,"flows":[{"id":"f","capacity":1},{"id":"f","capacity":1}]}`, `flow "f" is listed twice, at 1 and 2`},
	} {
		if p, err := Read(strings.NewReader(tt.in), Concentrate); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Read(%s) = %+v, %v, want %s", tt.in, p, err, tt.want)
		}
	}
}

func TestUnservable(t *testing.T) {
	for _, tt := range []struct {
		change func(p *Problem)
		want   string
	}{
		{func(*Problem) {}, "[]"},
		{func(p *Problem) { p.Redundancy = 2 }, "[{a 1 flows pass it, 2 are to carry each item} {c 1 flows pass it, 2 are to carry each item}]"},
		{func(p *Problem) { p.Flows = p.Flows[:1] }, "[{c no flow passes it}]"},
		{func(p *Problem) { p.Interfaces[1].Demand = 12 }, "[{b demand 12 is above the capacity of every flow that passes it, at most 11}]"},
		{func(p *Problem) { p.Interfaces[1].Demand, p.Split = 12, true }, "[]"},
		{func(p *Problem) { p.Interfaces[1].Demand, p.Split = 22, true },
			"[{b the flows that pass it have a capacity of 21 items together, 1 times 22 are to be carried}]"},
		{func(p *Problem) {
			p.Interfaces, p.Redundancy = []Interface{{ID: "b", Demand: 11}}, 2
			p.Flows = []Flow{{ID: "f", Capacity: 11, Interfaces: []int32{0}}, {ID: "g", Capacity: 10, Interfaces: []int32{0}}}
		}, "[{b 1 of the flows that pass it have a capacity for demand 11, 2 are wanted}]"},
	} {
		p := readProblem(t, Concentrate)
		tt.change(p)
		if got := fmt.Sprint(p.Unservable()); got != tt.want {
			t.Errorf("Unservable = %s, want %s", got, tt.want)
		}
	}
}

// TestCheck spoils a good plan in every way that the check is there for.
func TestCheck(t *testing.T) {
	shares := []Share{{0, 0, 4}, {1, 0, 7}, {2, 1, 2}}
	for _, tt := range []struct {
		name  string
		spoil func(p *Problem, plan *Plan)
		want  string
	}{
		{"good", func(*Problem, *Plan) {}, ""},
		{"other objective", func(_ *Problem, plan *Plan) { plan.Objective = Balance }, "the plan is for balance, redundancy 1, split false"},
		{"missing", func(_ *Problem, plan *Plan) { delete(plan.Assignment, "a") }, `interface "a": 0 of 4 items are carried`},
		{"unknown interface", func(_ *Problem, plan *Plan) { plan.Assignment["x"] = "f" }, `no interface "x"`},
		{"unknown flow", func(_ *Problem, plan *Plan) { plan.Assignment["a"] = "x" }, `interface "a": no flow "x"`},
		{"wrong flow", func(_ *Problem, plan *Plan) { plan.Assignment["a"] = "g" }, `flow "g" does not pass interface "a"`},
		{"over capacity", func(p *Problem, _ *Plan) { p.Flows[0].Capacity = 10 }, `flow "f" carries 11 items, its capacity is 10`},
		{"assignment and share", func(_ *Problem, plan *Plan) {
			plan.Shares = []NamedShare{{"b", "g", 7}}
		}, `interface "b" has an assignment and shares`},
		{"share twice", func(_ *Problem, plan *Plan) {
			delete(plan.Assignment, "b")
			plan.Shares = []NamedShare{{"b", "g", 7}, {"b", "g", 7}}
		}, `interface "b" has two shares on flow "g"`},
		{"split", func(_ *Problem, plan *Plan) {
			delete(plan.Assignment, "b")
			plan.Shares = []NamedShare{{"b", "f", 3}, {"b", "g", 4}}
		}, `interface "b": 3 of 7 items on flow "f", but demands are not to be split`},
		{"nothing shared", func(_ *Problem, plan *Plan) {
			plan.Shares = []NamedShare{{"a", "f", 0}}
		}, `interface "a": 0 items on flow "f"`},
		{"not said to be partial", func(_ *Problem, plan *Plan) { plan.Partial = true }, "partial: true with 0 named, 0 interfaces are not served whole"},
		{"objective", func(_ *Problem, plan *Plan) { plan.Stats.Objective = 1 }, "statistics: objective is 1, the assignment says 2"},
		{"load", func(_ *Problem, plan *Plan) { plan.Stats.LoadMax = 1 }, "statistics: load_max is 1, the assignment says 11"},
		{"correlation", func(_ *Problem, plan *Plan) { plan.Stats.Correlation = 1 }, "statistics: correlation is 1, the assignment says 0.75"},
		{"bound", func(_ *Problem, plan *Plan) { plan.SetBound(3, 0) }, "the lower bound 3 is above the objective 2"},
		{"proof", func(_ *Problem, plan *Plan) { plan.SetBound(1, 0); plan.Stats.Optimal = true }, "called optimal with objective 2 and lower bound 1"},
	} {
		p := readProblem(t, Concentrate)
		plan := NewPlan(p, "test", shares)
		plan.SetBound(2, 0)
		tt.spoil(p, plan)
		err := Check(p, plan)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Check = %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestPlan looks at the numbers of a plan with redundancy and splitting, and at its JSON.
func TestPlan(t *testing.T) {
	p := readProblem(t, Balance)
	p.Flows[0].Interfaces = append(p.Flows[0].Interfaces, 2)
	p.Split = true
	plan := NewPlan(p, "test", []Share{{0, 0, 4}, {1, 0, 1}, {1, 1, 5}, {2, 1, 2}})
	plan.SetBound(7, 0)
	if err := Check(p, plan); err != nil {
		t.Error(err)
	}
	got, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"algorithm":"test","objective":"balance","split":true,"partial":true,"assignment":{"a":"f","c":"g"},` +
		`"shares":[{"interface":"b","flow":"f","items":1},{"interface":"b","flow":"g","items":5}],` +
		`"unserved":[{"interface":"b","reason":"6 of 7 items are carried"}],` +
		`"stats":{"objective":7,"lower_bound":7,"optimal":false,"left_out":1,"seconds":0,"gap":0,"interfaces":3,"flows":2,"flows_used":2,` +
		`"coverage":0.6666666666666666,"assigned":0.9230769230769231,"load_min":5,"load_mean":6,"load_max":7,` +
		`"fill":0.5772727272727273,"per_flow":2,"correlation":0.8333333333333333,"freshness":{"mean":0.5,"max":1},"renewal":{"min":0,"mean":1.4285714285714286}}}`
	if string(got) != want {
		t.Errorf("JSON is\n%s\nwant\n%s", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(orchestrateJSON)
	f.Add(`{"interfaces":[{"id":"","demand":1}],"flows":[{"id":"","capacity":0,"interfaces":[""]}]}`)
	f.Fuzz(func(t *testing.T, in string) {
		p, err := Read(strings.NewReader(in), Concentrate)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("Read(%q) gives what Validate refuses: %v", in, err)
		}
		p.Unservable()
	})
}
