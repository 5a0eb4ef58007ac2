// Package inventory reads files with the names of nodes, interfaces and hosts, and files with the paths that flows may take.
//
// An inventory is YAML, or JSON, which is YAML as well:
//
//	nodes:
//	  - id: 17
//	    name: leaf-3
//	    site: berlin
//	    interfaces:
//	      - {id: 3, name: Ethernet3, speed: 10G}
//	hosts:
//	  - {prefix: 10.0.1.0/24, name: web servers, site: berlin}
//	drop_reasons:
//	  25: no route
//
// Every key may be left out but the id of a node or an interface, and the prefix and the name of hosts.
package inventory

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/names"
)

// Limits of a file.
const (
	maxBytes = 4 << 20
	maxRows  = 65_536 // nodes, interfaces and hosts
)

// Error is a problem of a file.
type Error struct {
	File string
	Line int // from 1; 0 if the problem is of the whole file
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("inventory %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("inventory %s:%d: %v", e.File, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ReadFile reads an inventory.
func ReadFile(path string, sites names.Sites) (*names.Names, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	defer f.Close()
	return Read(path, f, sites)
}

// Read reads an inventory from r. Name is its name in errors. All problems are reported at once, each an [Error] with its line. With
// sites, nodes of different ones may have the same id.
func Read(name string, r io.Reader, sites names.Sites) (*names.Names, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, &Error{name, 0, err}
	}
	if len(text) > maxBytes {
		return nil, &Error{name, 0, fmt.Errorf("has more than %d MB", maxBytes>>20)}
	}
	tokens := lexer.Tokenize(string(text))
	if line, err := guard(tokens); err != nil {
		return nil, &Error{name, line, err}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		line, problem := syntaxProblem(err)
		return nil, &Error{name, line, errors.New(problem)}
	}
	d := reader{file: name, sites: sites, nodes: map[uint32]int{}, called: map[string]int{}, prefixes: map[netip.Prefix]int{}}
	for i, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case i > 0:
			d.fail(doc.Body, "a second document")
		default:
			d.top(doc.Body)
		}
	}
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return names.New(d.list, d.hosts, d.reasons).WithSites(sites), nil
}

// syntaxProblem parses the place out of the parser's error, whose text begins with "[line:column] problem".
func syntaxProblem(err error) (line int, problem string) {
	problem, _, _ = strings.Cut(err.Error(), "\n")
	problem = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.C, r) { // the parser quotes the text as it is
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(problem, "\uFFFD"))
	if place, rest, ok := strings.Cut(problem, "] "); ok {
		place, _, _ = strings.Cut(strings.TrimPrefix(place, "["), ":")
		if n, err := strconv.Atoi(place); err == nil {
			return n, rest
		}
	}
	return 0, problem
}

type reader struct {
	file  string
	sites names.Sites
	errs  []error
	rows  int

	list     []names.Node
	hosts    []names.Host
	reasons  map[uint8]string
	nodes    map[uint32]int // lines of ids
	called   map[string]int // lines of names, with the site
	prefixes map[netip.Prefix]int
}

// maxProblems is how many problems are reported of one file.
const maxProblems = 20

func (d *reader) fail(n ast.Node, format string, args ...any) {
	switch len(d.errs) {
	case maxProblems:
		d.errs = append(d.errs, &Error{d.file, 0, errors.New("and more")})
	case maxProblems + 1:
	default:
		d.errs = append(d.errs, &Error{d.file, line(n), fmt.Errorf(format, args...)})
	}
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func (d *reader) top(n ast.Node) {
	d.mapping(n, "the inventory", func(key string, v ast.Node) bool {
		switch key {
		case "nodes":
			d.sequence(v, key, d.node)
		case "hosts":
			d.sequence(v, key, d.host)
		case "drop_reasons":
			d.dropReasons(v)
		default:
			return false
		}
		return true
	})
}

func (d *reader) node(n ast.Node) {
	var node names.Node
	var id ast.Node
	var interfaces ast.Node
	d.mapping(n, "a node", func(key string, v ast.Node) bool {
		switch key {
		case "id":
			id, node.ID = v, d.nodeID(v)
		case "name":
			node.Name = d.text(v)
		case "site":
			node.Site = d.text(v)
		case "interfaces":
			interfaces = v
		default:
			return false
		}
		return true
	})
	if id == nil {
		d.fail(n, "a node has no id")
		return
	}
	own := node.ID
	known, err := d.sites.Identify(node.Site, own)
	if err != nil {
		d.fail(id, "%w", err)
		return
	}
	node.ID = known
	if first, ok := d.nodes[node.ID]; ok {
		d.fail(id, "node %d is listed in line %d, too", own, first)
		return
	}
	d.nodes[node.ID] = line(id)
	if shown := names.Clean(node.Name); shown != "" { // what operators see has to distinguish nodes
		key := names.Clean(node.Site) + "\x00" + shown
		if first, ok := d.called[key]; ok {
			d.fail(n, "node %d is called %q, as the node in line %d", own, names.Clean(node.Name), first)
		} else {
			d.called[key] = line(n)
		}
	}
	if interfaces != nil {
		lines, called := map[uint32]int{}, map[string]int{}
		d.sequence(interfaces, "interfaces", func(v ast.Node) {
			f, ok := d.link(v)
			if !ok {
				return
			}
			if first, ok := lines[f.ID]; ok {
				d.fail(v, "node %d has interface %d in line %d, too", own, f.ID, first)
			} else if first, ok := called[names.Clean(f.Name)]; ok && names.Clean(f.Name) != "" {
				d.fail(v, "interface %d of node %d is called %q, as the one in line %d", f.ID, own, names.Clean(f.Name), first)
			}
			lines[f.ID], called[names.Clean(f.Name)] = line(v), line(v)
			node.Interfaces = append(node.Interfaces, f)
		})
	}
	d.list = append(d.list, node)
	d.count(n)
}

func (d *reader) link(n ast.Node) (f names.Interface, ok bool) {
	d.mapping(n, "an interface", func(key string, v ast.Node) bool {
		switch key {
		case "id":
			ok, f.ID = true, d.number(v, 1<<32-1)
		case "name":
			f.Name = d.text(v)
		case "speed":
			f.Speed = d.speed(v)
		default:
			return false
		}
		return true
	})
	if !ok {
		d.fail(n, "an interface has no id")
	}
	d.count(n)
	return f, ok
}

func (d *reader) host(n ast.Node) {
	var h names.Host
	d.mapping(n, "an entry of hosts", func(key string, v ast.Node) bool {
		switch key {
		case "prefix":
			h.Prefix = d.prefix(v)
		case "name":
			h.Name = d.text(v)
		case "site":
			h.Site = d.text(v)
		default:
			return false
		}
		return true
	})
	d.count(n)
	switch {
	case !h.Prefix.IsValid():
		d.fail(n, "hosts need a prefix such as 10.0.1.0/24 or 10.0.1.7")
	case h.Name == "":
		d.fail(n, "hosts %s have no name", h.Prefix)
	case d.prefixes[h.Prefix] != 0:
		d.fail(n, "hosts %s are listed in line %d, too", h.Prefix, d.prefixes[h.Prefix])
	default:
		d.prefixes[h.Prefix] = line(n)
		d.hosts = append(d.hosts, h)
	}
}

func (d *reader) dropReasons(n ast.Node) {
	d.reasons = map[uint8]string{}
	d.mapping(n, "drop_reasons", func(key string, v ast.Node) bool {
		r, err := strconv.ParseUint(key, 10, 8)
		if err != nil {
			d.fail(v, "drop reason %.40q is outside 0..255", key)
		} else {
			d.reasons[uint8(r)] = d.text(v)
		}
		return true
	})
}

func (d *reader) count(n ast.Node) {
	if d.rows++; d.rows == maxRows+1 {
		d.fail(n, "more than %d nodes, interfaces and hosts", maxRows)
	}
}

// mapping walks the keys of n; each reports whether it accepts the key.
func (d *reader) mapping(n ast.Node, what string, each func(key string, v ast.Node) bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(n, "%s: want a mapping, not %s", what, n.Type())
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		if s, ok := it.Key().(*ast.StringNode); ok { // perhaps in quotes, as in JSON
			key = s.Value
		}
		if seen[key] {
			d.fail(it.Key(), "%s has the key %.40q twice", what, key)
			continue
		}
		seen[key] = true
		if !each(key, it.Value()) {
			d.fail(it.Key(), "%s has no key %.40q", what, key)
		}
	}
}

func (d *reader) sequence(n ast.Node, what string, each func(ast.Node)) {
	if n.Type() == ast.NullType {
		return
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, "%s: want a list, not %s", what, n.Type())
		return
	}
	for _, v := range s.Values {
		each(v)
	}
}

// text reads a scalar. Numbers and the like are taken as they are written: a name may well be a number.
func (d *reader) text(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NanNode, *ast.InfinityNode:
		return n.GetToken().Value
	}
	d.fail(n, "want a word or a number, not %s", n.Type())
	return ""
}

// nodeID reads the number of a node, or the address of a device that is known by it alone, as with sFlow and IPFIX.
func (d *reader) nodeID(n ast.Node) uint32 {
	s := d.text(n)
	if a, err := netip.ParseAddr(s); err == nil {
		return decode.AddrFrom(a).Node()
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		d.fail(n, "%.40q is no number from 0 to %d and no address", s, uint32(math.MaxUint32))
	}
	return uint32(v)
}

func (d *reader) number(n ast.Node, most uint64) uint32 {
	s := d.text(n)
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil || v > most {
		d.fail(n, "%.40q is no number from 0 to %d", s, most)
	}
	return uint32(v)
}

func (d *reader) prefix(n ast.Node) netip.Prefix {
	s := d.text(n)
	p, err := netip.ParsePrefix(s)
	if err != nil {
		a, aerr := netip.ParseAddr(s)
		if aerr != nil {
			d.fail(n, "%.60q is no prefix such as 10.0.1.0/24, and no address", s)
			return netip.Prefix{}
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return p.Masked()
}

// speed reads bits a second, with k, M, G or T for thousands, millions and so on.
func (d *reader) speed(n ast.Node) float64 {
	s := strings.TrimSpace(d.text(n))
	v, factor := s, 1.0
	if i := strings.IndexAny("kMGT", s[max(len(s)-1, 0):]); len(s) > 0 && i >= 0 {
		v, factor = s[:len(s)-1], [...]float64{1e3, 1e6, 1e9, 1e12}[i]
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f > 0) || f*factor > 1e18 {
		d.fail(n, "speed %.40q is no number of bits a second such as 10G or 400000000000", s)
		return 0
	}
	return f * factor
}
