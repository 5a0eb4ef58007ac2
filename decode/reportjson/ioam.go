package reportjson

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// option writes the values of an IOAM option behind its namespace, or of an IFA header.
func (o *object) option(x *decode.IOAMOption) {
	has := func(f decode.IOAMField) bool { return x.Has&f != 0 }
	if has(decode.IOAMTraceType) {
		o.hex(`,"instructions":"0x`, byte(x.TraceType>>16), byte(x.TraceType>>8), byte(x.TraceType))
	}
	if has(decode.IFARequested) {
		o.hex(`,"instructions":"0x`, x.Requested)
	}
	if has(decode.IOAMRemainingLen) {
		o.uint(`,"remaining_len":`, uint64(x.RemainingLen))
	}
	if has(decode.IOAMSeconds) {
		o.uint(`,"seconds":`, uint64(x.Seconds))
	}
	if has(decode.IOAMFraction) {
		o.uint(`,"fraction":`, uint64(x.Fraction))
	}
	if has(decode.IOAMProofPacket) {
		o.hex64(`,"proof_packet":"0x`, x.ProofPacket)
	}
	if has(decode.IOAMProofCumulative) {
		o.hex64(`,"proof_cumulative":"0x`, x.ProofCumulative)
	}
}

func (o *object) hex64(key string, v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	o.hex(key, b[:]...)
}

// nodeMember is a member of a hop of IOAM or IFA. Its value is that of a bit of Hop.Has, or of IOAMNode.Has behind
// ofNode.
type nodeMember struct {
	key    string
	bit    uint8
	digits uint8 // of a hex number
}

// ofNode is the first bit of IOAMNode.Has among those of nodeMembers.
const ofNode = decode.NumHopColumns

var nodeMembers = [...]nodeMember{
	{`,"node_id":`, 0, 0}, {`,"node_id_wide":`, ofNode + 1, 0}, {`,"hop_limit":`, ofNode, 0}, {`,"ingress_if":`, 1, 0}, {`,"egress_if":`, 2, 0},
	{`,"ingress_if_wide":`, ofNode + 2, 0}, {`,"egress_if_wide":`, ofNode + 3, 0}, {`,"latency":`, 3, 0}, {`,"queue_id":`, 4, 0}, {`,"queue_occupancy":`, 5, 0},
	{`,"queue_congestion":`, 13, 0}, {`,"queue_cells":`, ofNode + 12, 0}, {`,"port_speed":`, ofNode + 11, 0},
	{`,"ingress_seconds":`, ofNode + 4, 0}, {`,"ingress_fraction":`, ofNode + 5, 0}, {`,"buffer_occupancy":`, 12, 0},
	{`,"namespace_data":"0x`, ofNode + 6, 4}, {`,"namespace_data_wide":"0x`, ofNode + 7, 8}, {`,"schema_id":`, ofNode + 8, 0},
}

// node writes a hop of IOAM or IFA: h, and the rest of it in x.
func (o *object) node(h *decode.Hop, x *decode.IOAMNode) {
	start := len(o.b)
	var hop decode.HopNumbers
	h.Numbers(h.Has, &hop)
	rest := [...]uint64{
		uint64(x.HopLimit), x.NodeIDWide, uint64(x.IngressIfWide), uint64(x.EgressIfWide), uint64(x.IngressSeconds), uint64(x.IngressFraction),
		uint64(x.NamespaceData), x.NamespaceDataWide, uint64(x.SchemaID), 0, 0, uint64(x.PortSpeed), uint64(x.QueueCells),
	}
	has := uint64(h.Has) | uint64(x.Has)<<ofNode
	if x.Has&decode.IOAMNodeIDTaken != 0 {
		has &^= uint64(decode.HopNodeID)
	}
	for i := range nodeMembers {
		m := &nodeMembers[i]
		if has>>m.bit&1 == 0 {
			continue
		}
		v := uint64(0)
		if m.bit < ofNode {
			v = hop[m.bit]
		} else {
			v = rest[m.bit-ofNode]
		}
		if m.digits == 0 {
			o.uint(m.key, v)
			continue
		}
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], v)
		o.hex(m.key, b[8-m.digits:]...)
	}
	if x.Has&decode.IOAMOpaque != 0 {
		o.hex(`,"opaque":"0x`, x.Opaque...)
	}
	o.close(start)
}
