// Package reportjson writes decoded reports as JSON, one object a report.
//
// Numbers are raw wire values, as integers of up to 64 bits. Addresses are strings, IPv6 in the short form of RFC
// 5952. Bitmaps and opaque bytes are hex strings with 0x. A key is there only if the packet has the value, so there is
// no null and no empty list; a block of a stack without any value is an empty object. Hops come first hop first.
//
// It appends to the caller's bytes, without reflection or allocation. The command "hopscope decode" prints what it writes,
// one object a line, and the recorded readings of captures that decoders are tested with are such lines.
package reportjson

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// Append appends r as one JSON object without a newline. Frame is the number of the frame in its file, from 1.
// Nothing in the result needs escaping: every string in it is a name, a number or an address.
func Append(dst []byte, frame uint64, r *decode.Report) []byte {
	o := object{b: dst}
	o.uint(`{"frame":`, frame)
	o.b = strconv.AppendInt(append(o.b, `,"time_ns":`...), r.Time, 10)
	o.text(`,"format":"`, r.Format.String())
	if r.Version != 0 && !r.HeaderCut {
		o.version(`,"version":"`, r.Version)
	}
	has := func(f decode.Field) bool { return r.Has&f != 0 }
	if has(decode.HasExporter) {
		o.addr(`,"exporter":"`, r.Exporter.Netip())
	}
	if has(decode.HasNodeID) && !r.HeaderCut {
		o.uint(`,"node_id":`, uint64(r.NodeID))
	}
	if has(decode.HasHWID) && !r.HeaderCut {
		o.uint(`,"hw_id":`, uint64(r.HWID))
	}
	if has(decode.HasSeq) && !r.HeaderCut {
		o.uint(`,"seq":`, uint64(r.Seq))
	}
	if r.IOAM.Has&decode.IOAMSeq != 0 {
		o.uint(`,"seq":`, r.IOAM.Seq)
	}
	if has(decode.HasHeaderTime) {
		o.uint(`,"header_time":`, uint64(r.HeaderTime))
	}
	if r.Kind != 0 {
		o.text(`,"kind":"`, r.Kind.String())
	}
	if has(decode.HasFlow) {
		o.flow(&r.Flow, has(decode.HasPorts))
	}
	if has(decode.HasPacketID) {
		o.uint(`,"packet_id":`, uint64(r.PacketID))
	}
	if has(decode.HasFlowID) {
		o.uint(`,"flow_id":`, uint64(r.FlowID))
	}
	if r.Flags != 0 {
		o.flags(r.Flags)
	}
	if r.INT != 0 {
		o.version(`,"int_version":"`, r.INT)
	}
	if has(decode.HasDomainID) {
		o.uint(`,"domain_id":`, uint64(r.DomainID))
	}
	if r.IOAM.Has&decode.IOAMNamespace != 0 {
		o.uint(`,"namespace":`, uint64(r.IOAM.Namespace))
	}
	if has(decode.HasInstructions) {
		o.hex(`,"instructions":"0x`, byte(r.Instructions>>8), byte(r.Instructions))
	}
	if r.IOAM.Has != 0 {
		o.option(&r.IOAM)
	}
	if has(decode.HasRemainingHops) {
		o.uint(`,"remaining_hops":`, uint64(r.RemainingHops))
	}
	if has(decode.HasSourceSeq) {
		o.uint(`,"source_seq":`, uint64(r.SourceSeq))
	}
	if has(decode.HasSourceMetadata) && len(r.SourceMetadata) > 0 {
		o.hex(`,"source_metadata":"0x`, r.SourceMetadata...)
	}
	if has(decode.HasDropReason) {
		o.uint(`,"drop_reason":`, uint64(r.DropReason))
	}
	if has(decode.HasGap) {
		o.uint(`,"gap_time":`, uint64(r.GapTime))
		o.uint(`,"lost":`, uint64(r.Lost))
	}
	if has(decode.HasActionID) {
		o.uint(`,"action_id":`, uint64(r.ActionID))
	}
	if has(decode.HasSRList) && len(r.SRList) > 0 {
		o.hex(`,"sr_list":"0x`, r.SRList...)
	}
	if has(decode.HasSRPorts) && len(r.SRPorts) > 0 {
		o.ports(r.SRPorts)
	}
	if has(decode.HasDigest) {
		o.digest(r)
	}
	if len(r.Hops) > 0 {
		sep := `,"hops":[`
		for i := range r.Hops {
			o.b = append(o.b, sep...)
			if i < len(r.IOAM.Nodes) {
				o.node(&r.Hops[i], &r.IOAM.Nodes[i])
			} else {
				o.hop(&r.Hops[i])
			}
			sep = ","
		}
		o.b = append(o.b, ']')
	}
	if r.Err.Reason != 0 {
		o.text(`,"error":{"format":"`, r.Err.Format.String())
		o.text(`,"field":"`, r.Err.Field)
		o.b = strconv.AppendInt(append(o.b, `,"offset":`...), int64(r.Err.Offset), 10)
		o.text(`,"reason":"`, r.Err.Reason.String())
		o.b = append(o.b, '}')
	}
	return append(o.b, '}')
}

// object is an object under construction. Keys come with what separates them from the value before.
type object struct{ b []byte }

func (o *object) uint(key string, v uint64) {
	o.b = strconv.AppendUint(append(o.b, key...), v, 10)
}

func (o *object) text(key, v string) {
	o.b = append(append(append(o.b, key...), v...), '"')
}

func (o *object) version(key string, v decode.Version) {
	o.b = append(append(o.b, key...), '0'+byte(v/10), '.', '0'+byte(v%10), '"')
}

func (o *object) addr(key string, a netip.Addr) {
	o.b = append(a.AppendTo(append(o.b, key...)), '"')
}

func (o *object) hex(key string, v ...byte) {
	const digits = "0123456789abcdef"
	o.b = append(o.b, key...)
	for _, c := range v {
		o.b = append(o.b, digits[c>>4], digits[c&15])
	}
	o.b = append(o.b, '"')
}

func (o *object) flow(k *decode.FlowKey, ports bool) {
	o.addr(`,"flow":{"src":"`, k.SrcAddr())
	o.addr(`,"dst":"`, k.DstAddr())
	o.uint(`,"proto":`, uint64(k.Proto))
	if ports {
		o.uint(`,"src_port":`, uint64(k.SrcPort))
		o.uint(`,"dst_port":`, uint64(k.DstPort))
	}
	o.b = append(o.b, '}')
}

func (o *object) flags(f decode.Flags) {
	var space [16]string
	sep := `,"flags":["`
	for _, name := range f.AppendNames(space[:0]) {
		o.text(sep, name)
		sep = `,"`
	}
	o.b = append(o.b, ']')
}

// digest writes the digest as its program has it on the wire.
func (o *object) digest(r *decode.Report) {
	d := &r.Digest
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], d.Value)
	switch d.Coding {
	case decode.CodingMininet:
		o.hex(`,"digest":"0x`, b[2:]...)
		o.hex(`,"ams_digest":"0x`, byte(d.AMS>>8), byte(d.AMS))
		o.uint(`,"ttl":`, uint64(r.TTL))
		o.uint(`,"last_writer":`, uint64(d.LastWriter))
	case decode.CodingTofino:
		o.hex(`,"digest":"0x`, b[4:]...)
		o.uint(`,"ttl":`, uint64(r.TTL))
	case decode.CodingHPCC:
		o.hex(`,"digest":"0x`, b[6:]...)
	default:
		o.uint(`,"plan_epoch":`, uint64(d.Epoch))
		o.uint(`,"digest_id":`, uint64(d.ID))
		o.uint(`,"digest_hops":`, uint64(d.Hops))
		o.hex(`,"digest":"0x`, b[:]...)
	}
}

// ports writes the second byte of every 2-byte entry.
func (o *object) ports(entries []byte) {
	sep := `,"sr_ports":[`
	for i := 1; i < len(entries); i += 2 {
		o.uint(sep, uint64(entries[i]))
		sep = ","
	}
	o.b = append(o.b, ']')
}

func (o *object) hop(h *decode.Hop) {
	start := len(o.b)
	value := func(f decode.HopField, key string, v uint64) {
		if h.Has&f != 0 {
			o.uint(key, v)
		}
	}
	value(decode.HopNodeID, `,"node_id":`, uint64(h.NodeID))
	value(decode.HopIngressIf, `,"ingress_if":`, uint64(h.IngressIf))
	value(decode.HopEgressIf, `,"egress_if":`, uint64(h.EgressIf))
	value(decode.HopL2IngressIf, `,"l2_ingress_if":`, uint64(h.L2IngressIf))
	value(decode.HopL2EgressIf, `,"l2_egress_if":`, uint64(h.L2EgressIf))
	value(decode.HopLatency, `,"latency":`, uint64(h.Latency))
	value(decode.HopQueueID, `,"queue_id":`, uint64(h.QueueID))
	value(decode.HopQueueOccupancy, `,"queue_occupancy":`, uint64(h.QueueOccupancy))
	value(decode.HopEnqTime, `,"enq_time":`, uint64(h.EnqTime))
	value(decode.HopQueueDelay, `,"queue_delay":`, uint64(h.QueueDelay))
	value(decode.HopDeqOccupancy, `,"deq_occupancy":`, uint64(h.DeqOccupancy))
	value(decode.HopIngressTime, `,"ingress_time":`, h.IngressTime)
	value(decode.HopEgressTime, `,"egress_time":`, h.EgressTime)
	value(decode.HopTxUtilization, `,"tx_utilization":`, uint64(h.TxUtilization))
	value(decode.HopBufferID, `,"buffer_id":`, uint64(h.BufferID))
	value(decode.HopBufferOccupancy, `,"buffer_occupancy":`, uint64(h.BufferOccupancy))
	value(decode.HopQueueCongestion, `,"queue_congestion":`, uint64(h.QueueCongestion))
	if len(o.b) == start {
		o.b = append(o.b, '{')
	} else {
		o.b[start] = '{' // instead of the first value's comma
	}
	o.b = append(o.b, '}')
}
