package packet

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// Layout is the meaning of the bits of a bitmap, and the width of each item.
type Layout uint8

// The layouts. Bit 0 is the most significant bit of a bitmap.
const (
	// INT2 is INT 2.0 and 2.1 (§4.7 and §5.7 of 2.1): 64-bit times, level 2 interfaces of 32 + 32 bits, buffer at bit 8.
	INT2 Layout = iota
	// INT10 is INT 1.0: 32-bit times, level 2 ports of 32 + 32 bits.
	INT10
	// INT10Wide is INT 1.0 as the GEANT program writes it: 64-bit times, level 2 ports of 16 + 16 bits.
	INT10Wide
	// INT05 is INT 0.5: every item has 4 bytes, bit 6 is queue id and congestion status.
	INT05
	// INT2Reversed is INT2 with the bitmap numbered from the least significant bit; the order and the widths of the
	// items are the same.
	INT2Reversed
	// INT2FANT is INT2 with the counts of FANT at bits 9 to 14 (table 2 of Appl. Sci. 15(2), 892), of which bits 12
	// to 14 have 8 bytes each. They are read by [Plan.ReadCounts], and not by [Plan.Stack].
	INT2FANT
	numLayouts
)

// item is the meaning of a bit: one or two values of a Hop.
type item uint8

const (
	reserved item = iota // 4 undefined bytes, and the checksum complement
	nodeID
	interfaces
	latency
	queue
	ingressTime
	egressTime
	ingressTime64
	egressTime64
	l2Interfaces
	l2Interfaces16
	txUtilization
	buffer
	congestion
	congestionAfterQueue // the same where the queue id was announced before
	numItems
)

var itemWords = [numItems]uint8{
	reserved: 1, nodeID: 1, interfaces: 1, latency: 1, queue: 1, ingressTime: 1, egressTime: 1,
	ingressTime64: 2, egressTime64: 2, l2Interfaces: 2, l2Interfaces16: 1, txUtilization: 1, buffer: 1, congestion: 1,
	congestionAfterQueue: 1,
}

var itemFields = [numItems]decode.HopField{
	nodeID:         decode.HopNodeID,
	interfaces:     decode.HopIngressIf | decode.HopEgressIf,
	latency:        decode.HopLatency,
	queue:          decode.HopQueueID | decode.HopQueueOccupancy,
	ingressTime:    decode.HopIngressTime,
	egressTime:     decode.HopEgressTime,
	ingressTime64:  decode.HopIngressTime,
	egressTime64:   decode.HopEgressTime,
	l2Interfaces:   decode.HopL2IngressIf | decode.HopL2EgressIf,
	l2Interfaces16: decode.HopL2IngressIf | decode.HopL2EgressIf,
	txUtilization:  decode.HopTxUtilization,
	buffer:         decode.HopBufferID | decode.HopBufferOccupancy,
	congestion:     decode.HopQueueID | decode.HopQueueCongestion,

	congestionAfterQueue: decode.HopQueueCongestion,
}

// items is the meaning of the bits of each layout, from bit 0. Bits beyond are reserved.
var items = [numLayouts][9]item{
	INT2:      {nodeID, interfaces, latency, queue, ingressTime64, egressTime64, l2Interfaces, txUtilization, buffer},
	INT10:     {nodeID, interfaces, latency, queue, ingressTime, egressTime, l2Interfaces, txUtilization},
	INT10Wide: {nodeID, interfaces, latency, queue, ingressTime64, egressTime64, l2Interfaces16, txUtilization},
	INT2FANT:  {nodeID, interfaces, latency, queue, ingressTime64, egressTime64, l2Interfaces, txUtilization, buffer},
	INT05:     {nodeID, interfaces, latency, queue, ingressTime, egressTime, congestion, txUtilization},
}

// doubled are the bits of each layout whose items have 8 bytes instead of 4.
var doubled = [numLayouts]uint16{INT2: 0x0e00, INT10: 0x0200, INT10Wide: 0x0c00, INT2FANT: 0x0e0e}

// countsOf is the counts of INT2FANT by bit, from bit 9 on.
var countsOf = [...]decode.HopCount{
	decode.HopTxPackets, decode.HopDroppedPackets, decode.HopDroppedBytes,
	decode.HopSRPackets | decode.HopSRBytes, decode.HopIPv4Packets | decode.HopIPv4Bytes, decode.HopIPv6Packets | decode.HopIPv6Bytes,
}

// firstCount is the bit of the first of them.
const firstCount = 9

// counts returns the counts that bitmap requests.
func counts(l Layout, bitmap uint16) (c decode.HopCount) {
	if l != INT2FANT {
		return 0
	}
	for i, bits := range countsOf {
		if bitmap&(0x8000>>(firstCount+i)) != 0 {
			c |= bits
		}
	}
	return c
}

// Words is the size of the block that bitmap announces, in words of 4 bytes.
func Words(l Layout, bitmap uint16) int {
	if l == INT2Reversed {
		l, bitmap = INT2, bits.Reverse16(bitmap)
	}
	return bits.OnesCount32(uint32(bitmap)<<16 | uint32(bitmap&doubled[l]))
}
