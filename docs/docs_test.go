package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestKind holds that each kind has what an operator is shown of it, without marks of the page's lines.
func TestKind(t *testing.T) {
	for _, k := range inference.Kinds() {
		var titles []string
		for _, p := range Kind(k.String()) {
			titles = append(titles, p.Title)
			if p.Text == "" || strings.Contains(p.Text, "\n") || strings.HasPrefix(p.Text, "*") {
				t.Errorf("%v: passage %q is %q", k, p.Title, p.Text)
			}
		}
		if got := strings.ReplaceAll(strings.Join(titles, ","), ",Element", ""); got != ",Evidence,What to do,Thresholds" {
			t.Errorf("%v: passages %q", k, titles)
		}
	}
	if got := Kind("microburst"); got != nil {
		t.Errorf("an unknown kind: %q", got)
	}
}

// TestGlossary holds that the glossary defines each term once, in sentences of at most 25 words.
func TestGlossary(t *testing.T) {
	b, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 || strings.HasPrefix(cells[0], " ---") || strings.HasPrefix(cells[1], " definition") || strings.HasPrefix(cells[1], " meaning") {
			continue
		}
		for term := range strings.SplitSeq(cells[0], ",") {
			if term = strings.TrimSpace(term); seen[term] {
				t.Errorf("%q is defined twice", term)
			}
			seen[term] = true
		}
		for sentence := range strings.SplitSeq(cells[1], ". ") {
			if n := len(strings.Fields(sentence)); n > 25 {
				t.Errorf("%s: a sentence of %d words", cells[0], n)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("%d terms", len(seen))
	}
}

// TestTargets holds that each target of the Makefile says what it does, as "make help" lists it.
func TestTargets(t *testing.T) {
	b, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(b), "\n.PHONY: ")
	list, _, _ = strings.Cut(list, "\n")
	targets := strings.Fields(list)
	if len(targets) < 25 {
		t.Errorf("%d targets", len(targets))
	}
	for _, target := range targets {
		_, line, _ := strings.Cut(string(b), "\n"+target+":")
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, "## ") {
			t.Errorf("make help does not list %s", target)
		}
	}
}
