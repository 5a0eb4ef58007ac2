package load

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/hopscope/hopscope/planner/topo"
)

// These are the limits of a YAML topology. The parser's time grows with the square of the entries of a list or mapping,
// and its syntax tree takes some hundred bytes a word. Finding the words takes time in proportion to the file.
const (
	maxYAML      = 4 << 20
	maxYAMLLine  = 4096
	maxYAMLWords = 1 << 18 // with signs and comments: some 37 000 links as [a, b]
	maxYAMLDepth = 32
	maxYAMLKeys  = 64 // of a mapping
)

// readYAML reads the YAML of hopscope, which [Read] shows and in which keys that are not listed are errors, or a lab of containerlab.
func readYAML(l *loader, r io.Reader) error {
	body, err := parseYAML(l, r)
	if err != nil || body == nil {
		return err
	}
	if l.lab {
		return readLab(l, body)
	}
	y := yamlReader{l}
	var links, agents ast.Node // nodes may follow
	err = y.mapping(body, "the topology", func(key string, v ast.Node) (bool, error) {
		var err error
		switch key {
		case "name":
			l.name, err = y.text(v)
		case "nodes":
			err = y.sequence(v, "nodes", y.node)
		case "links":
			links = v
		case "agents":
			agents = v
		default:
			return false, nil
		}
		return true, err
	})
	if err == nil && links != nil {
		err = y.sequence(links, "links", y.link)
	}
	if err == nil && agents != nil {
		err = y.sequence(agents, "agents", y.agent)
		l.reservePorts()
	}
	return err
}

// parseYAML reads a file of one document and returns its body, or nil if it is empty.
func parseYAML(l *loader, r io.Reader) (body ast.Node, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxYAML+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxYAML {
		return nil, fmt.Errorf("more than %d MB of YAML; use another format", maxYAML>>20)
	}
	most := maxYAMLKeys
	if l.lab = labFile.Match(text); l.lab {
		most = maxLabNodes
	}
	words, err := yamlTokens(l, string(text), most)
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(words, 0)
	if err != nil {
		line, problem := yamlProblem(err)
		if l.lab && bytes.Contains(text, []byte("{{")) {
			problem += "; templates ({{ }}) are not filled in, so give the file that they make"
		}
		return nil, l.errorf(line, "%s", problem)
	}
	for i, doc := range file.Docs {
		if doc.Body != nil && i > 0 {
			return nil, yamlReader{l}.errorf(doc.Body, "a second document")
		}
		if i == 0 {
			body = doc.Body
		}
	}
	return body, nil
}

// yamlTokens cuts the text into words. It refuses what would keep the recursive parser busy or overflow its stack. That
// is many words, deep nesting by brackets or by indentation, anchors, aliases, tags and directives, and many keys.
func yamlTokens(l *loader, text string, keys int) (token.Tokens, error) {
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
	if len(words) > maxYAMLWords {
		return nil, l.errorf(words[maxYAMLWords].Position.Line, "more than %d words and signs of YAML; use another format", maxYAMLWords)
	}
	k := keyCounter{columns: map[int]int{}}
	for _, w := range words {
		switch w.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.DirectiveType:
			return nil, l.errorf(w.Position.Line, "%q: anchors, aliases, tags and directives are not read", w.Value)
		}
		most := k.add(w)
		if len(k.flow) > maxYAMLDepth {
			return nil, l.errorf(w.Position.Line, "nested deeper than %d", maxYAMLDepth)
		}
		if most > keys {
			return nil, l.errorf(w.Position.Line, "more than %d keys in one mapping", keys)
		}
	}
	return words, nil
}

// keyCounter counts the keys of mappings as the words go by.
type keyCounter struct {
	columns map[int]int // keys that began in a column, since a line that began further left
	flow    []int       // colons and question marks of the open brackets
}

// add returns the number of keys of the mapping that the word may belong to.
func (k *keyCounter) add(w *token.Token) int {
	last := len(k.flow) - 1
	switch w.Type {
	case token.SequenceStartType, token.MappingStartType:
		k.flow = append(k.flow, 0)
	case token.SequenceEndType, token.MappingEndType:
		if last >= 0 {
			k.flow = k.flow[:last]
		}
	case token.MappingValueType, token.MappingKeyType:
		if last >= 0 {
			k.flow[last]++
			return k.flow[last]
		}
		column := w.Position.Column
		if w.Type == token.MappingValueType && w.Prev != nil {
			column = w.Prev.Position.Column
		}
		k.leave(column)
		k.columns[column]++
		return k.columns[column]
	case token.SequenceEntryType:
		k.leave(w.Position.Column)
	}
	return 0
}

// leave forgets the mappings further right.
func (k *keyCounter) leave(column int) {
	for c := range k.columns {
		if c > column {
			delete(k.columns, c)
		}
	}
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

// mapping walks the keys of n. The function each reports whether it accepts a key.
func (y yamlReader) mapping(n ast.Node, what string, each func(key string, v ast.Node) (bool, error)) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return y.errorf(n, "%s: want a mapping, not %s", what, n.Type())
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		if s, ok := it.Key().(*ast.StringNode); ok { // perhaps in quotes, as in JSON
			key = s.Value
		}
		if seen[key] {
			return y.errorf(it.Key(), "%s has the key %q twice", what, key)
		}
		seen[key] = true
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
	var place [2]string // longitude, latitude
	var host bool
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
			case "longitude":
				place[0], err = y.text(v)
			case "latitude":
				place[1], err = y.text(v)
			case "host":
				host, err = y.flag(v)
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
	if err != nil {
		return err
	}
	switch {
	case (place[0] == "") != (place[1] == ""):
		return y.errorf(n, "node %q has a longitude or a latitude, but not both", name)
	case host && len(ports) > 0:
		return y.errorf(n, "node %q is a host and has host_ports, which are those of a switch", name)
	}
	y.l.nodes[i].host = host
	for _, p := range ports {
		p.node = i
		y.l.external = append(y.l.external, p)
	}
	return y.l.place(yamlLine(n), i, place[0], place[1])
}

func (y yamlReader) flag(n ast.Node) (bool, error) {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value, nil
	}
	return false, y.errorf(n, "want true or false, not %s", n.Type())
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
	if known, _ := setWord(new(topo.Attr), key, ""); !known {
		return false, nil
	}
	s, err := y.text(v)
	if err != nil {
		return true, err
	}
	if _, err = setWord(a, key, s); err != nil {
		err = y.errorf(v, "%w", err)
	}
	return true, err
}
