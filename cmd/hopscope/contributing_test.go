package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The code of the walks in CONTRIBUTING.md compiles at the places that it names. New files are in testdata/walks, and their first
// line is a comment with their place. The first line of a block on the page is a comment with a file and the beginning of the
// line above the block. Of what is not Go, the place is checked alone.
func TestContributing(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	page := readText(t, "../../CONTRIBUTING.md")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{} // path in the tree → text
	walks, err := filepath.Glob("testdata/walks/*.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, walk := range walks {
		place, code, _ := strings.Cut(readText(t, walk), "\n")
		path := strings.TrimPrefix(place, "// ")
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			t.Errorf("%s is there already, and the walk overwrites it", path)
		}
		if !strings.Contains(page, "(cmd/hopscope/"+filepath.ToSlash(walk)+")") {
			t.Errorf("CONTRIBUTING.md does not link to %s", walk)
		}
		files[path] = code
	}
	for _, m := range regexp.MustCompile("(?s)```(?:go|ts)\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		head, code, _ := strings.Cut(m[1], "\n")
		path, anchor, below := strings.Cut(strings.TrimPrefix(head, "// "), ", below ")
		if !below {
			t.Errorf("a block begins with %q, and not with the place where it belongs", head)
			continue
		}
		if files[path] == "" {
			files[path] = readText(t, filepath.Join(root, path))
		}
		text, found := insertBelow(files[path], anchor, code)
		if !found {
			t.Errorf("%s has no line that begins with %q", path, anchor)
		}
		if path == "cmd/hopscope/settings.go" || path == "decode/demux/profiles.go" {
			text = withImports(text, code)
		}
		files[path] = text
	}
	if len(files) < 10 {
		t.Fatalf("only %d files in the walks", len(files))
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range files {
		if filepath.Ext(path) != ".go" {
			continue
		}
		name := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, path)] = name
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", os.DevNull, "-overlay", list, "./cmd/hopscope")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

// TestWalkOfFindings holds that the walk of a finding names every file that a kind of finding has a line in: all that name the kind
// off-policy but its detector, tests, benches, the changelog and generated files.
func TestWalkOfFindings(t *testing.T) {
	_, walk, _ := strings.Cut(readText(t, "../../CONTRIBUTING.md"), "\n## Add a finding\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	root, n := filepath.Join("..", ".."), 0
	leftOut := []string{"inference/events/policy.go", "CHANGELOG.md", "CONTRIBUTING.md", "docs/series.md", "sink/web/dist", "sink/web/ui/node_modules", "bench", ".git", ".cache", "bin"}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case slices.Contains(leftOut, rel) || d.Name() == "testdata":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || strings.HasSuffix(rel, "_test.go") || !slices.Contains([]string{".go", ".md", ".ts", ".yaml", ".yml", ".json"}, filepath.Ext(rel)):
			return nil
		}
		text := readText(t, path)
		if !strings.Contains(text, "off-policy") && !strings.Contains(text, "OffPolicy") {
			return nil
		}
		if n++; !strings.Contains(walk, rel) {
			t.Errorf("%s names a kind of finding, and the walk does not name it", rel)
		}
		return nil
	})
	if err != nil || n < 6 {
		t.Errorf("%d files, %v", n, err)
	}
}

// insertBelow puts code below the first line of text that begins with anchor, spaces left out.
func insertBelow(text, anchor, code string) (string, bool) {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		words := strings.Join(strings.Fields(line), " ")
		if rest, ok := strings.CutPrefix(words, anchor); ok && (rest == "" || strings.HasSuffix(anchor, ":") || strings.ContainsAny(rest[:1], " ,")) {
			lines[i] += code
			return strings.Join(lines, ""), true
		}
	}
	return text, false
}

// withImports adds the imports of the packages of the walks that a line uses.
func withImports(text, code string) string {
	for _, pkg := range []string{"ingest/unixgram", "sink/csvfile", "decode/stamp"} {
		if strings.Contains(code, pkg[strings.Index(pkg, "/")+1:]+".") {
			text = strings.Replace(text, "import (\n", "import (\n\t\""+module+pkg+"\"\n", 1)
		}
	}
	return text
}
