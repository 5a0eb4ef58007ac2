// Package docs holds pages of this folder as the program shows them.
package docs

import (
	"embed"
	"strings"
	"unicode"
)

//go:embed api.md findings.md operating.md fleet.md
var pages embed.FS

// Page returns the Markdown of a page by its name without extension, such as "findings". It returns false for a page that
// the program does not hold.
func Page(name string) (markdown string, ok bool) {
	text, err := pages.ReadFile(name + ".md")
	return string(text), err == nil
}

// Anchor returns the name of a heading within a page, such as "causes" or "high-queue": letters and digits in lower case,
// with dashes for spaces.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
}

// Passage is a paragraph of a section with the word in italics that begins it, such as "Evidence"; "" for the first one.
type Passage struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text"` // Markdown in one line
}

// Kind returns the section of findings.md about a kind of findings as passages. It returns none for an unknown kind.
func Kind(kind string) (list []Passage) {
	page, _ := Page("findings")
	_, section, ok := strings.Cut(page, "\n### `"+kind+"`\n")
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
