package delivery_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

const deliveryText = `{"nodes":[
{"id":"m","kind":"point","rate_gbps":30,"deadline_ms":5,"loss":0.1},
{"id":"n","kind":"point","rate_gbps":10,"deadline_ms":2,"loss":0.1},
{"id":"w","kind":"switch","capacity_gbps":100,"load_gbps":60,"up":0.99},
{"id":"s","kind":"server","capacity_gbps":40},{"id":"r","kind":"server","capacity_gbps":40}],
"links":[{"a":"m","b":"w","latency_ms":2,"capacity_gbps":100,"load_gbps":50,"up":0.99},
{"a":"n","b":"w","latency_ms":2,"capacity_gbps":100,"up":0.99},
{"a":"w","b":"s","latency_ms":2,"capacity_gbps":100,"load_gbps":65,"up":0.99}]}`

func readDelivery(t *testing.T) *delivery.Problem {
	t.Helper()
	p, err := delivery.Read(strings.NewReader(deliveryText))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRead(t *testing.T) {
	p := readDelivery(t)
	if p.Nodes[3].Up != 1 || p.Nodes[2].Up != 0.99 || p.Links[2].Residual() != 35 {
		t.Errorf("read %+v", p)
	}
	for text, want := range map[string]string{
		"":                       "empty",
		`{"nodes":[]}`:           "no nodes",
		`{"nodes":[{"id":"a"}]}`: `node a is a ""`,
		deliveryText + "[]":      "more than one",
		`{"nodes":[{"id":"a","kind":"point","rate_gbps":"x"}]}`:                                       `node "a": rate_gbps: a string cannot be a number`,
		`{"nodes":[],"links":[{"b":"y","a":"x","up":[]}]}`:                                            `link "x" "y": up: a list cannot be a number`,
		strings.Replace(deliveryText, `"latency_ms":2`, `"latency_ms":-2`, 1):                         "link m w has latency_ms -2",
		strings.Replace(deliveryText, `"b":"s"`, `"b":"z"`, 1):                                        `node "z"`,
		strings.Replace(deliveryText, `"links":[`, `"loss_test":"luck","links":[`, 1):                 `"luck"`,
		strings.Replace(deliveryText, `"id":"r"`, `"id":"s"`, 1):                                      "node s is there twice",
		strings.Replace(deliveryText, `"up":0.99},`+"\n"+`{"a":"n"`, `"up":1.5},`+"\n"+`{"a":"n"`, 1): "link m w has up 1.5",
	} {
		if _, err := delivery.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCheck spoils a good plan in every way. In it m sends to s by w, and n has an added link to s.
func TestCheck(t *testing.T) {
	tests := []struct {
		name, want string
		spoil      func(*delivery.Problem, *delivery.Plan)
	}{
		{"rate", "point m gets 20.000000 Gbit/s, not 30", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[0].Rate = 20 }},
		{"nothing", "the rate is NaN", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[0].Rate = math.NaN() }},
		{"left out", "does not say why", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment = p.Assignment[1:] }},
		{"no link", "no link n s", func(_ *delivery.Problem, p *delivery.Plan) { p.AddedLinks = nil }},
		{"there already", "is there already", func(_ *delivery.Problem, p *delivery.Plan) {
			p.AddedLinks = append(p.AddedLinks, delivery.AddedLink{A: "m", B: "w"})
		}},
		{"no point", "does not join a point", func(_ *delivery.Problem, p *delivery.Plan) {
			p.AddedLinks = append(p.AddedLinks, delivery.AddedLink{A: "w", B: "r"})
		}},
		{"elsewhere", "does not lead", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[0].Server = "r" }},
		{"deadline", "takes 4.001 ms, the deadline is 3", func(q *delivery.Problem, _ *delivery.Plan) { q.Nodes[0].Deadline = 3 }},
		{"loss", "probability of 0.970299, asked is 0.990000", func(q *delivery.Problem, _ *delivery.Plan) { q.Nodes[0].Loss = 0.01 }},
		{"joint", "all its paths work with a probability of 0.970299", func(q *delivery.Problem, _ *delivery.Plan) {
			q.LossTest, q.Nodes[0].Loss = delivery.LossJoint, 0.01
		}},
		{"exact", "with a probability of 0.029701, tolerated is 0.010000", func(q *delivery.Problem, _ *delivery.Plan) {
			q.LossTest, q.Nodes[0].Loss = delivery.LossExact, 0.01
		}},
		{"chernoff", "the bound of its loss", func(q *delivery.Problem, _ *delivery.Plan) { q.LossTest = delivery.LossChernoff }},
		{"link full", "link w s gets 30.000000 Gbit/s, free are 10", func(q *delivery.Problem, _ *delivery.Plan) { q.Links[2].Load = 90 }},
		{"switch full", "switch w gets 30.000000 Gbit/s, free are 5", func(q *delivery.Problem, _ *delivery.Plan) { q.Nodes[2].Load = 95 }},
		{"server full", "server s gets 40.000000 Gbit/s, free are 39", func(q *delivery.Problem, _ *delivery.Plan) { q.Nodes[3].Load = 1 }},
		{"transit", "m is a point and does not forward", func(_ *delivery.Problem, p *delivery.Plan) {
			p.Assignment[1].Path, p.Assignment[1].Ports = []string{"n", "w", "m", "w", "s"}, []int{1, 1, 1, 3}
		}},
		{"limit of a path", "the path carries 30.000000 Gbit/s, the limit of a path is 20", func(q *delivery.Problem, _ *delivery.Plan) { q.PathLimit = 20 }},
		{"round", "a second time", func(_ *delivery.Problem, p *delivery.Plan) {
			p.Assignment[1].Path, p.Assignment[1].Ports = []string{"n", "w", "n", "s"}, []int{1, 2, 2}
		}},
		{"servers", "the statistics say", func(_ *delivery.Problem, p *delivery.Plan) { p.Stats.Servers = 2 }},
		{"bound", "lower bound", func(_ *delivery.Problem, p *delivery.Plan) { p.Stats.LowerBound = 2 }},
		{"links bound", "called optimal", func(_ *delivery.Problem, p *delivery.Plan) { p.Stats.LinkBound = 0 }},
		{"left out", "the statistics say 1", func(_ *delivery.Problem, p *delivery.Plan) { p.Stats.LeftOut = 1 }},
		{"ports", "0 ports of 2 nodes", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[1].Ports = nil }},
		{"port", "there is no link n s at port 1", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[1].Ports[0] = 1 }},
		{"id", "path m/1 is there twice", func(_ *delivery.Problem, p *delivery.Plan) { p.Assignment[1].ID = "m/1" }},
		{"partial", "partial true", func(_ *delivery.Problem, p *delivery.Plan) { p.Partial = true }},
		{"collector", "m reports", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches[0].Collectors[0].Collector = "r" }},
		{"next hop", "m reports", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches[0].Collectors[0].NextHop = "s" }},
		{"share", "a share of 0.5", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches[0].Collectors[0].Share = 0.5 }},
		{"not configured", "1 points have collectors in their configuration, 2 are served", func(_ *delivery.Problem, p *delivery.Plan) { p.Switches = p.Switches[1:] }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := readDelivery(t)
			plan, err := solve.Plan(p, solve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := delivery.Check(p, plan); err != nil || plan.Assignment[1].Server != "s" || len(plan.AddedLinks) != 1 {
				t.Fatalf("the good plan: %+v, %v", plan, err)
			}
			tt.spoil(p, plan)
			if err := delivery.Check(p, plan); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
}
