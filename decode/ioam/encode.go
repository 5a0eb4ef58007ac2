package ioam

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode"
)

// The errors of the encoders.
var (
	ErrTooLong  = errors.New("option too long")
	ErrLoopback = errors.New("loopback with a trace type that nodes do not loop")
	ErrBits     = errors.New("bits that exclude each other, or that are not defined")
	ErrOpaque   = errors.New("snapshot that is no whole words, or too long")
	ErrOption   = errors.New("not a pre-allocated trace") // a node's step on bytes that are none
)

// MaxData is the bytes that Linux allows for the data of a trace.
const MaxData = 244

// Trace holds the values that the encapsulating node sets for a trace.
type Trace struct {
	Namespace uint16
	Type      uint32       // 24 bits
	Flags     decode.Flags // Overflow, Loopback, Active
	Words     int          // that nodes may fill, at most 61
}

// AppendTrace appends an option with an empty pre-allocated trace. On error dst is returned as it was.
func AppendTrace(dst []byte, t *Trace) ([]byte, error) {
	if t.Words < 0 || 4*t.Words > MaxData {
		return dst, fmt.Errorf("%w: %d words of data, at most %d", ErrTooLong, t.Words, MaxData/4)
	}
	start := len(dst)
	dst = append(dst, OptionChanging, byte(2+traceLen+4*t.Words), 0, TypeTrace)
	dst, err := AppendHeader(dst, t)
	if err != nil {
		return dst[:start], err
	}
	return append(dst, make([]byte, 4*t.Words)...), nil
}

// AppendHeader appends the 8 bytes that both kinds of traces begin with. On error dst is returned as it was.
func AppendHeader(dst []byte, t *Trace) ([]byte, error) {
	switch n := NodeLen(t.Type); {
	case t.Type>>24 != 0:
		return dst, fmt.Errorf("%w: trace type %#x", ErrBits, t.Type)
	case t.Words < 0 || t.Words > 127:
		return dst, fmt.Errorf("%w: %d words", ErrTooLong, t.Words)
	case n > 31:
		return dst, fmt.Errorf("%w: %d words a node", ErrTooLong, n)
	case t.Flags&decode.Loopback != 0 && t.Type != BitNodeID:
		return dst, fmt.Errorf("%w: %#06x", ErrLoopback, t.Type)
	}
	word := NodeLen(t.Type)<<11 | t.Words
	for _, f := range [...]struct {
		flag decode.Flags
		bit  int
	}{{decode.Overflow, flagNoSpace}, {decode.Loopback, flagLoop}, {decode.Active, flagActive}} {
		if t.Flags&f.flag != 0 {
			word |= f.bit << 7
		}
	}
	be := binary.BigEndian
	dst = be.AppendUint16(be.AppendUint16(dst, t.Namespace), uint16(word))
	return be.AppendUint32(dst, t.Type<<8), nil
}

// AppendNode appends the data of a node for a trace type. Values that h and x lack are all ones, as are undefined
// ones. So is a checksum complement. On error dst is returned as it was.
func AppendNode(dst []byte, kind uint32, h *decode.Hop, x *decode.IOAMNode) ([]byte, error) {
	be := binary.BigEndian
	if len(x.Opaque)%4 != 0 || len(x.Opaque) > 4*255 {
		return dst, fmt.Errorf("%w: %d bytes", ErrOpaque, len(x.Opaque))
	}
	narrow := func(has bool, v uint32) uint32 {
		if !has {
			return 0xffffffff
		}
		return v
	}
	hop := func(f decode.HopField, v uint32) uint32 { return narrow(h.Has&f != 0, v) }
	more := func(f decode.IOAMNodeField, v uint32) uint32 { return narrow(x.Has&f != 0, v) }
	limit := more(decode.IOAMHopLimit, uint32(x.HopLimit)) << 24
	for bit := uint32(BitNodeID); bit&sized != 0; bit >>= 1 {
		if kind&bit == 0 {
			continue
		}
		v := uint32(0xffffffff)
		switch bit {
		case BitNodeID:
			v = limit | 0xffffff
			if x.Has&decode.IOAMNodeIDTaken == 0 {
				v = limit | hop(decode.HopNodeID, h.NodeID)&0xffffff
			}
		case BitInterfaces:
			v = hop(decode.HopIngressIf, uint32(h.IngressIf))<<16 | hop(decode.HopEgressIf, uint32(h.EgressIf))&0xffff
		case BitSeconds:
			v = more(decode.IOAMIngressSeconds, x.IngressSeconds)
		case BitFraction:
			v = more(decode.IOAMIngressFraction, x.IngressFraction)
		case BitTransitDelay:
			v = hop(decode.HopLatency, h.Latency)
		case BitNamespaceData:
			v = more(decode.IOAMNamespaceData, x.NamespaceData)
		case BitQueueDepth:
			v = hop(decode.HopQueueOccupancy, h.QueueOccupancy)
		case BitBufferOccupancy:
			v = hop(decode.HopBufferOccupancy, h.BufferOccupancy)
		case BitNodeIDWide:
			id := uint64(1<<56 - 1)
			if x.Has&decode.IOAMNodeIDWide != 0 {
				id &= x.NodeIDWide
			}
			dst = be.AppendUint64(dst, uint64(limit)<<32|id)
			continue
		case BitInterfacesWide:
			dst = be.AppendUint32(dst, more(decode.IOAMIngressIfWide, x.IngressIfWide))
			v = more(decode.IOAMEgressIfWide, x.EgressIfWide)
		case BitNamespaceDataWide:
			data := ^uint64(0)
			if x.Has&decode.IOAMNamespaceDataWide != 0 {
				data = x.NamespaceDataWide
			}
			dst = be.AppendUint64(dst, data)
			continue
		}
		dst = be.AppendUint32(dst, v)
	}
	if kind&BitSnapshot != 0 {
		schema := more(decode.IOAMSchemaID, x.SchemaID) & 0xffffff
		dst = append(be.AppendUint32(dst, uint32(len(x.Opaque)/4)<<24|schema), x.Opaque...)
	}
	return dst, nil
}

// AddNode does what a transit node does to the pre-allocated trace in option, which begins with its option type. It
// writes the node's data into the end of the free space. If the data do not fit, it sets Overflow and writes nothing.
// A node with a namespace leaves other namespaces alone.
func AddNode(option []byte, ours uint16, h *decode.Hop, x *decode.IOAMNode) error {
	const at = optionLen // of the trace
	if len(option) < at+traceLen || option[3] != TypeTrace || len(option) < 2+int(option[1]) || int(option[1]) < 2+traceLen {
		return fmt.Errorf("%w: %d bytes", ErrOption, len(option))
	}
	be := binary.BigEndian
	word, kind := be.Uint16(option[at+2:]), be.Uint32(option[at+4:])>>8
	free := 4 * int(word&0x7f)
	switch {
	case 2+int(option[1]) < at+traceLen+free || int(word>>11) != NodeLen(kind):
		return fmt.Errorf("%w: %d bytes free, %d words a node", ErrOption, free, word>>11)
	case be.Uint16(option[at:]) != ours || word&(flagNoSpace<<7) != 0:
		return nil
	}
	var space [4 * (31 + 1 + 255)]byte
	node, err := AppendNode(space[:0], kind, h, x)
	if err != nil {
		return err
	}
	if len(node) > free {
		be.PutUint16(option[at+2:], word|flagNoSpace<<7)
		return nil
	}
	copy(option[at+traceLen+free-len(node):], node)
	be.PutUint16(option[at+2:], word-uint16(len(node)/4))
	return nil
}

// AppendProof appends an option with a proof of transit of type 0.
func AppendProof(dst []byte, namespace uint16, packet, cumulative uint64) []byte {
	be := binary.BigEndian
	dst = append(dst, OptionChanging, 2+proofLen, 0, TypeProof)
	dst = append(be.AppendUint16(dst, namespace), 0, 0)
	return be.AppendUint64(be.AppendUint64(dst, packet), cumulative)
}

// AppendEdge appends an edge-to-edge option with the values of x. Their choice, and the width of the sequence number,
// are in kind. Times that x has not got are all ones. On error dst is returned as it was.
func AppendEdge(dst []byte, kind uint16, x *decode.IOAMOption) ([]byte, error) {
	const known = EdgeSeq64 | EdgeSeq32 | EdgeSeconds | EdgeFraction
	if kind&^known != 0 || kind&(EdgeSeq64|EdgeSeq32) == EdgeSeq64|EdgeSeq32 {
		return dst, fmt.Errorf("%w: edge to edge type %#04x", ErrBits, kind)
	}
	be, start := binary.BigEndian, len(dst)
	dst = append(dst, OptionFixed, 0, 0, TypeEdge)
	dst = be.AppendUint16(be.AppendUint16(dst, x.Namespace), kind)
	if kind&EdgeSeq64 != 0 {
		dst = be.AppendUint64(dst, x.Seq)
	}
	if kind&EdgeSeq32 != 0 {
		dst = be.AppendUint32(dst, uint32(x.Seq))
	}
	for _, f := range [...]struct {
		bit uint16
		has decode.IOAMField
		v   uint32
	}{{EdgeSeconds, decode.IOAMSeconds, x.Seconds}, {EdgeFraction, decode.IOAMFraction, x.Fraction}} {
		if kind&f.bit == 0 {
			continue
		}
		if x.Has&f.has == 0 {
			f.v = 0xffffffff
		}
		dst = be.AppendUint32(dst, f.v)
	}
	dst[start+1] = byte(len(dst) - start - 2)
	return dst, nil
}

// AppendExport appends a direct export for a flow, numbered.
func AppendExport(dst []byte, namespace uint16, kind, flow, seq uint32) []byte {
	be := binary.BigEndian
	dst = append(dst, OptionFixed, 2+traceLen+8, 0, TypeDirectExport)
	dst = append(be.AppendUint16(dst, namespace), 0, flowIDFlag|seqFlag)
	dst = be.AppendUint32(dst, kind<<8)
	return be.AppendUint32(be.AppendUint32(dst, flow), seq)
}

// AppendExtension appends a hop-by-hop or destination header with options, each on a boundary of 4 bytes. Options
// begin with their types, and next is the number of the following header. On error dst is returned as it was.
func AppendExtension(dst []byte, next uint8, options ...[]byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, next, 0)
	for _, o := range options {
		dst = pad(dst, -(len(dst)-start)&3)
		dst = append(dst, o...)
	}
	dst = pad(dst, -(len(dst)-start)&7)
	units := (len(dst) - start) / 8
	if units > 256 {
		return dst[:start], fmt.Errorf("%w: %d bytes of options", ErrTooLong, len(dst)-start)
	}
	dst[start+1] = byte(units - 1)
	return dst, nil
}

// pad appends n bytes, at most 7, of Pad1 or PadN.
func pad(dst []byte, n int) []byte {
	switch n {
	case 0:
		return dst
	case 1:
		return append(dst, 0)
	}
	var zero [8]byte
	return append(append(dst, 1, byte(n-2)), zero[:n-2]...)
}
