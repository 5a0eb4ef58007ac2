package papers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/bench/papers"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// The example, which is a program of another origin, makes covers and choices that hold; of what it does not know
// there is no plan.
func TestForeign(t *testing.T) {
	testkit.Long(t)
	python := testkit.Python(t)
	p, err := harness.NewProgram(python+" ../../docs/examples/planner.py", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	o := papers.Options{Seed: 1, Limit: time.Second} // of ours
	if err := papers.ForeignTable(t.Context(), &b, p, []string{"cover", "attention", "schedule"}, o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{
		"^Plans of", "family +instance", `cover +fat-tree:4 +5 +1 +1 +1 .*the best there is`, `fat-tree:4 with 1 depots +32 +32 +32 +64`, `leaf-spine`, `fat-tree:8 with 6 depots +256 +256 +256 +512 .* 100.0 % above ours`,
		`random:60,90,1`, `attention .* 110 +110 +110 +[0-9]+ +0 `, `attention .* 10 %`, `attention .* 30 %`, `schedule .*no plan: exit status 1: this planner knows covers and attention`,
	} {
		if i >= len(lines) || !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d of\n%s\nis not %q", i+1, b.String(), want)
		}
		if i > 1 && i < 10 && strings.Contains(lines[i], "no plan") {
			t.Errorf("%s", lines[i])
		}
	}
}

// Instances can be written, and topologies among them are topology files.
func TestWriteQuestions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if err := papers.WriteQuestions(dir, nil, papers.Options{Seed: 2, Limit: time.Second}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files of instances, %v", len(files), err)
	}
	b, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	_, problem, _ := strings.Cut(string(b), `"problem":`)
	g, err := load.Read("cover.yaml", strings.NewReader(strings.TrimSuffix(strings.TrimSpace(problem), "}")))
	if err != nil || g.NumNodes() != 20 || g.NumLinks() != 32 {
		t.Errorf("%v of %.200s", err, b)
	}
}
