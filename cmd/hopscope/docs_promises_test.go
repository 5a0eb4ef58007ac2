package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promisedTest is a test that a page names as what holds a promise.
var promisedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)(/[a-z]+)?`")

// TestPagesNameTests holds that the tests exist which the pages of fleets name.
func TestPagesNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	var sources strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		if !d.IsDir() && strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			sources.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := sources.String()
	for _, page := range []string{"fleet.md", "fleet-security.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		found := promisedTest.FindAllStringSubmatch(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names %d tests", page, len(found))
		}
		for _, m := range found {
			if !strings.Contains(all, "\nfunc "+m[1]+"(") {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
			if name := strings.TrimPrefix(m[2], "/"); name != "" && !strings.Contains(all, `{name: "`+name+`"`) {
				t.Errorf("%s names the case %s of %s, which is not there", page, name, m[1])
			}
		}
	}
}
