package delivery_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/delivery/solve"
)

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

// FuzzPlan reads a problem; what is valid has a partial plan that holds.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(deliveryText))
	f.Add([]byte(`{"nodes":[{"id":"a","kind":"point","rate_gbps":1,"deadline_ms":9,"loss":1},{"id":"b","kind":"server","capacity_gbps":1,"up":0}],"links":[{"a":"a","b":"b","capacity_gbps":1,"up":0}],"loss_test":"exact","reserve":2,"transit_all":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := delivery.Read(bytes.NewReader(b))
		if err != nil || len(p.Nodes) > 15 {
			return
		}
		for _, o := range []solve.Options{{}, {NoLinks: true}, {Method: solve.Paper}} {
			o.Partial, o.Stop = true, calls(300)
			if o.Method == solve.Paper && p.Test() != delivery.LossPath {
				continue
			}
			plan, err := solve.Plan(p, o)
			if err == nil {
				err = delivery.Check(p, plan)
			}
			if err != nil {
				t.Fatalf("%+v: %s: %v", o.Method, b, err)
			}
		}
	})
}

// FuzzCheck checks plans of unknown origin against a problem. The check ends with an answer on any plan, and a plan
// that passes is no better than the optimum.
func FuzzCheck(f *testing.F) {
	p, err := delivery.Read(strings.NewReader(deliveryText))
	if err != nil {
		f.Fatal(err)
	}
	best, err := solve.Plan(p, solve.Options{})
	if err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(best)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"assignment":[{"path":["a","b"]},{"path":["a"],"ports":[1,2]},{}],"added_links":[{"a":"a","b":"b"}],"partial":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var plan delivery.Plan
		_, err := planner.ReadDecisions(bytes.NewReader(b), "delivery", &plan, func(g planner.Given) error { return p.Complete(&plan, g) })
		if err == nil && delivery.Check(p, &plan) == nil && !plan.Partial && plan.Stats.Links < best.Stats.Links {
			t.Errorf("%d links: %s", plan.Stats.Links, b)
		}
	})
}
