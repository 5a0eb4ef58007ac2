package planner_test

import (
	"bytes"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/delivery"
)

// budget is a time limit in calls.
func budget(calls int) func() bool {
	return func() bool { calls--; return calls < 0 }
}

// FuzzAttention reads a problem; what is valid has a partial plan that holds.
func FuzzAttention(f *testing.F) {
	f.Add([]byte(attentionText))
	f.Add([]byte(`{"probes":[{"id":"a","links":["1","2"]},{"id":"b","cost":0.1,"links":["2","3"]},{"id":"c","links":["3","1"]}],"suspicious":["1","2","3","4"]}`))
	f.Add([]byte(`{"probes":[{"id":"a","cost":1e12,"links":[]}],"suspicious":[],"switch_cost":1e12,"detailed":["a"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := planner.ReadAttentionProblem(bytes.NewReader(b))
		if err != nil || len(p.Probes) > 50 {
			return
		}
		for _, m := range attention.Methods {
			plan, err := attention.Plan(p, attention.Options{Method: m, Partial: true, Stop: budget(1000)})
			if err == nil {
				err = planner.CheckAttention(p, plan)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", m, b, err)
			}
		}
	})
}

// FuzzDelivery reads a problem; what is valid has a partial plan that holds.
func FuzzDelivery(f *testing.F) {
	f.Add([]byte(deliveryText))
	f.Add([]byte(`{"nodes":[{"id":"a","kind":"point","rate_gbps":1,"deadline_ms":9,"loss":1},{"id":"b","kind":"server","capacity_gbps":1,"up":0}],"links":[{"a":"a","b":"b","capacity_gbps":1,"up":0}],"loss_test":"exact","reserve":2,"transit_all":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := planner.ReadDeliveryProblem(bytes.NewReader(b))
		if err != nil || len(p.Nodes) > 15 {
			return
		}
		for _, o := range []delivery.Options{{}, {NoLinks: true}, {Method: delivery.Paper}} {
			o.Partial, o.Stop = true, budget(300)
			if o.Method == delivery.Paper && p.Test() != planner.LossPath {
				continue
			}
			plan, err := delivery.Plan(p, o)
			if err == nil {
				err = planner.CheckDelivery(p, plan)
			}
			if err != nil {
				t.Fatalf("%+v: %s: %v", o.Method, b, err)
			}
		}
	})
}
