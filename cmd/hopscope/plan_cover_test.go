package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/cmd/internal/plan"
	"github.com/hopscope/hopscope/planner/cover"
)

func runPlan(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := plan.Command()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	c.SetErr(io.Discard) // where a slow machine prints progress
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	if err == nil {
		holdSchema(t, args, out.String())
	}
	return out.String(), err
}

func coverJSON(t *testing.T, args ...string) (plan cover.Plan) {
	t.Helper()
	out, err := runPlan(t, append([]string{"cover", "--format", "json"}, args...)...)
	if err != nil {
		t.Fatalf("plan cover %s: %v", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestPlanCover(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edges := file("ring.edges", "a b\nb c\nc d\nd a\na c\n")
	depots := file("depots", "# where agents are\na\n\nb\n")

	if p := coverJSON(t, "--topology", edges); len(p.Probes) != 1 || p.Stats.Links != 5 || !p.Stats.Optimal || p.Algorithm != "euler" {
		t.Errorf("plan %+v, want one probe over 5 links", p)
	}
	for _, spec := range []string{depots, "a, b"} {
		p := coverJSON(t, "--topology", edges, "--depots", spec)
		for _, q := range p.Probes {
			if q.Agent != "a" && q.Agent != "b" || q.Collector != "a" && q.Collector != "b" {
				t.Errorf("--depots %s: a probe from %s to %s", spec, q.Agent, q.Collector)
			}
		}
	}
	if p := coverJSON(t, "--topology", edges, "--directed", "--max-hops", "4"); p.Stats.Links != 10 || len(p.Probes) != 3 {
		t.Errorf("%d directions, %d probes, want 10 and 3", p.Stats.Links, len(p.Probes))
	}
	if p := coverJSON(t, "--topology", edges, "--redundant"); len(p.Second) != 1 {
		t.Errorf("%d probes in the second cover, want 1", len(p.Second))
	}
	// An older plan of short probes: only those over the failed link are new.
	old := coverJSON(t, "--topology", edges, "--max-hops", "1")
	b, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if p := coverJSON(t, "--topology", edges, "--replan", file("old.json", string(b)), "--skip", "a--c"); p.Kept != 4 || len(p.Probes) != 4 || len(p.NotProbed) != 1 || p.Partial {
		t.Errorf("%d of %d probes kept, %d links not probed, want 4, 4, 1", p.Kept, len(p.Probes), len(p.NotProbed))
	}
	if p := coverJSON(t, "--topology", edges, "--replan", file("old.json", string(b)), "--skip", "c--d"); len(p.Probes) != 4 || p.Probes[3].ID != old.Probes[4].ID {
		t.Errorf("the last of %d probes is %s, want %s as before", len(p.Probes), p.Probes[len(p.Probes)-1].ID, old.Probes[4].ID)
	}
	both, err := json.Marshal(coverJSON(t, "--topology", edges, "--redundant", "--max-hops", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if p := coverJSON(t, "--topology", edges, "--redundant", "--max-hops", "1", "--replan", file("both.json", string(both)), "--skip", "a--c"); p.Kept != 4 || p.KeptSecond != 4 {
		t.Errorf("%d and %d probes kept, want 4 and 4", p.Kept, p.KeptSecond)
	}
	if p := coverJSON(t, "--topology", edges, "--skip-node", "a"); p.Stats.Links != 2 || len(p.NotProbed) != 3 || p.Partial {
		t.Errorf("%d links without node a, %d not probed, want 2 and 3", p.Stats.Links, len(p.NotProbed))
	}
	slow := file("slow.edges", "a b delay=1ms\nb c delay=1ms\nc a delay=9ms cost=3\nb d delay=1ms\nc d delay=1ms\n")
	if p := coverJSON(t, "--topology", slow, "--depots", "a", "--minimise", "delay"); p.Minimise != cover.Delay || p.Stats.Objective != 14e6 || !p.Stats.Optimal || p.Stats.Delay == 0 {
		t.Errorf("plan %+v, want 14 ms, of which b-c is passed twice", p.Stats)
	}
	// Eleven switches fill the shim of FANT: between hosts these are 12 links, each of which carries what the switches before it added.
	line := "nodes:\n- {name: h1, host: true}\n- {name: h2, host: true}\n" + "%slinks:\n- [h1, s1]\n"
	for n := 1; n <= 12; n++ {
		nodes, links := "", ""
		for i := 1; i <= n; i++ {
			nodes += fmt.Sprintf("- s%d\n", i)
			if i > 1 {
				links += fmt.Sprintf("- [s%d, s%d]\n", i-1, i)
			}
		}
		args := []string{"--topology", file("line.yaml", fmt.Sprintf(line, nodes)+links+fmt.Sprintf("- [s%d, h2]\n", n)), "--depots", "h1,h2", "--dialect", "fant", "--bitmap", "0xFFFF"}
		if n == 12 {
			if out, err := runPlan(t, append([]string{"cover"}, args...)...); err == nil || !strings.Contains(err.Error(), "no probe of 12 hops") {
				t.Errorf("12 switches: %v\n%s", err, out)
			}
			continue
		}
		if p := coverJSON(t, append(args, "--minimise", "bytes")...); len(p.Probes) != 1 || p.Stats.Bytes != int64((n+1)*44+88*n*(n+1)/2) {
			t.Errorf("%d switches: %d probes, %d bytes", n, len(p.Probes), p.Stats.Bytes)
		}
	}
	loop := []string{"--topology", "fat-tree:4", "--depots", "edge-0-0,edge-2-1", "--attention-share", ".05", "--dialect", "fant", "--bitmap", "0xF161,0xFFFF"}
	p := coverJSON(t, loop...)
	if a := p.Stats.Attention; a.Basic != 32 || a.Detailed != 88 || a.MaxHops > 10 || p.Stats.Longest > a.MaxHops || a.Bound <= 0 || a.Bound > a.Bytes {
		t.Errorf("with attention: %+v", p.Stats)
	}
	saved, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := runPlan(t, append([]string{"cover", "--check", file("plan.json", string(saved))}, loop...)...); err != nil || !strings.Contains(out, "with 5 % of the links suspicious a round is expected to take") {
		t.Errorf("%s: %v", out, err)
	}
	if p := coverJSON(t, "--topology", "fat-tree:4", "--depots", "edge-0-0", "--dialect", "fant", "--bitmap", "0xFFFF", "--minimise", "bytes"); p.Stats.Longest > 10 || p.Stats.Objective != float64(p.Stats.Bytes) {
		t.Errorf("plan %+v, want at most 10 hops, since 11 switches have room in the shim's length", p.Stats)
	}
	if p := coverJSON(t, "--topology", "leaf-spine:2,3", "--depots", "leaf-0", "--default-delay", "1us", "--max-delay", "5us"); p.Stats.Longest > 5 || p.Stats.Delay > 5000 {
		t.Errorf("plan %+v, want at most 5 us", p.Stats)
	}
	picture := filepath.Join(dir, "plan.svg")
	out, err := runPlan(t, "cover", "--topology", "fat-tree:4", "--balanced", "--svg", picture)
	if err != nil || !strings.Contains(out, "1 probe passes 32 links") {
		t.Errorf("%v in\n%s", err, out)
	}
	if b, err := os.ReadFile(picture); err != nil || !bytes.HasPrefix(b, []byte("<svg")) {
		t.Errorf("picture: %v", err)
	}
}

// Routes are computed by hand. The numbers of INT-path are ports less 1, the first in the lowest bits, and the last
// port leads to the host.
func TestPlanCoverRoutes(t *testing.T) {
	dir := t.TempDir()
	lab := filepath.Join(dir, "lab.yaml")
	text := "nodes: [{name: a, host_ports: [9]}, b, {name: c, host_ports: [5]}]\nlinks:\n  - {a: a, b: b, a_port: 2, b_port: 3}\n  - {a: b, b: c, a_port: 4, b_port: 1}\n"
	if err := os.WriteFile(lab, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := coverJSON(t, "--topology", lab, "--sr")
	if len(p.Probes) != 1 {
		t.Fatalf("%d probes, want 1", len(p.Probes))
	}
	want := strings.Repeat("0", 125) + "431" // ports 2, 4, 5
	if p.Probes[0].Agent == "c" {
		want = strings.Repeat("0", 125) + "820" // ports 1, 3, 9
	}
	if p.Probes[0].Route != want {
		t.Errorf("route %s, want %s", p.Probes[0].Route, want)
	}
	// 1500 bytes hold the labels of 63 switches.
	if p := coverJSON(t, "--topology", "random:100,300,1", "--sr"); p.Stats.Longest > 62 {
		t.Errorf("%d hops, want at most 62", p.Stats.Longest)
	}
	if p := coverJSON(t, "--topology", "fat-tree:4", "--sr=int-probe"); p.Stats.Longest > 15 {
		t.Errorf("%d hops, want at most 15", p.Stats.Longest)
	}
	if p := coverJSON(t, "--topology", "leaf-spine:2,20", "--sr", "--directed", "--partial"); !p.Partial || len(p.NotProbed) != 8 {
		t.Errorf("%d directions are not probed, want the 8 that leave by ports 17 to 20 of two spines", len(p.NotProbed))
	}
}

func TestPlanCoverErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := file("two.edges", "a b\nc d\n")
	for _, c := range []struct {
		args, want string
		usage      bool
	}{
		{"cover", "--topology is missing", true},
		{"covers", `no command "covers"`, true},
		{"cover x", "wants 0 arguments", true},
		{"cover --topology fat-tree:3", "must be even", true},
		{"cover --topology fat-three:3", "neither a file nor one of", true},
		{"cover --topology " + file("bad.edges", "a b\na\n"), "bad.edges:2: 1 words", true},
		{"cover --topology fat-tree:4 --method best", `no method "best"`, true},
		{"cover --topology fat-tree:4 --method dfs --directed", "dfs plans undirected", true},
		{"cover --topology fat-tree:4 --format yaml", "neither table nor json", true},
		{"cover --topology fat-tree:4 --max-hops -1", "--max-hops -1", true},
		{"cover --topology fat-tree:4 --time-limit 0s", "--time-limit", true},
		{"cover --topology fat-tree:4 --depots nobody", `no node "nobody"`, true},
		{"cover --topology fat-tree:4 --depots " + file("nobody", "core-0\nnobody\n"), "nobody:2: the topology has no node", true},
		{"cover --topology fat-tree:4 --depots " + file("empty", "\n"), "empty: no nodes", true},
		{"cover --topology " + two + " --depots a", "link c:1--d:1 cannot be covered: no depot is connected; a partial plan", false},
		{"cover --topology fat-tree:4 --skip core-0--core-1", "are not joined like that", true},
		{"cover --topology " + file("two-dashes.edges", "a b--c\na--b c\n") + " --skip a--b--c", `"a--b--c" fits link a:1--b--c:1 between "a" and "b--c" as well as a--b:1--c:1`, true},
		{"cover --topology fat-tree:4 --skip-node core-9", `no node "core-9"`, true},
		{"cover --topology fat-tree:4 --skip-node core-0 --depots core-0", `depot "core-0" is one of the nodes to skip`, true},
		{"cover --topology fat-tree:4 --minimise cost", "cost cannot be minimised without depots", true},
		{"cover --topology fat-tree:4 --depots core-0 --minimise hops", `"hops" cannot be minimised: there are`, true},
		{"cover --topology fat-tree:4 --depots core-0 --minimise delay", "delay cannot be minimised: that of 32 links is not known, among them", true},
		{"cover --topology fat-tree:4 --depots core-0 --minimise bytes", "--minimise bytes needs to know what a probe carries", true},
		{"cover --topology fat-tree:4 --max-delay 1ms", "delay cannot be minimised: that of 32 links", true},
		{"cover --topology fat-tree:4 --max-delay 1ms --default-delay 2ms", "no probe of 1000000 ns passes it; a partial plan", false},
		{"cover --topology fat-tree:4 --max-delay -1ms", "--max-delay -1ms is negative", true},
		{"cover --topology fat-tree:4 --dialect none --bitmap 1", `--dialect "none" is none of`, true},
		{"cover --topology fat-tree:4 --dialect fant", "--dialect needs the --bitmap", true},
		{"cover --topology fat-tree:4 --bitmap 0xFFFF", "--bitmap is of a --dialect", true},
		{"cover --topology fat-tree:4 --dialect fant --bitmap 0x1FFFF", `--bitmap "0x1FFFF"`, true},
		{"cover --topology fat-tree:4 --dialect fant --bitmap 0xFFFF --mtu 200", "no room for the metadata of two switches", true},
		{"cover --topology fat-tree:4 --dialect fant --bitmap 0xF161,0xFFFF", "two bitmaps, which are of --attention-share", true},
		{"cover --topology fat-tree:4 --attention-share 1 --dialect fant --bitmap 0xF161,0xFFFF", "--attention-share 1 lies between 0 and 1", true},
		{"cover --topology fat-tree:4 --attention-share .1 --dialect fant --bitmap 0xFFFF", "--bitmap BASIC,DETAILED", true},
		{"cover --topology fat-tree:4 --attention-share .1 --bitmap 0xF161,0xFFFF", "--bitmap BASIC,DETAILED", true},
		{"cover --topology fat-tree:4 --attention-share .1 --dialect fant --bitmap 0xFFFF,0xF161", "takes more bytes than the second", true},
		{"cover --topology fat-tree:4 --attention-share .1 --dialect fant --bitmap all,0xF161", `--bitmap "all"`, true},
		{"cover --topology fat-tree:4 --redundant --attention-share .1 --dialect fant --bitmap 0xF161,0xFFFF", "neither --redundant nor --replan", true},
		{"cover --topology fat-tree:4 --dialect fant --bitmap 0xFFFF --sr", "--dialect does not go with --sr", true},
		{"cover --topology fat-tree:4 --agents " + file("agents.yaml", "agents:\n- {name: a, node: x}\n"), `agents.yaml:2: agent "a" names a node "x"`, true},
		{"cover --topology fat-tree:4 --agents " + file("small.yaml", "agents:\n- {name: a, node: core-0, send: 0}\n"), "the agents at core-0 can send 0 probes and receive any number of probes, and 2 start or end there", false},
		{"cover --topology " + file("stub.edges", "a b\nb c\nc a\na d\n") + " --sr", `the node "d" has a single link; a route has to know`, true},
		{"cover --topology fat-tree:4 --sr=x", "neither int-path nor int-probe", true},
		{"cover --topology fat-tree:4 --sr --mtu 100", "no room for the labels", true},
		{"cover --topology fat-tree:18 --sr", "cannot be addressed: the highest is 16", false},
		{"cover --topology fat-tree:4 --replan " + file("no.json", "{"), "no.json: byte 1: unexpected EOF", true},
		{"cover --topology fat-tree:4 --redundant --directed", "--redundant does not go with --directed", true},
		{"cover --topology fat-tree:4 --redundant --depots core-0 --replan " + file("plan.json", `{"probes":[{"id":"p1"}]}`), "of two covers between depots none is kept", true},
		{"cover --topology fat-tree:4 --check a --replan b", "--check makes no plan", true},
		{"cover --topology leaf-spine:1,4000 --svg " + filepath.Join(dir, "x.svg"), "at most 4000 can be drawn", false},
	} {
		_, err := runPlan(t, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("plan %s: %v, want %q in it", c.args, err, c.want)
		}
		if _, usage := errors.AsType[usageError](err); usage != c.usage {
			t.Errorf("plan %s: asked wrongly: %v, want %v", c.args, usage, c.usage)
		}
	}
}
