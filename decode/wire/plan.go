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
	n        uint8
	steps    [9]step // the items that are no padding, in wire order
}

type step struct {
	item item
	off  uint8 // within the block
}

// Compile walks the bits of bitmap.
func Compile(l Layout, bitmap uint16) (p Plan) {
	if l == INT2Reversed {
		l, bitmap = INT2, bits.Reverse16(bitmap)
	}
	for i, it := range items[l] {
		if bitmap&(0x8000>>i) == 0 || it == reserved {
			continue
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
	return p
}

// Stack reads one block for every element of hops and overwrites it. Blocks are stride bytes apart; the first block of
// b is the newest and becomes the last hop, so that hops end up in the order of the path. Values of all ones are left
// out. A block that b does not hold whole gives the items that are whole.
func (p *Plan) Stack(hops []decode.Hop, b []byte, stride int) {
	for i := len(hops) - 1; i >= 0; i-- {
		p.Hop(&hops[i], b)
		b = b[min(stride, len(b)):]
	}
}

// Hop overwrites h with the block at the start of b, or with the items of it that b holds whole.
// If a value is announced twice (the queue id of INT 0.5), the first that is valid stands.
func (p *Plan) Hop(h *decode.Hop, b []byte) {
	be := binary.BigEndian
	*h = decode.Hop{}
	for _, s := range p.steps[:p.n] {
		if int(s.off) >= len(b) {
			return
		}
		w := b[s.off:]
		if len(w) < 4*int(itemWords[s.item]) {
			return
		}
		switch s.item {
		case nodeID:
			SetWord(h, decode.HopNodeID, &h.NodeID, be.Uint32(w))
		case interfaces:
			SetInterfaces(h, be.Uint32(w))
		case latency:
			SetWord(h, decode.HopLatency, &h.Latency, be.Uint32(w))
		case queue:
			SetQueue(h, be.Uint32(w))
		case ingressTime:
			if v := be.Uint32(w); v != math.MaxUint32 {
				h.IngressTime, h.TimeBits = uint64(v), 32
				h.Has |= decode.HopIngressTime
			}
		case egressTime:
			if v := be.Uint32(w); v != math.MaxUint32 {
				h.EgressTime, h.TimeBits = uint64(v), 32
				h.Has |= decode.HopEgressTime
			}
		case ingressTime64:
			SetTime64(h, decode.HopIngressTime, &h.IngressTime, be.Uint64(w))
		case egressTime64:
			SetTime64(h, decode.HopEgressTime, &h.EgressTime, be.Uint64(w))
		case l2Interfaces:
			SetWord(h, decode.HopL2IngressIf, &h.L2IngressIf, be.Uint32(w))
			SetWord(h, decode.HopL2EgressIf, &h.L2EgressIf, be.Uint32(w[4:]))
		case l2Interfaces16:
			if v := be.Uint16(w); v != math.MaxUint16 {
				h.L2IngressIf = uint32(v)
				h.Has |= decode.HopL2IngressIf
			}
			if v := be.Uint16(w[2:]); v != math.MaxUint16 {
				h.L2EgressIf = uint32(v)
				h.Has |= decode.HopL2EgressIf
			}
		case txUtilization:
			SetWord(h, decode.HopTxUtilization, &h.TxUtilization, be.Uint32(w))
		case buffer:
			SetBuffer(h, be.Uint32(w))
		case congestion:
			v := be.Uint32(w)
			SetQueueID(h, uint8(v>>24))
			if v&max24 != max24 {
				h.QueueCongestion = v & max24
				h.Has |= decode.HopQueueCongestion
			}
		}
	}
}
