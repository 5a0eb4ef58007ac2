package fleet

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises: every test that the package comment names is in the package that it names, and each promise has one.
func TestPromises(t *testing.T) {
	root := filepath.Join("..", "..")
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([a-z]+))?`")
	list := regexp.MustCompile("((?:`Test[A-Za-z0-9/]+`(?:, )?)+) \\(([a-z0-9/]+)\\)")
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n//\t| promise | test |\n//\t| --- | --- |\n")
	if !ok {
		t.Fatal("the package comment has no table of promises")
	}
	table, _, _ = strings.Cut(table, "\npackage ")
	tests := 0
	for row := range strings.Lines(table) {
		groups := list.FindAllStringSubmatch(row, -1)
		if len(groups) == 0 {
			t.Errorf("no test holds %q", row)
		}
		for _, g := range groups {
			source := testsOf(t, filepath.Join(root, filepath.FromSlash(g[2])))
			for _, m := range name.FindAllStringSubmatch(g[1], -1) {
				tests++
				if !strings.Contains(source, "\nfunc "+m[1]+"(t *testing.T) {") || m[2] != "" && !strings.Contains(source, `name: "`+m[2]+`"`) {
					t.Errorf("%s has no test %s/%s", g[2], m[1], m[2])
				}
			}
		}
	}
	if tests < 40 {
		t.Errorf("only %d tests are named", tests)
	}
}

// testsOf is the text of the tests of a package.
func testsOf(t *testing.T, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no tests: %v", dir, err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
