package prior

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode/pint"
)

// Routing is the knowledge of how the network chooses paths, beyond its links.
type Routing uint8

// The kinds of knowledge about routing.
const (
	None     Routing = iota // nothing
	Distance                // a path is a shortest one, in hops, between its ends, and all of these are equally likely
	ECMP                    // a path is a shortest one, and every switch spreads flows evenly over its next hops
	Weights                 // a path is a shortest one by the weights of links, and all of these are equally likely
	routings
)

func (r Routing) String() string {
	if r < routings {
		return [...]string{"none", "distance", "ecmp", "weights"}[r]
	}
	return fmt.Sprintf("routing(%d)", uint8(r))
}

// The defaults of fields of Config that are zero.
const (
	defaultConfidence  = 1 - 1e-6
	DefaultUnmodelled  = 1e-3
	defaultWindow      = 128
	defaultMemoryBytes = 256 << 20
	defaultWork        = 400
)

// Config holds the inputs of a Model: the coding scheme and all that is known about paths. A path is a sequence of
// nodes that begins with the one where packets enter. A zero in a field from Confidence on stands for its default.
type Config struct {
	Scheme *pint.Scheme
	Nodes  []uint32   // ids of all nodes that may be on a path, no two the same
	Links  [][2]int32 // pairs of indices into Nodes; nil if nothing is known about links

	Routing Routing     // needs Links
	Weights [][2]uint32 // of each link from its first node to its second, and back; with the Routing of that name only
	Loops   bool        // a path may visit a node more than once; never with Routing

	// Ends are sets of nodes, as indices into Nodes, that flows may name as their ingress or egress; see pathtrace.Flow.
	Ends [][]int32

	Confidence float64 // posterior probability from which on a path counts as known; above 0.5, below 1
	Unmodelled float64 // prior probability that the path is none of the model's; above 0, below 1
	MaxHops    int     // longest path, up to pint.MaxHops

	Window      int // digests of a flow that are kept while its path is not known; 8 to 65536
	MemoryBytes int // memory of all flows of a Tracer together; at least 65536
	Work        int // steps of search, some 10 ns each, that a digest may cost on average; at least 10
}

// maxDistanceNodes lets the table of distances, a byte for each pair, fit into 64 MiB.
const maxDistanceNodes = 1 << 13

// check completes c with defaults and reports everything that is wrong with it.
func (c *Config) check() error {
	network := Network{Scheme: c.Scheme, Nodes: c.Nodes, Links: c.Links, Ends: c.Ends}
	problems := network.Problems("pathtrace")
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("pathtrace: "+format, args...))
	}
	switch {
	case c.Routing >= routings:
		bad("%v: unknown", c.Routing)
	case c.Routing != None && c.Links == nil:
		bad("routing %v without links", c.Routing)
	case c.Routing != None && c.Loops:
		bad("routing %v and loops: shortest paths have none", c.Routing)
	case c.Routing != None && len(c.Nodes) > maxDistanceNodes:
		bad("routing %v of %d nodes: want %d at most", c.Routing, len(c.Nodes), maxDistanceNodes)
	}
	c.checkWeights(bad)
	Fallback(&c.Confidence, defaultConfidence)
	Fallback(&c.Unmodelled, DefaultUnmodelled)
	Fallback(&c.MaxHops, pint.MaxHops)
	Fallback(&c.Window, defaultWindow)
	Fallback(&c.MemoryBytes, defaultMemoryBytes)
	Fallback(&c.Work, defaultWork)
	if !(c.Confidence > 0.5 && c.Confidence < 1) {
		bad("confidence %v: want above 0.5, below 1", c.Confidence)
	}
	if !(c.Unmodelled > 0 && c.Unmodelled < 1) {
		bad("unmodelled %v: want above 0, below 1", c.Unmodelled)
	}
	if c.MaxHops < 1 || c.MaxHops > pint.MaxHops {
		bad("max hops %d: want 1 to %d", c.MaxHops, pint.MaxHops)
	}
	if c.Window < 8 || c.Window > 1<<16 {
		bad("window %d: want 8 to %d", c.Window, 1<<16)
	}
	if c.MemoryBytes < 1<<16 {
		bad("memory %d bytes: want %d at least", c.MemoryBytes, 1<<16)
	}
	if c.Work < 10 {
		bad("work %d: want 10 at least", c.Work)
	}
	return errors.Join(problems...)
}
