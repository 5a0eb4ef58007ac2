package planner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	attentionsolve "github.com/hopscope/hopscope/planner/attention/solve"
	"github.com/hopscope/hopscope/planner/cover"
	coversolve "github.com/hopscope/hopscope/planner/cover/solve"
	"github.com/hopscope/hopscope/planner/delivery"
	deliverysolve "github.com/hopscope/hopscope/planner/delivery/solve"
	"github.com/hopscope/hopscope/planner/orchestrate"
	orchestratesolve "github.com/hopscope/hopscope/planner/orchestrate/solve"
	"github.com/hopscope/hopscope/planner/querymix"
	querymixsolve "github.com/hopscope/hopscope/planner/querymix/solve"
	"github.com/hopscope/hopscope/planner/schedule"
	schedulesolve "github.com/hopscope/hopscope/planner/schedule/solve"
)

// familyCase is a problem that a family makes of a graph, what its best plan is, and how a plan is checked.
type familyCase struct {
	name     string
	want     float64 // the best objective
	leftOut  float64 // least weight that any plan leaves out
	plan     func() (any, error)
	check    func(plan any) error
	stats    func(plan any) *planner.Stats
	accepted []string // what may change in a plan without the check seeing it, as path and change
}

// caseOf makes a case of the types of a family.
func caseOf[P any](name string, want, leftOut float64, plan func() (*P, error), check func(*P) error, stats func(*P) *planner.Stats, accepted []string) familyCase {
	return familyCase{name, want, leftOut,
		func() (any, error) { return plan() },
		func(p any) error { return check(p.(*P)) },
		func(p any) *planner.Stats { return stats(p.(*P)) },
		accepted,
	}
}

func names(n int) (list []string) {
	for v := range n {
		list = append(list, fmt.Sprint("n", v))
	}
	return list
}

// linkNames distinguishes parallel links.
func (x *testGraph) linkNames() (list []string) {
	for k, l := range x.links {
		list = append(list, fmt.Sprint("l", k, ":", l[0], "-", l[1]))
	}
	return list
}

// at lists the names of the links of a node.
func (x *testGraph) at(v int) (list []string) {
	all := x.linkNames()
	for k, l := range x.links {
		if l[0] == v || l[1] == v {
			list = append(list, all[k])
		}
	}
	return list
}

// anyText are the fields of all plans that say something to a reader. That a plan is not called optimal is no error either.
var anyText = []string{"Head.Kind", "Head.Version", "Algorithm", "Topology", "Stats.Stats.Seconds", "Stats.Stats.Proof", "Stats.Nodes", "Stats.Stats.Optimal"}

func coverCases(t *testing.T, x *testGraph) []familyCase {
	g := x.topology(t)
	accepted := append([]string{
		"Probes[].ID longer", "Second[].ID longer", "Probes[].Route", "Second[].Route", "Kept more", "KeptSecond more",
		"NotProbed", // what is to be skipped may be listed
	}, anyText...)
	one := func(name string, p *cover.Problem, want, leftOut float64) familyCase {
		return caseOf(name, want, leftOut,
			func() (*cover.Plan, error) {
				return coversolve.Plan(p, coversolve.Options{Partial: true, Seed: 1})
			},
			func(plan *cover.Plan) error { return cover.Check(p, plan) },
			func(plan *cover.Plan) *planner.Stats { return &plan.Stats.Stats }, accepted)
	}
	list := []familyCase{
		one("cover", &cover.Problem{Graph: g}, float64(x.trails), 0),
		one("cover directed", &cover.Problem{Graph: g, Directed: true}, float64(x.components), 0),
		one("cover with one hop", &cover.Problem{Graph: g, MaxHops: 1}, float64(len(x.links)), 0),
		one("cover without the first link", &cover.Problem{Graph: g, Skip: append([]bool{true}, make([]bool, len(x.links)-1)...)}, -1, 0),
		one("cover in both directions", &cover.Problem{Graph: g, Redundant: true}, -1, 0),
	}
	if x.postman > 0 {
		list = append(list,
			one("cover from a depot", &cover.Problem{Graph: g, Depots: []int{0}}, float64(x.postman), 0),
			one("cover by cost", &cover.Problem{Graph: g, Depots: []int{0}, Minimise: cover.Cost}, float64(x.postman), 0),
			one("cover by delay", &cover.Problem{Graph: g, Depots: []int{0}, Minimise: cover.Delay, MaxDelay: 1 << 20}, -1, 0),
			one("cover directed from a depot", &cover.Problem{Graph: g, Depots: []int{0}, Directed: true}, float64(2*len(x.links)), 0),
		)
	}
	return list
}

// attentionCases measure links by probes that pass all links of a node: the fewest are a vertex cover.
func attentionCases(_ *testing.T, x *testGraph) []familyCase {
	p := &attention.Problem{Suspicious: x.linkNames()}
	for v, name := range names(x.nodes) {
		if links := x.at(v); len(links) > 0 {
			p.Probes = append(p.Probes, attention.Trace{ID: name, Cost: 1, Links: links})
		}
	}
	q := *p
	q.Suspicious, q.SwitchCost = append(slices.Clone(p.Suspicious), "nowhere"), 2
	q.Detailed = []string{p.Probes[0].ID}
	one := func(name string, p *attention.Problem, want, leftOut float64) familyCase {
		return caseOf(name, want, leftOut,
			func() (*attention.Plan, error) {
				return attentionsolve.Plan(p, attentionsolve.Options{Partial: true})
			},
			func(plan *attention.Plan) error { return attention.Check(p, plan) },
			func(plan *attention.Plan) *planner.Stats { return &plan.Stats.Stats }, anyText)
	}
	return []familyCase{
		one("attention", p, float64(x.vertices), 0),
		one("attention to what changes", &q, -1, 1),
	}
}

// deliveryCases send from node 0 to the last node, with switches between.
func deliveryCases(_ *testing.T, x *testGraph) []familyCase {
	p := new(delivery.Problem)
	for v, name := range names(x.nodes) {
		n := delivery.Node{ID: name, Kind: delivery.SwitchNode, Capacity: 100, Up: 1}
		switch v {
		case 0:
			n = delivery.Node{ID: name, Kind: delivery.PointNode, Rate: 10, Deadline: 100, Loss: 0.5, Up: 1}
		case x.nodes - 1:
			n = delivery.Node{ID: name, Kind: delivery.ServerNode, Capacity: 100, Up: 1}
		}
		p.Nodes = append(p.Nodes, n)
	}
	for _, l := range x.links {
		p.Links = append(p.Links, delivery.Link{A: p.Nodes[l[0]].ID, B: p.Nodes[l[1]].ID, Latency: 1, Capacity: 100, Up: 0.999})
	}
	accepted := append([]string{
		"Stats.ServedAtFirst", "Stats.Paths", "Stats.Capped", "Stats.Acceptance", "Stats.PairAcceptance",
		"AddedLinks[].PortA", "AddedLinks[].PortB", "Switches[].Collectors[].NextHop empty", "AddedLinks[].Constraint", "AddedLinks[].Detail", "Unserved[].Constraint", "Unserved[].Detail",
	}, anyText...)
	one := func(name string, p *delivery.Problem, want, leftOut float64, o deliverysolve.Options) familyCase {
		return caseOf(name, want, leftOut,
			func() (*delivery.Plan, error) { return deliverysolve.Plan(p, o) },
			func(plan *delivery.Plan) error { return delivery.Check(p, plan) },
			func(plan *delivery.Plan) *planner.Stats { return &plan.Stats.Stats }, accepted)
	}
	joint, exact := *p, *p
	joint.LossTest = delivery.LossJoint
	exact.LossTest, exact.Reserve = delivery.LossExact, 1.5
	wide := *p
	wide.Nodes = append(slices.Clone(p.Nodes), delivery.Node{ID: "far", Kind: delivery.PointNode, Rate: 1, Deadline: 0.5, Loss: 0.5, Weight: 3, Up: 1})
	return []familyCase{
		one("delivery", p, 1, 0, deliverysolve.Options{Partial: true}),
		one("delivery, joint", &joint, 1, 0, deliverysolve.Options{Partial: true}),
		one("delivery, exact", &exact, -1, 0, deliverysolve.Options{Partial: true}),
		one("delivery of what cannot be", &wide, 1, 3, deliverysolve.Options{Partial: true}),
	}
}

// orchestrateCases have an interface at every node, and a flow over the two ends of every link: the fewest flows are an
// edge cover.
func orchestrateCases(_ *testing.T, x *testGraph) []familyCase {
	p := &orchestrate.Problem{Objective: orchestrate.Concentrate}
	lone := 0.0
	for v, name := range names(x.nodes) {
		p.Interfaces = append(p.Interfaces, orchestrate.Interface{ID: name, Demand: 1})
		if len(x.at(v)) == 0 {
			lone++
		}
	}
	for k, name := range x.linkNames() {
		p.Flows = append(p.Flows, orchestrate.Flow{ID: name, Capacity: 2, Rate: 10, Interfaces: []int32{int32(x.links[k][0]), int32(x.links[k][1])}})
	}
	one := func(name string, p orchestrate.Problem, want float64, change func(*orchestrate.Problem)) familyCase {
		change(&p)
		return caseOf(name, want, lone,
			func() (*orchestrate.Plan, error) {
				plan, err := orchestratesolve.Plan(&p, orchestratesolve.Options{Partial: true, Seed: 1})
				if err == nil {
					plan.Tables, plan.Rates = p.Tables(plan), p.Rates(plan)
				}
				return plan, err
			},
			func(plan *orchestrate.Plan) error { return orchestrate.Check(&p, plan) },
			func(plan *orchestrate.Plan) *planner.Stats { return &plan.Stats.Stats }, append([]string{"Redundancy", "Unserved[].Interface", "Unserved[].Reason"}, anyText...))
	}
	fewest := float64(x.edges)
	if lone > 0 {
		fewest = -1
	}
	split := one("orchestrate, split", *p, -1, func(p *orchestrate.Problem) {
		p.Split = true
		p.Interfaces = slices.Clone(p.Interfaces)
		for i := range p.Interfaces {
			p.Interfaces[i].Demand = 3
		}
	})
	split.leftOut = -1
	return []familyCase{
		one("orchestrate", *p, fewest, func(*orchestrate.Problem) {}),
		one("orchestrate, balanced", *p, -1, func(p *orchestrate.Problem) { p.Objective = orchestrate.Balance }),
		split,
	}
}

// queryCases have a query for every node, of which two travel in a packet.
func queryCases(_ *testing.T, x *testGraph) []familyCase {
	p := &querymix.Problem{Bits: 16, Epoch: 7}
	for _, name := range names(x.nodes) {
		p.Queries = append(p.Queries, querymix.Query{Name: name, Value: "node", Aggregation: querymix.Static, Hops: 3, Widths: []querymix.Width{{Bits: 8, Instances: 1, Packets: 10}}})
	}
	q := *p
	q.Queries = append(slices.Clone(p.Queries), querymix.Query{Name: "wide", Value: "node", Aggregation: querymix.Static, Hops: 3, Weight: 2, Widths: []querymix.Width{{Bits: 20, Instances: 1, Packets: 10}}})
	q.Queries[0].Within, q.Queries[1].Frequency = 30, 0.25
	one := func(name string, p *querymix.Problem, want, leftOut float64) familyCase {
		return caseOf(name, want, leftOut,
			func() (*querymix.Plan, error) {
				return querymixsolve.Plan(p, querymixsolve.Options{Partial: true, Seed: 1})
			},
			func(plan *querymix.Plan) error { return querymix.Check(p, plan) },
			func(plan *querymix.Plan) *planner.Stats { return &plan.Stats.Stats }, append([]string{"LeftOut[].Reason", "Queries[].LimitedBy", "Queries[].Tau", "Queries[].XOR", "Queries[].Widths[].Objective", "Queries[].GoalPrice", "Held more"}, anyText...))
	}
	return []familyCase{
		one("queries", p, max(1, float64(x.nodes)/2), 0),
		one("queries of several kinds", &q, -1, 2),
	}
}

// scheduleCases send probes over all links of a node, all links every 100 ms. The fewest are a vertex cover, apart from
// their cost in bytes.
func scheduleCases(_ *testing.T, x *testGraph) []familyCase {
	p := schedule.Defaults()
	p.Period, p.Spacing = 100, 20
	for v, name := range names(x.nodes) {
		if links := x.at(v); len(links) > 0 {
			p.Probes = append(p.Probes, schedule.Probe{ID: name, Links: links, Agent: "a", Collector: "c"})
		}
	}
	flat := *p
	flat.HopBytes = 0
	apart := *p
	apart.Links = []schedule.Link{{Name: "nowhere"}}
	one := func(name string, p *schedule.Problem, want, leftOut float64) familyCase {
		return caseOf(name, want, leftOut,
			func() (*schedule.Plan, error) {
				return schedulesolve.Plan(p, schedulesolve.Options{Partial: true, Seed: 1})
			},
			func(plan *schedule.Plan) error { return schedule.Check(p, plan) },
			func(plan *schedule.Plan) *planner.Stats { return &plan.Stats.Stats }, append([]string{"Stats.PeakBound less", "NotSeen[].Reason", "Probes[].Class"}, anyText...))
	}
	return []familyCase{
		one("schedule", p, -1, 0),
		one("schedule with a link on no probe", &apart, -1, 1),
		one("schedule of probes that do not grow", &flat, -1, 0),
	}
}

var families = []struct {
	name string
	of   func(*testing.T, *testGraph) []familyCase
}{
	{"cover", coverCases}, {"attention", attentionCases}, {"delivery", deliveryCases},
	{"orchestrate", orchestrateCases}, {"querymix", queryCases}, {"schedule", scheduleCases},
}

// eachFamily runs a test for every family.
func eachFamily(t *testing.T, test func(t *testing.T, of func(*testing.T, *testGraph) []familyCase)) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			test(t, f.of)
		})
	}
}

// TestFamilies has every family plan for every graph. A plan passes its check, it is optimal where the optimum is
// known, and no bound is beyond it. It is the same after it was written and read.
func TestFamilies(t *testing.T) {
	eachFamily(t, func(t *testing.T, of func(*testing.T, *testGraph) []familyCase) {
		for _, x := range testGraphs {
			for _, c := range of(t, &x) {
				plan, err := c.plan()
				if err == nil {
					err = c.check(plan)
				}
				if err != nil {
					t.Errorf("%s of %s: %v", c.name, x.name, err)
					continue
				}
				s := c.stats(plan)
				if c.want >= 0 && (!planner.Near(s.Objective, c.want) || !s.Optimal) || c.leftOut >= 0 && !planner.Near(s.LeftOut, c.leftOut) {
					t.Errorf("%s of %s: objective %v (optimal: %v) without %v, want %v without %v", c.name, x.name, s.Objective, s.Optimal, s.LeftOut, c.want, c.leftOut)
				}
				if s.LowerBound > s.Objective && !planner.Near(s.LowerBound, s.Objective) || s.LeftOutBound > s.LeftOut && !planner.Near(s.LeftOutBound, s.LeftOut) {
					t.Errorf("%s of %s: bounds beyond the plan: %+v", c.name, x.name, s)
				}
				b, second := written(t, plan)
				if err := c.check(second); err != nil {
					t.Errorf("%s of %s, read again: %v", c.name, x.name, err)
				}
				if twice, _ := written(t, second); !bytes.Equal(b, twice) {
					t.Errorf("%s of %s is\n%s\nand after it was read\n%s", c.name, x.name, b, twice)
				}
			}
		}
	})
}

// written is the JSON of a plan, and what is read from it.
func written(t *testing.T, plan any) ([]byte, any) {
	t.Helper()
	b, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	second := reflect.New(reflect.TypeOf(plan).Elem()).Interface()
	if err := planner.ReadJSON(bytes.NewReader(b), second); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return b, second
}

// corrupter makes the n-th of all single changes to a value.
type corrupter struct {
	n    int
	what string // path and change, with [] for any place of a list
}

// try makes a change if it is the n-th.
func (c *corrupter) try(path, change string, do func()) {
	if c.n--; c.n == -1 {
		c.what = strings.TrimPrefix(path, ".") + " " + change
		do()
	}
}

func (c *corrupter) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			c.walk(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c.try(path, "gone", v.SetZero)
			if c.what == "" {
				c.walk(v.Elem(), path)
			}
		}
	case reflect.Slice:
		n := v.Len()
		if n == 0 {
			return
		}
		clone := func() reflect.Value { return reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, n+1), v) }
		c.try(path, "cut", func() { v.Set(clone().Slice(0, n-1)) })
		c.try(path, "begun later", func() { v.Set(clone().Slice(1, n)) })
		c.try(path, "doubled", func() { v.Set(reflect.Append(clone(), v.Index(0))) })
		for i := range n {
			if c.what == "" {
				c.walk(v.Index(i), path+"[]")
			}
		}
	case reflect.Map:
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			c.try(path, "without a key", func() { v.SetMapIndex(k, reflect.Value{}) })
			c.try(path, "with another value", func() {
				x := reflect.New(v.Type().Elem()).Elem()
				switch old := v.MapIndex(k); old.Kind() {
				case reflect.String:
					x.SetString(old.String() + "x")
				case reflect.Float64:
					x.SetFloat(old.Float() + 0.125)
				default:
					panic("a map of " + old.Type().String())
				}
				v.SetMapIndex(k, x)
			})
			c.try(path, "with another key", func() { v.SetMapIndex(reflect.ValueOf(k.String()+"x"), v.MapIndex(k)) })
		}
	case reflect.Bool:
		c.try(path, "flipped", func() { v.SetBool(!v.Bool()) })
	case reflect.String:
		c.try(path, "longer", func() { v.SetString(v.String() + "x") })
		if v.Len() > 0 {
			c.try(path, "empty", func() { v.SetString("") })
		}
	case reflect.Int, reflect.Int64:
		c.try(path, "more", func() { v.SetInt(v.Int() + 1) })
		c.try(path, "less", func() { v.SetInt(v.Int() - 1) })
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		c.try(path, "more", func() { v.SetUint(v.Uint() + 1) })
		c.try(path, "less", func() { v.SetUint(v.Uint() - 1) })
	case reflect.Float64:
		c.try(path, "more", func() { v.SetFloat(v.Float() + 0.125) })
		c.try(path, "less", func() { v.SetFloat(v.Float() - 0.125) })
	}
}

// TestCorruptions changes plans in one place, in every place: the check refuses each change, but to what it does not judge.
func TestCorruptions(t *testing.T) {
	eachFamily(t, func(t *testing.T, of func(*testing.T, *testGraph) []familyCase) {
		unseen := map[string]bool{} // what is said not to be judged, and no change showed
		for _, x := range testGraphs {
			if x.nodes > 5 {
				continue
			}
			for _, c := range of(t, &x) {
				plan, err := c.plan()
				if err != nil {
					t.Fatalf("%s of %s: %v", c.name, x.name, err)
				}
				for _, path := range c.accepted {
					if _, ok := unseen[path]; !ok {
						unseen[path] = !slices.Contains(anyText, path)
					}
				}
				b, _ := written(t, plan)
				for n := 0; ; n++ {
					second := reflect.New(reflect.TypeOf(plan).Elem())
					if err := json.Unmarshal(b, second.Interface()); err != nil {
						t.Fatal(err)
					}
					k := corrupter{n: n}
					if k.walk(second.Elem(), ""); k.what == "" {
						break
					}
					err := c.check(second.Interface())
					at := slices.IndexFunc(c.accepted, func(path string) bool {
						return k.what == path || strings.HasPrefix(k.what, path+" ") || strings.HasPrefix(k.what, path+"[")
					})
					switch {
					case err == nil && at < 0:
						t.Errorf("%s of %s: the check accepts %s", c.name, x.name, k.what)
					case err == nil:
						unseen[c.accepted[at]] = false
					}
				}
			}
		}
		for path, never := range unseen {
			if never {
				t.Errorf("the check is said not to judge %s, and refused every change of it", path)
			}
		}
	})
}

// TestInvalidProblems: a check of a problem that is none is an error, whatever the plan.
func TestInvalidProblems(t *testing.T) {
	x := testGraphs[1]
	g := x.topology(t)
	for name, err := range map[string]error{
		"cover":       cover.Check(&cover.Problem{Graph: g, MaxHops: -1}, &cover.Plan{}),
		"attention":   attention.Check(&attention.Problem{}, &attention.Plan{}),
		"delivery":    delivery.Check(&delivery.Problem{}, &delivery.Plan{}),
		"replay":      delivery.Replay(&delivery.Problem{}, &delivery.Plan{}),
		"orchestrate": orchestrate.Check(&orchestrate.Problem{}, &orchestrate.Plan{}),
		"querymix":    querymix.Check(&querymix.Problem{}, &querymix.Plan{}),
		"schedule":    schedule.Check(&schedule.Problem{}, &schedule.Plan{}),
	} {
		if err == nil {
			t.Errorf("%s: a plan for no problem holds", name)
		}
	}
	// Nothing but the limit is wrong.
	p := &cover.Problem{Graph: g}
	plan, err := coversolve.Plan(p, coversolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cover.Check(&cover.Problem{Graph: g, MaxHops: -1}, plan); err == nil {
		t.Error("cover: a limit below 0 is taken")
	}
}

// TestInvalidOtherwise takes problems with errors that do not show in their plans: the check still reports them.
func TestInvalidOtherwise(t *testing.T) {
	x := &testGraphs[1]
	spoil := map[string]func() error{
		"attention": func() error {
			p := &attention.Problem{Probes: []attention.Trace{{ID: "a", Cost: 1, Links: []string{"1"}}}, Suspicious: []string{"1"}}
			plan, err := attentionsolve.Plan(p, attentionsolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.Weights = map[string]float64{"1": -1}
			return attention.Check(p, plan)
		},
		"orchestrate": func() error {
			p := &orchestrate.Problem{Objective: orchestrate.Concentrate, Interfaces: []orchestrate.Interface{{ID: "i", Demand: 1}}, Flows: []orchestrate.Flow{{ID: "f", Capacity: 1, Interfaces: []int32{0}}}}
			plan, err := orchestratesolve.Plan(p, orchestratesolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.Redundancy = -1
			return orchestrate.Check(p, plan)
		},
		"delivery": func() error {
			p := &delivery.Problem{
				Nodes: []delivery.Node{{ID: "m", Kind: delivery.PointNode, Rate: 1, Deadline: 9, Loss: 0.5, Up: 1}, {ID: "s", Kind: delivery.ServerNode, Capacity: 2, Up: 1}},
				Links: []delivery.Link{{A: "m", B: "s", Latency: 1, Capacity: 2, Up: 1}},
			}
			plan, err := deliverysolve.Plan(p, deliverysolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.Reserve = 0.5
			return delivery.Check(p, plan)
		},
		"querymix": func() error {
			p := &querymix.Problem{Bits: 8, Queries: []querymix.Query{{Name: "q", Value: "node", Aggregation: querymix.Static, Hops: 3, Widths: []querymix.Width{{Bits: 8, Instances: 1, Packets: 10}}}}}
			plan, err := querymixsolve.Plan(p, querymixsolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.Queries[0].Weight = -1
			return querymix.Check(p, plan)
		},
		"schedule": func() error {
			p := schedule.Defaults()
			for v := range x.nodes {
				p.Probes = append(p.Probes, schedule.Probe{ID: fmt.Sprint("p", v), Links: x.at(v)})
			}
			plan, err := schedulesolve.Plan(p, schedulesolve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.Unwatched = []string{"nowhere"}
			return schedule.Check(p, plan)
		},
	}
	for name, check := range spoil {
		if check() == nil {
			t.Errorf("%s: a plan for a problem that is wrong holds", name)
		}
	}
}
