package inference

import "github.com/hopscope/hopscope/decode"

// Window is the result of one interval from Start to End, merged over all shards: the input of the detectors and of the
// stored series. Latencies are nanoseconds, queues bytes, utilisation a ratio.
type Window struct {
	Start, End int64  // ns since 1970; End is excluded
	Reports    uint64 // that were counted in it

	Hops       []HopStats       // ordered by node and egress interface
	Flows      []FlowStats      // the busiest flows of the window, busiest first
	Paths      []PathChange     // ordered by time and flow, those of a flow as it was seen to change
	Drops      []DropStats      // ordered by node and reason
	Digests    []DigestFault    // ordered by fault and flow
	Deviations []Deviation      // ordered by flow
	Exporters  []ExporterStats  // ordered by address, node and hardware id
	Losses     []FlowLoss       // ordered by flow
	Links      []LinkStats      // ordered by key
	Interfaces []InterfaceStats // whose counters came, ordered by node and number
	Nameless   []NamelessStats  // hops whose records hold no node id, ordered by exporter and position
	Probes     []ProbeStats     // what agents report of their probes, ordered by key
	Strays     []Stray          // flows off the way that their policy allows, ordered by key

	OtherHops       uint64 // hop records folded into the hop "other" because the hop table was full
	OtherPaths      uint64 // path changes that were counted and not listed
	OtherDrops      uint64 // dropped packets of nodes and reasons that were not listed one by one
	OtherFlows      uint64 // digests with a fault, of flows that were not listed one by one
	OtherDeviations uint64 // flows whose digests contradict the map, and that are not listed
	OtherLosses     uint64 // packets of flows whose losses were not listed one by one
	FlowCount       int    // flows that had reports in the window
	FlowBound       uint64 // a flow that is not in Flows had at most this many reports; 0 if all are there

	// Of a window that several collectors made, when some of them were not heard: those, and the exporters that may have
	// reported to them. Nothing follows from what such an exporter did not report.
	Missing []string
	Unheard []ExporterKey
}

// HopKey is a place in the network: a node and the interface by which packets left it.
type HopKey struct {
	Node     uint32 // its id, or its number within the program where there are sites
	EgressIf uint32 // 0 where the device did not report it
	Other    bool   // stands for all hops that had no place in the table
}

// Summary holds the figures that are kept of a distribution. Quantiles are within the relative error that
// sketches/doc.go states; Max is within the same.
type Summary struct {
	Count              uint64 // values
	P50, P90, P99, Max uint64 // in the unit of the values

	// Known where the detectors of the window are, and absent in bytes.
	Min uint64
	// Bounds are known where the values came in buckets of histograms, and nil elsewhere.
	Bounds *Bounds
}

// HopStats is one hop in one window.
type HopStats struct {
	HopKey
	Count          uint64  // hop records
	Latency, Queue Summary // ns; bytes
	Utilization    float64 // largest, 1 is a full link
	HasUtilization bool    // a device reported it

	// Known where the detectors of the window are, and absent in bytes.
	Learning  bool      // younger than its statistics need
	Judgement Judgement // whether its values were compared with the usual ones
}

// FlowStats holds the statistics of one flow. In a Window they are those of that window. In a snapshot of the tables
// they cover the whole flow, with latencies as the only values of its hops.
type FlowStats struct {
	Key     decode.FlowKey
	Packets uint64      // reports of the flow
	PathID  uint64      // hash of the hops' nodes and interfaces; 0 while no path is known
	Changes uint32      // of the path, since the flow was first seen
	Partial bool        // hops are missing: stacks of the flow are cut, or nodes were refused
	Folded  bool        // the flow has no series of its own, see window.Admission
	Last    int64       // time of the last report, ns since 1970
	Hops    []FlowHop   // of the path, first hop first
	Sights  []FlowSight // in a window: of nodes that sample packets or export flow records, at most [MostSights], those with most packets first

	// Of flows whose packets carry PINT digests, in a snapshot. Partial then means that the path is not known yet.
	Digests    uint64     // that the path was inferred from, or that were seen while it is not known
	Confidence float64    // probability that the path is right; 0 while it is not known
	Others     []FlowPath // other paths that were seen, of flows that use several in turn or at once
	Load       Load       // of the fullest link on the path
	Path       PathValue  // of whole paths, where a query asks for it
	Frequent   string     // the quantity of the hops' frequent values: latency, in ns, or queue, in bytes; "" if no query asks for them

	// Of flows that use several paths at once, shares of their packets from 0 to 1.
	Share       float64     // of those that take the path, the greatest of all paths
	Inseparable []FlowPaths // that digests cannot distinguish
	Unexplained float64     // of those that take no path of the map, or whose digests are wrong
	Unsettled   bool        // digests contradict the path: whether it is the only one is being looked for
}

// Sprayed reports whether a flow uses several paths at once.
func (f *FlowStats) Sprayed() bool { return f.Share > 0 || len(f.Inseparable) > 0 }

// FlowPath is one of several paths of a flow.
type FlowPath struct {
	Nodes      []uint32 // ids, first hop first
	Share      float64  // of the flow's packets, of paths that are used at once; else 0
	Confidence float64  // probability that the path is used
}

// FlowPaths are paths of which some are used, but the digests do not distinguish them. If it is one, it may be used or
// not.
type FlowPaths struct {
	Paths [][]uint32 // ids of their nodes, first hop first
	Share float64    // of the flow's packets that take one of them
}

// Load is the utilisation of the fullest link on a flow's path, from the digests of the last seconds. 1 is a full link.
type Load struct {
	Digests         uint64  // that the figures are of
	Last, Mean, Max float64 // of the utilisation
}

// FlowHop is one hop of a flow, in path order.
type FlowHop struct {
	HopKey
	Unknown        bool            // there is a hop, but it is not known yet which node it is
	Inferred       bool            // marked: digests specific to the hop have not confirmed it well enough; it rests on the topology
	Confidence     float64         // probability that the hop is right, of paths from digests; 0 while it is not known
	Latency, Queue Summary         // ns; bytes
	Frequent       []FrequentValue // in a snapshot, where a query asks for them; the one with the greatest share first
}

// PathValue is a value that each packet brings of its whole path.
type PathValue struct {
	Of string // "sum of latency" in ns, "max of queue" in bytes, "min of utilization" in parts of 65536; "" if there is none
	Summary
}

// FrequentValue is a value that many digests of one hop of a flow carry. The share of the digests that carry it is
// between two bounds.
type FrequentValue struct {
	Value       float64 // of the quantity that [FlowStats.Frequent] names
	Least, Most float64 // share of the digests, 0 to 1
}

// PathChange is a flow that took another path than before.
type PathChange struct {
	Time     int64 // of the first report on the other path, ns since 1970
	Flow     decode.FlowKey
	From, To []HopKey // the path before, and the path now
	PathID   uint64   // of To
	Changes  uint32   // of the flow so far, with this one
	Packets  uint64   // reports of the flow on the path that it left
	Folded   bool     // as in [FlowStats]
}

// DropStats counts drop reports of one node and reason.
type DropStats struct {
	Node   uint32         // that dropped the packets
	Reason uint8          // code of the device
	Count  uint64         // drop reports
	Last   int64          // time of the latest of them, ns since 1970
	Flow   decode.FlowKey // of the latest; of several at that time the one with the greatest key
}

// Fault is a kind of fault in the digests of a flow.
type Fault uint8

// The faults of digests.
const (
	Inconsistent Fault = iota // no path of the model can have written them
	Looping                   // a switch saw the packet come around again
)

// DigestFault counts digests of one flow that have a fault.
type DigestFault struct {
	Flow        decode.FlowKey
	Fault       Fault
	Node        uint32 // Looping: the switch that reported the latest; of several at that time the greatest. Inconsistent: the one that spoils digests, 0 if not known
	Count       uint64 // digests
	First, Last int64  // times of the earliest and the latest of them, ns since 1970
}

// ExporterKey names a sequence number space.
type ExporterKey struct {
	Addr     decode.Addr // that the datagrams come from
	Node     uint32
	HWID     uint8 // hardware id, 0 where a format has none
	Nameless bool  // the reports name no node, and Node is 0: absent is not the node whose id is 0
}

// ExporterStats holds the statistics of one exporter in one window. Unless it restarted its count, its numbers since
// the first are the sum of four counts. These are its reports here (without duplicates), the lost ones, those still
// provisional at the end of the last window, and those missed while no collector ran.
type ExporterStats struct {
	ExporterKey
	Reports uint64 // that came, copies included
	Events  uint64 // of the reports, those that only an event brings forth: drops and queues
	// Lost is the count of numbers that did not come before their time had passed, less those that came later all the
	// same. It is negative if a window takes back losses of an earlier one.
	Lost        int64
	Provisional uint64 // numbers missing at the end of the window that may yet come: neither received nor lost
	Duplicated  uint64 // came twice
	Reordered   uint64 // came after a larger number, in time: never counted as lost
	Late        uint64 // came when their time had passed
	Down        uint64 // missed while no collector ran, or seen by one that ended before it could report
	Restarts    uint64 // times that the exporter began to count anew
	Malformed   uint64 // broke a rule of their format
	Last        int64  // time of the last report, also when that is before the window
	Sequenced   bool   // false for exporters that do not count (the same number in every report)
	Folded      bool   // as in [FlowStats]
}
