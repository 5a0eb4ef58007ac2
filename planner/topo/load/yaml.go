package load

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hopscope/hopscope/planner/topo"
)

// Limits of a YAML topology: its syntax tree takes some hundred bytes a word, and quoted words take the square of their
// number in a line.
const (
	maxYAML     = 8 << 20
	maxYAMLLine = 4096
)

// readYAML reads our own format, which [Read] shows. Keys that are not listed are errors.
func readYAML(l *loader, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxYAML+1))
	if err != nil {
		return err
	}
	if len(text) > maxYAML {
		return fmt.Errorf("more than %d MB of YAML; use another format", maxYAML>>20)
	}
	words, err := yamlTokens(l, string(text))
	if err != nil {
		return err
	}
	file, err := parser.Parse(words, 0)
	if err != nil {
		line, problem := yamlProblem(err)
		return l.errorf(line, "%s", problem)
	}
	y := yamlReader{l}
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if i > 0 {
			return y.errorf(doc.Body, "a second document")
		}
		var links ast.Node
		err := y.mapping(doc.Body, "the topology", func(key string, v ast.Node) (bool, error) {
			var err error
			switch key {
			case "name":
				l.name, err = y.text(v)
			case "nodes":
				err = y.sequence(v, "nodes", y.node)
			case "links":
				links = v // nodes may follow
			default:
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return err
		}
		if links != nil {
			if err := y.sequence(links, "links", y.link); err != nil {
				return err
			}
		}
	}
	return nil
}

// yamlTokens cuts the text into words, and refuses what the parser, which recurses, could not take: deep nesting, by
// brackets or by indentation, and what may nest without either.
func yamlTokens(l *loader, text string) (token.Tokens, error) {
	line := 0
	for s := range strings.Lines(text) {
		if line++; len(s)-len(strings.TrimLeft(s, " \t-?:")) > 2*maxDepth {
			return nil, l.errorf(line, "indented deeper than %d", 2*maxDepth)
		}
		if len(s) > maxYAMLLine {
			return nil, l.errorf(line, "line longer than %d bytes", maxYAMLLine)
		}
	}
	words := lexer.Tokenize(text)
	depth := 0
	for _, w := range words {
		switch w.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			return nil, l.errorf(w.Position.Line, "%q: anchors, aliases, tags and directives are not read", w.Value)
		}
		if depth > maxDepth {
			return nil, l.errorf(w.Position.Line, "nested deeper than %d", maxDepth)
		}
	}
	return words, nil
}

// yamlProblem takes the place out of the parser's error, whose text begins with "[line:column] problem".
func yamlProblem(err error) (line int, problem string) {
	problem, _, _ = strings.Cut(err.Error(), "\n")
	if place, rest, ok := strings.Cut(problem, "] "); ok {
		place, _, _ = strings.Cut(strings.TrimPrefix(place, "["), ":")
		if n, err := strconv.Atoi(place); err == nil {
			return n, rest
		}
	}
	return 0, problem
}

type yamlReader struct{ l *loader }

func yamlLine(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func (y yamlReader) errorf(n ast.Node, format string, args ...any) error {
	return y.l.errorf(yamlLine(n), format, args...)
}

// mapping walks the keys of n; each reports whether it knows the key.
func (y yamlReader) mapping(n ast.Node, what string, each func(key string, v ast.Node) (bool, error)) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return y.errorf(n, "%s: want a mapping, not %s", what, n.Type())
	}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		known, err := each(key, it.Value())
		if err != nil {
			return err
		}
		if !known {
			return y.errorf(it.Key(), "%s has no key %q", what, key)
		}
	}
	return nil
}

func (y yamlReader) sequence(n ast.Node, what string, each func(ast.Node) error) error {
	if n.Type() == ast.NullType {
		return nil
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return y.errorf(n, "%s: want a list, not %s", what, n.Type())
	}
	for _, v := range s.Values {
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// text reads a scalar. Numbers and the like are taken as they are written: node names may well be numbers.
func (y yamlReader) text(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value, nil
	}
	return "", y.errorf(n, "want a word or a number, not %s", n.Type())
}

func (y yamlReader) node(n ast.Node) error {
	var name string
	var tier topo.Tier
	var ports []endSpec
	var err error
	if _, ok := n.(ast.MapNode); !ok {
		name, err = y.text(n)
	} else {
		err = y.mapping(n, "a node", func(key string, v ast.Node) (bool, error) {
			var err error
			switch key {
			case "name":
				name, err = y.text(v)
			case "tier":
				tier, err = y.tier(v)
			case "host_ports":
				err = y.sequence(v, "host_ports", func(v ast.Node) error {
					p, err := y.port(v)
					ports = append(ports, endSpec{port: p, line: yamlLine(v)})
					return err
				})
			default:
				return false, nil
			}
			return true, err
		})
	}
	if err != nil {
		return err
	}
	i, err := y.l.node(yamlLine(n), name, "", tier)
	for _, p := range ports {
		p.node = i
		y.l.external = append(y.l.external, p)
	}
	return err
}

func (y yamlReader) tier(n ast.Node) (topo.Tier, error) {
	s, err := y.text(n)
	if err != nil {
		return 0, err
	}
	for t := topo.NoTier; t <= topo.Core; t++ {
		if t.String() == s {
			return t, nil
		}
	}
	return 0, y.errorf(n, "tier %q is none of edge, aggregation, core, none", s)
}

func (y yamlReader) port(n ast.Node) (int, error) {
	s, err := y.text(n)
	if err != nil {
		return 0, err
	}
	p, err := strconv.ParseUint(s, 10, 31)
	if err != nil || p == 0 {
		return 0, y.errorf(n, "port %q is outside 1..%d", s, math.MaxInt32)
	}
	return int(p), nil
}

func (y yamlReader) link(n ast.Node) error {
	var names [2]string
	a, b := endSpec{attr: topo.DefaultAttr}, endSpec{}
	var reverse ast.Node
	if s, ok := n.(*ast.SequenceNode); ok {
		if len(s.Values) != 2 {
			return y.errorf(n, "a link of %d nodes, want 2", len(s.Values))
		}
		for i, v := range s.Values {
			var err error
			if names[i], err = y.text(v); err != nil {
				return err
			}
		}
	} else {
		err := y.mapping(n, "a link", func(key string, v ast.Node) (bool, error) {
			var err error
			switch key {
			case "a":
				names[0], err = y.text(v)
			case "b":
				names[1], err = y.text(v)
			case "a_port":
				a.port, err = y.port(v)
			case "b_port":
				b.port, err = y.port(v)
			case "reverse":
				reverse = v
			default:
				return y.attr(&a.attr, key, v)
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	b.attr = a.attr
	if reverse != nil {
		err := y.mapping(reverse, "reverse", func(key string, v ast.Node) (bool, error) { return y.attr(&b.attr, key, v) })
		if err != nil {
			return err
		}
	}
	line := yamlLine(n)
	if names[0] == "" || names[1] == "" {
		return y.l.errorf(line, "a link needs both a and b")
	}
	var err error
	if a.node, err = y.l.lookup(line, names[0]); err != nil {
		return err
	}
	if b.node, err = y.l.lookup(line, names[1]); err != nil {
		return err
	}
	return y.l.link(line, a, b)
}

func (y yamlReader) attr(a *topo.Attr, key string, v ast.Node) (known bool, err error) {
	if key != "weight" && key != "bandwidth_gbps" && key != "delay" {
		return false, nil
	}
	s, err := y.text(v)
	if err != nil {
		return true, err
	}
	switch key {
	case "weight":
		a.Weight, err = parseWeight(s)
	case "bandwidth_gbps":
		a.Bandwidth, err = parseBandwidth(s, 1e9)
	case "delay":
		if a.Delay, err = time.ParseDuration(s); err == nil && (a.Delay < 0 || a.Delay > time.Hour) {
			err = errors.New("delay " + s + " is outside 0s..1h")
		}
	}
	if err != nil {
		err = y.errorf(v, "%w", err)
	}
	return true, err
}
