package attention_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/attention/solve"
)

const attentionText = `{"probes":[{"id":"a","links":["1","2"]},{"id":"b","cost":2.5,"links":["2","3","3"]},{"id":"c","links":["4"]}],
"suspicious":["1","3"],"detailed":["c"],"switch_cost":0.5}`

func TestRead(t *testing.T) {
	p, err := attention.Read(strings.NewReader(attentionText))
	if err != nil {
		t.Fatal(err)
	}
	if p.Probes[0].Cost != 2 || p.Probes[1].Cost != 2.5 || p.SwitchCost != 0.5 {
		t.Errorf("read %+v", p)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	second, err := attention.Read(strings.NewReader(string(b)))
	if err != nil || len(second.Probes) != 3 || second.Probes[1].Cost != 2.5 {
		t.Errorf("read back %+v, %v", second, err)
	}
	for text, want := range map[string]string{
		"":                                "empty",
		"{":                               "unexpected EOF",
		`{"probes":[{"id":7}]}`:           `probe "": id: a number cannot be a string`,
		`[]`:                              "byte 1: a list cannot be an object",
		`{"probes":[{"id":"a","cost":NaN`: "byte 29: invalid character 'N'",
		`{"probes":[{"links":["b"],"cost":"NaN","id":"a"}]}`:                 `probe "a": cost: a string cannot be a number`,
		`{"probes":[{"id":"a","cost":1e999}]}`:                               `probe "a": cost: number 1e999 is out of range`,
		`{"probes":[],"switch_cost":{}}`:                                     "switch_cost: an object cannot be a number",
		`{"probes":[]}`:                                                      "no probes",
		attentionText + "{}":                                                 "more than one",
		`{"probes":[{"id":"","cost":1}]}`:                                    "probe 0 has no id",
		`{"probes":[{"id":"a","cost":-1,"links":["1"]}],"suspicious":["1"]}`: `"a" costs -1`,
	} {
		if _, err := attention.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCheck spoils a good plan in every way.
func TestCheck(t *testing.T) {
	tests := []struct {
		name, want string
		spoil      func(*attention.Plan)
	}{
		{"missing", "link 1 is on no probe", func(p *attention.Plan) { p.Probes = p.Probes[1:] }},
		{"unknown", `"x" is listed`, func(p *attention.Plan) { p.Probes[0].ID = "x" }},
		{"twice", "a second time", func(p *attention.Plan) { p.Probes = append(p.Probes, p.Probes[0]) }},
		{"cost", "the plan costs", func(p *attention.Plan) { p.Stats.Cost++ }},
		{"objective", "the plan costs", func(p *attention.Plan) { p.Stats.Objective++ }},
		{"bound", "lower bound", func(p *attention.Plan) { p.Stats.LowerBound += 9 }},
		{"optimal", "called optimal", func(p *attention.Plan) { p.Stats.LowerBound-- }},
		{"partial", "partial true", func(p *attention.Plan) { p.Partial = true }},
		{"changes", "probes change", func(p *attention.Plan) { p.Stats.Changes = 1 }},
		{"turned on", `"c" is not turned on`, func(p *attention.Plan) { p.TurnedOn[0] = "c" }},
		{"turned off", `"a" is not turned off`, func(p *attention.Plan) { p.TurnedOff[0] = "a" }},
		{"covers", "not on it", func(p *attention.Plan) { p.Probes[0].Suspicious[0] = "3" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := attention.Read(strings.NewReader(attentionText))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := solve.Plan(p, solve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := attention.Check(p, plan); err != nil {
				t.Fatalf("the good plan: %v", err)
			}
			tt.spoil(plan)
			if err := attention.Check(p, plan); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
}
