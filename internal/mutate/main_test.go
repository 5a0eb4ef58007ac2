package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests of testdata/small leave the mutants alive that change nothing, and those of a function that no negative number is given to.
func TestMeasure(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Clamp|Sum", run: "."}
	alive, total, err := m.measure(2)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"survives:    small.go:6: <= for <: n < lo", // the same value comes out
		"survives:    small.go:9: >= for >: n > hi", // the same
		"survives:    small.go:18: <= for <: n < 0", // the same
		"not reached: small.go:19: removed: continue",
	}
	if !slices.Equal(alive, want) || total != 7 {
		t.Errorf("of %d mutants these survive:\n%q\nwant, of 7:\n%q", total, alive, want)
	}
}

// A name that no function has is an error, so that a renamed function does not leave the table silently.
func TestNoFunction(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Clump", run: "."}
	if _, _, err := m.measure(1); err == nil {
		t.Error("no error for a function that is not there")
	}
}

func TestFailsAnyway(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Sum", run: "TestNone"}
	alive, total, err := m.measure(1)
	if err != nil || len(alive) != total {
		t.Errorf("without tests %d of %d survive: %v", len(alive), total, err)
	}
}

// Every target names functions that are there.
func TestTargets(t *testing.T) {
	for _, x := range targets {
		named := regexp.MustCompile("^(" + x.funcs + ")$")
		files, err := filepath.Glob(filepath.Join("../..", x.pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && named.MatchString(funcName(d)) {
					found++
				}
			}
		}
		if found == 0 {
			t.Errorf("%s has no function %s", x.pkg, x.funcs)
		}
	}
}
