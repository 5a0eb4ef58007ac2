package packet

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// MaxWords is the largest block that a bitmap can announce: 16 items, six of them of two words (INT2FANT).
const MaxWords = 16 + 6

// Plan is the compiled form of one bitmap under one layout. The zero Plan is that of an empty bitmap.
type Plan struct {
	Words  int             // size of the block, in words of 4 bytes
	Fields decode.HopField // the values of a block, if all of them are valid
	Counts decode.HopCount // the counts behind them, likewise

	timeBits uint8
	shape    shape
	read     uint8 // how many of the first steps shape covers
	n        uint8
	steps    [9]step // the items that are no padding, in wire order
	countsAt uint8   // where the counts begin in a block
}

type step struct {
	item item
	off  uint8 // within the block
}

// shape names the most frequent starts of a block, which are read hop by hop with fixed offsets. The rest of a block
// is read item by item, for all hops at once.
type shape uint8

const (
	shapeNone                    shape = iota
	shapeNodeLatencyQueue              // node, interfaces, latency, queue: bitmap 0xf000
	shapeNodeQueueTimes                // node, interfaces, queue, both 64-bit times: bitmap 0xdc00
	shapeNodeLatencyQueueTimes         // the same with latency: 0xfc00
	shapeNodeLatencyQueueTimes32       // the same with 32-bit times
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
	p.Counts, p.countsAt = counts(l, bitmap), uint8(4*Words(l, bitmap&^(0xffff>>firstCount)))
	switch start := bitmap & 0xfc00; {
	case start == 0xdc00 && p.timeBits == 64:
		p.shape, p.read = shapeNodeQueueTimes, 5
	case start == 0xfc00 && p.timeBits == 64:
		p.shape, p.read = shapeNodeLatencyQueueTimes, 6
	case start == 0xfc00:
		p.shape, p.read = shapeNodeLatencyQueueTimes32, 6
	case start&0xf000 == 0xf000:
		p.shape, p.read = shapeNodeLatencyQueue, 4
	}
	return p
}

// Usual reports whether a block begins with node, level 1 interfaces, latency and queue, and has neither utilisation
// nor counts.
func (p *Plan) Usual() bool {
	const want = decode.HopNodeID | decode.HopIngressIf | decode.HopLatency | decode.HopQueueOccupancy
	return p.Fields&(want|decode.HopTxUtilization) == want && p.Counts == 0 // items stand in the order of their bits, and these have the first four
}

// Begun reports whether the first n bytes of a block hold a value whole. A block that was cut before is none.
func (p *Plan) Begun(n int) bool {
	if p.n == 0 {
		return p.Counts != 0 && n >= int(p.countsAt)+4
	}
	return n >= int(p.steps[0].off)+4*int(itemWords[p.steps[0].item])
}

// ReadCounts reads the counts of one block into every element of to, which must be zero. As for Stack, the first
// block of b becomes the last element. If b ends in the last block, its whole items are read. Values of all ones are
// left out.
func (p *Plan) ReadCounts(to []decode.HopCounts, b []byte, stride int) {
	be := binary.BigEndian
	for i := range to {
		c, at := &to[len(to)-1-i], i*stride+int(p.countsAt)
		all := c.All()
		for _, item := range countsOf {
			if p.Counts&item == 0 {
				continue
			}
			first, words := bits.TrailingZeros16(uint16(item)), bits.OnesCount16(uint16(item))
			if at+4*words > len(b) {
				break
			}
			for k := first; k < first+words; k++ {
				if v := be.Uint32(b[at:]); v != math.MaxUint32 {
					*all[k] = v
					c.Has |= 1 << k
				}
				at += 4
			}
		}
	}
}

// Stack reads one block for every element of hops and overwrites it. Blocks are stride bytes apart. The first block
// of b is the newest and becomes the last hop, so that hops are in the order of the path. Values of all ones are left
// out. If b ends within the last block, the whole items of that block are read. It must not end before.
func (p *Plan) Stack(hops []decode.Hop, b []byte, stride int) {
	if n := len(hops) - 1; n >= 0 && len(b) < n*stride+4*p.Words {
		p.part(hops[:1], b[n*stride:])
		hops = hops[1:]
	}
	switch p.shape {
	case shapeNodeLatencyQueue:
		p.nodeLatencyQueue(hops, b, stride)
	case shapeNodeQueueTimes:
		p.nodeQueueTimes(hops, b, stride)
	case shapeNodeLatencyQueueTimes:
		p.nodeLatencyQueueTimes(hops, b, stride)
	case shapeNodeLatencyQueueTimes32:
		p.nodeLatencyQueueTimes32(hops, b, stride)
	default:
		has, timeBits := p.Fields, p.timeBits
		for i := range hops {
			h := &hops[i]
			*h = decode.Hop{}
			h.Has, h.TimeBits = has, timeBits
		}
	}
	for i := p.read; i < p.n && len(hops) > 0; i++ {
		p.steps[i].column(hops, b, stride)
	}
}

func (p *Plan) nodeLatencyQueue(hops []decode.Hop, b []byte, stride int) {
	be, has, timeBits, at := binary.BigEndian, p.Fields, p.timeBits, 0
	for i := len(hops) - 1; i >= 0; i-- {
		h, w := &hops[i], b[at:at+16:at+16]
		at += stride
		*h = decode.Hop{}
		h.Has, h.TimeBits = has, timeBits
		setNode(h, be.Uint32(w))
		setInterfaces(h, be.Uint32(w[4:]))
		setLatency(h, be.Uint32(w[8:]))
		setQueue(h, be.Uint32(w[12:]))
	}
}

func (p *Plan) nodeQueueTimes(hops []decode.Hop, b []byte, stride int) {
	be, has, at := binary.BigEndian, p.Fields, 0
	for i := len(hops) - 1; i >= 0; i-- {
		h, w := &hops[i], b[at:at+28:at+28]
		at += stride
		*h = decode.Hop{}
		h.Has, h.TimeBits = has, 64
		setNode(h, be.Uint32(w))
		setInterfaces(h, be.Uint32(w[4:]))
		setQueue(h, be.Uint32(w[8:]))
		setIngressTime(h, be.Uint64(w[12:]))
		setEgressTime(h, be.Uint64(w[20:]))
	}
}

func (p *Plan) nodeLatencyQueueTimes(hops []decode.Hop, b []byte, stride int) {
	be, has, at := binary.BigEndian, p.Fields, 0
	for i := len(hops) - 1; i >= 0; i-- {
		h, w := &hops[i], b[at:at+32:at+32]
		at += stride
		*h = decode.Hop{}
		h.Has, h.TimeBits = has, 64
		setNode(h, be.Uint32(w))
		setInterfaces(h, be.Uint32(w[4:]))
		setLatency(h, be.Uint32(w[8:]))
		setQueue(h, be.Uint32(w[12:]))
		setIngressTime(h, be.Uint64(w[16:]))
		setEgressTime(h, be.Uint64(w[24:]))
	}
}

func (p *Plan) nodeLatencyQueueTimes32(hops []decode.Hop, b []byte, stride int) {
	be, has, at := binary.BigEndian, p.Fields, 0
	for i := len(hops) - 1; i >= 0; i-- {
		h, w := &hops[i], b[at:at+24:at+24]
		at += stride
		*h = decode.Hop{}
		h.Has, h.TimeBits = has, 32
		setNode(h, be.Uint32(w))
		setInterfaces(h, be.Uint32(w[4:]))
		setLatency(h, be.Uint32(w[8:]))
		setQueue(h, be.Uint32(w[12:]))
		setIngressTime(h, widen(be.Uint32(w[16:])))
		setEgressTime(h, widen(be.Uint32(w[20:])))
	}
}

// part reads the items that b holds whole of a block that was cut into the one hop of hop.
func (p *Plan) part(hop []decode.Hop, b []byte) {
	h := &hop[0]
	*h = decode.Hop{}
	for _, s := range p.steps[:p.n] {
		if int(s.off)+4*int(itemWords[s.item]) > len(b) {
			break
		}
		h.Has |= itemFields[s.item]
		s.column(hop, b, 0)
	}
	if h.Has&(decode.HopIngressTime|decode.HopEgressTime) != 0 {
		h.TimeBits = p.timeBits
	}
}

// column stores one item of every block. Its fields are marked as present already.
func (s step) column(hops []decode.Hop, b []byte, stride int) {
	be, at := binary.BigEndian, int(s.off)
	switch s.item {
	case nodeID:
		for i := len(hops) - 1; i >= 0; i-- {
			setNode(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case interfaces:
		for i := len(hops) - 1; i >= 0; i-- {
			setInterfaces(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case latency:
		for i := len(hops) - 1; i >= 0; i-- {
			setLatency(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case queue:
		for i := len(hops) - 1; i >= 0; i-- {
			setQueue(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case ingressTime:
		for i := len(hops) - 1; i >= 0; i-- {
			setIngressTime(&hops[i], widen(be.Uint32(b[at:])))
			at += stride
		}
	case egressTime:
		for i := len(hops) - 1; i >= 0; i-- {
			setEgressTime(&hops[i], widen(be.Uint32(b[at:])))
			at += stride
		}
	case ingressTime64:
		for i := len(hops) - 1; i >= 0; i-- {
			setIngressTime(&hops[i], be.Uint64(b[at:]))
			at += stride
		}
	case egressTime64:
		for i := len(hops) - 1; i >= 0; i-- {
			setEgressTime(&hops[i], be.Uint64(b[at:]))
			at += stride
		}
	case l2Interfaces:
		for i := len(hops) - 1; i >= 0; i-- {
			v := be.Uint64(b[at:])
			setL2Interfaces(&hops[i], uint32(v>>32), uint32(v))
			at += stride
		}
	case l2Interfaces16:
		for i := len(hops) - 1; i >= 0; i-- {
			v := be.Uint32(b[at:])
			setL2Interfaces(&hops[i], narrow(v>>16), narrow(v&0xffff))
			at += stride
		}
	case txUtilization:
		for i := len(hops) - 1; i >= 0; i-- {
			setTxUtilization(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case buffer:
		for i := len(hops) - 1; i >= 0; i-- {
			setBuffer(&hops[i], be.Uint32(b[at:]))
			at += stride
		}
	case congestion, congestionAfterQueue:
		for i := len(hops) - 1; i >= 0; i-- {
			v := be.Uint32(b[at:])
			if s.item == congestion {
				hops[i].Has &^= decode.HopQueueID
			}
			AddQueueID(&hops[i], uint8(v>>24))
			setCongestion(&hops[i], v)
			at += stride
		}
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
