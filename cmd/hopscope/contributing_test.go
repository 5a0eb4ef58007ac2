package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The code of the walks in CONTRIBUTING.md compiles at the places that it names. The first line of a block is a comment
// with a file. The file is new, or the beginning of the line above the block follows its name.
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
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		head, code, _ := strings.Cut(m[1], "\n")
		place, ok := strings.CutPrefix(head, "// ")
		if !ok {
			t.Errorf("a block begins with %q, and not with the place where it belongs", head)
			continue
		}
		path, anchor, below := strings.Cut(place, ", below ")
		if !below {
			if _, err := os.Stat(filepath.Join(root, path)); err == nil {
				t.Errorf("%s is there already, and the walk overwrites it", path)
			}
			files[path] = code
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
