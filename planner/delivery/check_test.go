package delivery_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// apart is a point of 1 Gbit/s, for which 16 are reserved, on two ways of 8 that have nothing in common.
const apart = `{"nodes":[
{"id":"m","kind":"point","rate_gbps":1,"deadline_ms":9,"loss":0.5},
{"id":"v","kind":"switch","capacity_gbps":100},{"id":"w","kind":"switch","capacity_gbps":100},
{"id":"s","kind":"server","capacity_gbps":40}],
"links":[{"a":"m","b":"v","latency_ms":1,"capacity_gbps":100,"up":0.99},{"a":"m","b":"w","latency_ms":1,"capacity_gbps":100,"up":0.99},
{"a":"v","b":"s","latency_ms":1,"capacity_gbps":100,"up":0.99},{"a":"w","b":"s","latency_ms":1,"capacity_gbps":100,"up":0.99}],
"reserve":16,"path_limit_gbps":8}`

func planOf(t *testing.T, text string) (*delivery.Problem, *delivery.Plan) {
	t.Helper()
	p, err := delivery.Read(strings.NewReader(text))
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

// TestCheckLoss checks the tests of loss with figures computed by hand. Both separate ways work with a probability of
// 0.99², so 15.6816 Gbit/s are expected. The bound is exp(-15.6816/16 (1 - 1/15.6816)²) = 0.4235.
func TestCheckLoss(t *testing.T) {
	for _, c := range []struct {
		name, text string
		test       delivery.LossTest
		loss       float64
		change     func(*delivery.Problem)
		want       string
	}{
		{"chernoff, just tolerated", apart, delivery.LossChernoff, 0.4236, nil, ""},
		{"chernoff, not quite", apart, delivery.LossChernoff, 0.4235, nil, "the bound of its loss is 0.4235"},
		{"chernoff, tolerated but for rounding", apart, delivery.LossChernoff, math.Exp(-15.6816/16*(1-1/15.6816)*(1-1/15.6816)) - 5e-10, nil, ""},
		{"chernoff on what is shared", twoPaths, delivery.LossChernoff, 1, nil, "elements shared: true"},
		{"chernoff on no more than the rate", apart, delivery.LossChernoff, 1, func(p *delivery.Problem) { p.Nodes[0].Rate, p.Reserve = 16, 1 }, "the bound of its loss"},
		{"chernoff where nothing fails", apart, delivery.LossChernoff, 1, func(p *delivery.Problem) {
			p.Nodes[0].Rate, p.Reserve = 16, 1
			for k := range p.Links {
				p.Links[k].Up = 1
			}
		}, "the bound of its loss"},
		{"one of both is enough, just tolerated", apart, delivery.LossExact, 0.000397, nil, ""}, // 0.0199²
		{"one of both is enough, not quite", apart, delivery.LossExact, 0.000395, nil, "with a probability of 0.000396, tolerated is 0.000395"},
		{"one of both is enough, tolerated but for rounding", apart, delivery.LossExact, 0.0199*0.0199 - 5e-10, nil, ""},
		{"both are needed", apart, delivery.LossExact, 0.0394, func(p *delivery.Problem) { p.Nodes[0].Rate, p.Reserve = 8+1e-3, 16/(8+1e-3) }, "tolerated is 0.039400"},
		{"all together, just tolerated", apart, delivery.LossJoint, 0.0395, nil, ""}, // 1 - 0.99⁴ = 0.039404
		{"all together, not quite", apart, delivery.LossJoint, 0.0394, nil, "work with a probability of 0.960596"},
		{"all together, tolerated but for rounding", apart, delivery.LossJoint, 1 - 0.99*0.99*0.99*0.99 - 5e-10, nil, ""},
		{"what is shared counts once", twoPaths, delivery.LossJoint, 0.1001, func(p *delivery.Problem) { p.Links[1].Up = 0.9 }, ""},
		{"a path, just tolerated", apart, delivery.LossPath, 0.02, nil, ""}, // 1 - 0.99² = 0.0199
		{"a path, not quite", apart, delivery.LossPath, 0.0198, nil, "works with a probability of 0.980100"},
		{"a path, tolerated but for rounding", apart, delivery.LossPath, 0.0199 - 5e-10, nil, ""},
		{"a switch that fails", apart, delivery.LossPath, 0.02, func(p *delivery.Problem) { p.Nodes[1].Up = 0.9 }, "works with a probability of 0.882090"},
		{"in time", apart, delivery.LossPath, 0.5, func(p *delivery.Problem) { p.Nodes[0].Deadline = 2.001 }, ""},
		{"in time but for rounding", apart, delivery.LossPath, 0.5, func(p *delivery.Problem) {
			latency := 1 + delivery.SwitchLatency + 1.0
			d := latency - 1e-6
			for d+1e-6 > latency {
				d = math.Nextafter(d, 0)
			}
			for d+1e-6 < latency {
				d = math.Nextafter(d, 9)
			}
			p.Nodes[0].Deadline = d
		}, ""},
		{"late", apart, delivery.LossPath, 0.5, func(p *delivery.Problem) { p.Nodes[0].Deadline = 2.0009 }, "takes 2.001 ms"},
	} {
		p, plan := planOf(t, c.text)
		p.LossTest, p.Nodes[0].Loss = c.test, c.loss
		if c.change != nil {
			c.change(p)
		}
		if err := delivery.Check(p, plan); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestCheckManyPaths has a point send over more paths than states are counted for.
func TestCheckManyPaths(t *testing.T) {
	for paths := 12; paths <= 13; paths++ {
		text := fmt.Sprintf(`{"nodes":[{"id":"m","kind":"point","rate_gbps":%d,"deadline_ms":9,"loss":1},{"id":"s","kind":"server","capacity_gbps":40}],"links":[`, paths)
		for k := range paths {
			if k > 0 {
				text += ","
			}
			text += `{"a":"m","b":"s","latency_ms":1,"capacity_gbps":1,"up":0.9}`
		}
		p, plan := planOf(t, text+"]}")
		p.LossTest = delivery.LossExact
		switch err := delivery.Check(p, plan); {
		case paths == 12 && err != nil:
			t.Error(err)
		case paths == 13 && (err == nil || !strings.Contains(err.Error(), "13 paths are more than the 12")):
			t.Errorf("13 paths: %v", err)
		}
	}
}

// TestCheckPath spoils one of the two paths of apart, which counts for nothing then: the other one carries 8 of the 16 Gbit/s.
func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(p *delivery.Problem, d *delivery.Assignment)
		want  string
	}{
		{"no rate", func(_ *delivery.Problem, d *delivery.Assignment) { d.Rate = 0 }, "the rate is 0"},
		{"a rate below 0", func(_ *delivery.Problem, d *delivery.Assignment) { d.Rate = -1 }, "the rate is -1"},
		{"a port too few", func(_ *delivery.Problem, d *delivery.Assignment) { d.Ports = d.Ports[1:] }, "1 ports of 3 nodes"},
		{"the way back as the way on", func(_ *delivery.Problem, d *delivery.Assignment) { d.Ports[1] = 3 - d.Ports[1] }, "there is no link"},
		{"a circle", func(p *delivery.Problem, d *delivery.Assignment) {
			p.TransitAll = true
			m, v := d.Path[0], d.Path[1]
			d.Path, d.Ports = []string{m, v, m, v, d.Path[2]}, []int{d.Ports[0], 3 - d.Ports[1], d.Ports[0], d.Ports[1]}
		}, "is not there, or a second time"},
		{"through a server", func(p *delivery.Problem, d *delivery.Assignment) {
			for k := range p.Nodes {
				if p.Nodes[k].ID == d.Path[1] {
					p.Nodes[k].Kind = delivery.ServerNode
				}
			}
		}, "is a server and does not forward"},
	} {
		p, plan := planOf(t, apart)
		c.spoil(p, &plan.Assignment[0])
		err := delivery.Check(p, plan)
		for _, want := range []string{c.want, "point m gets 8.000000 Gbit/s, not 16.000000"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", c.name, err, want)
			}
		}
	}
}

// TestCheckEnds: a path leads from a point to a server, and both are there.
func TestCheckEnds(t *testing.T) {
	for _, spoil := range []func(d *delivery.Assignment){
		func(d *delivery.Assignment) { d.Point, d.Path[0] = "x", "x" },
		func(d *delivery.Assignment) { d.Server, d.Path[len(d.Path)-1] = "x", "x" },
		func(d *delivery.Assignment) { d.Point, d.Path[0] = "v", "v" },
		func(d *delivery.Assignment) { d.Server, d.Path[len(d.Path)-1] = "v", "v" },
		func(d *delivery.Assignment) { d.Path[0] = "v" },
		func(d *delivery.Assignment) { d.Path = nil },
		func(d *delivery.Assignment) { d.Path = d.Path[:1] },
	} {
		p, plan := planOf(t, apart)
		spoil(&plan.Assignment[0])
		if err := delivery.Check(p, plan); err == nil || !strings.Contains(err.Error(), "the path does not lead from a point to a server") {
			t.Errorf("%+v: %v", plan.Assignment[0], err)
		}
	}
}
