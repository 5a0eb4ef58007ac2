package delivery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// twoPaths is a point whose 30 Gbit/s need two paths to one server. One is over v, where 20 are free, and one over w.
// From w there are two links to the server, each with 6 free.
const twoPaths = `{"nodes":[
{"id":"m","kind":"point","rate_gbps":30,"deadline_ms":9,"loss":0.1},
{"id":"v","kind":"switch","capacity_gbps":100},{"id":"w","kind":"switch","capacity_gbps":100},
{"id":"s","kind":"server","capacity_gbps":40}],
"links":[{"a":"m","b":"v","port_a":7,"latency_ms":1,"capacity_gbps":100,"load_gbps":80},
{"a":"m","b":"w","latency_ms":1,"capacity_gbps":100},
{"a":"v","b":"s","latency_ms":1,"capacity_gbps":100},
{"a":"w","b":"s","latency_ms":1,"capacity_gbps":6,"port_b":9},
{"a":"w","b":"s","latency_ms":1,"capacity_gbps":6}]}`

func planTwoPaths(t *testing.T) (*delivery.Problem, *delivery.Plan) {
	t.Helper()
	p, err := delivery.Read(strings.NewReader(twoPaths))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := solve.Plan(p, solve.Options{NoLinks: true})
	if err == nil {
		err = delivery.Check(p, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, plan
}

// TestPathsApart holds that the configuration of a point with several paths has every one of them, by ports, and so is every switch.
func TestPathsApart(t *testing.T) {
	_, plan := planTwoPaths(t)
	rate := map[int]float64{}
	for _, d := range plan.Assignment {
		rate[d.Ports[0]] += d.Rate
	}
	if len(plan.Assignment) != 3 || rate[7] > 20 || rate[1] > 12 {
		t.Errorf("assignment %+v, want three paths, at most 20 Gbit/s by port 7 and at most 12 by port 1", plan.Assignment)
	}
	byPort := map[int]float64{}
	for _, c := range plan.Switches {
		for _, r := range c.Rules {
			if c.Switch == "w" {
				byPort[r.OutPort] += r.Rate
			}
			if c.Switch == "m" && (r.OutPort == 7) != (r.NextHop == "v") {
				t.Errorf("m sends by %+v", r)
			}
		}
		if c.Switch == "m" && (len(c.Collectors) != 1 || c.Collectors[0].NextHop != "") {
			t.Errorf("m is reported %+v, want one collector without a next hop of its own", c.Collectors)
		}
	}
	if len(byPort) != 2 || byPort[2] > 6+1e-6 || byPort[3] > 6+1e-6 {
		t.Errorf("w sends %v Gbit/s by its ports, want at most 6 by each of 2 and 3", byPort)
	}
}

// TestReplay spoils the configuration in every way.
func TestReplay(t *testing.T) {
	at := func(p *delivery.Plan, node string) *delivery.Configuration {
		for k := range p.Switches {
			if p.Switches[k].Switch == node {
				return &p.Switches[k]
			}
		}
		t.Fatalf("%s is not configured", node)
		return nil
	}
	tests := []struct {
		name, want string
		spoil      func(*delivery.Problem, *delivery.Plan)
	}{
		{"all by one next hop", "link m v gets 30.000000 Gbit/s, free are 20", func(_ *delivery.Problem, p *delivery.Plan) {
			m, v := at(p, "m"), at(p, "v")
			for k := range m.Rules {
				if r := &m.Rules[k]; r.NextHop == "v" {
					r.Share, r.Rate, v.Rules[0].Rate = 1, 30, 30
					m.Rules = m.Rules[k : k+1]
					return
				}
			}
		}},
		{"parallel links mixed up", "link w:2 s:9 gets", func(_ *delivery.Problem, p *delivery.Plan) {
			for k := range at(p, "w").Rules {
				at(p, "w").Rules[k].OutPort = 2
			}
		}},
		{"dropped", "switch v drops path", func(_ *delivery.Problem, p *delivery.Plan) { at(p, "v").Rules = nil }},
		{"round", "round in circles", func(_ *delivery.Problem, p *delivery.Plan) {
			r := &at(p, "v").Rules[0]
			r.OutPort, r.NextHop = r.InPort, "m"
		}},
		{"shares", "shares of 1.5", func(_ *delivery.Problem, p *delivery.Plan) { at(p, "m").Rules[0].Share += 0.5 }},
		{"no share", "a share of -1", func(_ *delivery.Problem, p *delivery.Plan) { at(p, "m").Rules[0].Share = -1 }},
		{"port", `port 77 of v does not lead to "s"`, func(_ *delivery.Problem, p *delivery.Plan) { at(p, "v").Rules[0].OutPort = 77 }},
		{"tag", "it has no rule for tag", func(_ *delivery.Problem, p *delivery.Plan) { at(p, "v").Rules[0].Tag = 9 }},
		{"left over", "nothing meets the rule of s", func(_ *delivery.Problem, p *delivery.Plan) {
			p.Switches = append(p.Switches, delivery.Configuration{Switch: "s", Rules: []delivery.Rule{{Path: "m/4", Point: "m", Tag: 4, OutPort: 1, NextHop: "v"}}})
		}},
		{"server forwards", "s is a server and does not forward", func(_ *delivery.Problem, p *delivery.Plan) {
			p.Switches = append(p.Switches, delivery.Configuration{Switch: "s", Rules: []delivery.Rule{{Path: "m/1", Point: "m", Tag: 1, OutPort: 1, NextHop: "v"}}})
		}},
		{"two rules", "two rules for tag", func(_ *delivery.Problem, p *delivery.Plan) {
			at(p, "v").Rules = append(at(p, "v").Rules, at(p, "v").Rules[0])
		}},
		{"twice", "or a second time", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches = append(p.Switches, *at(p, "v")) }},
		{"rate", "v expects 1.000000 Gbit/s", func(_ *delivery.Problem, p *delivery.Plan) { at(p, "v").Rules[0].Rate = 1 }},
		{"silent", "nothing arrives on path m/1", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches = p.Switches[1:] }},
		{"less free", "link m v gets", func(q *delivery.Problem, _ *delivery.Plan) { q.Links[0].Load = 90 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, plan := planTwoPaths(t)
			if err := delivery.Replay(p, plan); err != nil {
				t.Fatalf("the good plan: %v", err)
			}
			tt.spoil(p, plan)
			if err := delivery.Replay(p, plan); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Replay: %v, want %q", err, tt.want)
			}
			if delivery.Check(p, plan) == nil {
				t.Error("Check does not mind")
			}
		})
	}
}

// TestElementsOrder holds that the order in which a plan lists the paths of a point is no difference.
func TestElementsOrder(t *testing.T) {
	p, plan := planTwoPaths(t)
	before, err := delivery.Elements(p, plan)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(plan.Assignment)
	after, err := delivery.Elements(p, plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Assignment) < 2 || len(before) != 1 || before[0].Form == "" || before[0].Form != after[0].Form {
		t.Errorf("%d paths, %+v and %+v", len(plan.Assignment), before, after)
	}
}
