package shard

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches"
)

const (
	// inline is how many hops of a path a flow refers to directly; further ones are found from block to block.
	inline = 8
	// bufferCodes is the length of a flow's buffer: 20 reports of five hops. With as much behind it as lets a report
	// write all codes of a short path at once, it makes an entry six cache lines.
	bufferCodes = 112 - inline
	// absent marks a value that a hop did not have. It is no code of quantile.Encode.
	absent = 0xffff
	// lasting is how many reports in a row make a path of a list of hops that is a part of another path. While views of
	// the whole path come too, there are fewer between two of them.
	lasting = 64
)

// flow is the state of a flow in the table, behind its key, with which pathID shares a cache line. A report reads and
// writes that line, the next one, and the one where its codes go.
type flow struct {
	pathID uint64 // of the reports in the buffer; 0 while no path is known

	last     int64
	packets  uint64
	onPath   uint32         // reports since the path is the same, at most 2³²-1
	window   uint32         // the window that inWindow and fresh belong to
	inWindow uint32         // reports in it
	gen      uint32         // generation of refs
	refs     [inline]uint16 // of the hops, into the hop table
	changes  uint32
	top      uint16 // place among the busiest flows of the window, +1
	judged   uint16 // low bits of the window in which its way was held against the policy
	hops     uint8  // length of the path, at most the maximum that is kept
	blocks   uint8  // blocks in use: those of the path, then some of former paths
	buffered uint8  // reports in the buffer
	fresh    uint8  // of those, how many belong to the window
	flags    flowFlags
	views    uint8 // reports of a part of the path since the last one of the path, at most lasting

	block [inline]uint32 // the rest is linked from the last of them

	// codes are the latency codes of the hops, report after report, until there is no room for one more.
	codes [bufferCodes + inline]uint16
}

type flowFlags uint8

const (
	postcards flowFlags = 1 << iota // the path is put together from reports of one hop each
	gaps                            // some codes in the buffer are absent
	flatTTL                         // the hops of the path do not differ in TTL
	partial                         // the path lacks hops: it is the longest part that a report held
	arrived                         // the flow is to be listed as soon as its path is known
	paired                          // the first switch reports its packets, too
	probe                           // it is one of hopscope agent
	viewed                          // views is not 0
)

type (
	entry = sketches.FlowEntry[decode.FlowKey, flow]
	table = sketches.FlowTable[decode.FlowKey, flow]
)

// column copies the buffered codes of the i-th hop, and returns the smallest and the largest of them.
func (f *flow) column(dst *[bufferCodes]uint16, i int) (codes []uint16, lo, hi uint16) {
	n, stride := int(f.buffered), int(f.hops)
	from, k := f.codes[:n*stride], 0
	lo = absent
	for at := i; at < len(from) && k < len(dst); at += stride {
		c := from[at]
		dst[k] = c
		lo, hi = min(lo, c), max(hi, c)
		k++
	}
	return dst[:k], lo, hi
}

// present removes what is absent from the buffered codes of a hop.
func (f *flow) present(codes []uint16) []uint16 {
	if f.flags&gaps != 0 {
		codes = slices.DeleteFunc(codes, func(c uint16) bool { return c == absent })
	}
	return codes
}

// hopKey is the place that a hop record is about.
func hopKey(h *decode.Hop) inference.HopKey {
	k := inference.HopKey{Node: h.NodeID, EgressIf: uint32(h.EgressIf)}
	if h.Has&decode.HopEgressIf == 0 {
		k.EgressIf = h.L2EgressIf
	}
	return k
}

// named returns r without the hops that name no node, which it counts by their exporter and position: absent is not
// node 0. The rest is no path, since it has gaps. Hops that were counted, by their place, are left out. It leaves r as
// it is, and its result is good for the batch.
func (s *State) named(r *decode.Report, counted uint64) *decode.Report {
	if !hasNameless(r.Hops) {
		return r
	}
	if s.rest.reports == nil {
		s.rest.reports = make([]decode.Report, 0, batchSize)
	}
	s.rest.reports = append(s.rest.reports, *r)
	to := &s.rest.reports[len(s.rest.reports)-1]
	from, u := len(s.rest.hops), units(r)
	for i := range r.Hops {
		if i < viewedHops && counted>>i&1 != 0 {
			continue
		}
		if h := &r.Hops[i]; h.Has&decode.HopNodeID != 0 {
			s.rest.hops = append(s.rest.hops, *h)
		} else if r.Rare == nil || r.Rare.Histogram.Of == 0 {
			s.cut.partial.AddNameless(r.Exporter, i+1, u, h)
		}
	}
	to.Hops = s.rest.hops[from:len(s.rest.hops):len(s.rest.hops)]
	to.Remarks |= decode.RemarkNameless
	return to
}

func hasNameless(hops []decode.Hop) bool {
	for i := range hops {
		if hops[i].Has&decode.HopNodeID == 0 {
			return true
		}
	}
	return false
}

// partOf compares the hops of r with the known path of f. It returns -1 if they are a part of it in one piece, and 1 if
// it is a part of them. Such packets are captured on several links of their way, or lose their telemetry before the
// end. Others come to a node again on their way. A list of hops that came alone for long is no view, but a path.
func (s *State) partOf(f *flow, r *decode.Report) int {
	n := int(f.hops)
	if n == 0 || n >= s.cfg.MaxPathLength || n == len(r.Hops) {
		return 0
	}
	known := s.hopKeys(s.former[:0], f)
	s.former = known
	s.path = s.path[:0]
	for i := range r.Hops {
		s.path = append(s.path, hopKey(&r.Hops[i]))
	}
	switch {
	case len(s.path) < n && isView(s.path, known):
		if f.views++; f.views < lasting {
			f.flags |= viewed
			return -1
		}
	case len(s.path) > n && f.onPath < lasting && isView(known, s.path):
		return 1
	}
	return 0
}

// isView reports whether part stands in whole in one piece. A way from the first node of whole to its last one is no
// view: it is the way without the loop that whole has.
func isView(part, whole []inference.HopKey) bool {
	if part[0].Node == whole[0].Node && part[len(part)-1].Node == whole[len(whole)-1].Node {
		return false
	}
	for at := range len(whole) - len(part) + 1 {
		if slices.Equal(whole[at:at+len(part)], part) {
			return true
		}
	}
	return false
}

// reportsPath reports whether the hops of r are a path, or with whole the whole path, of its packet.
func reportsPath(r *decode.Report) (path, whole bool) {
	if len(r.Hops) == 0 || r.Flags&(decode.Transit|decode.Dropped) != 0 || r.Remarks&decode.RemarkNameless != 0 {
		return false, false
	}
	switch r.Kind {
	case decode.KindStack, decode.KindProbe, decode.KindTrace:
		return true, r.WholePath()
	case decode.KindQueue: // with or without a stack
		return r.INT != 0, r.INT != 0 && r.WholePath()
	}
	return false, false
}
