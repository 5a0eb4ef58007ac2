package pathmix

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// The defaults of fields of Config that are zero.
const (
	defaultConfidence = 0.99
	defaultUnmodelled = 1e-3
	defaultCandidates = 2048
	defaultPaths      = 32
	defaultDigests    = 2048
	defaultSteps      = 1 << 16
)

// Config holds the coding of digests and the prior knowledge of the network. A path is a sequence of nodes that begins
// with the one where packets enter.
type Config struct {
	Scheme *pint.Scheme
	Nodes  []uint32   // ids of all nodes that may be on a path, no two the same
	Links  [][2]int32 // pairs of indices into Nodes; nil if nothing is known about links
	Ends   [][]int32  // sets of nodes, as indices into Nodes, that flows may name as their ingress or egress
	Loops  bool       // a path may visit a node more than once

	Confidence float64 // how sure it has to be that a path is used before it is published; above 0.5, below 1
	Unmodelled float64 // prior probability that a hop of a path differs from the links; above 0, below 1
	Candidates int     // paths of one length that are weighed; 16 to 65536
	Paths      int     // most paths of a mixture; 2 to 64
	Digests    int     // most digests of one length that are used, the last ones; 16 to 65535
	Steps      int     // nodes that an enumeration of candidates may visit; at least 1024
}

// check completes c with defaults and reports everything that is wrong with it.
func (c *Config) check() error {
	network := prior.Network{Scheme: c.Scheme, Nodes: c.Nodes, Links: c.Links, Ends: c.Ends}
	problems := network.Problems("pathmix")
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("pathmix: "+format, args...))
	}
	prior.Fallback(&c.Confidence, defaultConfidence)
	prior.Fallback(&c.Unmodelled, defaultUnmodelled)
	prior.Fallback(&c.Candidates, defaultCandidates)
	prior.Fallback(&c.Paths, defaultPaths)
	prior.Fallback(&c.Digests, defaultDigests)
	prior.Fallback(&c.Steps, defaultSteps)
	if !(c.Confidence > 0.5 && c.Confidence < 1) {
		bad("confidence %v: want above 0.5, below 1", c.Confidence)
	}
	if !(c.Unmodelled > 0 && c.Unmodelled < 1) {
		bad("unmodelled %v: want above 0, below 1", c.Unmodelled)
	}
	if c.Candidates < 16 || c.Candidates > 1<<16 {
		bad("candidates %d: want 16 to %d", c.Candidates, 1<<16)
	}
	if c.Paths < 2 || c.Paths > 64 {
		bad("paths %d: want 2 to 64", c.Paths)
	}
	if c.Digests < 16 || c.Digests >= 1<<16 {
		bad("digests %d: want 16 to %d", c.Digests, 1<<16-1)
	}
	if c.Steps < 1024 {
		bad("steps %d: want 1024 at least", c.Steps)
	}
	return errors.Join(problems...)
}

// Model is a Config made ready for use. It is safe for concurrent use.
type Model struct {
	config Config
	nodes  []uint32
	first  []int32  // neighbours of node u: peers[first[u]:first[u+1]]; nil if nothing is known about links
	peers  []uint16 // ascending
	bits   float64  // evidence in one instance of a digest
}

// NewModel checks a Config and makes it ready.
func NewModel(c Config) (*Model, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Model{config: c, nodes: slices.Clone(c.Nodes)}
	// Some dialects fill wide digests with few distinct values. Ten bits of evidence are in each of them.
	m.bits = float64(min(c.Scheme.Width(), 10))
	if c.Links != nil {
		m.first, m.peers = prior.Neighbours[uint16](len(m.nodes), c.Links)
	}
	return m, nil
}

// Config returns what the model was made of, defaults filled in.
func (m *Model) Config() Config { return m.config }

func (m *Model) neighbours(u uint16) []uint16 { return m.peers[m.first[u]:m.first[u+1]] }

// ends lists the nodes of a set by its number, 1 for the first; nil for 0 and for numbers that have no set.
func (m *Model) ends(set uint16) []int32 {
	if set == 0 || int(set) > len(m.config.Ends) {
		return nil
	}
	return m.config.Ends[set-1]
}
