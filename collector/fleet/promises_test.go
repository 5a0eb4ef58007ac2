package fleet

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises: every test that the pages about fleets name is in the package that they name, and each promise has one.
func TestPromises(t *testing.T) {
	root := filepath.Join("..", "..")
	name := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([a-z]+))?`")
	list := regexp.MustCompile("((?:`Test[A-Za-z0-9/]+`(?:, )?)+) \\(([a-z0-9/]+)\\)")
	tests := 0
	for _, page := range []string{"fleet.md", "fleet-security.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, table, ok := strings.Cut(string(text), "\n| promise | test |\n| --- | --- |\n")
		if !ok {
			t.Fatalf("%s has no table of promises", page)
		}
		table, _, _ = strings.Cut(table, "\n\n")
		for row := range strings.Lines(table) {
			groups := list.FindAllStringSubmatch(row, -1)
			if len(groups) == 0 && !strings.Contains(row, "reliability.md#the-torture-table") {
				t.Errorf("%s: no test holds %q", page, row)
			}
			for _, g := range groups {
				source := testsOf(t, filepath.Join(root, filepath.FromSlash(g[2])))
				for _, m := range name.FindAllStringSubmatch(g[1], -1) {
					tests++
					if !strings.Contains(source, "\nfunc "+m[1]+"(t *testing.T) {") || m[2] != "" && !strings.Contains(source, `name: "`+m[2]+`"`) {
						t.Errorf("%s: %s has no test %s/%s", page, g[2], m[1], m[2])
					}
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
