package orchestrate

import (
	"fmt"
	"strings"
	"testing"
)

// TestTables looks at what interfaces are configured to do, with and without split items.
func TestTables(t *testing.T) {
	p := readProblem(t, Balance)
	p.Flows[0].Interfaces = append(p.Flows[0].Interfaces, 2)
	p.Redundancy, p.Split = 2, true
	p.Flows = append(p.Flows, Flow{ID: "h", Capacity: 9, Interfaces: []int32{1}})
	plan := NewPlan(p, "test", []Share{{0, 0, 4}, {1, 0, 4}, {1, 1, 5}, {1, 2, 5}, {2, 1, 2}})
	const want = "[{a [{f 0 4 false}]} {b [{f 0 4 true} {g 4 5 true} {h 2 5 true}]} {c [{g 0 2 false}]}]"
	if got := fmt.Sprint(p.Tables(plan)); got != want {
		t.Errorf("Tables = %s, want %s", got, want)
	}
	// Of 7 items of b, each is on two flows: f has 0 to 3, g 4 to 6 and 0 and 1, h 2 to 6.
	on := map[int64]int{}
	for _, e := range p.Tables(plan)[1].Entries {
		for n := range e.Items {
			on[(e.First+n)%7]++
		}
	}
	for n := range int64(7) {
		if on[n] != 2 {
			t.Errorf("item %d of b is on %d flows", n, on[n])
		}
	}
}

// Tables that a plan has are those of what it assigns, in any order; without any it has those.
func TestCheckTables(t *testing.T) {
	p := readProblem(t, Concentrate)
	plan := NewPlan(p, "test", []Share{{0, 0, 4}, {1, 1, 7}, {2, 1, 2}})
	plan.SetBound(0, 0)
	if err := Check(p, plan); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(){
		"": func() {}, `interface "b": its table is not what is assigned to it`: func() { plan.Tables[0].Entries[0].First = 1 },
		`interface "a": its table is not what is assigned to it`: func() { plan.Tables = plan.Tables[:2] },
		`interface "x" has a table, and no flow`:                 func() { plan.Tables = append(plan.Tables, Table{Interface: "x"}) },
		`interface "b" has two tables`:                           func() { plan.Tables = append(plan.Tables, plan.Tables[0]) },
	} {
		plan.Tables = p.Tables(plan)
		plan.Tables = append(plan.Tables[1:], plan.Tables[0])
		change()
		if err := Check(p, plan); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestCheckRates: rates that a plan has are those of the flows that it uses; without any it has those.
func TestCheckRates(t *testing.T) {
	p := readProblem(t, Concentrate)
	p.Flows[0].Rate, p.Flows[1].Rate = 100, 0
	plan := NewPlan(p, "test", []Share{{0, 0, 4}, {1, 1, 7}, {2, 1, 2}})
	plan.SetBound(0, 0)
	if got := fmt.Sprint(p.Rates(plan)); got != "map[f:100]" {
		t.Errorf("Rates = %s", got)
	}
	for _, tt := range []struct {
		rates map[string]float64
		ok    bool
	}{{nil, true}, {map[string]float64{"f": 100}, true}, {map[string]float64{}, false}, {map[string]float64{"f": 101}, false}, {map[string]float64{"f": 100, "g": 1}, false}} {
		if plan.Rates = tt.rates; (Check(p, plan) == nil) != tt.ok {
			t.Errorf("rates %v: %v", tt.rates, Check(p, plan))
		}
	}
}

// TestReadSized makes capacities of the sizes of packets.
func TestReadSized(t *testing.T) {
	const in = `{"interfaces":[{"id":"a","demand":4,"weight":3},{"id":"b","demand":1}],"flows":[` +
		`{"id":"f","packet_sizes":[1400,100,60,1500,90,80,70,50,40,30],"class":"bulk","interfaces":["a","b"]},` +
		`{"id":"g","capacity":5,"class":"voice","interfaces":["b"]}]}`
	for _, tt := range []struct {
		percentile float64
		want       int64
	}{{0, 364}, {50, 354}, {90, 22}, {95, 0}, {80, 347}, {100, 0}} {
		s := DefaultSizing()
		s.Percentile = tt.percentile
		p, err := ReadSized(strings.NewReader(in), Concentrate, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Flows[0].Capacity; got != tt.want {
			t.Errorf("percentile %v: capacity %d, want %d", tt.percentile, got, tt.want)
		}
	}
	p, err := Read(strings.NewReader(in), Concentrate)
	if err != nil {
		t.Fatal(err)
	}
	voice, err := p.OfClass("voice")
	if err != nil || fmt.Sprint(voice.Interfaces, voice.Flows) != "[{b 1 0}] [{g 5 0 voice [0]}]" {
		t.Errorf("class voice: %+v, %v", voice, err)
	}
	if _, err := p.OfClass("video"); err == nil || err.Error() != `no flow of class "video" passes an interface; the others are of ["bulk" "voice"]` {
		t.Errorf("class video: %v", err)
	}
	if p.Interfaces[0].Worth() != 3 || p.Interfaces[1].Worth() != 1 {
		t.Errorf("worth of the interfaces: %+v", p.Interfaces)
	}
	for _, tt := range []struct{ in, want string }{
		{`"packet_sizes":[]`, `flow "f": packet_sizes: are missing`},
		{`"packet_sizes":[0]`, `flow "f": packet_sizes: are missing, or not all above 0`},
		{`"packet_sizes":[1],"capacity":1`, `flow "f": has both a capacity and packet_sizes`},
	} {
		_, err := Read(strings.NewReader(`{"interfaces":[{"id":"a","demand":4}],"flows":[{"id":"f",`+tt.in+`}]}`), Concentrate)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.in, err, tt.want)
		}
	}
	for _, s := range []Sizing{{MTU: 0, ItemBytes: 4}, {MTU: 1500, Percentile: 101, ItemBytes: 4}, {MTU: 1500}} {
		if _, err := ReadSized(strings.NewReader(in), Concentrate, s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}
