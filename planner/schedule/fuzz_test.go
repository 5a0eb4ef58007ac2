package schedule_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

// calls is a time limit in calls.
func calls(n int) func() bool {
	return func() bool { n--; return n < 0 }
}

// FuzzPlan reads a problem. A valid one has a partial plan that passes its check, and so has its successor.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(scheduleText))
	f.Add([]byte(`{"probes":[{"id":"a","links":["1","2"],"agent":"x"},{"id":"b","links":["2","3"],"agent":"x"}],"period_ms":40,"links":[{"name":"2","period_ms":20},{"name":"9"}]}`))
	f.Add([]byte(`{"probes":[{"id":"a","links":["1","2"],"agent":"x"},{"id":"b","links":["2","3"],"collector":"x"}],"period_ms":60,"longest_ms":120,"link_limit_bps":9000,"send_limit_bps":20000,"links":[{"name":"2","period_ms":20,"weight":0.3}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := schedule.Read(bytes.NewReader(b))
		if err != nil || len(p.Probes) > 20 {
			return
		}
		if r, err := p.Resolve(); err != nil || r.Hyper > 2000 {
			return
		}
		plan, err := solve.Plan(p, solve.Options{Partial: true, Stop: calls(50)})
		if err == nil {
			err = schedule.Check(p, plan)
		}
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		p.Probes = p.Probes[len(p.Probes)/2:]
		if p.Validate() != nil {
			return
		}
		second, err := solve.Plan(p, solve.Options{Partial: true, Stop: calls(50), Previous: plan, Churn: 1})
		if err == nil {
			err = schedule.Check(p, second)
		}
		if err != nil {
			t.Fatalf("%s: half of it: %v", b, err)
		}
	})
}

// FuzzCheck checks plans of unknown origin against a problem. The check ends with an answer on any plan, and a plan
// that passes is no better than the optimum.
func FuzzCheck(f *testing.F) {
	p, err := schedule.Read(strings.NewReader(scheduleText))
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
	f.Add([]byte(`{"probes":[{"id":"p","interval_ms":100,"phase_ms":900}],"partial":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var plan schedule.Plan
		_, err := planner.ReadDecisions(bytes.NewReader(b), "schedule", &plan, func(g planner.Given) error { return p.Complete(&plan, g) })
		if err == nil && schedule.Check(p, &plan) == nil && !plan.Partial && plan.Stats.Objective < best.Stats.Objective-1e-6 {
			t.Errorf("objective %v: %s", plan.Stats.Objective, b)
		}
		solve.Plan(p, solve.Options{Previous: &plan, Churn: 2, Partial: true, Stop: calls(10)}) // ends, whatever the plan says
	})
}
