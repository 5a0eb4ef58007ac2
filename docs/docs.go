// Package docs is the documentation as the program shows it: on its page below /docs, by "hopscope docs", and beside findings.
//
// [Pages] lists what there is to read, in the four groups of Diátaxis (diataxis.fr). [Search] finds sections, and [Handler]
// serves pages, pictures and examples as HTML. Everything is embedded: no file and no network is needed to read it.
package docs

import (
	"embed"
	"io/fs"
	"strings"
	"unicode"
)

//go:embed *.md *.svg *.png getting-started examples schemas
var files embed.FS

//go:embed style.css
var style []byte

// Page returns the Markdown of a page by its name without extension, such as "findings" or "getting-started/sonic". It
// returns false for a page that the program does not hold.
func Page(name string) (markdown string, ok bool) {
	text, err := files.ReadFile(name + ".md")
	return string(text), err == nil
}

// Section returns the Markdown of a page from a heading to the next one of its level, by the heading's anchor.
func Section(page, anchor string) (markdown string, ok bool) {
	text, _ := Page(page)
	begin, level := -1, 0
	for h := range headings(text) {
		switch {
		case begin < 0 && h.anchor == anchor:
			begin, level = h.begin, h.level
		case begin >= 0 && h.level <= level:
			return text[begin:h.begin], true
		}
	}
	if begin < 0 {
		return "", false
	}
	return text[begin:], true
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

// heading is a heading of a page.
type heading struct {
	begin, end int // of its line in the text
	level      int
	title      string // Markdown
	anchor     string
}

// headings yields the headings of a page in their order. Lines within code are none.
func headings(text string) func(yield func(heading) bool) {
	return func(yield func(heading) bool) {
		fenced, at := false, 0
		for line := range strings.Lines(text) {
			begin := at
			at += len(line)
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			title := strings.TrimLeft(line, "#")
			level := len(line) - len(title)
			if fenced || level == 0 || !strings.HasPrefix(title, " ") {
				continue
			}
			title = strings.TrimSpace(title)
			if !yield(heading{begin, at, level, title, Anchor(title)}) {
				return
			}
		}
	}
}

// held reports whether a path within the documentation is a file that the program holds.
func held(name string) bool {
	info, err := fs.Stat(files, name)
	return err == nil && !info.IsDir()
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
