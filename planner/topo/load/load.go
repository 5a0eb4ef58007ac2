package load

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// maxFile bounds what is read of a topology file, after decompression.
const maxFile = 256 << 20

// maxLine bounds a line of the line-oriented formats.
const maxLine = 64 << 10

// Formats describes the files that Load accepts, for help texts.
const Formats = "GML (.gml), GraphML (.graphml), Repetita (.graph), YAML (.yaml), containerlab (.yaml), SNDlib (.txt, .xml), BRITE (.brite), edge list (.edges, .txt), each also with .gz"

// Error is a problem in a topology or demands file.
type Error struct {
	Kind string // of file: "demands", "agents", or empty for a topology
	File string
	Line int // from 1; 0 if the problem is of the whole file
	Err  error
}

func (e *Error) Error() string {
	kind := cmp.Or(e.Kind, "topology")
	if e.Line == 0 {
		return fmt.Sprintf("%s %s: %v", kind, e.File, e.Err)
	}
	return fmt.Sprintf("%s %s:%d: %v", kind, e.File, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Topology returns the topology that spec stands for: what a generator makes ([topo.Generators]), or a file ([Formats]).
func Topology(spec string) (*topo.Graph, error) {
	if topo.IsGenerator(spec) {
		return topo.Parse(spec)
	}
	f, err := os.Open(spec)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the error names the path already
		}
		if kind, _, ok := strings.Cut(spec, ":"); ok && errors.Is(err, fs.ErrNotExist) && kind != "" {
			return nil, fmt.Errorf("topology %s: neither a file nor one of %s", spec, topo.Generators)
		}
		return nil, &Error{File: spec, Err: err}
	}
	defer f.Close()
	return Read(spec, f)
}

// Read reads a topology file. Its name becomes the graph's name, and the suffix selects the format. Without a known
// suffix, the beginning of the content does. Parallel links and links from a node to itself are kept. Every error is an
// [Error].
//
// The YAML of hopscope is:
//
//	name: lab                     # optional
//	nodes:
//	  - name: leaf-1
//	    tier: edge                # edge, aggregation, core or none
//	    host_ports: [1, 2]        # interfaces that lead out of the graph
//	  - spine-1                   # a name alone will do
//	  - {name: h1, host: true}    # forwards nothing: probes only begin and end there
//	  - {name: spine-2, longitude: -74.0, latitude: 40.7}
//	links:
//	  - a: leaf-1
//	    b: spine-1
//	    a_port: 3                 # ports are given out from 1 where left out
//	    b_port: 1
//	    weight: 10                # for shortest paths, 1 where left out
//	    cost: 5                   # of sending, in any unit
//	    bandwidth_gbps: 100
//	    delay: 10us
//	    reverse: {weight: 20}     # where the direction from b to a differs
//	  - [leaf-1, spine-2]         # two names alone will do
//	agents:                       # as [Agents] reads them
//	  - {name: a1, node: leaf-1, port: 1, send: 10, receive: 10}
//
// Keys that are not listed are errors. Nodes must be listed; anchors and aliases are not read.
func Read(name string, r io.Reader) (*topo.Graph, error) {
	in, base, err := open(name, r)
	if err != nil {
		return nil, &Error{File: name, Err: err}
	}
	l := newLoader(name)
	read := readWords
	switch strings.ToLower(filepath.Ext(base)) {
	case ".gml":
		read = readGML
	case ".graphml", ".xml":
		read = readGraphML
	case ".graph":
		read = readRepetita
	case ".yaml", ".yml":
		read = readYAML
	case ".edges", ".edgelist":
		read = readEdgeList
	case ".txt":
		switch magic, _ := in.Peek(9); {
		case bytes.HasPrefix(magic, []byte("?SNDlib")):
			read = readSNDlib
		case string(magic) == "Topology:":
			read = readBRITE
		}
	case ".brite":
		read = readBRITE
	default:
		read = sniff(in)
	}
	if err := read(l, in); err != nil {
		return nil, l.inFile("", err)
	}
	return l.build()
}

// inFile makes an error of a file one that names it.
func (l *loader) inFile(kind string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{Kind: kind, File: l.file, Err: err}
	}
	e.Kind = kind
	return err
}

// open unpacks and bounds r, and returns the name without its .gz.
func open(name string, r io.Reader) (*bufio.Reader, string, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	base, _ := strings.CutSuffix(name, ".gz")
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, "", err
		}
		in = bufio.NewReaderSize(z, 64<<10)
	}
	return bufio.NewReaderSize(&bounded{r: in, left: maxFile}, 64<<10), base, nil
}

// bounded fails, rather than ends, where the limit is reached: half a topology must not pass for a whole one.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) > b.left {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("more than %d MB", maxFile>>20)
	}
	return n, err
}

func sniff(in *bufio.Reader) func(*loader, io.Reader) error {
	head, _ := in.Peek(4096)
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for len(head) > 0 { // leading comments and blank lines say nothing
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		line = bytes.TrimSpace(line)
		words := bytes.Fields(line)
		switch {
		case len(line) == 0 || line[0] == '#':
		case line[0] == '<':
			return readGraphML
		case string(words[0]) == "Topology:":
			return readBRITE
		case string(words[0]) == "?SNDlib":
			return readSNDlib
		case string(words[0]) == "NODES":
			return readRepetita
		case string(words[0]) == "graph" || string(words[0]) == "Creator":
			return readGML
		case slices.Contains([]string{"nodes:", "links:", "name:", "topology:", "prefix:", "mgmt:", "---"}, string(words[0])):
			return readYAML
		default:
			return readWords
		}
		head = rest
	}
	return readWords
}

// lines walks the lines of r, numbered from 1, without their ends.
func lines(file string, r io.Reader, each func(n int, line string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	n := 0
	for s.Scan() {
		n++
		line := s.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if err := each(n, line); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line longer than %d bytes", maxLine)
		}
		return &Error{File: file, Line: n + 1, Err: err}
	}
	return nil
}
