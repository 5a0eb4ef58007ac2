package digest

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Config configures how PINT digests are read. Digests that need a field that is nil are counted, and not read.
type Config struct {
	Mininet, Tofino *prior.Model             // of the published programs' digests
	Utilization     *aggregation.LoadTracker // of HPCC digests
	Plans           []Plan
	Values          aggregation.Config // of the sketches of a flow's hops, for one shard; its Kind follows from each query

	// SprayBytes is the memory of one shard for digests of flows that use several paths at once. 0 keeps none.
	SprayBytes int64

	// Ends returns at which sets of nodes, as numbered in prior.Config, a flow's packets enter and leave the network, 0
	// if that is not known. It may be nil.
	Ends func(*decode.FlowKey) (ingress, egress uint16)

	// Base is added to the ids of nodes in results, which are below it: digests are hashes of the ids that nodes use
	// themselves.
	Base uint32
	// Read makes the function that reports whether a report with a digest is from the network of the models. It may be
	// nil.
	Read func() func(*decode.Report) bool

	// SearchIDs is the limit below which the ids of nodes that are not on the map are searched; 0 searches none.
	SearchIDs uint32
}

// Plan is an execution plan, and what is known of paths for each of its queries.
type Plan struct {
	Plan   *pint.Plan
	Models []*prior.Model             // by query; nil for those that do not trace paths, and where nothing is known
	Loads  []*aggregation.LoadTracker // by query; nil for those that do not ask for the utilisation
}

// keepsValues reports whether the values that a query brings are kept by flow. Those of other dynamic queries count for
// the hops of the network alone.
func keepsValues(q *pint.Query) bool {
	switch q.Aggregation {
	case pint.Dynamic:
		return q.Value == pint.LatencyValue || q.Answer == pint.Frequent
	case pint.PerPacket:
		return q.Value != pint.UtilizationValue || q.Function != pint.Max // which a LoadTracker takes
	}
	return false
}

// Pools is the number of queries of a plan whose values are kept by flow, each with sketches of its own.
func Pools(p *pint.Plan) (n int) {
	for i := range p.Queries {
		if keepsValues(&p.Queries[i]) {
			n++
		}
	}
	return n
}
