// Package docs holds pages of this folder as the program shows them.
package docs

import (
	_ "embed"
	"strings"
)

// Findings is findings.md.
//
//go:embed findings.md
var Findings string

// Passage is a paragraph of a section with the word in italics that begins it, such as "Evidence"; "" for the first one.
type Passage struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text"` // Markdown in one line
}

// Kind returns the section of findings.md about a kind of findings as passages. It returns none for an unknown kind.
func Kind(kind string) (list []Passage) {
	_, section, ok := strings.Cut(Findings, "\n### `"+kind+"`\n")
	if !ok {
		return nil
	}
	section, _, _ = strings.Cut(section, "\n#")
	list = []Passage{{}}
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if title, text, ok := strings.Cut(strings.TrimPrefix(line, "*"), "*: "); ok && strings.HasPrefix(line, "*") {
			list = append(list, Passage{Title: title})
			line = text
		}
		p := &list[len(list)-1]
		p.Text = strings.TrimSpace(p.Text + " " + line)
	}
	return list
}
