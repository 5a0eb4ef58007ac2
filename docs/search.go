package docs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Hit is a section that a search found.
type Hit struct {
	Page   string `json:"page"`
	Anchor string `json:"anchor,omitempty"` // "" for the beginning of the page
	Title  string `json:"title"`            // of the page, and of the section behind a colon
	Text   string `json:"text"`             // one line of it with the first word that was found
	score  int
}

// MaxHits is the greatest number of sections that a search returns.
const MaxHits = 30

const (
	maxQuery   = 200 // bytes of a search that count
	maxWords   = 10
	maxExcerpt = 160 // bytes
)

// section is a part of a page between two headings.
type section struct {
	Hit
	page, head, body string // in lower case
	text             string
}

// marks are the marks of Markdown that no text needs.
var marks = regexp.MustCompile("\\]\\([^)]*\\)|[`*\\[]|^[#>|-]+ |[|]")

// plain returns Markdown as text.
func plain(markdown string) string { return strings.TrimSpace(marks.ReplaceAllString(markdown, "")) }

var sections = sync.OnceValue(func() (all []section) {
	for _, g := range Pages {
		for _, page := range g.Pages {
			text, _ := Page(page)
			title, end := Title(page), 0
			s := section{Hit: Hit{Page: page, Title: title}}
			add := func(to int) {
				if s.text = text[end:to]; s.Anchor != "" || strings.TrimSpace(s.text) != "" {
					s.body = strings.ToLower(plain(s.text))
					all = append(all, s)
				}
			}
			for h := range headings(text) {
				if h.level == 1 {
					s.page, s.head, end = strings.ToLower(title), strings.ToLower(title), h.end
					continue
				}
				add(h.begin)
				head := plain(h.title)
				s = section{Hit: Hit{Page: page, Anchor: h.anchor, Title: title + ": " + head}, page: s.page, head: strings.ToLower(head)}
				end = h.end
			}
			add(len(text))
		}
	}
	return all
})

// Search returns the sections that have all words of a query, the best first, and how many there are in all. Words are
// found by their beginnings. A word in a heading counts for more than one in the text.
func Search(query string) (hits []Hit, all int) {
	words := strings.FieldsFunc(strings.ToLower(query[:min(len(query), maxQuery)]), unicode.IsSpace)
	words = words[:min(len(words), maxWords)]
	if len(words) == 0 {
		return nil, 0
	}
	for _, s := range sections() {
		if s.score = s.scoreOf(words); s.score > 0 {
			s.Text = s.excerpt(words)
			hits = append(hits, s.Hit)
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.score, a.score) })
	return hits[:min(len(hits), MaxHits)], len(hits)
}

// The scores of a word by where it stands; 1 is added for each time in the text, up to textMost.
const (
	ofHeading = 40
	ofPage    = 15
	textMost  = 8
	wholeWord = 2 // factor of a heading that is the word
)

// scoreOf is the score of a section, 0 where it lacks a word.
func (s *section) scoreOf(words []string) (score int) {
	for _, w := range words {
		of := min(beginnings(s.body, w), textMost)
		if beginnings(s.head, w) > 0 {
			of += ofHeading
			if s.head == w {
				of *= wholeWord
			}
		}
		if s.page != s.head && beginnings(s.page, w) > 0 {
			of += ofPage
		}
		if of == 0 || of == ofPage { // the page alone has the word
			return 0
		}
		score += of
	}
	return score
}

// beginnings counts the words of a text that begin with another.
func beginnings(text, with string) (n int) {
	for at := 0; ; {
		i := strings.Index(text[at:], with)
		if i < 0 {
			return n
		}
		if at += i; at == 0 || !isWord(text[at-1]) || !isWord(with[0]) {
			n++
		}
		at += len(with)
	}
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }

// excerpt is the first line of a section that has one of the words, cut around it.
func (s *section) excerpt(words []string) string {
	first := ""
	for line := range strings.Lines(s.text) {
		line = plain(line)
		if first == "" && line != "" && !strings.HasPrefix(line, "---") {
			first = line
		}
		for _, w := range words {
			if i := strings.Index(strings.ToLower(line), w); i >= 0 {
				return cut(line, i)
			}
		}
	}
	return cut(first, 0)
}

// cut returns at most maxExcerpt bytes of a line around a place.
func cut(line string, at int) string {
	if len(line) <= maxExcerpt {
		return line
	}
	begin := max(min(at-maxExcerpt/3, len(line)-maxExcerpt), 0)
	text := strings.ToValidUTF8(line[begin:begin+maxExcerpt], "")
	if begin > 0 {
		text = "…" + text
	}
	if begin+maxExcerpt < len(line) {
		text += "…"
	}
	return text
}
