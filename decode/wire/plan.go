package wire

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// MaxWords is the largest block that a bitmap can announce: 16 items, three of them of two words.
const MaxWords = 16 + 3

// Plan is the compiled form of one bitmap under one layout. The zero Plan is that of an empty bitmap.
type Plan struct {
	Words  int             // size of the block, in words of 4 bytes
	Fields decode.HopField // what a block holds of which all values are valid

	timeBits uint8
	head     head  // how the block starts
	times    bool  // both 64-bit times are there, side by side,
	timesAt  uint8 // at this offset
	nOther   uint8 // how many of other count
	other    [9]step
	n        uint8
	steps    [9]step // all items that are no padding, in wire order
}

type step struct {
	item item
	off  uint8 // within the block
}

// head names the combinations of bits 0 to 3 that senders ask for most. They are read in one go.
type head uint8

const (
	headOther head = iota
	headNodeQueue
	headNodeLatencyQueue
	headNode
)

// Compile walks the bits of bitmap.
func Compile(l Layout, bitmap uint16) (p Plan) {
	if l == INT2Reversed {
		l, bitmap = INT2, bits.Reverse16(bitmap)
	}
	for i, it := range items[l] {
		if bitmap&(0x8000>>i) == 0 || it == reserved {
			continue
		}
		if it == congestion && p.Fields&decode.HopQueueID != 0 {
			it = congestionAfterQueue
		}
		before := bitmap &^ (0xffff >> i)
		p.steps[p.n] = step{it, uint8(4 * Words(l, before))}
		p.n++
		p.Fields |= itemFields[it]
		switch it {
		case ingressTime, egressTime:
			p.timeBits = 32
		case ingressTime64, egressTime64:
			p.timeBits = 64
		}
	}
	p.Words = Words(l, bitmap)
	p.group(bitmap >> 12)
	return p
}

// group finds the items that are read together, and lists the others.
func (p *Plan) group(first uint16) {
	inHead := 0
	switch first {
	case 0xd:
		p.head, inHead = headNodeQueue, 3
	case 0xf:
		p.head, inHead = headNodeLatencyQueue, 4
	case 0xc:
		p.head, inHead = headNode, 2
	}
	for i := inHead; i < int(p.n); i++ {
		if i+1 < int(p.n) && p.steps[i].item == ingressTime64 && p.steps[i+1].item == egressTime64 {
			p.times, p.timesAt = true, p.steps[i].off
			i++
			continue
		}
		p.other[p.nOther] = p.steps[i]
		p.nOther++
	}
}

// Stack reads one block for every element of hops and overwrites it. Blocks are stride bytes apart; the first block of
// b is the newest and becomes the last hop, so that hops end up in the order of the path. Values of all ones are left
// out. If b ends within the last block, that one gives the items that are whole; it must not end before.
func (p *Plan) Stack(hops []decode.Hop, b []byte, stride int) {
	if n := len(hops) - 1; n >= 0 && len(b) < n*stride+4*p.Words {
		p.part(&hops[0], b[n*stride:])
		hops = hops[1:]
	}
	be := binary.BigEndian
	at := 0
	for i := len(hops) - 1; i >= 0; i-- {
		h := &hops[i]
		*h = decode.Hop{}
		h.Has, h.TimeBits = p.Fields, p.timeBits
		block := b[at:]
		switch p.head {
		case headNodeQueue:
			w := block[:12:12]
			setNode(h, be.Uint32(w))
			setInterfaces(h, be.Uint32(w[4:]))
			setQueue(h, be.Uint32(w[8:]))
		case headNodeLatencyQueue:
			w := block[:16:16]
			setNode(h, be.Uint32(w))
			setInterfaces(h, be.Uint32(w[4:]))
			setLatency(h, be.Uint32(w[8:]))
			setQueue(h, be.Uint32(w[12:]))
		case headNode:
			w := block[:8:8]
			setNode(h, be.Uint32(w))
			setInterfaces(h, be.Uint32(w[4:]))
		}
		if p.times {
			w := block[p.timesAt:]
			w = w[:16:16]
			setIngressTime(h, be.Uint64(w))
			setEgressTime(h, be.Uint64(w[8:]))
		}
		if p.nOther != 0 {
			for _, s := range p.other[:p.nOther] {
				s.read(h, block)
			}
		}
		at += stride
	}
}

// part reads the items that b holds whole of a block that was cut.
func (p *Plan) part(h *decode.Hop, b []byte) {
	*h = decode.Hop{}
	for _, s := range p.steps[:p.n] {
		if int(s.off)+4*int(itemWords[s.item]) > len(b) {
			break
		}
		h.Has |= itemFields[s.item]
		s.read(h, b)
	}
	if h.Has&(decode.HopIngressTime|decode.HopEgressTime) != 0 {
		h.TimeBits = p.timeBits
	}
}

// read stores one item of the block b. Its fields are marked as present already.
func (s step) read(h *decode.Hop, b []byte) {
	be := binary.BigEndian
	w := b[s.off:]
	switch s.item {
	case nodeID:
		setNode(h, be.Uint32(w))
	case interfaces:
		setInterfaces(h, be.Uint32(w))
	case latency:
		setLatency(h, be.Uint32(w))
	case queue:
		setQueue(h, be.Uint32(w))
	case ingressTime:
		setIngressTime(h, widen(be.Uint32(w)))
	case egressTime:
		setEgressTime(h, widen(be.Uint32(w)))
	case ingressTime64:
		setIngressTime(h, be.Uint64(w))
	case egressTime64:
		setEgressTime(h, be.Uint64(w))
	case l2Interfaces:
		setL2Interfaces(h, be.Uint32(w), be.Uint32(w[4:]))
	case l2Interfaces16:
		v := be.Uint32(w)
		setL2Interfaces(h, narrow(v>>16), narrow(v&0xffff))
	case txUtilization:
		if h.TxUtilization = be.Uint32(w); h.TxUtilization == math.MaxUint32 {
			h.TxUtilization = 0
			h.Has &^= decode.HopTxUtilization
		}
	case buffer:
		v := be.Uint32(w)
		if h.BufferID = uint8(v >> 24); h.BufferID == math.MaxUint8 {
			h.BufferID = 0
			h.Has &^= decode.HopBufferID
		}
		if h.BufferOccupancy = v & max24; h.BufferOccupancy == max24 {
			h.BufferOccupancy = 0
			h.Has &^= decode.HopBufferOccupancy
		}
	case congestion:
		v := be.Uint32(w)
		h.Has &^= decode.HopQueueID
		AddQueueID(h, uint8(v>>24))
		setCongestion(h, v)
	case congestionAfterQueue:
		v := be.Uint32(w)
		AddQueueID(h, uint8(v>>24))
		setCongestion(h, v)
	}
}

// widen and narrow turn all ones of 32 and 16 bits into all ones of the width that the setters compare with.
func widen(v uint32) uint64 {
	if v == math.MaxUint32 {
		return math.MaxUint64
	}
	return uint64(v)
}

func narrow(v uint32) uint32 {
	if v == math.MaxUint16 {
		return math.MaxUint32
	}
	return v
}
