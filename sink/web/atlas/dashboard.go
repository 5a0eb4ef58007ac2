package atlas

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Limits of a dashboard.
const (
	MaxDashboards = 32      // files
	maxDashboard  = 8 << 10 // bytes of a file
	maxPanels     = 32
	maxPathHops   = 16
	maxTitle      = 100 // bytes
	maxTokens     = 2048
)

// Panel is live numbers of a link, a path or a flow.
type Panel struct {
	Title   string    `json:"title,omitempty"`
	Kind    string    `json:"kind"`              // link, path or flow
	Of      []string  `json:"of"`                // the link, the links of the path in order, or the flow, as the file has them
	Show    string    `json:"show"`              // the value of the chart: latency, queue or use
	Hops    []HopName `json:"hops,omitempty"`    // of a link or path, by number
	Problem string    `json:"problem,omitempty"` // why it cannot be shown at present
}

// HopName is a hop by the texts of its numbers.
type HopName struct {
	Node     string `json:"node"`
	EgressIf string `json:"egress_if"`
}

// Dashboard is what a file of one holds, or why it cannot be read.
type Dashboard struct {
	Name    string  `json:"name"` // of the file, without its directory and ending
	Title   string  `json:"title"`
	Panels  []Panel `json:"panels"`
	Problem string  `json:"problem,omitempty"`
}

// DashboardList is the dashboards of the settings, in their order.
type DashboardList struct {
	Dashboards []Dashboard `json:"dashboards"`
}

// DashboardText is a dashboard to be read.
type DashboardText struct {
	File string `json:"file"` // its content
}

// DashboardError is a problem of a dashboard.
type DashboardError struct {
	Line int // from 1; 0 where it is of the whole file
	Text string
}

func (e *DashboardError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// ReadDashboards reads the files of dashboards, which may have changed since they were read before. Names of nodes are resolved by n.
func ReadDashboards(files []string, n *names.Names) DashboardList {
	list := DashboardList{Dashboards: []Dashboard{}}
	for _, f := range files {
		d, err := ReadDashboardFile(f)
		if err != nil {
			d = &Dashboard{Panels: []Panel{}, Problem: err.Error()}
		}
		d.Name = strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		d.Title = cmp.Or(d.Title, d.Name)
		d.Resolve(n)
		list.Dashboards = append(list.Dashboards, *d)
	}
	return list
}

// ReadDashboardFile reads a file.
func ReadDashboardFile(name string) (*Dashboard, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDashboard+1))
	if err != nil {
		return nil, err
	}
	d, err := ReadDashboard(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// ReadDashboard reads a dashboard from YAML. All problems are reported at once, each a [DashboardError] with its line.
func ReadDashboard(text string) (*Dashboard, error) {
	if len(text) > maxDashboard {
		return nil, &DashboardError{0, fmt.Sprintf("has more than %d bytes: divide it into several dashboards", maxDashboard)}
	}
	tokens := lexer.Tokenize(text)
	depth := 0
	for i, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.AnchorType, token.AliasType, token.TagType, token.DirectiveType, token.MergeKeyType, token.MappingKeyType:
			return nil, &DashboardError{t.Position.Line, "anchors, aliases, tags and complex keys are not read: put a text that begins with &, *, !, % or ? in quotes"}
		}
		if depth > 3 || i > maxTokens {
			return nil, &DashboardError{t.Position.Line, "lists and mappings are nested too deeply, or too many"}
		}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		line := 0
		if place, rest, ok := strings.Cut(strings.TrimPrefix(problem, "["), "] "); ok { // "[line:column] problem"
			number, _, _ := strings.Cut(place, ":")
			if n, err := strconv.Atoi(number); err == nil {
				line, problem = n, rest
			}
		}
		return nil, &DashboardError{line, "is no YAML: " + names.Printable(strings.ToValidUTF8(problem, "\uFFFD"))}
	}
	r := dashboardReader{d: Dashboard{Panels: []Panel{}}}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &DashboardError{0, "holds no dashboard, or several: it has the keys title and panels"}
	}
	r.mapping(file.Docs[0].Body, "a dashboard", map[string]func(ast.Node){
		"title":  func(n ast.Node) { r.d.Title = r.title(n) },
		"panels": r.panels,
	})
	if len(r.errs) == 0 && len(r.d.Panels) == 0 {
		r.fail(file.Docs[0].Body, "has no panels: list links, paths or flows under panels, as in\npanels:\n  - link: 7:3")
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return &r.d, nil
}

// dashboardReader collects a dashboard and its problems.
type dashboardReader struct {
	d    Dashboard
	errs []error
}

func (r *dashboardReader) fail(n ast.Node, format string, args ...any) {
	r.errs = append(r.errs, &DashboardError{n.GetToken().Position.Line, fmt.Sprintf(format, args...)})
}

// mapping calls for each key of n what reads its value.
func (r *dashboardReader) mapping(n ast.Node, what string, keys map[string]func(ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, "%s is keys with values, as in title: Spine", what)
		return
	}
	seen := map[string]bool{}
	for i := m.MapRange(); i.Next(); {
		key := i.Key().GetToken().Value
		read, ok := keys[key]
		switch {
		case !ok:
			all := make([]string, 0, len(keys))
			for k := range keys {
				all = append(all, k)
			}
			slices.Sort(all)
			r.fail(i.Key(), "%.40q is no key of %s: it has %s", key, what, strings.Join(all, ", "))
		case seen[key]:
			r.fail(i.Key(), "%s stands twice", key)
		default:
			seen[key] = true
			read(i.Value())
		}
	}
}

// text reads one value as it is written.
func (r *dashboardReader) text(n ast.Node) string {
	if _, ok := n.(ast.ScalarNode); !ok || n.Type() == ast.NullType {
		r.fail(n, "is no text: put it in quotes")
		return ""
	}
	return strings.TrimSpace(n.GetToken().Value)
}

func (r *dashboardReader) title(n ast.Node) string {
	t := r.text(n)
	if len(t) > maxTitle || names.Printable(t) != t {
		r.fail(n, "a title has at most %d bytes, and no control characters", maxTitle)
	}
	return t
}

func (r *dashboardReader) panels(n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "panels is a list, as in\npanels:\n  - link: 7:3")
		return
	}
	if len(list.Values) > maxPanels {
		r.fail(n, "has %d panels, at most %d: divide it into several dashboards", len(list.Values), maxPanels)
		return
	}
	for _, v := range list.Values {
		p := Panel{Show: "latency"}
		add := func(kind string, read func(ast.Node) []string) func(ast.Node) {
			return func(n ast.Node) {
				if p.Kind != "" {
					r.fail(n, "a panel is of one thing: make the %s a panel of its own", kind)
				}
				p.Kind, p.Of = kind, read(n)
			}
		}
		one := func(n ast.Node) []string { return []string{r.text(n)} }
		before := len(r.errs)
		r.mapping(v, "a panel", map[string]func(ast.Node){
			"title": func(n ast.Node) { p.Title = r.title(n) },
			"link":  add("link", one),
			"path":  add("path", r.path),
			"flow": add("flow", func(n ast.Node) []string {
				t := r.text(n)
				if _, err := decode.ParseFlow(t); err != nil && t != "" {
					r.fail(n, "%v", err)
				}
				return []string{t}
			}),
			"show": func(n ast.Node) {
				if p.Show = r.text(n); !slices.Contains([]string{"latency", "queue", "use"}, p.Show) {
					r.fail(n, "show: %.40q is not latency, queue or use", p.Show)
				}
			},
		})
		if p.Kind == "" && len(r.errs) == before {
			r.fail(v, "the panel shows nothing: give it link, path or flow, as in link: 7:3 (node 7, egress interface 3)")
		}
		if p.Kind == "flow" && p.Show == "use" {
			r.fail(v, "a flow has no use: show its latency or queue")
		}
		for _, t := range p.Of {
			if (len(t) > 200 || names.Printable(t) != t || t == "") && len(r.errs) == before {
				r.fail(v, "the %s is empty, too long, or has control characters", p.Kind)
			}
		}
		r.d.Panels = append(r.d.Panels, p)
	}
}

func (r *dashboardReader) path(n ast.Node) (hops []string) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 || len(list.Values) > maxPathHops {
		r.fail(n, "a path is a list of 1 to %d links in order, as in [5:3, 7:1]", maxPathHops)
		return nil
	}
	for _, v := range list.Values {
		hops = append(hops, r.text(v))
	}
	return hops
}

// Resolve finds the numbers of the links that the panels name.
func (d *Dashboard) Resolve(n *names.Names) {
	for i := range d.Panels {
		p := &d.Panels[i]
		p.Hops, p.Problem = nil, ""
		for _, t := range p.Of {
			if p.Kind == "flow" {
				break
			}
			k, err := namedHop(t, n)
			if err != nil {
				p.Hops, p.Problem = nil, err.Error()
				break
			}
			p.Hops = append(p.Hops, HopName{k.NodeName(), k.EgressName()})
		}
	}
}

// namedHop reads a hop by numbers (7:3) or by names of the inventory (leaf-5:Ethernet3).
func namedHop(text string, n *names.Names) (inference.HopKey, error) {
	if k, err := inference.ParseHop(text); err == nil {
		return k, nil
	}
	node, egress := text, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		node, egress = text[:at], text[at+1:]
	}
	found := inference.HopKey{}
	matches := 0
	id, numeric := strconv.ParseUint(egress, 10, 32)
	own, ownErr := strconv.ParseUint(node, 10, 32)
	for _, r := range n.Rows() {
		if r.Name != node && (ownErr != nil || uint64(r.Node) != own) {
			continue
		}
		if egress == "" && r.EgressIf == 0 || r.EgressIf != 0 && r.Interface == egress {
			found, matches = inference.HopKey{Node: r.Node, EgressIf: r.EgressIf}, matches+1
		} else if numeric == nil && r.EgressIf == 0 {
			found, matches = inference.HopKey{Node: r.Node, EgressIf: uint32(id)}, matches+1
		}
	}
	switch matches {
	case 0:
		return found, fmt.Errorf("%.80q is no link: write node:interface by number, as in 7:3, or by names of the inventory, as in leaf-5:Ethernet3", text)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("%.80q is the name of several: write it by number, as in 7:3", text)
}
