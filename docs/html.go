package docs

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Handler serves the documentation: its list at "/", pages by their names, a search, pictures and examples. Links are
// relative, so that it may lie below any path. It needs no script.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { write(w, "", "Documentation", "list", Pages) })
	mux.HandleFunc("GET /search", search)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style) // the client may be gone
	})
	mux.HandleFunc("GET /{page...}", serve)
	return mux
}

// types are the types of files beside pages. Examples are shown as text.
var types = map[string]string{".svg": "image/svg+xml", ".png": "image/png", ".gz": "application/gzip"}

// serve answers a page, a picture, or an example.
func serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("page")
	if markdown, ok := Page(name); ok {
		var body bytes.Buffer
		if err := converter(name).Convert([]byte(markdown), &body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, name, Title(name), "page", template.HTML(accessible.Replace(body.String())))
		return
	}
	content, err := files.ReadFile(name)
	if err != nil {
		w.WriteHeader(http.StatusNotFound)
		write(w, name, "No such page", "missing", cut(name, 0))
		return
	}
	kind := types[path.Ext(name)]
	if kind == "" {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content)
}

// accessible lets keys scroll examples and tables that are wider than the window, and makes corners of tables that are empty no headers.
var accessible = strings.NewReplacer("<pre><code", `<pre tabindex="0"><code`, "<table>", `<table tabindex="0">`, "<th></th>", "<td></td>")

// search answers the sections that have the words of a query.
func search(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q")
	hits, all := Search(query)
	write(w, "search", "Search", "hits", results{query, hits, all - len(hits)})
}

// results are what a search found.
type results struct {
	Query string
	Hits  []Hit
	More  int // that are not among the hits
}

// write answers a document: a block of the template about a value, within the frame of all pages.
func write(w http.ResponseWriter, page, title, block string, value any) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	root := strings.Repeat("../", strings.Count(page, "/"))
	if root == "" {
		root = "./"
	}
	found, _ := value.(results)
	_ = frame.Execute(w, map[string]any{"Root": root, "Title": title, "Block": block, "Value": value, "Query": found.Query}) // the client may be gone
}

// converter converts a page to HTML.
func converter(page string) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(relink{page}, 100))),
		goldmark.WithRendererOptions(html.WithUnsafe()), // anchors and comments of the pages, which are the program's own
	)
}

// relink lets links between pages lead to what is served, and headings have the anchors that [Anchor] gives them. Of links
// that leave the documentation into the source, the label remains.
type relink struct{ page string }

func (l relink) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	var outside []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			n.SetAttributeString("id", []byte(Anchor(string(n.Lines().Value(reader.Source())))))
		case *ast.Image:
			return ast.WalkContinue, nil // beside its page
		case *ast.Link:
			to, ok := l.address(string(n.Destination))
			if !ok {
				outside = append(outside, n)
			}
			n.Destination = []byte(to)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range outside {
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, c)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
}

// address returns where a link of a page leads on the site.
func (l relink) address(link string) (string, bool) {
	if strings.HasPrefix(link, "#") || strings.Contains(link, "://") {
		return link, true
	}
	file, anchor, _ := strings.Cut(link, "#")
	if !held(path.Join(path.Dir(l.page), file)) {
		return "", false
	}
	to := strings.TrimSuffix(file, ".md")
	if anchor != "" {
		to += "#" + anchor
	}
	return to, true
}

var frame = template.Must(template.New("frame").Funcs(template.FuncMap{"title": Title, "count": func(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="dark light">
<title>{{.Title}} – hopscope</title><link rel="stylesheet" href="{{.Root}}style.css"></head>
<body><header><a href="{{.Root}}">Documentation</a>
<form action="{{.Root}}search" role="search"><input type="search" name="q" value="{{.Query}}" aria-label="Search the documentation" placeholder="Search" maxlength="200"></form></header>
<main>
{{- if eq .Block "page"}}{{.Value}}
{{- else if eq .Block "list"}}<h1>Documentation</h1>
{{range .Value}}<h2>{{.Name}}</h2><p>{{.About}}</p>
<ul>{{range .Pages}}<li><a href="{{.}}">{{title .}}</a></li>
{{end}}</ul>
{{end}}
{{- else if eq .Block "hits"}}{{with .Value}}<h1>Search</h1>
{{if .Query}}<p>{{count (len .Hits) "section"}} with “{{.Query}}”{{if .More}}, and {{.More}} more: add a word to narrow the search{{end}}{{if not .Hits}}. Words are found by their beginnings; all have to occur in one section.{{end}}</p>
{{else}}<p>Enter words that a section has.</p>{{end}}
<ul class="hits">{{range .Hits}}<li><a href="{{.Page}}{{with .Anchor}}#{{.}}{{end}}">{{.Title}}</a><br>{{.Text}}</li>
{{end}}</ul>{{end}}
{{- else}}<h1>No such page</h1><p>There is no page {{.Value}}. <a href="{{.Root}}">All pages</a></p>{{end}}
</main></body></html>
`))
