package decode

import "slices"

// StackBytes is the size of the longest INT stack of a [Lazy] in its short form.
const StackBytes = 256

// Lazy is a report on its way through the pipeline that is decoded on demand, in one of two forms. The general form
// is a [Report]. The short form holds the values in which reports of one [Shape] differ, and their INT stack as on
// the wire. It takes a quarter of the memory, and a batch as much less of the cache. [Lazy.Report] returns the
// general form of both.
//
// A lazy report owns all of its bytes in the short form. In the general form the report's slices alias the bytes that
// were decoded.
type Lazy struct {
	Time  int64  // receive time, ns since 1970
	Hash  uint64 // of Flow: [HashKey.Flow] of the collector's key; 0 is not yet computed
	Flow  FlowKey
	Shape *Shape // nil in the general form, in which Time, Exporter, To and Sum are the only fields that are set

	Exporter   Addr
	To         uint64 // see [Destination]
	NodeID     uint32
	Seq        uint32
	HeaderTime uint32
	Sum        uint32 // of the bytes of its datagram: [Sum]. In both forms
	PacketID   uint16
	TTL        uint8
	HWID       uint8
	Copy       bool // of a report that came before, as its number and its bytes prove
	Alike      bool // its number and its bytes came before, and it counts: nothing proves that it is a copy
	Cut        bool // the datagram was cut before its subject: [Report.CutShort]. Always in the general form
	Waits      bool // nothing but an empty place: the report itself waits elsewhere
	expanded   bool // report is the general form of the short one
	report     *Report

	Stack [StackBytes]byte // Shape.Hops blocks of Shape.Stride bytes, the newest hop first
}

// Shape is the common part of reports whose bytes differ only in addresses, ports, identifiers, sequence numbers,
// consistent lengths, and values of the INT stack. Each block of the stack begins with a node, its level 1
// interfaces, a latency and a queue, 16 bytes. The one block of a postcard is as its format has it. A shape never
// changes.
type Shape struct {
	Common Report // the fields that all reports of the shape share; without hops and without Rare
	Hops   int    // blocks in the stack
	Stride int    // bytes of a block

	// Timed: blocks hold the times at which packets left a node.
	Timed bool
	// Blocks reads stack into hops, oldest hop first.
	Blocks func(hops []Hop, stack []byte, stride int)
}

// Report is the general form of r. It belongs to r and is valid until r is used again.
func (r *Lazy) Report() *Report {
	s, to := r.Shape, r.report
	switch {
	case s == nil:
		return to
	case r.expanded:
		to.FlowHash = r.Hash // which may have been computed meanwhile
		return to
	}
	if to == nil {
		to = &Report{Hops: make([]Hop, 0, 8)}
		r.report = to
	}
	if to.Rare != nil {
		to.trim()
	}
	hops, kept := to.Hops[:0], to.kept
	*to = s.Common
	to.Hops, to.kept = hops, kept
	to.Time, to.FlowHash, to.Flow, to.Exporter, to.To = r.Time, r.Hash, r.Flow, r.Exporter, r.To
	to.NodeID, to.Seq, to.HeaderTime, to.PacketID, to.TTL, to.HWID = r.NodeID, r.Seq, r.HeaderTime, r.PacketID, r.TTL, r.HWID
	s.Blocks(to.Grow(s.Hops), r.Stack[:s.Hops*s.Stride], s.Stride)
	r.expanded = true
	return to
}

// Clear reports whether all is read that r was read from, as its shape alone shows: it is about a node, which it names.
func (r *Lazy) Clear() bool { return r.Shape != nil && r.Shape.Common.Postcard() }

// Generalize turns r into its general form, for those that change its report.
func (r *Lazy) Generalize() {
	r.report, r.Shape = r.Report(), nil
}

// SetTo sets where the datagram was sent to, in both forms.
func (r *Lazy) SetTo(to uint64) {
	r.To = to
	if r.Shape == nil || r.expanded {
		r.report.To = to
	}
}

// LazyBatch is a reusable list of lazy reports. Like a [Batch], it allocates nothing once it has grown to the size of
// the traffic.
type LazyBatch struct {
	// List is valid until Reset. The capacity behind its end holds lazy reports to be used again, or nil.
	List []*Lazy
	// Cut is that of [Batch].
	Cut uint64
}

// Next appends a lazy report, whose fields are left over from an earlier one: the caller overwrites all but Stack.
func (b *LazyBatch) Next() *Lazy {
	n := len(b.List)
	if n == cap(b.List) {
		b.List = slices.Grow(b.List, 1)
		clear(b.List[n:cap(b.List)])
	}
	b.List = b.List[:n+1]
	r := b.List[n]
	if r == nil {
		r = new(Lazy)
		b.List[n] = r
	}
	r.Hash, r.expanded, r.Copy, r.Alike, r.Cut, r.Waits = 0, false, false, false, false, false
	return r
}

// AppendBatch appends the reports of a batch, which gets unused ones for them.
func (b *LazyBatch) AppendBatch(from *Batch) {
	b.Cut += from.Cut
	for i, r := range from.Reports {
		to := b.Next()
		from.Reports[i], to.report = to.report, r
		to.Shape, to.Time, to.Exporter, to.To = nil, r.Time, r.Exporter, r.To
		to.Copy = r.Remarks&RemarkCopy != 0
	}
}

// SetSum sets the sum of the last n reports.
func (b *LazyBatch) SetSum(n int, sum uint32) {
	for _, r := range b.List[len(b.List)-n:] {
		r.Sum = sum
	}
}

// Scatter is [Batch.Scatter] of lazy reports.
func (b *LazyBatch) Scatter(pick func(*Lazy) *LazyBatch) {
	for i, r := range b.List {
		dst := pick(r)
		if dst == nil {
			continue
		}
		b.List[i] = exchange(&dst.List, r)
	}
	b.List = b.List[:0]
}

// Reset empties the list. The lazy reports that were in it will be handed out again.
func (b *LazyBatch) Reset() { b.List, b.Cut = b.List[:0], 0 }
