package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The tests of testdata/small leave the mutants alive that change nothing, and those of a function that no negative
// number is given to.
func TestMeasure(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Clamp|Sum", run: "."}
	o, err := m.measure(t.Context(), 2, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"survives:    small.go:6: <= for <: n < lo", // the same value comes out
		"survives:    small.go:9: >= for >: n > hi", // the same
		"survives:    small.go:18: <= for <: n < 0", // the same
		"not reached: small.go:19: removed: continue",
	}
	if !slices.Equal(o.Alive, want) || o.Total != 7 {
		t.Errorf("of %d mutants these survive:\n%q\nwant, of 7:\n%q", o.Total, o.Alive, want)
	}
}

// A run that is stopped has no outcome, keeps none, and leaves no files behind.
func TestStopped(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	m := target{pkg: "./testdata/small", funcs: "Clamp|Sum", run: "."}
	if _, err := m.measure(ctx, 2, cache(dir)); err == nil {
		t.Error("no error of a run that is stopped")
	}
	for _, d := range []string{dir, temp} {
		if files, err := os.ReadDir(d); err != nil || len(files) > 0 {
			t.Errorf("%s has %d files (%v), want none", d, len(files), err)
		}
	}
}

// A name that no function has is an error, so that a renamed function does not leave the table silently.
func TestNoFunction(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Clump", run: "."}
	if _, err := m.measure(t.Context(), 1, ""); err == nil {
		t.Error("no error for a function that is not there")
	}
}

func TestFailsAnyway(t *testing.T) {
	m := target{pkg: "./testdata/small", funcs: "Sum", run: "TestNone"}
	o, err := m.measure(t.Context(), 1, "")
	if err != nil || len(o.Alive) != o.Total {
		t.Errorf("without tests %d of %d survive: %v", len(o.Alive), o.Total, err)
	}
}

// A finished target is not run again until its code, its tests or what is asked of it is another.
func TestCache(t *testing.T) {
	testkit.Long(t)
	dir := t.TempDir()
	m := target{pkg: "./testdata/small", funcs: "Clamp|Sum", run: "."}
	first, err := m.measure(t.Context(), 2, cache(dir))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache has %q (%v), want one file", files, err)
	}
	if second, err := m.measure(t.Context(), 2, cache(dir)); err != nil || !reflect.DeepEqual(second, first) {
		t.Errorf("another outcome with the same code: %+v (%v), want %+v", second, err, first)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if second, err := m.measure(t.Context(), 2, cache(dir)); err != nil || second.Total != 7 {
		t.Errorf("%+v (%v) of a broken file, want a run", second, err)
	}
	m.run = "TestNone"
	if other, err := m.measure(t.Context(), 2, cache(dir)); err != nil || len(other.Alive) != 7 {
		t.Errorf("%+v (%v) without tests, want all 7 alive", other, err)
	}
}

// Every name of a target is that of a function which it mutates, and all functions in the files of checks are mutated.
// So no renamed function leaves the table silently.
func TestTargets(t *testing.T) {
	for _, x := range targets {
		named := regexp.MustCompile("^(" + x.funcs + ")$")
		files, err := filepath.Glob(filepath.Join("../..", x.pkg, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				d, ok := d.(*ast.FuncDecl)
				switch {
				case !ok:
				case named.MatchString(funcName(d)):
					found += funcName(d) + "\n"
				case strings.HasPrefix(filepath.Base(name), "check"):
					t.Errorf("%s: %s is not mutated", name, funcName(d))
				}
			}
		}
		for _, name := range regexp.MustCompile(`[A-Za-z]{3,}`).FindAllString(x.funcs, -1) {
			if !strings.Contains(found, name) {
				t.Errorf("%s: no function of %s is named %s", x.pkg, x.funcs, name)
			}
		}
		if found == "" {
			t.Errorf("%s has no function %s", x.pkg, x.funcs)
		}
	}
}
