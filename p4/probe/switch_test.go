package probe

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/srint"
)

// pass does what a switch does to a probe: it takes the next port off the route and puts its block on the stack. The
// plan's dialect says how wide that is. It gives the port.
func pass(t testing.TB, frame []byte, d Dialect, hop decode.Hop) ([]byte, int) {
	t.Helper()
	frame, port, err := srint.PopProbePort(frame, 12)
	if err != nil {
		t.Fatal(err)
	}
	ip := 14
	if binary.BigEndian.Uint16(frame[12:]) == srint.TypeRoute {
		ip = 12 + 2 + int(frame[15]) + 2
	}
	shim := ip + packet.IPv4Len + packet.UDPLen
	h := DialectHeader(d, binary.BigEndian.Uint16(frame[shim+8:]))
	hop.EgressIf = uint16(port)
	part := intmd.PartAt(frame[shim:], decode.V21)
	if part.RemainingHops() == 0 {
		part.Refuse(decode.HopLimit)
		return frame, port
	}
	words := h.HopWords()
	before := udpSum(frame, ip)
	part.Grow(words)
	block := intmd.AppendHop(nil, &h, &hop)
	if len(block) != 4*words {
		t.Fatalf("a block of %d bytes, want %d words", len(block), words)
	}
	frame = slices.Insert(frame, shim+INTLen, block...)
	be := binary.BigEndian
	old := be.Uint16(frame[ip+2:])
	be.PutUint16(frame[ip+2:], old+uint16(len(block)))
	packet.UpdateChecksum(frame[ip+10:ip+12], uint64(old), uint64(be.Uint16(frame[ip+2:])))
	be.PutUint16(frame[shim-4:], be.Uint16(frame[shim-4:])+uint16(len(block)))
	if sum := frame[shim-2 : shim]; be.Uint16(sum) != 0 { // without it there is none to keep right
		packet.UpdateChecksum(sum, before, udpSum(frame, ip))
	}
	return frame, port
}

// udpSum is the sum of what the checksum of UDP covers, without the checksum.
func udpSum(frame []byte, ip int) uint64 {
	l4 := ip + packet.IPv4Len
	return packet.PseudoHeader(frame[ip+12:l4], packet.ProtoUDP, len(frame)-l4) + packet.Sum(frame[l4:l4+6]) + packet.Sum(frame[l4+8:])
}

// hopOf is what the k-th switch of a path reports.
func hopOf(k int) decode.Hop {
	return decode.Hop{
		Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy |
			decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf | decode.HopTxUtilization |
			decode.HopBufferID | decode.HopBufferOccupancy,
		NodeID: uint32(100 + k), IngressIf: 1, Latency: uint32(1000 * (k + 1)), QueueID: 1, QueueOccupancy: uint32(64 * k),
		IngressTime: 1 << 60, EgressTime: 1<<60 + 1000, TxUtilization: 7,
	}
}

// walk sends a frame over all switches of its route.
func walk(t testing.TB, frame []byte, d Dialect, hops int) []byte {
	for k := range hops {
		frame, _ = pass(t, frame, d, hopOf(k))
	}
	return frame
}
