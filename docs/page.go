package docs

import (
	"html"
	"net/http"
	"regexp"
	"strings"
)

// Serve answers the page that the path value page names, to whose sections alerts and explanations point.
func Serve(w http.ResponseWriter, r *http.Request) {
	text, ok := Page(r.PathValue("page"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(appendHTML(nil, text)) // the client may be gone
}

// appendHTML appends the HTML of a page in Markdown: headings with anchors, paragraphs, lists, tables, and code.
func appendHTML(dst []byte, text string) []byte {
	title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	dst = append(dst, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="dark light">
<title>`+html.EscapeString(title)+` – hopscope</title><link rel="icon" href="/favicon.svg" type="image/svg+xml"><link rel="stylesheet" href="/app.css"></head>
<body><main class="docs-page"><p><a href="/">hopscope</a></p>
`...)
	open := ""    // the element that lines belong to
	pending := "" // text of a paragraph or an item, whose lines are joined
	flush := func() {
		dst, pending = append(dst, inlineHTML(pending)+"\n"...), ""
	}
	enter := func(tag string) {
		if open == tag {
			return
		}
		flush()
		if open != "" {
			dst = append(dst, "</"+open+">\n"...)
		}
		if open = tag; tag != "" {
			dst = append(dst, "<"+tag+">"...)
		}
	}
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		marks := len(line) - len(strings.TrimLeft(line, "#"))
		switch {
		case strings.HasPrefix(trimmed, "```"):
			if fenced = !fenced; fenced {
				enter("pre")
			} else {
				enter("")
			}
		case fenced || strings.HasPrefix(line, "    ") && (open == "" || open == "pre"):
			enter("pre")
			dst = append(dst, html.EscapeString(line)+"\n"...)
		case trimmed == "":
			enter("")
		case marks > 0 && strings.HasPrefix(line[marks:], " "):
			enter("")
			tag := "h" + string(rune('0'+min(marks, 6)))
			dst = append(dst, "<"+tag+` id="`+Anchor(line[marks:])+`">`+inlineHTML(line[marks+1:])+"</"+tag+">\n"...)
		case strings.HasPrefix(trimmed, "|"):
			if strings.Trim(trimmed, "|-: ") == "" {
				continue // the line below the heads
			}
			enter("table")
			dst = append(dst, "<tr>"...)
			for cell := range strings.SplitSeq(strings.ReplaceAll(strings.Trim(trimmed, "|"), `\|`, "&#124;"), "|") {
				dst = append(dst, "<td>"+strings.ReplaceAll(inlineHTML(strings.TrimSpace(cell)), "&amp;#124;", "|")+"</td>"...)
			}
			dst = append(dst, "</tr>\n"...)
		case strings.HasPrefix(line, "- "):
			enter("ul")
			flush()
			dst, pending = append(dst, "<li>"...), line[2:]
		case open == "ul":
			pending += " " + trimmed
		default:
			enter("p")
			pending += trimmed + " "
		}
	}
	enter("")
	return append(dst, "</main></body></html>\n"...)
}

var marksOfText = regexp.MustCompile("`([^`]+)`" + `|\[([^\]]+)\]\(([^)]*)\)|\*\*([^*]+)\*\*|\*([^*]+)\*`)

// inlineHTML returns the HTML of a line: code, emphasis, and links to sections of the pages that the program holds. Of
// other links the label remains.
func inlineHTML(line string) string {
	var b strings.Builder
	done := 0
	for _, m := range marksOfText.FindAllStringSubmatchIndex(line, -1) {
		part := func(i int) string { return html.EscapeString(line[m[2*i]:m[2*i+1]]) }
		b.WriteString(html.EscapeString(line[done:m[0]]))
		done = m[1]
		switch {
		case m[2] >= 0:
			b.WriteString("<code>" + part(1) + "</code>")
		case m[4] >= 0:
			label := strings.ReplaceAll(part(2), "`", "")
			page, anchor, _ := strings.Cut(line[m[6]:m[7]], "#")
			name, isPage := strings.CutSuffix(page, ".md")
			if _, held := Page(name); page != "" && (!isPage || !held) {
				b.WriteString(label)
				break
			}
			address := name
			if anchor != "" {
				address += "#" + anchor
			}
			b.WriteString(`<a href="` + html.EscapeString(address) + `">` + label + "</a>")
		case m[8] >= 0:
			b.WriteString("<strong>" + part(4) + "</strong>")
		default:
			b.WriteString("<em>" + part(5) + "</em>")
		}
	}
	b.WriteString(html.EscapeString(line[done:]))
	return b.String()
}
