package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// example is a command line that a page or a help text names, as it stands there.
type example struct{ source, line string }

var (
	fenced  = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	planned = regexp.MustCompile(`^\s*(?:\$ )?(?:bin/)?hopscope (plan .*)$`)
)

// planExamples finds every command line of hopscope plan in code blocks of the pages, and in the help texts.
func planExamples(t *testing.T) (list []example) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	collect := func(source, text string) {
		for line := range strings.Lines(text) {
			if m := planned.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
				list = append(list, example{source, m[1]})
			}
		}
	}
	for _, page := range append(pages, "../../README.md", "../../docs/examples/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
			collect(filepath.Base(page), block[1])
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		collect(c.CommandPath()+" --help", c.Example)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
	return list
}

var word = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)

// parse returns the arguments of a command line, and the file that its output goes to.
func (e example) parse() (args []string, to string) {
	line, _, _ := strings.Cut(e.line, " #")
	for _, w := range word.FindAllString(line, -1) {
		w = strings.Trim(w, `"'`)
		if file, ok := strings.CutPrefix(w, ">"); ok {
			to = file
			continue
		}
		args = append(args, strings.TrimPrefix(w, "docs/examples/"))
	}
	return args, to
}

// run runs the example in the present folder.
func (e example) run(t *testing.T, more ...string) string {
	t.Helper()
	args, to := e.parse()
	c := rootCommand()
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(append(args, more...))
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%s: hopscope %s: %v", e.source, e.line, err)
	}
	holdSchema(t, args[1:], stdout.String())
	if to != "" {
		if err := os.WriteFile(to, stdout.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return stdout.String()
}

// inExamples changes to a copy of docs/examples.
func inExamples(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../docs/examples")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
}

// TestPlanExamples runs every command line of hopscope plan that a page or a help text names, with the files of
// docs/examples. Those of one page run one after the other, since one may read what another has written.
func TestPlanExamples(t *testing.T) {
	list := planExamples(t)
	if len(list) < 40 {
		t.Errorf("%d examples found, want 40 or more", len(list))
	}
	bySource := map[string][]example{}
	var sources []string
	for _, e := range list {
		if bySource[e.source] == nil {
			sources = append(sources, e.source)
		}
		bySource[e.source] = append(bySource[e.source], e)
	}
	collector := measuredPage(t)
	for _, source := range sources {
		t.Run(source, func(t *testing.T) {
			inExamples(t)
			for _, e := range bySource[source] {
				e.line = strings.ReplaceAll(e.line, "http://127.0.0.1:8080", collector)
				if out := e.run(t); out == "" {
					t.Errorf("hopscope %s prints nothing", e.line)
				}
			}
		})
	}
}

// TestPlanSavedExample holds the plan of docs/examples against its topology: it is the one that the page says.
func TestPlanSavedExample(t *testing.T) {
	inExamples(t)
	const args = "plan cover --topology lab.yaml --max-hops 3 --format json"
	want, err := os.ReadFile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := (example{"docs/examples/README.md", args}).run(t); untimed(got) != untimed(string(want)) {
		t.Errorf("hopscope %s gives\n%s\nand plan.json is\n%s", args, got, want)
	}
}

var timing = regexp.MustCompile(`"seconds":[^,}]*`)

// untimed takes the time out of a plan, which is the one thing in it that two runs may differ in.
func untimed(plan string) string { return timing.ReplaceAllString(plan, `"seconds":0`) }

// TestPlanTwice makes plans of all families, with all methods, on one processor and on many. The same input, seed and a
// limit that is not reached give the same plan, byte for byte.
func TestPlanTwice(t *testing.T) {
	inExamples(t)
	for _, args := range []string{
		"cover --topology Abilene.gml",
		"cover --topology Bren.gml --balanced",
		"cover --topology random:60,200,3 --balanced",
		"cover --topology random:60,200,3 --max-hops 9",
		"cover --topology random:60,200,3 --max-hops 9 --directed --balanced",
		"cover --topology random:60,200,3 --method dfs",
		"cover --topology random:60,200,3 --method paper",
		"cover --topology random:60,200,3 --method paper-balanced",
		"cover --topology random:60,200,3 --method int-balance",
		"cover --topology random:60,200,3 --redundant",
		`cover --topology Bren.gml --depots "Medical Uni Sofia,IPP-BAS"`,
		"cover --topology lab.yaml --replan plan.json --skip leaf-1--spine-2",
		"attention --instance cycle.json",
		"attention --instance cycle.json --method greedy",
		"attention --instance cycle.json --method greedy-links",
		"attention --instance cycle.json --method fant-h --alpha 0.5",
		"orchestrate --instance flows.json",
		"orchestrate --instance flows.json --objective balance --method exact",
		"orchestrate --topology Abilene.graph --demands Abilene.demands.gz --method search",
		"orchestrate --topology fat-tree:4 --method heuristic",
		"orchestrate --instance flows.json --split --objective balance",
		"delivery --instance network.json",
		"delivery --instance network.json --method paper --partial",
		"delivery --instance network.json --method greedy --partial",
		"delivery --topology Bren.gml --seed 7",
		"delivery --topology Bren.gml --seed 7 --method pso --partial",
		"delivery --topology Bren.gml --seed 7 --method pso-ga --partial",
		"delivery --topology Bren.gml --seed 7 --method brute --partial",
		"queries queries.yaml",
		"queries queries.yaml --topology fat-tree:4",
	} {
		e := example{"again", "plan " + args + " --format json --time-limit 10m"}
		first := untimed(e.run(t))
		before := runtime.GOMAXPROCS(1)
		second := untimed(e.run(t))
		runtime.GOMAXPROCS(before)
		if second != first {
			t.Errorf("hopscope %s gives\n%s\nand then\n%s", e.line, first, second)
		}
	}
}
