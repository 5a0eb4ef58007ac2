package load

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// latin1 reads the character sets of one byte that are in use: each byte of ISO-8859-1 is the character of its number.
func latin1(charset string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "us-ascii":
	default:
		return nil, fmt.Errorf("character set %q is none of UTF-8, ISO-8859-1 and US-ASCII", charset)
	}
	b, err := io.ReadAll(r)
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = rune(c)
	}
	return strings.NewReader(string(text)), err
}

// readGraphML reads GraphML (graphdrawing.org, 2002) as far as networks use it: one graph, flat, of nodes and edges. Data
// of nodes named label or as [setPlace] has it are read, and of edges what [readGML] reads of them too; all others are
// ignored. A directed edge is one direction; it joins one that leads back, and where there is none
// the other direction is like it. A file whose first element is network is one of SNDlib.
func readGraphML(l *loader, r io.Reader) error {
	d := xml.NewDecoder(r)
	d.CharsetReader = latin1
	p := graphMLParser{l: l, d: d, keys: map[string]string{}, weights: map[string]string{}}
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return p.fault(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if !p.begun && t.Name.Local == "network" {
				return p.readSNDlib()
			}
			p.begun = true
			err = p.start(t)
		case xml.EndElement:
			err = p.end(t)
		case xml.CharData:
			if p.key != "" {
				if len(p.text)+len(t) > maxLine {
					err = p.errorf("data longer than %d bytes", maxLine)
				}
				p.text = append(p.text, t...)
			}
		}
		if err != nil {
			return err
		}
	}
	if !p.graph {
		return errors.New("no graph element, as GraphML has, and no network, as SNDlib has")
	}
	return p.finish()
}

type graphMLParser struct {
	l        *loader
	d        *xml.Decoder
	keys     map[string]string // id of a key to its attribute name
	weights  map[string]string // defaults of edges, by attribute name
	begun    bool              // the first element was read
	graph    bool
	directed bool

	inNode, inEdge bool
	id, label      string
	place          [2]string // longitude, latitude
	speed          speed
	edge           graphMLEdge
	line           int
	key            string // of the data or default element that is open
	keyFor         string // kind of element that the open key is for
	keyID          string
	text           []byte
	edges          []graphMLEdge
}

type graphMLEdge struct {
	source, target string
	directed       bool
	attr           topo.Attr
	line           int
}

// fault makes an error of the decoder one that names the line.
func (p *graphMLParser) fault(err error) error {
	if err == nil {
		return nil
	}
	line, _ := p.d.InputPos()
	if e, ok := errors.AsType[*xml.SyntaxError](err); ok {
		line, err = e.Line, errors.New(e.Msg)
	}
	return &Error{File: p.l.file, Line: line, Err: err}
}

func (p *graphMLParser) errorf(format string, args ...any) error {
	line, _ := p.d.InputPos()
	return p.l.errorf(line, format, args...)
}

func attr(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (p *graphMLParser) start(t xml.StartElement) error {
	switch t.Name.Local {
	case "key":
		p.keyID, p.keyFor = attr(t, "id"), attr(t, "for")
		p.keys[p.keyID] = attr(t, "attr.name")
	case "default":
		p.key, p.text = "default", p.text[:0]
	case "graph":
		if p.graph {
			return p.errorf("a second graph, or one inside a node; only one flat graph is read")
		}
		p.graph, p.directed = true, attr(t, "edgedefault") == "directed"
	case "hyperedge":
		return p.errorf("a hyperedge; links join two nodes")
	case "node":
		if p.inNode || p.inEdge {
			return p.errorf("a node inside another element")
		}
		p.inNode, p.id, p.label, p.place = true, attr(t, "id"), "", [2]string{}
		p.line, _ = p.d.InputPos()
		if p.id == "" {
			return p.errorf("node without an id")
		}
	case "edge":
		if p.inNode || p.inEdge {
			return p.errorf("an edge inside another element")
		}
		p.inEdge, p.speed = true, speed{}
		line, _ := p.d.InputPos()
		p.edge = graphMLEdge{source: attr(t, "source"), target: attr(t, "target"), directed: p.directed, attr: topo.DefaultAttr, line: line}
		if s := attr(t, "directed"); s != "" {
			p.edge.directed = s == "true" || s == "1"
		}
		if p.edge.source == "" || p.edge.target == "" {
			return p.errorf("edge without a source or target")
		}
		for name, value := range p.weights {
			if err := p.edgeData(name, value); err != nil {
				return p.errorf("default of a key: %w", err)
			}
		}
	case "data":
		if p.inNode || p.inEdge {
			p.key, p.text = attr(t, "key"), p.text[:0]
			if name := p.keys[p.key]; name != "" {
				p.key = name
			}
		}
	}
	return nil
}

func (p *graphMLParser) end(t xml.EndElement) error {
	text := strings.TrimSpace(string(p.text))
	switch t.Name.Local {
	case "default":
		if name := p.keys[p.keyID]; p.keyFor == "edge" && name != "" {
			p.weights[name] = text
		}
		p.key = ""
	case "data":
		if p.inNode {
			if p.key == "label" {
				p.label = text
			}
			setPlace(&p.place, p.key, text)
		}
		if p.inEdge {
			if err := p.edgeData(p.key, text); err != nil {
				return p.errorf("%w", err)
			}
		}
		p.key = ""
	case "node":
		p.inNode = false
		n, err := p.l.node(p.line, p.id, p.label, topo.NoTier)
		if err != nil {
			return err
		}
		return p.l.place(p.line, n, p.place[0], p.place[1])
	case "edge":
		p.inEdge = false
		p.speed.set(&p.edge.attr)
		if len(p.edges) == topo.MaxLinks {
			return p.errorf("more than %d edges", topo.MaxLinks)
		}
		p.edges = append(p.edges, p.edge)
	}
	return nil
}

// edgeData reads a property of the open edge.
func (p *graphMLParser) edgeData(name, value string) error {
	switch name {
	case "LinkSpeed":
		p.speed.value = value
	case "LinkSpeedUnits":
		p.speed.unit = value
	}
	return setAttr(&p.edge.attr, name, value)
}

func (p *graphMLParser) finish() error {
	for _, e := range p.edges {
		a, err := p.l.lookup(e.line, e.source)
		if err != nil {
			return err
		}
		b, err := p.l.lookup(e.line, e.target)
		if err != nil {
			return err
		}
		if e.directed {
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
