package rate

import (
	"bytes"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/hopscope/hopscope/decode"
)

// libraryHop and librarySchema are the columns in which the measured reports have values, and no others. A bare loop
// does not need the columns of other reports.
var libraryHop = arrow.StructOf(
	arrow.Field{Name: "node_id", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	arrow.Field{Name: "ingress_if", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
	arrow.Field{Name: "egress_if", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
	arrow.Field{Name: "latency", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	arrow.Field{Name: "queue_id", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	arrow.Field{Name: "queue_occupancy", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
)

var librarySchema = arrow.NewSchema([]arrow.Field{
	{Name: "time", Type: arrow.FixedWidthTypes.Timestamp_ns},
	{Name: "format", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "version", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "int_version", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "flags", Type: arrow.PrimitiveTypes.Uint16},
	{Name: "exporter", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Nullable: true},
	{Name: "node_id", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	{Name: "hw_id", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	{Name: "seq", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	{Name: "src", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Nullable: true},
	{Name: "dst", Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}, Nullable: true},
	{Name: "proto", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	{Name: "ip_version", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	{Name: "src_port", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
	{Name: "dst_port", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
	{Name: "packet_id", Type: arrow.PrimitiveTypes.Uint16, Nullable: true},
	{Name: "ttl", Type: arrow.PrimitiveTypes.Uint8, Nullable: true},
	{Name: "hops", Type: arrow.ListOf(libraryHop)},
}, nil)

// libraryWriter encodes reports with the builders of the library.
type libraryWriter struct {
	b   *array.RecordBuilder
	out bytes.Buffer
}

func newLibraryWriter() *libraryWriter {
	return &libraryWriter{b: array.NewRecordBuilder(memory.NewGoAllocator(), librarySchema)}
}

func (w *libraryWriter) encode(reports []*decode.Report) ([]byte, error) {
	f := w.b.Fields()
	list := f[18].(*array.ListBuilder)
	hops := list.ValueBuilder().(*array.StructBuilder)
	var hop [6]array.Builder
	for i := range hop {
		hop[i] = hops.FieldBuilder(i)
	}
	for _, r := range reports {
		f[0].(*array.TimestampBuilder).Append(arrow.Timestamp(r.Time))
		f[1].(*array.Uint8Builder).Append(uint8(r.Format))
		f[2].(*array.Uint8Builder).Append(uint8(r.Kind))
		f[3].(*array.Uint8Builder).Append(uint8(r.Version))
		f[4].(*array.Uint8Builder).Append(uint8(r.INT))
		f[5].(*array.Uint16Builder).Append(uint16(r.Flags))
		put(f[6].(*array.FixedSizeBinaryBuilder), r.Has&decode.HasExporter != 0, r.Exporter[:])
		put(f[7].(*array.Uint32Builder), r.Has&decode.HasNodeID != 0, r.NodeID)
		put(f[8].(*array.Uint8Builder), r.Has&decode.HasHWID != 0, r.HWID)
		put(f[9].(*array.Uint32Builder), r.Has&decode.HasSeq != 0, r.Seq)
		flow := r.Has&decode.HasFlow != 0
		put(f[10].(*array.FixedSizeBinaryBuilder), flow, r.Flow.Src[:])
		put(f[11].(*array.FixedSizeBinaryBuilder), flow, r.Flow.Dst[:])
		put(f[12].(*array.Uint8Builder), flow, r.Flow.Proto)
		put(f[13].(*array.Uint8Builder), flow, r.Flow.IPVersion)
		ports := r.Has&decode.HasPorts != 0
		put(f[14].(*array.Uint16Builder), ports, r.Flow.SrcPort)
		put(f[15].(*array.Uint16Builder), ports, r.Flow.DstPort)
		put(f[16].(*array.Uint16Builder), r.Has&decode.HasPacketID != 0, r.PacketID)
		put(f[17].(*array.Uint8Builder), r.Has&decode.HasTTL != 0, r.TTL)
		list.Append(true)
		for i := range r.Hops {
			h := &r.Hops[i]
			hops.Append(true)
			put(hop[0].(*array.Uint32Builder), h.Has&decode.HopNodeID != 0, h.NodeID)
			put(hop[1].(*array.Uint16Builder), h.Has&decode.HopIngressIf != 0, h.IngressIf)
			put(hop[2].(*array.Uint16Builder), h.Has&decode.HopEgressIf != 0, h.EgressIf)
			put(hop[3].(*array.Uint32Builder), h.Has&decode.HopLatency != 0, h.Latency)
			put(hop[4].(*array.Uint8Builder), h.Has&decode.HopQueueID != 0, h.QueueID)
			put(hop[5].(*array.Uint32Builder), h.Has&decode.HopQueueOccupancy != 0, h.QueueOccupancy)
		}
	}
	record := w.b.NewRecord()
	defer record.Release()
	w.out.Reset()
	stream := ipc.NewWriter(&w.out, ipc.WithSchema(librarySchema))
	err := errors.Join(stream.Write(record), stream.Close())
	return w.out.Bytes(), err
}

func put[V any, B interface {
	Append(V)
	AppendNull()
}](b B, has bool, v V) {
	if has {
		b.Append(v)
	} else {
		b.AppendNull()
	}
}

// libraryRead decodes a stream with the arrays of the library.
func libraryRead(stream []byte, dst *decode.Batch) error {
	in, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		return err
	}
	defer in.Release()
	for in.Next() {
		libraryRecord(in.Record(), dst)
	}
	return in.Err()
}

func libraryRecord(record arrow.Record, dst *decode.Batch) {
	time := record.Column(0).(*array.Timestamp)
	u8 := func(i int) *array.Uint8 { return record.Column(i).(*array.Uint8) }
	u16 := func(i int) *array.Uint16 { return record.Column(i).(*array.Uint16) }
	format, kind, version, inner, hwID, proto, ip, ttl := u8(1), u8(2), u8(3), u8(4), u8(8), u8(12), u8(13), u8(17)
	flags, srcPort, dstPort, packet := u16(5), u16(14), u16(15), u16(16)
	exporter, src, dest := record.Column(6).(*array.FixedSizeBinary), record.Column(10).(*array.FixedSizeBinary), record.Column(11).(*array.FixedSizeBinary)
	node, seq := record.Column(7).(*array.Uint32), record.Column(9).(*array.Uint32)
	list := record.Column(18).(*array.List)
	hops := list.ListValues().(*array.Struct)
	hopNode, hopLatency, hopQueue := hops.Field(0).(*array.Uint32), hops.Field(3).(*array.Uint32), hops.Field(5).(*array.Uint32)
	hopIn, hopOut := hops.Field(1).(*array.Uint16), hops.Field(2).(*array.Uint16)
	hopQueueID := hops.Field(4).(*array.Uint8)
	for i := range int(record.NumRows()) {
		r := dst.Next()
		r.Units = &decode.DefaultUnits
		r.Time, r.Format, r.Kind = int64(time.Value(i)), decode.Format(format.Value(i)), decode.Kind(kind.Value(i))
		r.Version, r.INT, r.Flags = decode.Version(version.Value(i)), decode.Version(inner.Value(i)), decode.Flags(flags.Value(i))
		if exporter.IsValid(i) {
			r.Has |= decode.HasExporter
			copy(r.Exporter[:], exporter.Value(i))
		}
		if node.IsValid(i) {
			r.Has, r.NodeID = r.Has|decode.HasNodeID, node.Value(i)
		}
		if hwID.IsValid(i) {
			r.Has, r.HWID = r.Has|decode.HasHWID, hwID.Value(i)
		}
		if seq.IsValid(i) {
			r.Has, r.Seq = r.Has|decode.HasSeq, seq.Value(i)
		}
		if src.IsValid(i) {
			r.Has |= decode.HasFlow
			copy(r.Flow.Src[:], src.Value(i))
			copy(r.Flow.Dst[:], dest.Value(i))
			r.Flow.Proto, r.Flow.IPVersion = proto.Value(i), ip.Value(i)
		}
		if srcPort.IsValid(i) {
			r.Has |= decode.HasPorts
			r.Flow.SrcPort, r.Flow.DstPort = srcPort.Value(i), dstPort.Value(i)
		}
		if packet.IsValid(i) {
			r.Has, r.PacketID = r.Has|decode.HasPacketID, packet.Value(i)
		}
		if ttl.IsValid(i) {
			r.Has, r.TTL = r.Has|decode.HasTTL, ttl.Value(i)
		}
		from, to := list.ValueOffsets(i)
		for k := int(from); k < int(to); k++ {
			h := r.AddHop()
			if hopNode.IsValid(k) {
				h.Has, h.NodeID = h.Has|decode.HopNodeID, hopNode.Value(k)
			}
			if hopIn.IsValid(k) {
				h.Has, h.IngressIf = h.Has|decode.HopIngressIf, hopIn.Value(k)
			}
			if hopOut.IsValid(k) {
				h.Has, h.EgressIf = h.Has|decode.HopEgressIf, hopOut.Value(k)
			}
			if hopLatency.IsValid(k) {
				h.Has, h.Latency = h.Has|decode.HopLatency, hopLatency.Value(k)
			}
			if hopQueueID.IsValid(k) {
				h.Has, h.QueueID = h.Has|decode.HopQueueID, hopQueueID.Value(k)
			}
			if hopQueue.IsValid(k) {
				h.Has, h.QueueOccupancy = h.Has|decode.HopQueueOccupancy, hopQueue.Value(k)
			}
		}
	}
}
