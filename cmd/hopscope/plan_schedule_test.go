package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner/schedule"
	"github.com/hopscope/hopscope/planner/show"
)

func TestPlanSchedule(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (plan schedule.Plan) {
		t.Helper()
		out, err := runPlan(t, append([]string{"schedule", "--format", "json"}, args...)...)
		if err == nil {
			err = json.Unmarshal([]byte(out), &plan)
		}
		if err != nil {
			t.Fatalf("plan schedule %s: %v", strings.Join(args, " "), err)
		}
		return plan
	}
	out, err := runPlan(t, "cover", "--topology", "fat-tree:4", "--max-hops", "6", "--balanced", "--format", "json")
	if err != nil {
		t.Fatal(err)
	}
	cover := file("cover.json", out)

	// Every link is on one probe, so every probe has the period of its links.
	svg := filepath.Join(dir, "s.svg")
	p := run("--topology", "fat-tree:4", "--probes", cover, "--svg", svg)
	if p.Stats.Sent != p.Stats.Probes || p.Stats.Seen != 32 || !p.Stats.Optimal || p.Probes[0].Interval != 1000 || p.Stats.Peak != 1 {
		t.Errorf("%+v", p.Stats)
	}
	wellFormed(t, svg)
	fast := run("--topology", "fat-tree:4", "--probes", cover, "--class", "core=@core:200ms", "--class", "pod=agg-0-?*--edge-*,edge-0-*:500ms", "--slot", "5ms")
	count := map[string]int{}
	for _, x := range fast.Probes {
		count[x.Class]++
		if want := map[string]float64{"core": 200, "pod": 500, "default": 1000}[x.Class]; x.Interval != want {
			t.Errorf("%+v, want every %v ms", x, want)
		}
	}
	if count["core"] == 0 || fast.Slot != 5 || fast.Stats.Objective <= p.Stats.Objective {
		t.Errorf("classes %v, %+v", count, fast.Stats)
	}
	// Twice the bytes of everything are twice the bytes a second.
	double := run("--topology", "fat-tree:4", "--probes", cover, "--header-bytes", "88", "--bytes-per-hop", "24", "--overhead-bytes", "76")
	if math.Abs(double.Stats.Objective-2*p.Stats.Objective) > 1e-6 {
		t.Errorf("%v bytes/s, want twice %v", double.Stats.Objective, p.Stats.Objective)
	}

	// A limit that is too low for all links, and what a partial plan makes of it.
	tight := []string{"--topology", "fat-tree:4", "--probes", cover, "--link-limit", "1kbps"}
	if _, err := runPlan(t, append([]string{"schedule"}, tight...)...); err == nil || !strings.Contains(err.Error(), "the limit of link ") {
		t.Errorf("a low limit: %v", err)
	}
	part := run(append(tight, "--partial")...)
	if !part.Partial || part.Stats.Seen >= 32 || len(part.NotSeen)+part.Stats.Seen != 32 || part.Stats.BusiestLink > 1000 {
		t.Errorf("partial: %+v", part.Stats)
	}
	wide := run("--topology", "fat-tree:4", "--probes", cover, "--skip", "core-0--agg-0-0", "--skip", "core-1--agg-0-0")
	if wide.Stats.Links != 30 {
		t.Errorf("%d links are to be seen, want 30", wide.Stats.Links)
	}

	// A plan that is kept.
	older := file("old.json", mustJSON(t, p))
	kept := run("--topology", "fat-tree:4", "--probes", cover, "--replan", older, "--churn", "0")
	if kept.Churn == nil || kept.Churn.Changed != 0 || len(kept.Transition.Keep) != p.Stats.Sent {
		t.Errorf("churn %+v", kept.Churn)
	}
	if out, err := runPlan(t, "schedule", "--topology", "fat-tree:4", "--probes", cover, "--class", "core=@core:200ms", "--replan", older, "--churn", "1"); err != nil ||
		!strings.Contains(out, "had to change so that links are seen, more than 1") || !strings.Contains(out, "the best there is") {
		t.Errorf("table: %s, %v", out, err)
	}

	instance := file("i.json", `{"probes":[{"id":"p","links":["a","b"],"agent":"x"}]}`)
	for _, tt := range []struct {
		args, want string
		usage      bool
	}{
		{"", "--instance is missing", true},
		{"--topology fat-tree:4", "--instance is missing", true},
		{"--instance nowhere.json", "nowhere.json", true},
		{"--instance " + instance + " --topology fat-tree:4", "do not go with it", true},
		{"--instance " + instance + " --class core", "NAME=LINKS:PERIOD", true},
		{"--instance " + instance + " --class c=a:soon", "invalid duration", true},
		{"--instance " + instance + " --class c=@core:1s", "only a topology has tiers", true},
		{"--instance " + instance + " --class c=z:1s", `lists link "z"`, true},
		{"--instance " + instance + " --class c=,a:1s", "a link without a name", true},
		{"--instance " + instance + " --link-limit 5", `"5" is not a number above 0 of bps`, true},
		{"--instance " + instance + " --agent-limit -5kbps", "is not a number above 0", true},
		{"--instance " + instance + " --period 1s --slot 7ms", "is not a whole number of slots", true},
		{"--instance " + instance + " --churn 3", "--churn goes with --replan", true},
		{"--instance " + instance + " --replan " + older + " --churn -2", "--churn -2", true},
		{"--instance " + file("bad.json", `{"probes":[{"id":"p","links":["a"]}],"limit":3}`), `unknown key "limit"`, true},
		{"--instance " + file("none.json", `{"probes":[{"id":"p","links":["a"]}],"links":[{"name":"z"}]}`), "link z is on no probe", false},
		{"--topology fat-tree:4 --probes " + cover + " --class c=@spine:1s", `no link has an end in tier "spine"`, true},
		{"--topology fat-tree:4 --probes " + cover + " --skip a--b", "--skip: ", true},
		{"--topology fat-tree:6 --probes " + cover, "cover.json", true},
	} {
		_, err := runPlan(t, append([]string{"schedule"}, strings.Fields(tt.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, new(usageError)) != tt.usage {
			t.Errorf("plan schedule %s: %v, want %q (usage: %v)", tt.args, err, tt.want, tt.usage)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestScheduleSVG draws more agents and starts than a picture holds.
func TestScheduleSVG(t *testing.T) {
	plan := &schedule.Plan{Slot: 1, Hyperperiod: 1000}
	for k := range 400 {
		plan.Probes = append(plan.Probes, schedule.Timed{ID: "p", Interval: 5, Phase: float64(k % 5), BytesPerSecond: float64(k), Class: "default", Agent: "<" + string(rune('a'+k))})
	}
	var b strings.Builder
	if err := show.DrawSchedule(&b, schedule.Defaults(), plan); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.Contains(text, "250 more agents send fewer bytes") || !strings.Contains(text, "are shown") || len(text) > 8<<20 || strings.Contains(text, "><<") {
		t.Errorf("%d bytes: %.600s", len(text), text)
	}
	path := filepath.Join(t.TempDir(), "s.svg")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, path)
}
