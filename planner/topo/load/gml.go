package load

import (
	"bufio"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// maxDepth bounds how deep the lists of a GML file nest.
const maxDepth = 64

// readGML reads the Graph Modelling Language (M. Himsolt, 1996) as far as networks use it: one graph with nodes (id,
// label) and edges (source, target). From nodes it also reads the keys of [setPlace]. From edges it reads weight, cost,
// delay (microseconds) and the bandwidth. The latter is bandwidth or LinkSpeedRaw (bit/s), or else a numeric LinkSpeed
// with LinkSpeedUnits. All other keys are ignored. In a graph with "directed 1" an edge is one direction. It joins one
// that leads back; where there is none, the other direction gets the same values.
func readGML(l *loader, r io.Reader) error {
	s := &gmlScanner{l: l, in: bufio.NewReader(r), line: 1}
	p := gmlParser{gmlScanner: s}
	for {
		k, err := s.next()
		switch {
		case err == io.EOF:
			if !p.graph {
				return errors.New("no graph")
			}
			return p.finish()
		case err != nil:
			return err
		case k.kind != gmlKey:
			return l.errorf(k.line, "want a key, not %s", k)
		}
		v, err := s.value(k)
		if err != nil {
			return err
		}
		switch {
		case v.kind != '[':
		case k.text != "graph":
			err = p.skip(1)
		case p.graph:
			err = l.errorf(k.line, "a second graph")
		default:
			p.graph = true
			err = p.readGraph()
		}
		if err != nil {
			return err
		}
	}
}

type gmlParser struct {
	*gmlScanner
	graph, directed bool
	edges           []gmlEdge // nodes may follow the edges that name them
}

type gmlEdge struct {
	source, target string
	attr           topo.Attr
	line           int
}

func (p *gmlParser) readGraph() error {
	return p.list(func(k, v gmlToken) error {
		switch {
		case k.text == "node" && v.kind == '[':
			return p.readNode(k.line)
		case k.text == "edge" && v.kind == '[':
			return p.readEdge(k.line)
		case k.text == "directed":
			p.directed = v.text == "1"
		case v.kind == '[':
			return p.skip(1)
		}
		return nil
	})
}

func (p *gmlParser) readNode(line int) error {
	var id, label string
	var place [2]string // longitude, latitude
	at := line
	err := p.list(func(k, v gmlToken) error {
		switch {
		case v.kind == '[':
			return p.skip(1)
		case k.text == "id":
			id = v.text
		case k.text == "label":
			label = strings.TrimSpace(html.UnescapeString(v.text))
		case setPlace(&place, k.text, v.text):
			at = v.line
		}
		return nil
	})
	if err != nil {
		return err
	}
	if id == "" {
		return p.l.errorf(line, "node without an id")
	}
	n, err := p.l.node(line, id, label, topo.NoTier)
	if err != nil {
		return err
	}
	return p.l.place(at, n, place[0], place[1])
}

func (p *gmlParser) readEdge(line int) error {
	e := gmlEdge{attr: topo.DefaultAttr, line: line}
	var s speed
	err := p.list(func(k, v gmlToken) error {
		switch {
		case v.kind == '[':
			return p.skip(1)
		case k.text == "source":
			e.source = v.text
		case k.text == "target":
			e.target = v.text
		case k.text == "LinkSpeed":
			s.value = v.text
		case k.text == "LinkSpeedUnits":
			s.unit = v.text
		default:
			if err := setAttr(&e.attr, k.text, v.text); err != nil {
				return p.l.errorf(v.line, "%w", err)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case e.source == "" || e.target == "":
		return p.l.errorf(line, "edge without a source or target")
	case len(p.edges) == topo.MaxLinks:
		return p.l.errorf(line, "more than %d edges", topo.MaxLinks)
	}
	s.set(&e.attr)
	p.edges = append(p.edges, e)
	return nil
}

func (p *gmlParser) finish() error {
	for _, e := range p.edges {
		a, err := p.l.lookup(e.line, e.source)
		if err != nil {
			return err
		}
		b, err := p.l.lookup(e.line, e.target)
		if err != nil {
			return err
		}
		if p.directed {
			err = p.l.arc(e.line, a, b, e.attr)
		} else {
			err = p.l.link(e.line, endSpec{node: a, attr: e.attr}, endSpec{node: b, attr: e.attr})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list reads key and value pairs up to the closing bracket. A value that opens a list is each's to read.
func (p *gmlParser) list(each func(k, v gmlToken) error) error {
	for {
		k, err := p.next()
		switch {
		case err == io.EOF:
			return p.l.errorf(p.line, "the file ends inside a list")
		case err != nil:
			return err
		case k.kind == ']':
			return nil
		case k.kind != gmlKey:
			return p.l.errorf(k.line, "want a key or ], not %s", k)
		}
		v, err := p.value(k)
		if err != nil {
			return err
		}
		if err := each(k, v); err != nil {
			return err
		}
	}
}

// skip reads past a list that is not used.
func (p *gmlParser) skip(depth int) error {
	if depth > maxDepth {
		return p.l.errorf(p.line, "lists nested deeper than %d", maxDepth)
	}
	return p.list(func(_, v gmlToken) error {
		if v.kind == '[' {
			return p.skip(depth + 1)
		}
		return nil
	})
}

const (
	gmlKey    = 'k'
	gmlNumber = 'n'
	gmlString = 's'
)

type gmlToken struct {
	kind byte // gmlKey, gmlNumber, gmlString, '[' or ']'
	text string
	line int
}

func (t gmlToken) String() string {
	if t.kind == '[' || t.kind == ']' {
		return string(t.kind)
	}
	if t.kind == gmlString {
		return "a string"
	}
	return fmt.Sprintf("%q", t.text)
}

type gmlScanner struct {
	l    *loader
	in   *bufio.Reader
	line int
	buf  []byte
}

// value reads what belongs to key k.
func (s *gmlScanner) value(k gmlToken) (gmlToken, error) {
	v, err := s.next()
	switch {
	case err == io.EOF:
		return v, s.l.errorf(k.line, "the file ends behind the key %s", k.text)
	case err == nil && (v.kind == ']' || v.kind == gmlKey):
		return v, s.l.errorf(v.line, "the key %s has the value %s, want a number, a string or a list", k.text, v)
	}
	return v, err
}

func (s *gmlScanner) next() (gmlToken, error) {
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return gmlToken{}, s.fault(err)
		case c == '\n':
			s.line++
		case c == ' ' || c == '\t' || c == '\r' || c == 0xef || c == 0xbb || c == 0xbf: // the last three: byte order mark
		case c == '#':
			if err := s.comment(); err != nil {
				return gmlToken{}, err
			}
		case c == '[' || c == ']':
			return gmlToken{kind: c, line: s.line}, nil
		case c == '"':
			return s.quoted()
		default:
			return s.word(c)
		}
	}
}

func (s *gmlScanner) fault(err error) error {
	if err == io.EOF {
		return err
	}
	return &Error{File: s.l.file, Line: s.line, Err: err}
}

func (s *gmlScanner) comment() error {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return s.fault(err)
		}
		if c == '\n' {
			s.line++
			return nil
		}
	}
}

// quoted reads a string, which may go over several lines; the token has the line where it begins.
func (s *gmlScanner) quoted() (gmlToken, error) {
	t := gmlToken{kind: gmlString, line: s.line}
	s.buf = s.buf[:0]
	for {
		c, err := s.in.ReadByte()
		switch {
		case err == io.EOF:
			return t, s.l.errorf(t.line, "the file ends inside a string")
		case err != nil:
			return t, s.fault(err)
		case c == '"':
			t.text = string(s.buf)
			return t, nil
		case c == '\n':
			s.line++
		}
		if len(s.buf) == maxLine {
			return t, s.l.errorf(t.line, "string longer than %d bytes", maxLine)
		}
		s.buf = append(s.buf, c)
	}
}

// word reads a key or a number. Numbers are what does not begin with a letter, or NaN and infinities, which some
// programs write and which the reader of the attribute refuses.
func (s *gmlScanner) word(c byte) (gmlToken, error) {
	t := gmlToken{kind: gmlNumber, line: s.line}
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' {
		t.kind = gmlKey
	}
	s.buf = append(s.buf[:0], c)
	for {
		c, err := s.in.ReadByte()
		if err != nil && err != io.EOF {
			return t, s.fault(err)
		}
		if err == io.EOF || strings.IndexByte(" \t\r\n[]\"#", c) >= 0 {
			if err == nil {
				s.in.UnreadByte() // cannot fail behind a byte that was read
			}
			break
		}
		if len(s.buf) == maxLine {
			return t, s.l.errorf(t.line, "word longer than %d bytes", maxLine)
		}
		s.buf = append(s.buf, c)
	}
	t.text = string(s.buf)
	switch strings.ToLower(t.text) {
	case "nan", "inf", "infinity":
		t.kind = gmlNumber
	}
	return t, nil
}
