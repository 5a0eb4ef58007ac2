package ioam

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// NodeLen returns the words that a node writes for a trace type, without a snapshot.
func NodeLen(kind uint32) int {
	return bits.OnesCount32(kind&sized) + bits.OnesCount32(kind&wide)
}

// trace reads a trace: a header of 8 bytes, free space if it is pre-allocated, and nodes up to its end, newest first.
func trace(r *decode.Report, kind uint8, body []byte, length, base, lengthAt int) {
	if (length-traceLen)%4 != 0 {
		r.Fail(format, "opt_data_len", lengthAt, decode.BadLength)
		return
	}
	// Namespace 16, NodeLen 5, flags 4, RemainingLen 7, trace type 24, reserved 8. Bytes that were cut off read as 0.
	var h [traceLen]byte
	have := copy(h[:], body)
	word := binary.BigEndian.Uint16(h[2:])
	s := stack{body: body, end: length, at: traceLen, stride: 4 * int(word>>11), kind: binary.BigEndian.Uint32(h[4:]) >> 8}
	remaining := int(word & 0x7f)
	if kind == TypeTrace {
		s.at += 4 * remaining
	}
	switch {
	case have >= 4 && s.at > length:
		r.Fail(format, "remaining_len", base+3, decode.BadLength)
		return
	case have >= 7 && s.stride != 4*NodeLen(s.kind), have >= 7 && s.stride == 0 && !s.snapshots() && s.at < length:
		r.Fail(format, "node_len", base+2, decode.BadWidth)
		return
	}
	if have == traceLen {
		r.Kind = decode.KindTrace
		if !s.read(r, base) {
			return
		}
	}
	if have >= 2 {
		namespace(r, body)
	}
	if have >= 4 {
		x := &r.AddRare().IOAM
		x.RemainingLen = uint8(remaining)
		x.Has |= decode.IOAMRemainingLen
		r.Flags |= decode.Flags(word>>10&1)*decode.Overflow | decode.Flags(word>>9&1)*decode.Loopback | decode.Flags(word>>8&1)*decode.Active
	}
	if have >= 7 {
		traceType(r, body)
	}
	if len(body) < length {
		r.Flags |= decode.Truncated
	}
}

// stack is the nodes of a trace, from body[at] to body[end], of which body may hold less.
type stack struct {
	body    []byte
	at, end int
	stride  int // bytes of a node without its snapshot
	kind    uint32
}

func (s *stack) snapshots() bool { return s.kind&BitSnapshot != 0 }

// read adds the nodes to r, the first hop of the path first. It adds none and gives false if they do not end where the
// option does.
func (s *stack) read(r *decode.Report, base int) bool {
	n, ok := s.count(r, base)
	if !ok {
		return false
	}
	hops, nodes := r.Grow(n), r.AddRare().IOAM.GrowNodes(n)
	for at := s.at; n > 0; n-- {
		size := s.stride
		if s.snapshots() && at+s.stride < len(s.body) {
			size += 4 + 4*int(s.body[at+s.stride])
		}
		hops[n-1] = decode.Hop{}
		h, x := &hops[n-1], &nodes[n-1]
		s.node(h, x, s.body[at:min(at+size, len(s.body))])
		if x.Has&decode.IOAMNodeIDWide != 0 && h.Has&decode.HopNodeID == 0 && x.NodeIDWide>>32 == 0 {
			h.NodeID = uint32(x.NodeIDWide) // the node has a name in statistics
			h.Has |= decode.HopNodeID
			x.Has |= decode.IOAMNodeIDTaken
		}
		at += size
	}
	return true
}

// count returns the number of nodes of which at least one value was captured, and whether all of them fit.
func (s *stack) count(r *decode.Report, base int) (n int, ok bool) {
	captured, first := len(s.body), s.firstValue()
	if !s.snapshots() {
		if s.at == s.end {
			return 0, true
		}
		all := (s.end - s.at) / s.stride
		if all*s.stride != s.end-s.at {
			r.Fail(format, "remaining_len", base+3, decode.BadStack)
			return 0, false
		}
		r.Announced = uint8(all)
		if captured >= s.end {
			return all, true
		}
		seen := max(captured-s.at, 0)
		n = seen / s.stride
		if seen%s.stride >= first {
			n++
		}
		return n, true
	}
	for at := s.at; at < s.end; {
		last := at + s.stride                     // where the length of the snapshot is
		if last >= captured && captured < s.end { // how many nodes follow is not known
			if captured-at >= first {
				n++
			}
			return n, true
		}
		if last+4 > s.end { // a node that ends before its snapshot lacks the byte behind the option
			r.Fail(format, "snapshot_length", base+min(last, s.end), decode.BadLength)
			return 0, false
		}
		size := s.stride + 4 + 4*int(s.body[last])
		if at+size > s.end {
			r.Fail(format, "snapshot_length", base+last, decode.BadLength)
			return 0, false
		}
		if captured-at < min(size, first) {
			return n, true
		}
		n++
		at += size
	}
	r.Announced = uint8(n)
	return n, true
}

// firstValue returns where in a node the first value ends that is more than padding. A snapshot is behind all other
// values, so that a first snapshot is whole only with its node.
func (s *stack) firstValue() (end int) {
	for bit := uint32(BitNodeID); bit&sized != 0; bit >>= 1 {
		switch {
		case s.kind&bit == 0:
			continue
		case bit&wide != 0:
			return end + 8
		}
		end += 4
		if bit&(BitChecksum|undefined) == 0 {
			return end
		}
	}
	return s.stride + 4*256
}

// node reads the values of a node that are whole in b. All ones mean that the node has no such value.
func (s *stack) node(h *decode.Hop, x *decode.IOAMNode, b []byte) {
	be := binary.BigEndian
	for kind := s.kind & sized; kind != 0; {
		bit := uint32(1) << (bits.Len32(kind) - 1)
		kind &^= bit
		size := 4
		if bit&wide != 0 {
			size = 8
		}
		if len(b) < size {
			return
		}
		if size == 8 {
			wideValue(x, bit, be.Uint64(b))
		} else {
			value(h, x, bit, be.Uint32(b))
		}
		b = b[size:]
	}
	if !s.snapshots() || len(b) < 4 {
		return
	}
	head := be.Uint32(b)
	if opaque := b[4:]; len(opaque) == 4*int(head>>24) {
		if head&0xffffff != 0xffffff {
			x.SchemaID = head & 0xffffff
			x.Has |= decode.IOAMSchemaID
		}
		if len(opaque) > 0 {
			x.Opaque = opaque[:len(opaque):len(opaque)]
			x.Has |= decode.IOAMOpaque
		}
	}
}

// value keeps a value of 4 bytes. The checksum complement and undefined values have no place.
func value(h *decode.Hop, x *decode.IOAMNode, bit, v uint32) {
	const none = 0xffffffff
	switch bit {
	case BitNodeID:
		if limit := uint8(v >> 24); limit != 0xff {
			x.HopLimit = limit
			x.Has |= decode.IOAMHopLimit
		}
		if id := v & 0xffffff; id != 0xffffff {
			h.NodeID = id
			h.Has |= decode.HopNodeID
		}
		return
	case BitInterfaces:
		if in := uint16(v >> 16); in != 0xffff {
			h.IngressIf = in
			h.Has |= decode.HopIngressIf
		}
		if out := uint16(v); out != 0xffff {
			h.EgressIf = out
			h.Has |= decode.HopEgressIf
		}
		return
	}
	if v == none {
		return
	}
	switch bit {
	case BitSeconds:
		x.IngressSeconds = v
		x.Has |= decode.IOAMIngressSeconds
	case BitFraction:
		x.IngressFraction = v
		x.Has |= decode.IOAMIngressFraction
	case BitTransitDelay:
		h.Latency = v
		h.Has |= decode.HopLatency
	case BitNamespaceData:
		x.NamespaceData = v
		x.Has |= decode.IOAMNamespaceData
	case BitQueueDepth:
		h.QueueOccupancy = v
		h.Has |= decode.HopQueueOccupancy
	case BitBufferOccupancy:
		h.BufferOccupancy = v
		h.Has |= decode.HopBufferOccupancy
	}
}

// wideValue keeps a value of 8 bytes.
func wideValue(x *decode.IOAMNode, bit uint32, v uint64) {
	const id = 1<<56 - 1
	switch bit {
	case BitNodeIDWide:
		if limit := uint8(v >> 56); limit != 0xff && x.Has&decode.IOAMHopLimit == 0 { // that of the narrow id counts
			x.HopLimit = limit
			x.Has |= decode.IOAMHopLimit
		}
		if v&id != id {
			x.NodeIDWide = v & id
			x.Has |= decode.IOAMNodeIDWide
		}
	case BitInterfacesWide:
		if in := uint32(v >> 32); in != 0xffffffff {
			x.IngressIfWide = in
			x.Has |= decode.IOAMIngressIfWide
		}
		if out := uint32(v); out != 0xffffffff {
			x.EgressIfWide = out
			x.Has |= decode.IOAMEgressIfWide
		}
	case BitNamespaceDataWide:
		if v != 1<<64-1 {
			x.NamespaceDataWide = v
			x.Has |= decode.IOAMNamespaceDataWide
		}
	}
}
