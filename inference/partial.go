package inference

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// Partial is what somebody saw of one window: a shard, all shards of a process, or several processes. Partials of the
// same window are put together with [Partial.Merge], in any order and grouping, and [Partial.Window] makes the window
// of all of them. A partial has bytes ([Partial.AppendBinary], FORMAT.md), so that it can be sent and kept. The zero
// value is empty and ready.
//
// # What does not depend on the split
//
// Let the reports of a window be shared out over any number of shards, so that all reports of an exporter go to one of
// them and so do all reports of a flow, in the order of their time. Then the partials of these shards, merged in
// whatever order and grouping and sent as bytes or not, give the window that one shard would have made of all reports,
// bit for bit, as long as no table of a shard is full and no window is longer than the time after which flows are
// forgotten. Beyond that:
//
//   - Busiest flows. A shard has places for some flows (shard.Config says how many) and keeps the busiest. As long as
//     its window has no more flows than that, all is exact. Beyond, FlowBound says how many reports a flow may have had
//     that is not listed. Who has more is listed, with the exact number; its histograms lack at most that many
//     reports, the first ones of the window. Flows with just as many reports as the bound can stand in for each other.
//     The bound supposes that a flow has one owner; where the reports of a flow reach k of them, it is up to k times as
//     high.
//   - Path changes, drops and faults. A shard lists as many as its limits allow and counts the rest. Of path changes and
//     faults those that came first stay, and of drops those with the least numbers of node and reason. That does not
//     depend on the split either, as long as the limits of the shards are not below those of the window.
//   - Hops. Which hops a full table folds into the one called other depends on the order in which they came. No record
//     is lost: the sum over all hops is exact.
//
// Where the reports of an exporter or of a flow reach several collectors, nothing of that holds by itself: fleet.Cross then puts
// the merged partial right, by what [Numbers] and [Arrival] tell, and says how far.
//
// A Partial shares no memory with what was added to it, and has one user at a time.
type Partial struct {
	Start, End int64 // ns since 1970, of the earliest start and the latest end; both 0 if that is not known
	Reports    uint64
	FlowCount  uint64 // flows seen in the window, as Window.FlowCount
	FlowBound  uint64 // a flow that is not among the candidates had at most this many reports
	OtherHops  uint64 // as in Window, and so are the following
	OtherPaths uint64
	OtherDrops uint64
	OtherFlows uint64
	// OtherArrivals are arrivals that were counted and not listed.
	OtherArrivals uint64

	hops       keyed[HopKey, HopPart]
	flows      keyed[decode.FlowKey, FlowPart]
	paths      []PathChange
	pathHops   []HopKey // memory of paths
	drops      keyed[dropKey, DropStats]
	faults     keyed[faultKey, DigestFault]
	exporters  keyed[ExporterKey, ExporterStats]
	numbers    []Numbers
	runs       []Run // memory of numbers
	arrivals   []Arrival
	deviations []Deviation
	mapErrors  []MapError // memory of deviations
	losses     keyed[decode.FlowKey, FlowLoss]
	spreads    keyed[decode.FlowKey, Spread]
	links      keyed[LinkKey, LinkStats]
	strays     keyed[StrayKey, Stray]
	order      []int32 // memory of sorted
}

// HopSketch is the distributions of one place in the network.
type HopSketch struct {
	HopKey
	Latency, Queue logcode.Histogram // dense codes of nanoseconds and of bytes
}

// HopPart is what a partial knows of a place in the network.
type HopPart struct {
	HopSketch
	NoLatency      uint64 // records that told no latency; all others are in Latency
	Utilization    float64
	HasUtilization bool
}

// FlowPart is a candidate for the busiest flows: one with the reports of a window, the path at its end, and the
// distributions of the hops.
type FlowPart struct {
	Key     decode.FlowKey
	Packets uint64
	PathID  uint64
	Changes uint32
	Partial bool
	Last    int64
	Path    []HopKey    // in order
	Hops    []HopSketch // of every place on the path and perhaps of others, each once, in any order
}

type dropKey struct {
	node   uint32
	reason uint8
}

type faultKey struct {
	fault Fault
	flow  decode.FlowKey
}

// Reset makes p the empty partial and keeps its memory for the next window.
func (p *Partial) Reset() {
	for i := range p.hops.items {
		p.hops.items[i].reset()
	}
	for i := range p.flows.items {
		p.flows.items[i].Reset()
	}
	p.hops.reset()
	p.flows.reset()
	p.drops.reset()
	p.faults.reset()
	p.exporters.reset()
	p.losses.reset()
	p.links.reset()
	p.strays.reset()
	clear(p.spreads.items)
	p.spreads.reset()
	*p = Partial{
		hops: p.hops, flows: p.flows, paths: p.paths[:0], pathHops: p.pathHops[:0], drops: p.drops, faults: p.faults,
		exporters: p.exporters, numbers: p.numbers[:0], runs: p.runs[:0], arrivals: p.arrivals[:0],
		deviations: p.deviations[:0], mapErrors: p.mapErrors[:0], losses: p.losses, spreads: p.spreads, links: p.links,
		strays: p.strays, order: p.order,
	}
}

// Merge adds what q saw. It keeps nothing of q. Sums of counters wrap at 2⁶⁴, which only counts that somebody made up reach.
func (p *Partial) Merge(q *Partial) {
	p.Span(q.Start, q.End)
	p.Reports += q.Reports
	p.FlowCount += q.FlowCount
	p.FlowBound = max(p.FlowBound, q.FlowBound)
	p.OtherHops += q.OtherHops
	p.OtherPaths += q.OtherPaths
	p.OtherDrops += q.OtherDrops
	p.OtherFlows += q.OtherFlows
	for i := range q.hops.items {
		h := &q.hops.items[i]
		p.Hop(h.HopKey).merge(h)
	}
	for i := range q.flows.items {
		p.AddFlow(&q.flows.items[i])
	}
	for i := range q.paths {
		p.AddPath(&q.paths[i])
	}
	for i := range q.drops.items {
		p.AddDrops(&q.drops.items[i])
	}
	for i := range q.faults.items {
		p.AddFault(&q.faults.items[i])
	}
	p.AddExporters(q.exporters.items)
	p.OtherArrivals += q.OtherArrivals
	for i := range q.numbers {
		p.AddNumbers(&q.numbers[i])
	}
	for i := range q.arrivals {
		p.AddArrival(&q.arrivals[i])
	}
	for i := range q.deviations {
		p.AddDeviation(&q.deviations[i])
	}
	for i := range q.losses.items {
		p.AddLoss(&q.losses.items[i])
	}
	for i := range q.spreads.items {
		p.AddSpread(&q.spreads.items[i])
	}
	for i := range q.links.items {
		p.AddLink(&q.links.items[i])
	}
	for i := range q.strays.items {
		p.AddStray(&q.strays.items[i])
	}
}

// Span widens the window to one from start to end. An end of 0 says that nothing is known of it.
func (p *Partial) Span(start, end int64) {
	switch {
	case end == 0:
	case p.End == 0:
		p.Start, p.End = start, end
	default:
		p.Start, p.End = min(p.Start, start), max(p.End, end)
	}
}

// Hop gives what is known of a place in the network, to be added to. It is good until the next call of a method.
func (p *Partial) Hop(k HopKey) *HopPart {
	h, known := p.hops.at(k)
	if !known {
		h.HopKey = k
	}
	return h
}

// AddFlow adds a candidate for the busiest flows, as [FlowPart.Merge] does.
func (p *Partial) AddFlow(f *FlowPart) {
	to, _ := p.flows.at(f.Key)
	to.Merge(f)
}

// AddPath lists a path change.
func (p *Partial) AddPath(c *PathChange) {
	p.paths = append(p.paths, *c)
	to := &p.paths[len(p.paths)-1]
	to.From, to.To = share(&p.pathHops, c.From), share(&p.pathHops, c.To)
}

// AddDrops counts drops of a node for a reason.
func (p *Partial) AddDrops(d *DropStats) {
	if to, known := p.drops.at(dropKey{d.Node, d.Reason}); known {
		to.add(d)
	} else {
		*to = *d
	}
}

// AddFault counts digests of a flow that have a fault.
func (p *Partial) AddFault(d *DigestFault) {
	if to, known := p.faults.at(faultKey{d.Fault, d.Flow}); known {
		to.add(d)
	} else {
		*to = *d
	}
}

// AddExporters adds what trackers of exporters saw. An exporter belongs to one tracker: another one would see gaps where
// there are none. Where that cannot be, they also tell [Numbers].
func (p *Partial) AddExporters(all []ExporterStats) {
	for i := range all {
		if to, known := p.exporters.at(all[i].ExporterKey); known {
			to.Add(&all[i])
		} else {
			*to = all[i]
		}
	}
}

func (h *HopSketch) merge(o *HopSketch) {
	h.Latency.Merge(&o.Latency)
	h.Queue.Merge(&o.Queue)
}

func (h *HopSketch) reset() {
	h.Latency.Reset()
	h.Queue.Reset()
}

func (h *HopPart) merge(o *HopPart) {
	h.HopSketch.merge(&o.HopSketch)
	h.NoLatency += o.NoLatency
	if o.HasUtilization {
		h.Utilization, h.HasUtilization = max(h.Utilization, o.Utilization), true
	}
}

func (h *HopPart) reset() {
	h.HopSketch.reset()
	h.NoLatency, h.Utilization, h.HasUtilization = 0, 0, false
}

// Hop gives the distributions of a place on the way of f, to be added to.
func (f *FlowPart) Hop(k HopKey) *HopSketch {
	if h := f.find(k); h != nil {
		return h
	}
	return f.add(k)
}

// find gives the distributions of a place, or nil if it has none.
func (f *FlowPart) find(k HopKey) *HopSketch {
	for i := range f.Hops {
		if f.Hops[i].HopKey == k {
			return &f.Hops[i]
		}
	}
	return nil
}

// add gives empty distributions of a place that has none yet.
func (f *FlowPart) add(k HopKey) *HopSketch {
	n := len(f.Hops)
	if n < cap(f.Hops) { // Reset left what is there empty
		f.Hops = f.Hops[:n+1]
	} else {
		f.Hops = append(f.Hops, HopSketch{})
	}
	f.Hops[n].HopKey = k
	return &f.Hops[n]
}

// Merge adds what another owner knows of the same flow, or makes an empty f a copy of o: reports and distributions are
// added up, and the rest is what the one knew that saw the flow last. It keeps nothing of o. A part has at least one
// report unless it is empty.
func (f *FlowPart) Merge(o *FlowPart) {
	if f.Packets == 0 || f.compare(o) < 0 {
		f.Key, f.PathID, f.Changes, f.Partial, f.Last = o.Key, o.PathID, o.Changes, o.Partial, o.Last
		f.Path = append(f.Path[:0], o.Path...)
	}
	f.Packets += o.Packets
	for i := range o.Hops {
		h := &o.Hops[i]
		f.Hop(h.HopKey).merge(h)
	}
}

// keptHops is how many hops' distributions an empty part keeps the memory of.
const keptHops = 32

// Reset makes f empty and keeps the memory that a usual path takes.
func (f *FlowPart) Reset() {
	if cap(f.Hops) > keptHops {
		f.Hops = nil
	}
	for i := range f.Hops {
		f.Hops[i].reset()
	}
	*f = FlowPart{Path: f.Path[:0], Hops: f.Hops[:0]}
}

// SizeBytes is the memory that f holds beside itself.
func (f *FlowPart) SizeBytes() int {
	n := cap(f.Path) * int(unsafe.Sizeof(HopKey{}))
	all := f.Hops[:cap(f.Hops)]
	for i := range all {
		n += int(unsafe.Sizeof(HopKey{})) + 8 + all[i].Latency.SizeBytes() + all[i].Queue.SizeBytes()
	}
	return n
}

// compare orders what two owners know of the same flow, by when they saw it last; the other fields only make the order
// a total one.
func (f *FlowPart) compare(o *FlowPart) int {
	if c := cmp.Or(cmp.Compare(f.Last, o.Last), cmp.Compare(f.Changes, o.Changes), cmp.Compare(f.PathID, o.PathID)); c != 0 {
		return c
	}
	if f.Partial != o.Partial {
		if f.Partial {
			return -1
		}
		return 1
	}
	return slices.CompareFunc(f.Path, o.Path, HopKey.Compare)
}

func (d *DropStats) add(o *DropStats) {
	d.Count += o.Count
	d.Saw(o.Last, &o.Flow)
}

// Saw notes that a packet of flow was dropped at a time, which may be before others that were noted.
func (d *DropStats) Saw(at int64, flow *decode.FlowKey) {
	if at > d.Last || at == d.Last && flow.Compare(&d.Flow) > 0 {
		d.Last, d.Flow = at, *flow
	}
}

func (d *DigestFault) add(o *DigestFault) {
	d.Count += o.Count
	d.First = min(d.First, o.First)
	d.Saw(o.Last, o.Node)
}

// Saw notes a digest at a time, which may be before others that were noted, and the node that reported it.
func (d *DigestFault) Saw(at int64, node uint32) {
	if at > d.Last || at == d.Last && node > d.Node {
		d.Last, d.Node = at, node
	}
}

// Add adds what was counted of another exporter, or by another tracker.
func (e *ExporterStats) Add(o *ExporterStats) {
	e.Reports += o.Reports
	e.Events += o.Events
	e.Lost += o.Lost
	e.Provisional += o.Provisional
	e.Duplicated += o.Duplicated
	e.Reordered += o.Reordered
	e.Late += o.Late
	e.Down += o.Down
	e.Restarts += o.Restarts
	e.Malformed += o.Malformed
	e.Last = max(e.Last, o.Last)
	e.Sequenced = e.Sequenced || o.Sequenced
}

// share copies list to the end of memory and gives the copy.
func share[T any](memory *[]T, list []T) []T {
	n := len(*memory)
	*memory = append(*memory, list...)
	return (*memory)[n:len(*memory):len(*memory)]
}

// keyed is a list whose items are found by a key.
type keyed[K comparable, V any] struct {
	items []V
	index map[K]int32
}

// at gives the item of a key. If it is not known yet, the item is a new one: what reset left there, or zero.
func (l *keyed[K, V]) at(k K) (v *V, known bool) {
	if i, ok := l.index[k]; ok {
		return &l.items[i], true
	}
	if l.index == nil {
		l.index = map[K]int32{}
	}
	n := len(l.items)
	l.index[k] = int32(n)
	if n < cap(l.items) {
		l.items = l.items[:n+1]
	} else {
		var zero V
		l.items = append(l.items, zero)
	}
	return &l.items[n], false
}

// reset empties the list. Items that own memory are made empty before.
func (l *keyed[K, V]) reset() {
	l.items = l.items[:0]
	clear(l.index)
}

// sorted gives the indexes of items in an order, in memory.
func sorted[V any](memory *[]int32, items []V, compare func(a, b *V) int) []int32 {
	order := (*memory)[:0]
	for i := range items {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(&items[a], &items[b]) })
	*memory = order
	return order
}
