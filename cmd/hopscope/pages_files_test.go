package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Files and folders of the tree that pages name are there. Code blocks are left out, and names that stand for any family of plans.
func TestPagesNameFiles(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	blocks, names := regexp.MustCompile("(?s)```.*?```"), regexp.MustCompile("`([A-Za-z0-9_./-]+)`")
	found := 0
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		for _, m := range names.FindAllStringSubmatch(blocks.ReplaceAllString(readText(t, page), ""), -1) {
			room, rest, ok := strings.Cut(m[1], "/")
			if _, known := rooms[room]; !ok || !known || rest == "" || strings.Contains(m[1], "/F") || strings.Contains(m[1], "_F.") || m[1] == "cmd/collector/" {
				continue
			}
			found++
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names were looked at", found)
	}
}
