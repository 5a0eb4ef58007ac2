package docs

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// fetch returns what the site answers at a path.
func fetch(t *testing.T, address string) (status int, kind, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	http.StripPrefix("/base/docs", Handler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
	return w.Code, w.Header().Get("Content-Type"), w.Body.String()
}

// TestGroups holds that each page is in one group, has a heading, and is answered.
func TestGroups(t *testing.T) {
	grouped := map[string]int{}
	for _, g := range Pages {
		for _, page := range g.Pages {
			grouped[page]++
		}
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if page, ok := strings.CutSuffix(name, ".md"); ok && err == nil {
			if grouped[page] != 1 {
				t.Errorf("%s is in %d groups of Pages", page, grouped[page])
			}
			delete(grouped, page)
			if text, _ := Page(page); !strings.HasPrefix(text, "# ") {
				t.Errorf("%s begins without a heading", page)
			}
		}
		return err
	})
	if err != nil || len(grouped) > 0 {
		t.Errorf("%v; groups name pages that do not exist: %v", err, grouped)
	}
}

// TestSite follows each link and picture of each page on the site, which lies below a path. Links to sections have to
// find them.
func TestSite(t *testing.T) {
	attribute := regexp.MustCompile(`(href|src|id|action)="([^"]*)"`)
	const root = "/base/docs/"
	type link struct{ page, to string }
	var links []link
	ids, seen := map[string]bool{}, map[string]bool{}
	visit := func(address string) {
		seen[address] = true
		status, kind, body := fetch(t, address)
		if status != http.StatusOK {
			t.Errorf("%s answers %d", address, status)
		}
		if !strings.HasPrefix(kind, "text/html") {
			return
		}
		if strings.Contains(body, "](") || strings.Contains(body, "| ---") {
			t.Errorf("%s: Markdown remains", address)
		}
		for _, m := range attribute.FindAllStringSubmatch(body, -1) {
			if m[1] == "id" {
				ids[address+"#"+m[2]] = true
				continue
			}
			links = append(links, link{address, strings.ReplaceAll(m[2], "&amp;", "&")})
		}
	}
	visit(root)
	followed := 0
	for i := 0; i < len(links); i++ {
		base, _ := url.Parse(links[i].page)
		to, err := base.Parse(links[i].to)
		if err != nil {
			t.Errorf("%s: %v", links[i].page, err)
			continue
		}
		if to.Host != "" {
			continue
		}
		if !strings.HasPrefix(to.Path, root) {
			t.Errorf("%s links to %s", links[i].page, links[i].to)
			continue
		}
		followed++
		if !seen[to.Path] {
			visit(to.Path)
		}
	}
	for _, l := range links {
		base, _ := url.Parse(l.page)
		if to, err := base.Parse(l.to); err == nil && to.Host == "" && to.Fragment != "" && !ids[to.Path+"#"+to.Fragment] {
			t.Errorf("%s links to %s, which has no such section", l.page, l.to)
		}
	}
	for _, g := range Pages {
		for _, page := range g.Pages {
			if !seen[root+page] {
				t.Errorf("no link leads to %s", page)
			}
		}
	}
	if followed < 300 {
		t.Errorf("%d links followed", followed)
	}
	for _, missing := range []string{"agents", "../docs.go", "examples", "examples/", "a/b/<script>"} {
		if status, _, body := fetch(t, root+(&url.URL{Path: missing}).EscapedPath()); status == http.StatusOK || strings.Contains(body, "<script>") {
			t.Errorf("%s answers %d", missing, status)
		}
	}
}

// TestSections holds that a section ends at the next heading of its level, and that code has no headings.
func TestSections(t *testing.T) {
	text, ok := Section("findings", "high-queue")
	if !ok || !strings.HasPrefix(text, "### `high-queue`\n") || strings.Contains(text[4:], "\n### ") {
		t.Errorf("%v, %.80q", ok, text)
	}
	for _, missing := range [][2]string{{"findings", "microburst"}, {"nowhere", "high-queue"}, {"", ""}} {
		if text, ok := Section(missing[0], missing[1]); ok {
			t.Errorf("%q: %.80q", missing, text)
		}
	}
	n := 0
	for range headings("# a\n```\n# no heading\n```\n#tag\n## b\n") {
		n++
	}
	if n != 2 {
		t.Errorf("%d headings", n)
	}
}

// TestSearch holds what a search finds first, and that a query is bounded and harmless.
func TestSearch(t *testing.T) {
	for query, want := range map[string]string{
		"high-queue":   "findings#high-queue",
		"HIGH-QUEUE":   "findings#high-queue",
		"threat model": "threat-model",
		"sonic":        "getting-started/sonic",
		"glossary":     "glossary",
		"the a of to":  "", // everywhere
	} {
		hits, all := Search(query)
		if all < len(hits) || len(hits) > MaxHits {
			t.Errorf("%q: %d of %d", query, len(hits), all)
		}
		if want == "" {
			continue
		}
		if len(hits) == 0 || hits[0].Page+strings.TrimSuffix("#"+hits[0].Anchor, "#") != want {
			t.Errorf("%q finds %+v first, want %s", query, hits[:min(1, len(hits))], want)
		}
	}
	for _, query := range []string{"", " \t", "nosuchwordanywhere", "spool nosuchwordanywhere", strings.Repeat("a ", 1<<16), "\xff\xfe", "("} {
		for _, h := range func() []Hit { hits, _ := Search(query); return hits }() {
			if h.Page == "" || h.Title == "" || len(h.Text) > maxExcerpt+6 {
				t.Errorf("%.20q: %+v", query, h)
			}
		}
	}
	if hits, all := Search("spool nosuchwordanywhere"); len(hits) != 0 || all != 0 {
		t.Errorf("a word that no page has: %d", all)
	}
	if _, _, body := fetch(t, "/base/docs/search?q=%3Cscript%3E"); strings.Contains(body, "<script>") {
		t.Error("the query is not escaped")
	}
}
