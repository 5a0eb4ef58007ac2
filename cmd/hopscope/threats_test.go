package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that the threat model and the promises of the loop name is there, and every metric. Packages that this build does not
// have have no tests.
func TestThreatModelNamesTests(t *testing.T) {
	text := readText(t, "../../docs/threat-model.md") + readText(t, "../../p4/loop/doc.go") + readText(t, "../../p4/probe/doc.go")
	named := regexp.MustCompile("`([a-z][a-z/0-9]*)`: ((?:`(?:Test|Fuzz)[A-Za-z0-9]+`(?:, )?)+)")
	found := 0
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		dir := filepath.Join("../..", filepath.FromSlash(m[1]))
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s is not there: %s", m[1], m[2])
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source strings.Builder
		for _, f := range files {
			source.WriteString(readText(t, f))
		}
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(m[2], -1) {
			found++
			if !strings.Contains(source.String(), "\nfunc "+name+"(") {
				t.Errorf("%s has no test %s", m[1], name)
			}
		}
	}
	if all := len(regexp.MustCompile("`(?:Test|Fuzz)[A-Z]").FindAllString(text, -1)); found < all-10 {
		t.Errorf("%d of %d tests were looked for", found, all)
	}
	metrics := readText(t, "../../docs/metrics.md")
	for _, m := range regexp.MustCompile("`(hopscope_[a-z_]+[a-z])`").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(metrics, "`"+m[1]+"`") {
			t.Errorf("there is no metric %s", m[1])
		}
	}
}
