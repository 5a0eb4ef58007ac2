package decode

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// This file is the only table of the values of a [Report] and a [Hop]: name, type, presence, unit and access path of
// each. Arrow, Parquet and JSON iterate over it, so that a field is named here and nowhere else.

// ValueType is the type of the values of a column.
type ValueType uint8

// The types of values. All but the last four are numbers of at most 64 bits.
const (
	TypeUint8 ValueType = iota
	TypeUint16
	TypeUint32
	TypeUint64
	TypeInt64
	TypeTime // ns since 1970
	TypeBool
	TypeCode    // uint8, a Format or a Kind, which have names
	TypeAddress // an Addr
	TypeBytes
	TypeText
	TypeUnits // number of a set of Units
)

// ValueUnit is the unit of a number, which the exporter's [Units] define.
type ValueUnit uint8

// The units of numbers.
const (
	NoUnit         ValueUnit = iota
	LatencyUnit              // Units.LatencyNS
	TimeUnit                 // Units.TimeNS
	QueueUnit                // Units.QueueBytes
	TxUnit                   // Units.TxFullScale
	HeaderTimeUnit           // Units.HeaderTimeNS
)

// Column is an entry of the table.
type Column struct {
	Name  string // snake case, as all outputs spell it
	Type  ValueType
	Has   Field // the bit of Report.Has; 0 if the value itself shows its presence
	Unit  ValueUnit
	Limit uint8 // of a closed list: how many values have a meaning; 0 for other columns
}

// Columns is a set of columns of a [Report]: bit c is column c.
type Columns uint64

// The columns of a report, in the order of the Arrow schema.
const (
	ColTime = iota
	ColFormat
	ColKind
	ColVersion
	ColINT
	ColFlags
	ColExporter
	ColTo
	ColNodeID
	ColHWID
	ColSeq
	ColSeqBits
	ColFirst
	ColHeaderCut
	ColHeaderTime
	ColSrc
	ColDst
	ColProto
	ColIPVersion
	ColSrcPort
	ColDstPort
	ColPacketID
	ColTTL
	ColAnnounced
	ColDropReason
	ColRemainingHops
	ColDomainID
	ColInstructions
	ColFlowID
	ColSourceSeq
	ColGapTime
	ColLost
	ColActionID
	ColDigest
	ColDigestID
	ColDigestHops
	ColDigestEpoch
	ColDigestCoding
	ColDigestAMS
	ColDigestLastWriter
	ColSourceMetadata
	ColSRList
	ColSRPorts
	ColUnknown
	ColErrReason
	ColErrFormat
	ColErrField
	ColErrOffset
	ColUnits
	NumColumns
)

// ReportColumns describes the columns of a report.
var ReportColumns = [NumColumns]Column{
	ColTime:             {Name: "time", Type: TypeTime},
	ColFormat:           {Name: "format", Type: TypeCode, Limit: uint8(formatEnd)},
	ColKind:             {Name: "kind", Type: TypeCode, Limit: uint8(kindEnd)},
	ColVersion:          {Name: "version", Type: TypeUint8},
	ColINT:              {Name: "int_version", Type: TypeUint8},
	ColFlags:            {Name: "flags", Type: TypeUint16},
	ColExporter:         {Name: "exporter", Type: TypeAddress, Has: HasExporter},
	ColTo:               {Name: "destination", Type: TypeUint64},
	ColNodeID:           {Name: "node_id", Type: TypeUint32, Has: HasNodeID},
	ColHWID:             {Name: "hw_id", Type: TypeUint8, Has: HasHWID},
	ColSeq:              {Name: "seq", Type: TypeUint32, Has: HasSeq},
	ColSeqBits:          {Name: "seq_bits", Type: TypeUint8},
	ColFirst:            {Name: "first_of_group", Type: TypeBool},
	ColHeaderCut:        {Name: "header_cut", Type: TypeBool},
	ColHeaderTime:       {Name: "header_time", Type: TypeUint32, Has: HasHeaderTime, Unit: HeaderTimeUnit},
	ColSrc:              {Name: "src", Type: TypeAddress, Has: HasFlow},
	ColDst:              {Name: "dst", Type: TypeAddress, Has: HasFlow},
	ColProto:            {Name: "proto", Type: TypeUint8, Has: HasFlow},
	ColIPVersion:        {Name: "ip_version", Type: TypeUint8, Has: HasFlow},
	ColSrcPort:          {Name: "src_port", Type: TypeUint16, Has: HasPorts},
	ColDstPort:          {Name: "dst_port", Type: TypeUint16, Has: HasPorts},
	ColPacketID:         {Name: "packet_id", Type: TypeUint16, Has: HasPacketID},
	ColTTL:              {Name: "ttl", Type: TypeUint8, Has: HasTTL},
	ColAnnounced:        {Name: "announced_hops", Type: TypeUint8},
	ColDropReason:       {Name: "drop_reason", Type: TypeUint8, Has: HasDropReason},
	ColRemainingHops:    {Name: "remaining_hops", Type: TypeUint8, Has: HasRemainingHops},
	ColDomainID:         {Name: "domain_id", Type: TypeUint16, Has: HasDomainID},
	ColInstructions:     {Name: "instructions", Type: TypeUint16, Has: HasInstructions},
	ColFlowID:           {Name: "flow_id", Type: TypeUint32, Has: HasFlowID},
	ColSourceSeq:        {Name: "source_seq", Type: TypeUint32, Has: HasSourceSeq},
	ColGapTime:          {Name: "gap_time", Type: TypeUint32, Has: HasGap},
	ColLost:             {Name: "lost", Type: TypeUint32, Has: HasGap},
	ColActionID:         {Name: "action_id", Type: TypeUint32, Has: HasActionID},
	ColDigest:           {Name: "digest", Type: TypeUint64, Has: HasDigest},
	ColDigestID:         {Name: "digest_packet", Type: TypeUint32, Has: HasDigest},
	ColDigestHops:       {Name: "digest_hops", Type: TypeUint8, Has: HasDigest},
	ColDigestEpoch:      {Name: "digest_epoch", Type: TypeUint8, Has: HasDigest},
	ColDigestCoding:     {Name: "digest_coding", Type: TypeUint8, Has: HasDigest, Limit: uint8(CodingHPCC) + 1},
	ColDigestAMS:        {Name: "digest_ams", Type: TypeUint16, Has: HasDigest},
	ColDigestLastWriter: {Name: "digest_last_writer", Type: TypeUint16, Has: HasDigest},
	ColSourceMetadata:   {Name: "source_metadata", Type: TypeBytes, Has: HasSourceMetadata},
	ColSRList:           {Name: "sr_list", Type: TypeBytes, Has: HasSRList},
	ColSRPorts:          {Name: "sr_ports", Type: TypeBytes, Has: HasSRPorts},
	ColUnknown:          {Name: "unknown", Type: TypeBytes},
	ColErrReason:        {Name: "error_reason", Type: TypeUint8, Limit: uint8(NumReasons)},
	ColErrFormat:        {Name: "error_format", Type: TypeUint8, Limit: uint8(formatEnd)},
	ColErrField:         {Name: "error_field", Type: TypeText},
	ColErrOffset:        {Name: "error_offset", Type: TypeInt64},
	ColUnits:            {Name: "units", Type: TypeUnits},
}

// Sets of columns by their presence.
const (
	// AlwaysColumns are those with a value in every report. The flags of type bool have one too: false.
	AlwaysColumns Columns = 1<<ColTime | 1<<ColFormat | 1<<ColKind | 1<<ColVersion | 1<<ColINT | 1<<ColFlags

	flowColumns   = 1<<ColSrc | 1<<ColDst | 1<<ColProto | 1<<ColIPVersion
	digestColumns = 1<<ColDigest | 1<<ColDigestID | 1<<ColDigestHops | 1<<ColDigestEpoch | 1<<ColDigestCoding | 1<<ColDigestAMS | 1<<ColDigestLastWriter
	errorColumns  = 1<<ColErrReason | 1<<ColErrFormat | 1<<ColErrField | 1<<ColErrOffset
	// rareColumns are those with numbers that most reports have not.
	rareColumns = 1<<ColHeaderTime | 1<<ColDropReason | 1<<ColDomainID | 1<<ColFlowID | 1<<ColSourceSeq | 1<<ColGapTime | 1<<ColLost | 1<<ColActionID |
		errorColumns
)

// presence holds the columns of each bit of Report.Has.
var presence = func() (list []Columns) {
	for f := Field(1); ; f <<= 1 {
		var of Columns
		for c := range ReportColumns {
			if ReportColumns[c].Has == f {
				of |= 1 << c
			}
		}
		if of == 0 {
			return list
		}
		list = append(list, of)
	}
}()

// ColumnsOf returns the columns with values of some types.
func ColumnsOf(types ...ValueType) (set Columns) {
	for c := range ReportColumns {
		if slices.Contains(types, ReportColumns[c].Type) {
			set |= 1 << c
		}
	}
	return set
}

// Columns returns the columns of f: those that have a value in each report with the bits of f in Has.
func (f Field) Columns() (have Columns) {
	for f &= 1<<len(presence) - 1; f != 0; f &= f - 1 {
		have |= presence[bits.TrailingZeros32(uint32(f))]
	}
	return have
}

// Fields returns the bits that Has needs for the columns of c. A bit is set if the first of its columns is there.
func (c Columns) Fields() (f Field) {
	for i, all := range presence {
		if c&all&-all != 0 {
			f |= 1 << i
		}
	}
	return f
}

// Present returns the columns with a value of r. Units are there unless they are nil.
func (r *Report) Present() Columns { return AlwaysColumns | r.Has.Columns() | r.PresentByValue() }

// PresentByValue returns the columns with a value of r for which there is no bit in Has: those that are not zero.
func (r *Report) PresentByValue() (have Columns) {
	if r.To != 0 {
		have |= 1 << ColTo
	}
	if r.SeqBits != 0 {
		have |= 1 << ColSeqBits
	}
	if r.FirstOfGroup {
		have |= 1 << ColFirst
	}
	if r.HeaderCut {
		have |= 1 << ColHeaderCut
	}
	if r.Announced != 0 {
		have |= 1 << ColAnnounced
	}
	if len(r.Unknown) != 0 {
		have |= 1 << ColUnknown
	}
	if r.Err.Reason != 0 {
		have |= errorColumns
	}
	if r.Units != nil {
		have |= 1 << ColUnits
	}
	return have
}

// ReportNumbers holds the numbers of a report, each at the place of its column. Addresses, bytes, texts and units
// have none.
type ReportNumbers [NumColumns]uint64

// Numbers stores the numbers of r in v, at least those of the columns in want.
func (r *Report) Numbers(want Columns, v *ReportNumbers) {
	v[ColTime] = uint64(r.Time)
	v[ColFormat] = uint64(r.Format)
	v[ColKind] = uint64(r.Kind)
	v[ColVersion] = uint64(r.Version)
	v[ColINT] = uint64(r.INT)
	v[ColFlags] = uint64(r.Flags)
	v[ColTo] = r.To
	v[ColNodeID] = uint64(r.NodeID)
	v[ColHWID] = uint64(r.HWID)
	v[ColSeq] = uint64(r.Seq)
	v[ColSeqBits] = uint64(r.SeqBits)
	v[ColFirst] = number(r.FirstOfGroup)
	v[ColHeaderCut] = number(r.HeaderCut)
	v[ColProto] = uint64(r.Flow.Proto)
	v[ColIPVersion] = uint64(r.Flow.IPVersion)
	v[ColSrcPort] = uint64(r.Flow.SrcPort)
	v[ColDstPort] = uint64(r.Flow.DstPort)
	v[ColPacketID] = uint64(r.PacketID)
	v[ColTTL] = uint64(r.TTL)
	v[ColAnnounced] = uint64(r.Announced)
	v[ColRemainingHops] = uint64(r.RemainingHops)
	v[ColInstructions] = uint64(r.Instructions)
	if want&digestColumns != 0 {
		v[ColDigest] = r.Digest.Value
		v[ColDigestID] = uint64(r.Digest.ID)
		v[ColDigestHops] = uint64(r.Digest.Hops)
		v[ColDigestEpoch] = uint64(r.Digest.Epoch)
		v[ColDigestCoding] = uint64(r.Digest.Coding)
		v[ColDigestAMS] = uint64(r.Digest.AMS)
		v[ColDigestLastWriter] = uint64(r.Digest.LastWriter)
	}
	if want&rareColumns == 0 {
		return
	}
	v[ColHeaderTime] = uint64(r.HeaderTime)
	v[ColDropReason] = uint64(r.DropReason)
	v[ColDomainID] = uint64(r.DomainID)
	v[ColFlowID] = uint64(r.FlowID)
	v[ColSourceSeq] = uint64(r.SourceSeq)
	v[ColGapTime] = uint64(r.GapTime)
	v[ColLost] = uint64(r.Lost)
	v[ColActionID] = uint64(r.ActionID)
	v[ColErrReason] = uint64(r.Err.Reason)
	v[ColErrFormat] = uint64(r.Err.Format)
	v[ColErrOffset] = uint64(r.Err.Offset)
}

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// SetNumbers sets the columns in have of the empty report r to the numbers of v. At all other places v holds zeros.
func (r *Report) SetNumbers(have Columns, v *ReportNumbers) {
	r.Time = int64(v[ColTime])
	r.Format = Format(v[ColFormat])
	r.Kind = Kind(v[ColKind])
	r.Version = Version(v[ColVersion])
	r.INT = Version(v[ColINT])
	r.Flags = Flags(v[ColFlags])
	r.To = v[ColTo]
	r.NodeID = uint32(v[ColNodeID])
	r.HWID = uint8(v[ColHWID])
	r.Seq = uint32(v[ColSeq])
	r.SeqBits = uint8(v[ColSeqBits])
	r.FirstOfGroup = v[ColFirst] != 0
	r.HeaderCut = v[ColHeaderCut] != 0
	r.Flow.Proto = uint8(v[ColProto])
	r.Flow.IPVersion = uint8(v[ColIPVersion])
	r.Flow.SrcPort = uint16(v[ColSrcPort])
	r.Flow.DstPort = uint16(v[ColDstPort])
	r.PacketID = uint16(v[ColPacketID])
	r.TTL = uint8(v[ColTTL])
	r.Announced = uint8(v[ColAnnounced])
	r.RemainingHops = uint8(v[ColRemainingHops])
	r.Instructions = uint16(v[ColInstructions])
	if have&digestColumns != 0 {
		r.Digest = Digest{
			Value: v[ColDigest], ID: uint32(v[ColDigestID]), Hops: uint8(v[ColDigestHops]), Epoch: uint8(v[ColDigestEpoch]),
			Coding: Coding(v[ColDigestCoding]), AMS: uint16(v[ColDigestAMS]), LastWriter: uint16(v[ColDigestLastWriter]),
		}
	}
	if have&rareColumns == 0 {
		return
	}
	r.HeaderTime = uint32(v[ColHeaderTime])
	r.DropReason = uint8(v[ColDropReason])
	r.DomainID = uint16(v[ColDomainID])
	r.FlowID = uint32(v[ColFlowID])
	r.SourceSeq = uint32(v[ColSourceSeq])
	r.GapTime, r.Lost = uint32(v[ColGapTime]), uint32(v[ColLost])
	r.ActionID = uint32(v[ColActionID])
	r.Err.Reason, r.Err.Format, r.Err.Offset = Reason(v[ColErrReason]), Format(v[ColErrFormat]), int(int64(v[ColErrOffset]))
}

// Address returns the place of an address.
func (r *Report) Address(c int) *Addr {
	switch c {
	case ColExporter:
		return &r.Exporter
	case ColSrc:
		return &r.Flow.Src
	}
	return &r.Flow.Dst
}

// Bytes returns the place of bytes.
func (r *Report) Bytes(c int) *[]byte {
	return [...]*[]byte{&r.SourceMetadata, &r.SRList, &r.SRPorts, &r.Unknown}[c-ColSourceMetadata]
}

// HopColumn is a [Column] of a Hop: its place in HopColumns is that of its bit in Hop.Has.
type HopColumn struct {
	Name string
	Type ValueType
	Unit ValueUnit
	// Move copies the values of hops to b, little-endian and in the width of the type, or with load from b to hops.
	Move func(b []byte, hops []Hop, load bool)
}

// NumHopColumns is the number of columns of a hop: one for each bit of Hop.Has, and HopTimeBits.
const (
	HopTimeBits   = 17 // the width of the two times, which has no bit: it is there if it is not zero
	NumHopColumns = 18
)

// HopColumns describes the values of a hop.
var HopColumns = [NumHopColumns]HopColumn{
	{"node_id", TypeUint32, NoUnit, func(b []byte, h []Hop, l bool) { move32(b, len(h), l, func(i int) *uint32 { return &h[i].NodeID }) }},
	{"ingress_if", TypeUint16, NoUnit, func(b []byte, h []Hop, l bool) { move16(b, len(h), l, func(i int) *uint16 { return &h[i].IngressIf }) }},
	{"egress_if", TypeUint16, NoUnit, func(b []byte, h []Hop, l bool) { move16(b, len(h), l, func(i int) *uint16 { return &h[i].EgressIf }) }},
	{"latency", TypeUint32, LatencyUnit, func(b []byte, h []Hop, l bool) { move32(b, len(h), l, func(i int) *uint32 { return &h[i].Latency }) }},
	{"queue_id", TypeUint8, NoUnit, func(b []byte, h []Hop, l bool) { move8(b, len(h), l, func(i int) *uint8 { return &h[i].QueueID }) }},
	{"queue_occupancy", TypeUint32, QueueUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].QueueOccupancy })
	}},
	{"ingress_time", TypeUint64, TimeUnit, func(b []byte, h []Hop, l bool) {
		move64(b, len(h), l, func(i int) *uint64 { return &h[i].IngressTime })
	}},
	{"egress_time", TypeUint64, TimeUnit, func(b []byte, h []Hop, l bool) { move64(b, len(h), l, func(i int) *uint64 { return &h[i].EgressTime }) }},
	{"l2_ingress_if", TypeUint32, NoUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].L2IngressIf })
	}},
	{"l2_egress_if", TypeUint32, NoUnit, func(b []byte, h []Hop, l bool) { move32(b, len(h), l, func(i int) *uint32 { return &h[i].L2EgressIf }) }},
	{"tx_utilization", TypeUint32, TxUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].TxUtilization })
	}},
	{"buffer_id", TypeUint8, NoUnit, func(b []byte, h []Hop, l bool) { move8(b, len(h), l, func(i int) *uint8 { return &h[i].BufferID }) }},
	{"buffer_occupancy", TypeUint32, QueueUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].BufferOccupancy })
	}},
	{"queue_congestion", TypeUint32, NoUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].QueueCongestion })
	}},
	{"enq_time", TypeUint32, TimeUnit, func(b []byte, h []Hop, l bool) { move32(b, len(h), l, func(i int) *uint32 { return &h[i].EnqTime }) }},
	{"queue_delay", TypeUint32, LatencyUnit, func(b []byte, h []Hop, l bool) { move32(b, len(h), l, func(i int) *uint32 { return &h[i].QueueDelay }) }},
	{"deq_occupancy", TypeUint32, QueueUnit, func(b []byte, h []Hop, l bool) {
		move32(b, len(h), l, func(i int) *uint32 { return &h[i].DeqOccupancy })
	}},
	{"time_bits", TypeUint8, NoUnit, func(b []byte, h []Hop, l bool) { move8(b, len(h), l, func(i int) *uint8 { return &h[i].TimeBits }) }},
}

// HopNumbers holds the values of a hop, each at the place of its column.
type HopNumbers [NumHopColumns]uint64

// Numbers stores the values of h in v, at least those of the columns in want. Values that are not there are 0.
func (h *Hop) Numbers(want HopField, v *HopNumbers) {
	v[0] = uint64(h.NodeID)
	v[1] = uint64(h.IngressIf)
	v[2] = uint64(h.EgressIf)
	v[3] = uint64(h.Latency)
	v[4] = uint64(h.QueueID)
	v[5] = uint64(h.QueueOccupancy)
	if want>>6 == 0 {
		return
	}
	v[6] = h.IngressTime
	v[7] = h.EgressTime
	v[8] = uint64(h.L2IngressIf)
	v[9] = uint64(h.L2EgressIf)
	v[10] = uint64(h.TxUtilization)
	v[11] = uint64(h.BufferID)
	v[12] = uint64(h.BufferOccupancy)
	v[13] = uint64(h.QueueCongestion)
	v[14] = uint64(h.EnqTime)
	v[15] = uint64(h.QueueDelay)
	v[16] = uint64(h.DeqOccupancy)
	v[17] = uint64(h.TimeBits)
}

// The functions below move the values that at points at. They are small enough to be inlined in each entry of
// HopColumns together with its at, which leaves one loop without calls.

func move8(b []byte, n int, load bool, at func(int) *uint8) {
	for i := range n {
		if p := at(i); load {
			*p = b[i]
		} else {
			b[i] = *p
		}
	}
}

func move16(b []byte, n int, load bool, at func(int) *uint16) {
	for i := range n {
		if p, b := at(i), b[2*i:]; load {
			*p = binary.LittleEndian.Uint16(b)
		} else {
			binary.LittleEndian.PutUint16(b, *p)
		}
	}
}

func move32(b []byte, n int, load bool, at func(int) *uint32) {
	for i := range n {
		if p, b := at(i), b[4*i:]; load {
			*p = binary.LittleEndian.Uint32(b)
		} else {
			binary.LittleEndian.PutUint32(b, *p)
		}
	}
}

func move64(b []byte, n int, load bool, at func(int) *uint64) {
	for i := range n {
		if p, b := at(i), b[8*i:]; load {
			*p = binary.LittleEndian.Uint64(b)
		} else {
			binary.LittleEndian.PutUint64(b, *p)
		}
	}
}
