package reportjson

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
)

// option writes what an IOAM option says of itself behind its namespace.
func (o *object) option(x *decode.IOAMOption) {
	has := func(f decode.IOAMField) bool { return x.Has&f != 0 }
	if has(decode.IOAMTraceType) {
		o.hex(`,"instructions":"0x`, byte(x.TraceType>>16), byte(x.TraceType>>8), byte(x.TraceType))
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

// node writes a hop of IOAM: h, and the rest of it in x.
func (o *object) node(h *decode.Hop, x *decode.IOAMNode) {
	start := len(o.b)
	value := func(f decode.HopField, key string, v uint64) {
		if h.Has&f != 0 {
			o.uint(key, v)
		}
	}
	more := func(f decode.IOAMNodeField, key string, v uint64) {
		if x.Has&f != 0 {
			o.uint(key, v)
		}
	}
	if x.Has&decode.IOAMNodeIDTaken == 0 {
		value(decode.HopNodeID, `,"node_id":`, uint64(h.NodeID))
	}
	more(decode.IOAMNodeIDWide, `,"node_id_wide":`, x.NodeIDWide)
	more(decode.IOAMHopLimit, `,"hop_limit":`, uint64(x.HopLimit))
	value(decode.HopIngressIf, `,"ingress_if":`, uint64(h.IngressIf))
	value(decode.HopEgressIf, `,"egress_if":`, uint64(h.EgressIf))
	more(decode.IOAMIngressIfWide, `,"ingress_if_wide":`, uint64(x.IngressIfWide))
	more(decode.IOAMEgressIfWide, `,"egress_if_wide":`, uint64(x.EgressIfWide))
	value(decode.HopLatency, `,"latency":`, uint64(h.Latency))
	value(decode.HopQueueOccupancy, `,"queue_occupancy":`, uint64(h.QueueOccupancy))
	more(decode.IOAMIngressSeconds, `,"ingress_seconds":`, uint64(x.IngressSeconds))
	more(decode.IOAMIngressFraction, `,"ingress_fraction":`, uint64(x.IngressFraction))
	value(decode.HopBufferOccupancy, `,"buffer_occupancy":`, uint64(h.BufferOccupancy))
	if v := x.NamespaceData; x.Has&decode.IOAMNamespaceData != 0 {
		o.hex(`,"namespace_data":"0x`, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	if x.Has&decode.IOAMNamespaceDataWide != 0 {
		o.hex64(`,"namespace_data_wide":"0x`, x.NamespaceDataWide)
	}
	more(decode.IOAMSchemaID, `,"schema_id":`, uint64(x.SchemaID))
	if x.Has&decode.IOAMOpaque != 0 {
		o.hex(`,"opaque":"0x`, x.Opaque...)
	}
	if len(o.b) == start {
		o.b = append(o.b, '{')
	} else {
		o.b[start] = '{' // instead of the first value's comma
	}
	o.b = append(o.b, '}')
}
