package main

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages, and what the program must go on printing, anew")

// TestPages holds the generated pages against the program.
func TestPages(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"docs/configuration.md": writeSettingsPage,
		"docs/metrics.md":       writeMetricsPage,
		"docs/series.md":        writeSeriesPage,
		"deploy/hopscope.yaml":  writeExampleSettings,

		"docs/agent-settings.md": writeAgentSettingsPage,
		"deploy/agent.yaml":      writeAgentSettings,

		"docs/control-settings.md": writeControlSettingsPage,
		"deploy/control.yaml":      writeControlSettings,
	} {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", filepath.FromSlash(name))
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s differs from what the program says (%v); write it with: make docs", name, err)
		}
	}
}

// Pages name the component that acts, and what it does: no person, and nothing that tells (CONTRIBUTING.md).
func TestWordsOfPages(t *testing.T) {
	person := regexp.MustCompile(`\b(?i:tells?|told|telling|somebody|nobody|anybody|everybody|whoever|whom)\b`)
	root := filepath.Join("..", "..")
	n := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md", d.Name() == "CHANGELOG.md", d.Name() == "RESULTS.md", d.Name() == "glossary.md": // history, records of runs, and the rule itself
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		for i, line := range strings.Split(string(b), "\n") {
			line = strings.ReplaceAll(line, "`Tell`", "") // a name
			if w := person.FindString(line); w != "" {
				t.Errorf("%s:%d says %q: name the component and its verb", path, i+1, w)
			}
		}
		return nil
	})
	if err != nil || n < 30 {
		t.Errorf("%d pages, %v", n, err)
	}
}

// Comments and names of product code follow the same rule. A name that says only that something came, was told or is done again
// cannot be searched.
func TestWordsOfCode(t *testing.T) {
	person := regexp.MustCompile(`\b(?i:tells?|told|telling|who|whom|whoever|somebody|nobody|anybody|everybody|someone)\b`)
	vague := regexp.MustCompile(`^(?i:tells?|(un)?told|telling|who|whom|somebody|nobody|stood|crowded|came|again|strangers?|says?|said|take)$`)
	word := regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)
	service := map[string]bool{"Tell": true, "Plans_TellServer": true, "Came": true, "GetCame": true} // of the protocol of agents
	root := filepath.Join("..", "..")
	files := token.NewFileSet()
	n := 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		n++
		for _, group := range f.Comments {
			for _, c := range group.List {
				if w := person.FindString(c.Text); w != "" && !service[w] {
					t.Errorf("%s says %q: name the component and its verb", files.Position(c.Pos()), w)
				}
			}
		}
		ast.Inspect(f, func(x ast.Node) bool {
			id, ok := x.(*ast.Ident)
			if !ok || service[id.Name] {
				return true
			}
			for _, w := range word.FindAllString(id.Name, -1) {
				if vague.MatchString(w) {
					t.Errorf("%s: %s: give it a term of docs/glossary.md", files.Position(id.Pos()), id.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || n < 500 {
		t.Errorf("%d files, %v", n, err)
	}
}
