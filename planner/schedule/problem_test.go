package schedule_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/schedule/solve"
)

const scheduleText = `{"slot_ms":10,"period_ms":1000,"header_bytes":40,"bytes_per_hop":10,"overhead_bytes":0,"send_limit_bps":1e6,
"classes":[{"name":"core","period_ms":200,"links":["a--b","c*"]}],
"probes":[{"id":"p","links":["a--b","b--c"],"agent":"a","collector":"c"},{"id":"q","links":["c--d","c--d"],"agent":"c","collector":"d"},
{"id":"r","links":["b--c","x"],"agent":"a","collector":"x"}],
"links":[{"name":"b--c","period_ms":500,"weight":2.5,"limit_bps":64000}],"agents":[{"name":"d","receive_bps":1e5}],"unwatched":["x"]}`

func read(t *testing.T, text string) *schedule.Problem {
	t.Helper()
	p, err := schedule.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestResolve(t *testing.T) {
	p := read(t, scheduleText)
	r, err := p.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if r.Base != 10 || r.Hyper != 100 || !slices.Equal(r.Grid, []int{20, 50, 100}) {
		t.Errorf("base %d, hyperperiod %d, grid %v", r.Base, r.Hyper, r.Grid)
	}
	for k, want := range []struct {
		name, class string
		period      int
	}{{"b--c", "default", 50}, {"a--b", "core", 20}, {"c--d", "core", 20}, {"x", "", 0}} {
		if l := r.Links[k]; l.Name != want.name || l.Class != want.class || l.Period != want.period {
			t.Errorf("link %d: %+v, want %+v", k, l, want)
		}
	}
	// A probe has 50 bytes on its first link and 60 on its second, sent with 40 and received with 70.
	if q := r.Probes[1]; q.Total != 110 || q.Sent != 40 || q.Received != 60+10 || !slices.Equal(q.Bytes, []int64{110}) {
		t.Errorf("probe %+v", q)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	second, err := schedule.Read(strings.NewReader(string(b)))
	if err != nil || len(second.Probes) != 3 || *second.Links[0].Weight != 2.5 {
		t.Errorf("read back %+v, %v", second, err)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":              "empty",
		`{"probes":[]}`: "no probes",
		`{"probes":[{"id":"p","links":["a"]}],"period":3}`:                                                                          `unknown key "period"`,
		`{"probes":[{"id":"p","links":["a"]}]}{}`:                                                                                   "more than one",
		`{"probes":[{"id":"p","links":[]}]}`:                                                                                        `probe "p" passes no link`,
		`{"probes":[{"id":"p","links":[""]}]}`:                                                                                      "without a name",
		`{"probes":[{"links":["a"]}]}`:                                                                                              "probe 1 has no id",
		`{"probes":[{"id":"p","links":["a"]},{"id":"p","links":["a"]}]}`:                                                            "there twice",
		`{"slot_ms":0,"probes":[{"id":"p","links":["a"]}]}`:                                                                         "a slot of 0 ms",
		`{"period_ms":1005,"probes":[{"id":"p","links":["a"]}]}`:                                                                    "the period, 1005 ms, is not a whole number of slots",
		`{"period_ms":-10,"probes":[{"id":"p","links":["a"]}]}`:                                                                     "is not a whole number of slots",
		`{"period_ms":1e300,"probes":[{"id":"p","links":["a"]}]}`:                                                                   "is not a whole number of slots",
		`{"longest_ms":1500,"probes":[{"id":"p","links":["a"]}]}`:                                                                   "not a multiple of 1000 ms",
		`{"header_bytes":-1,"probes":[{"id":"p","links":["a"]}]}`:                                                                   "header_bytes -1",
		`{"header_bytes":0,"bytes_per_hop":0,"overhead_bytes":0,"probes":[{"id":"p","links":["a"]}]}`:                               "no bytes at all",
		`{"link_limit_bps":-1,"probes":[{"id":"p","links":["a"]}]}`:                                                                 "the limit -1 of links",
		`{"probes":[{"id":"p","links":["a"]}],"links":[{"name":"a","weight":0}]}`:                                                   "link a has weight 0",
		`{"probes":[{"id":"p","links":["a"]}],"links":[{"name":"a"},{"name":"a"}]}`:                                                 "that of another one",
		`{"probes":[{"id":"p","links":["a"]}],"agents":[{"name":""}]}`:                                                              "agent 1 of the list has no name",
		`{"probes":[{"id":"p","links":["a"]}],"classes":[{"name":"c","period_ms":100,"links":["b"]}]}`:                              `class c lists link "b", which is not there`,
		`{"probes":[{"id":"p","links":["a"]}],"classes":[{"name":"default","period_ms":100,"links":["a"]}]}`:                        "that of another one",
		`{"probes":[{"id":"p","links":["a"]}],"unwatched":["*"]}`:                                                                   "no link is to be seen",
		`{"probes":[{"id":"p","links":["a","b"]}],"links":[{"name":"a","period_ms":99990},{"name":"b","period_ms":100010}]}`:        "choose periods that divide each other",
		`{"slot_ms":1,"probes":[{"id":"p","links":["a","b"]}],"links":[{"name":"a","period_ms":997},{"name":"b","period_ms":991}]}`: "choose periods that divide each other",
	} {
		if _, err := schedule.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCheck spoils a good plan in every way.
func TestCheck(t *testing.T) {
	tests := []struct {
		name, want string
		spoil      func(*schedule.Plan)
	}{
		{"missing", "listed neither as sent nor as not sent", func(p *schedule.Plan) { p.Probes = p.Probes[1:] }},
		{"not sent", "link a--b is never seen", func(p *schedule.Plan) { p.NotSent = append(p.NotSent, p.Probes[0].ID); p.Probes = p.Probes[1:] }},
		{"unknown", `"y" is listed`, func(p *schedule.Plan) { p.Probes[0].ID = "y" }},
		{"twice", "a second time", func(p *schedule.Plan) { p.Probes = append(p.Probes, p.Probes[0]) }},
		{"slow", "is not seen for 1000 ms, and should be every 200 ms", func(p *schedule.Plan) { p.Probes[0].Interval = 1000; p.Probes[0].BytesPerSecond /= 5 }},
		{"odd", "an interval of 30 ms", func(p *schedule.Plan) { p.Probes[0].Interval = 30 }},
		{"huge", "an interval of 1e+300 ms", func(p *schedule.Plan) { p.Probes[0].Interval = 1e300 }},
		{"late", "a phase of 200 ms", func(p *schedule.Plan) { p.Probes[0].Phase = 200 }},
		{"negative", "a phase of -10 ms", func(p *schedule.Plan) { p.Probes[0].Phase = -10 }},
		{"bytes", "the plan says", func(p *schedule.Plan) { p.Probes[0].BytesPerSecond++ }},
		{"agent", `the plan says "elsewhere" and`, func(p *schedule.Plan) { p.Probes[0].Agent = "elsewhere" }},
		{"collector", `and "elsewhere"`, func(p *schedule.Plan) { p.Probes[0].Collector = "elsewhere" }},
		{"objective", "bytes a second", func(p *schedule.Plan) { p.Stats.Objective++ }},
		{"bound", "lower bound", func(p *schedule.Plan) { p.Stats.LowerBound *= 2 }},
		{"optimal", "called optimal", func(p *schedule.Plan) { p.Stats.LowerBound-- }},
		{"partial", "says partial true", func(p *schedule.Plan) { p.Partial = true }},
		{"unseen", "the plan lists 1", func(p *schedule.Plan) { p.NotSeen = []schedule.Unseen{{Link: "a--b"}} }},
		{"peak", "starts of an agent in a slot", func(p *schedule.Plan) { p.Stats.Peak++ }},
		{"peak bound", "below its bound", func(p *schedule.Plan) { p.Stats.PeakBound = 9 }},
		{"wait", "ms between two starts", func(p *schedule.Plan) { p.Stats.ShortestWait++ }},
		{"slot", "slots of 20 ms", func(p *schedule.Plan) { p.Slot = 20 }},
		{"churn", "2 probes change, where 1 may", func(p *schedule.Plan) { p.Churn = &planner.Churn{Limit: 1, Changed: 2} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, scheduleText)
			plan, err := solve.Plan(p, solve.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := schedule.Check(p, plan); err != nil {
				t.Fatalf("the good plan: %v", err)
			}
			tt.spoil(plan)
			if err := schedule.Check(p, plan); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
	// What was planned without a limit does not hold with one.
	p := read(t, scheduleText)
	plan, err := solve.Plan(p, solve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(p *schedule.Problem){
		"link a--b carries":     func(p *schedule.Problem) { p.LinkLimit = 100 },
		"agent a sends":         func(p *schedule.Problem) { p.SendLimit = 100 },
		"agent c receives":      func(p *schedule.Problem) { p.ReceiveLimit = 100 },
		"link b--c is not seen": func(p *schedule.Problem) { p.Links[0].Period = 100 },
	} {
		p := read(t, scheduleText)
		change(p)
		if err := schedule.Check(p, plan); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "repeats") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMatch compares patterns with names.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "a--b", true}, {"a*b", "ab", true}, {"a*b", "axxb", true}, {"a*b", "axxbc", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"*--core-*", "agg-1--core-2", true}, {"*a*b*c*", "xxaxxbxxcxx", true}, {"*a*b*c*", "xxaxxcxxbxx", false}, {"**", "x", true}, {"a", "b", false}, {"?", "é", true},
	} {
		p := schedule.Defaults()
		p.Probes = []schedule.Probe{{ID: "p", Links: []string{"other", tt.name + "!"}}}
		p.Classes = []schedule.Class{{Name: "c", Period: 500, Links: []string{tt.pattern + "!*"}}}
		r, err := p.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Links[1].Class == "c"; got != tt.want {
			t.Errorf("%q fits %q: %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}
