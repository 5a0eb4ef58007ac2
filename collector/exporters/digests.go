package exporters

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/survey"
)

// DigestConfig holds the settings by which digests are read.
type DigestConfig struct {
	Nodes        string        `yaml:"nodes" doc:"Node ids of digests, as 0-127,4096. Without nodes and topology digests are only counted."`
	Topology     string        `yaml:"topology" doc:"Nodes and links of paths: a file or a generator, as for hopscope plan. Numeric names are node ids; other nodes count from 0 in file order."`
	Site         string        `yaml:"site" doc:"Site of these nodes, of exporters.sites; digests of other exporters are not read. Empty is for exporters in no site."`
	Routing      string        `yaml:"routing" doc:"Possible paths: any walk over links, distance (fewest hops), ecmp (the same in equal shares), weights (shortest by link weights in the topology)." oneof:"any|distance|ecmp|weights"`
	Edges        []DigestEdge  `yaml:"edges" doc:"Nodes where packets of some addresses enter or leave the network, for faster path inference; the longest prefix wins."`
	Plans        []string      `yaml:"plans" doc:"Execution plans of hopscope plan queries. Digests of other epochs are only counted."`
	Confidence   float64       `yaml:"confidence" doc:"Least probability at which a path is reported." range:"0.5..0.999999999999"`
	MemoryBytes  int64         `yaml:"memory_bytes" doc:"Memory for paths being traced, for each coding scheme, and for sketches of values." range:"1048576..1099511627776"`
	SearchIDs    int64         `yaml:"search_ids" doc:"Ids below which a node outside of the topology is searched. 0 disables it." range:"0..4294967295"`
	SprayBytes   int64         `yaml:"spray_bytes" doc:"Memory for digests of flows with several paths, up to 32 KiB a flow. 0 disables the inference of these paths." range:"0..1099511627776"`
	TofinoHigh   bool          `yaml:"tofino_high_half" doc:"Tofino-PINT takes the layer from the upper half of the hash of the packet id. The wrong half makes all digests strange."`
	SketchBytes  int           `yaml:"sketch_bytes" doc:"Size of the sketch of one hop of a flow, for latencies." range:"32..1024"`
	SketchWindow time.Duration `yaml:"sketch_window" doc:"Time covered by these sketches, in four rotating parts. 0 is the life of a flow, in a quarter of the memory." range:"0s..24h"`
}

// DigestEdge is the edge of the network for some addresses.
type DigestEdge struct {
	Prefix string `yaml:"prefix" doc:"Addresses of hosts, as 10.1.0.0/16."`
	Nodes  string `yaml:"nodes" doc:"Ids of the nodes that these hosts are connected to, as 14,15."`
}

// Validate checks one entry.
func (e *DigestEdge) Validate() error {
	var errs []error
	if _, err := netip.ParsePrefix(e.Prefix); err != nil {
		errs = append(errs, fmt.Errorf("prefix: %q is not a prefix such as 10.1.0.0/16", e.Prefix))
	}
	if ids, err := parseNodes(e.Nodes); err != nil {
		errs = append(errs, fmt.Errorf("nodes: %w", err))
	} else if ids == nil {
		errs = append(errs, errors.New("nodes: none"))
	}
	return errors.Join(errs...)
}

// edges makes the sets of nodes, as indices into n.Nodes, and the search among prefixes for the number of a flow's.
func (c *DigestConfig) edges(n *DigestNetwork) (sets [][]int32, ends func(*decode.FlowKey) (ingress, egress uint16), err error) {
	if n == nil || len(c.Edges) == 0 {
		return nil, nil, nil
	}
	index := make(map[uint32]int32, len(n.Nodes))
	for i, id := range n.Nodes {
		index[id] = int32(i)
	}
	type edge struct {
		prefix netip.Prefix
		set    uint16
	}
	var edges []edge
	for i, e := range c.Edges {
		prefix, err := netip.ParsePrefix(e.Prefix)
		if err != nil {
			return nil, nil, err
		}
		ids, err := parseNodes(e.Nodes)
		if err != nil {
			return nil, nil, err
		}
		var set []int32
		for _, id := range ids {
			at, ok := index[id]
			if !ok {
				return nil, nil, fmt.Errorf("edges: node %d of %s is not in the network", id, e.Prefix)
			}
			set = append(set, at)
		}
		sets = append(sets, set)
		edges = append(edges, edge{prefix.Masked(), uint16(i + 1)})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(b.prefix.Bits(), a.prefix.Bits()) })
	find := func(a netip.Addr) uint16 {
		for i := range edges {
			if edges[i].prefix.Contains(a) {
				return edges[i].set
			}
		}
		return 0
	}
	return sets, func(k *decode.FlowKey) (ingress, egress uint16) { return find(k.SrcAddr()), find(k.DstAddr()) }, nil
}

// DefaultDigestConfig returns settings that decode nothing until the nodes are set.
func DefaultDigestConfig() DigestConfig {
	return DigestConfig{Routing: "any", Confidence: 0.999999, MemoryBytes: 64 << 20, SprayBytes: 8 << 20, SearchIDs: survey.DefaultIDs, SketchBytes: aggregation.DefaultConfig().Bytes}
}

// Reads reports whether the settings define the meaning of digests.
func (c *DigestConfig) Reads() bool { return c.Nodes != "" || c.Topology != "" || len(c.Plans) > 0 }

// maxDigestNodes bounds the nodes that are kept of a list.
const maxDigestNodes = 1 << 16

// Validate checks the list of nodes.
func (c *DigestConfig) Validate() error {
	var errs []error
	if _, err := parseNodes(c.Nodes); err != nil {
		errs = append(errs, fmt.Errorf("nodes: %w", err))
	}
	if c.Nodes != "" && c.Topology != "" {
		errs = append(errs, errors.New("topology: nodes are given too; one of them says what the nodes are"))
	}
	if c.Topology == "" && c.Routing != "any" {
		errs = append(errs, fmt.Errorf("routing: %s needs a topology", c.Routing))
	}
	return errors.Join(errs...)
}

// parseNodes reads "0-127,4096" into increasing ids.
func parseNodes(list string) (ids []uint32, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := strconv.ParseUint(from, 10, 32)
		hi := lo
		if err == nil && isRange {
			hi, err = strconv.ParseUint(to, 10, 32)
		}
		switch {
		case err != nil || hi < lo:
			return nil, fmt.Errorf("%q is no node id and no range such as 0-127", part)
		case hi-lo >= maxDigestNodes || len(ids)+int(hi-lo) >= maxDigestNodes:
			return nil, fmt.Errorf("more than %d nodes", maxDigestNodes)
		}
		for id := lo; id <= hi; id++ {
			ids = append(ids, uint32(id))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// DigestNetwork is the network that paths can lead over.
type DigestNetwork struct {
	Nodes   []uint32    // ids
	Links   [][2]int32  // by index into Nodes; none: any node can follow any other
	Labels  []string    // names of Nodes, for people; none where they are numbers
	Weights [][2]uint32 // of each link from its first node to its second, and back; only routing by weights asks for them
}

// Names are the labels of a network, whose nodes have the numbers from a base on.
func (n *DigestNetwork) Names(base uint32) *names.Names {
	if len(n.Labels) == 0 {
		return nil
	}
	var nodes []names.Node
	for i, id := range n.Nodes {
		nodes = append(nodes, names.Node{ID: base | id, Name: n.Labels[i]})
	}
	return names.New(nodes, nil, nil)
}

// NodeIDs lists the nodes that the settings name. Load reads the network of a topology.
func (c *DigestConfig) NodeIDs(load func(topology string) (*DigestNetwork, error)) ([]uint32, error) {
	n, err := c.network(load)
	if n == nil {
		return nil, err
	}
	return n.Nodes, err
}

// network returns the nodes and links of the settings. It is nil where they name none.
func (c *DigestConfig) network(load func(topology string) (*DigestNetwork, error)) (*DigestNetwork, error) {
	switch {
	case c.Topology == "":
		ids, err := parseNodes(c.Nodes)
		if err != nil || ids == nil {
			return nil, err
		}
		return &DigestNetwork{Nodes: ids}, nil
	case load == nil:
		return nil, fmt.Errorf("topology %s: this program reads no topologies", c.Topology)
	}
	n, err := load(c.Topology)
	if err == nil && len(n.Nodes) > maxDigestNodes {
		return nil, fmt.Errorf("topology %s: %d nodes, more than %d", c.Topology, len(n.Nodes), maxDigestNodes)
	}
	return n, err
}

// sketchPanes is how many parts a window of sketches has.
const sketchPanes = 4

// hpccBase is that of digests of one byte in the experiments of HPCC-PINT.
const hpccBase = 1.05

// DigestInputs holds the inputs for digests beside the settings. Network and Plans override the settings. LoadNetwork
// and LoadPlan read the ones that the settings name.
type DigestInputs struct {
	Network     *DigestNetwork
	Plans       []*pint.Plan
	LoadNetwork func(topology string) (*DigestNetwork, error)
	LoadPlan    func(file string) (*pint.Plan, error)
	Log         *slog.Logger

	Follows []*pint.Plan // set by Shards: Plans and those of the settings
}

// Shards makes n of so many shards, which divide the memory of digests, and hold paths against a policy.
func (c *DigestConfig) Shards(n, all int, flows shard.Config, seed uint64, sites *Sites, ways *inference.Policy, in *DigestInputs) (list []*shard.State, err error) {
	d, err := c.digests(in, all, sites)
	if err != nil {
		return nil, err
	}
	for range n {
		s := shard.New(flows, seed)
		if err := s.ReadDigests(d, seed); err != nil {
			return nil, fmt.Errorf("pint: %w", err)
		}
		s.Judge(ways)
		list = append(list, s)
	}
	return list, nil
}

// digests makes the inputs with which each shard decodes digests. Set inputs override the settings.
func (c *DigestConfig) digests(opt *DigestInputs, shards int, sites *Sites) (d digest.Config, err error) {
	n := opt.Network
	if n == nil {
		if n, err = c.network(opt.LoadNetwork); err != nil {
			return d, fmt.Errorf("pint: %w", err)
		}
	}
	var nodes []uint32
	if n != nil {
		nodes = n.Nodes
	}
	mapped, err := sites.OfMap(c.Site, nodes)
	if err != nil {
		return d, err
	}
	if c.Reads() || n != nil || len(opt.Plans) > 0 {
		d.Read = sites.Digests(mapped, opt.Log)
	}
	sets, ends, err := c.edges(n)
	if err != nil {
		return d, fmt.Errorf("pint: %w", err)
	}
	d.Ends, d.SearchIDs = ends, uint32(c.SearchIDs)
	if d.Base = uint32(mapped) << names.NodeBits; d.Base != 0 {
		d.SearchIDs = min(d.SearchIDs, 1<<names.NodeBits)
	}
	plans := slices.Clone(opt.Plans)
	for _, file := range c.Plans {
		if opt.LoadPlan == nil {
			return d, fmt.Errorf("pint: plan %s: this program reads no plans", file)
		}
		p, err := opt.LoadPlan(file)
		if err != nil {
			return d, fmt.Errorf("pint: %w", err)
		}
		plans = append(plans, p)
	}
	opt.Follows = plans
	model := func(s *pint.Scheme) (m *prior.Model) {
		if n == nil || err != nil {
			return nil
		}
		routing := map[string]prior.Routing{"any": prior.None, "distance": prior.Distance, "ecmp": prior.ECMP, "weights": prior.Weights}[c.Routing]
		var weights [][2]uint32
		if routing == prior.Weights {
			weights = n.Weights
		}
		m, err = prior.NewModel(prior.Config{
			Scheme: s, Nodes: n.Nodes, Links: n.Links, Routing: routing, Weights: weights, Ends: sets, Confidence: c.Confidence,
			MemoryBytes: int(c.MemoryBytes / int64(shards)),
		})
		return m
	}
	d.Mininet, d.Tofino = model(pint.Mininet()), model(pint.Tofino(c.TofinoHigh))
	for _, p := range plans {
		x := digest.Plan{Plan: p, Models: make([]*prior.Model, len(p.Queries)), Loads: make([]*aggregation.LoadTracker, len(p.Queries))}
		for i := range p.Queries {
			switch q := &p.Queries[i]; {
			case q.Aggregation == pint.Static && q.Value == pint.NodeValue:
				err = cmp.Or(err, idsFit(q, nodes))
				x.Models[i] = model(q.Scheme)
			case q.Aggregation == pint.PerPacket && q.Value == pint.UtilizationValue && q.Function == pint.Max && err == nil:
				x.Loads[i], err = aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), q.Code)
			}
		}
		d.Plans = append(d.Plans, x)
	}
	hpcc, herr := pint.NewHPCC(hpccBase)
	if err = cmp.Or(err, herr); err != nil {
		return d, err
	}
	if d.Utilization, err = aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), hpcc); err != nil {
		return d, err
	}
	d.SprayBytes = c.SprayBytes / int64(shards)
	d.Values = aggregation.DefaultConfig()
	d.Values.Bytes = c.SketchBytes
	if c.SketchWindow > 0 {
		d.Values.Panes, d.Values.PaneTime = sketchPanes, max(c.SketchWindow/sketchPanes, 1)
	}
	pools := 0
	for _, p := range plans {
		pools += digest.Pools(p)
	}
	d.Values.Hops = max(1, int(c.MemoryBytes)/shards/max(pools, 1)/(d.Values.Bytes*d.Values.Panes+16))
	return d, nil
}

// idsFit returns an error if nodes have ids that the digests of a query have no room for.
func idsFit(q *pint.Query, nodes []uint32) error {
	room := q.Scheme.Config().ValueBits
	if i := slices.IndexFunc(nodes, func(id uint32) bool { return room > 0 && uint64(id)>>room != 0 }); i >= 0 {
		return fmt.Errorf("query %s: its digests carry ids of %d bits, and node %d needs more", q.Name, room, nodes[i])
	}
	return nil
}
