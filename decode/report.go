package decode

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Format names the family that a report came in.
type Format uint8

// The closed list of formats; String returns the spelling used in output and metrics.
const (
	_               Format = iota
	TelemetryReport        // P4.org telemetry report, with any content
	INTMD                  // INT-MD in the network, without a report
	INTMX                  // INT-MX in the network: instructions only
	INTPath                // source-routed probes of INT-path
	INTProbe               // source-routed probes of INT-Probe
	IOAM
	IFA
	PINT
	SFlow
	IPFIX
	NetFlow9
	NetFlow5
	OTLP   // metrics of OpenTelemetry
	SFlow4 // versions 2 and 4 of sFlow, which are recognised and not read
	formatEnd
)

// NumFormats is the size of an array with an entry for each Format.
const NumFormats = int(formatEnd)

var formatNames = [NumFormats]string{
	TelemetryReport: "telemetry-report",
	INTMD:           "int-md",
	INTMX:           "int-mx",
	INTPath:         "int-path",
	INTProbe:        "int-probe",
	IOAM:            "ioam",
	IFA:             "ifa",
	PINT:            "pint",
	SFlow:           "sflow",
	IPFIX:           "ipfix",
	NetFlow9:        "netflow-9",
	NetFlow5:        "netflow-5",
	OTLP:            "otlp",
	SFlow4:          "sflow-4",
}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return "format?"
}

// Kind is the subject of a report.
type Kind uint8

// The closed list of kinds; String returns the spelling used in output and metrics.
const (
	_ Kind = iota
	KindStack
	KindPostcard
	KindDrop
	KindQueue
	KindInstruction
	KindTrace
	KindProof
	KindEdge
	KindExport
	KindProbe
	KindDigest
	KindSample    // sFlow: a packet of a flow, and nothing of its hop
	KindCounters  // sFlow and OTLP: counters of interfaces
	KindRecord    // IPFIX, NetFlow 9: a record of options or of unknown content, or a message without records
	KindHistogram // OTLP: how often values of a hop were in which bucket
	KindDelay     // IPFIX: how long packets were on their way to the node
	KindProbes    // telemetry report 2.0: what became of the probes of a path, by an agent
	kindEnd
)

// NumKinds is the size of an array with an entry for each Kind.
const NumKinds = int(kindEnd)

var kindNames = [NumKinds]string{"", "int-stack", "postcard", "drop", "queue", "instruction", "trace", "proof", "edge", "export", "probe", "digest", "sample", "counters", "record", "histogram", "delay", "probes"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Version is a format's version with its dot left out: 5 is 0.5, 10 is 1.0, 21 is 2.1. 0 means none was read.
type Version uint8

// Versions of the telemetry report and of INT.
const (
	V05 Version = 5
	V10 Version = 10
	V20 Version = 20
	V21 Version = 21
)

func (v Version) String() string {
	if v == 0 {
		return ""
	}
	return string([]byte{'0' + byte(v/10), '.', '0' + byte(v%10)})
}

// Flags is a set of one-bit statements about a packet, a report or its reading.
type Flags uint16

// Report flags (D, Q, F, I), INT flags (E, M, C, D) and how far the reading went.
const (
	Dropped    Flags = 1 << iota // report D
	Congested                    // report Q
	Tracked                      // report F
	Transit                      // report I
	HopLimit                     // INT E: a node was refused by the remaining hop count
	MTU                          // INT M: a node could not add its block
	Copy                         // INT C (0.5, 1.0)
	Discard                      // INT D (2.x): the sink node discards the packet
	Truncated                    // telemetry ends because the packet or the capture was cut; not an error
	Loop                         // PINT: a switch saw the packet come around again
	Overflow                     // IOAM: a node had no room for its data, as has none behind it
	Loopback                     // IOAM: nodes send copies back to where the packet came from
	Active                       // IOAM: the packet is a probe, not user data
	Inband                       // IFA: the packet is user data, no copy or probe
	TurnAround                   // IFA: the far end sends the packet back
	Sampled                      // telemetry in a packet that a report of its own is a sample of: that one counts the packet
)

var flagNames = []string{
	"dropped", "congested", "tracked", "transit", "hop-limit", "mtu", "copy", "discard", "truncated", "loop", "overflow",
	"loopback", "active", "inband", "turn-around", "sampled",
}

// AppendNames appends the names of the flags in f.
func (f Flags) AppendNames(dst []string) []string {
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			dst = append(dst, name)
		}
	}
	return dst
}

// Field is a set of the optional values of a [Report].
type Field uint32

// One bit for each optional value of a Report.
const (
	HasExporter Field = 1 << iota
	HasNodeID
	HasHWID
	HasSeq
	HasHeaderTime
	HasFlow
	HasPorts // Flow's ports were read from the packet
	HasPacketID
	HasFlowID
	HasDomainID
	HasInstructions
	HasRemainingHops
	HasSourceSeq
	HasSourceMetadata
	HasDropReason
	HasGap // GapTime and Lost
	HasActionID
	HasSRList
	HasSRPorts
	HasTTL
	HasDigest
	HasInner      // Inner
	HasInnerPorts // Inner's ports were read
)

// Report is one decoded report, or one decoded packet of the network that carries telemetry itself. Has marks the
// optional values that are present. The others are zero.
//
// The byte slices alias the bytes that were decoded; everything else is owned by the report. Hops and [Rare] keep
// their memory when a report is reused. Batches consist of reports, and each datagram clears them. Values of few
// reports are therefore in Rare.
type Report struct {
	Time     int64 // receive time, ns since 1970
	Format   Format
	Kind     Kind    // 0 when the outermost header was rejected
	Version  Version // of the report header, or of INT in the network
	INT      Version // of INT inside a report
	Flags    Flags
	Has      Field
	Exporter Addr   // source address of the datagram
	NodeID   uint32 // reporting node
	To       uint64 // where the datagram was sent to: see [Destination]

	Weight uint32 // packets that a sample stands for, by its sampling rate; 0 is 1
	HWID   uint8  // subsystem of the reporting node
	// SeqBits is the width of Seq: 32, or 22 for telemetry report 2.0. FirstOfGroup is set on the report that a
	// sequence number is to be counted with: 2.0 numbers datagrams, which can hold several reports.
	SeqBits      uint8
	FirstOfGroup bool
	// HeaderCut: the capture ends inside of the report's header, so that nothing of it was accepted. Node, hardware
	// id and sequence number are set as far as they were captured. They are for the count of losses, and not to be
	// printed.
	HeaderCut  bool
	Seq        uint32
	HeaderTime uint32 // ingress timestamp of the report header 0.5 and 1.0; for how long an agent of sFlow has run

	Flow     FlowKey
	FlowHash uint64 // of Flow, set before the report is handed on: [HashKey.Flow] of the collector's key; 0 means not yet
	PacketID uint16 // IPv4 identification
	TTL      uint8  // of the IP header that Flow was read from; falls along the path

	// Announced is the number of hops that the lengths of an INT stack announce, at most 255. A cut stack has fewer.
	// The reporting node's own hop then counts, too, if it is beside the stack.
	Announced     uint8
	Remarks       Remark // the decoder's further statements
	DropReason    uint8
	RemainingHops uint8
	DomainID      uint16
	Instructions  uint16 // bitmap as on the wire
	FlowID        uint32
	SourceSeq     uint32
	GapTime, Lost uint32
	ActionID      uint32
	Digest        Digest // PINT

	SourceMetadata []byte // INT-MX source-inserted words
	SRList         []byte // INT-path: the 64 bytes of the route
	SRPorts        []byte // INT-Probe: route entries, 2 bytes each, next first
	Unknown        []byte // domain specific words, or the contents of a report type that is not defined; a record of IPFIX

	Units *Units // of the exporter's profile; never nil after demux
	Err   Error  // Err.Reason is 0 for a report that was read to its end

	Hops []Hop // first hop of the path first

	Rare *Rare // nil where the report has nothing of it: see [Report.AddRare]
	kept *Rare // empty: the memory of Rare while that is nil
}

// Destination is a 64-bit name of an address and a port that datagrams are sent to. It is unique for IPv4 addresses,
// and for others nearly so.
func Destination(a *Addr, port uint16) uint64 {
	hi, lo := binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])
	if hi == 0 && lo>>32 == 0xffff {
		return lo&0xffffffff<<16 | uint64(port)
	}
	return (hi*0x9e3779b97f4a7c15^bits.RotateLeft64(lo, 32))*0xe7037ed1a0b428db ^ uint64(port)
}

// KeptHops is the number of hops for which a report keeps memory. Reports change hands, so that one long stack in
// each batch would in the end have made every report of a collector long.
const KeptHops = 16

// Reset makes r an empty report that keeps the memory of its hops, unless they were many, and of Rare.
func (r *Report) Reset() {
	if r.swollen() {
		r.trim()
	}
	r.empty()
}

// swollen reports whether r has memory that it does not keep, or that is to be emptied.
func (r *Report) swollen() bool { return r.Rare != nil || cap(r.Hops) > KeptHops }

// empty empties r, which is not swollen.
func (r *Report) empty() {
	hops, kept := r.Hops, r.kept
	*r = Report{}
	r.Hops, r.kept = hops[:0], kept
}

// trim leaves in r the memory that it keeps, empty.
func (r *Report) trim() {
	if cap(r.Hops) > KeptHops {
		r.Hops = make([]Hop, 0, 8)
	}
	if r.Rare != nil {
		r.Rare.reset()
		r.Rare, r.kept = nil, r.Rare
	}
}

// AddHop grows Hops by one zero hop and returns it. The pointer is valid until the next call.
func (r *Report) AddHop() *Hop {
	n := len(r.Hops)
	if n == cap(r.Hops) {
		r.Hops = slices.Grow(r.Hops, 1)
	}
	r.Hops = r.Hops[:n+1]
	h := &r.Hops[n]
	*h = Hop{}
	return h
}

// Grow lengthens Hops by n and returns all of it. The new hops hold values of earlier reports: the caller overwrites
// every one of them.
func (r *Report) Grow(n int) []Hop {
	n += len(r.Hops)
	if n > cap(r.Hops) {
		r.Hops = slices.Grow(r.Hops, n-len(r.Hops))
	}
	r.Hops = r.Hops[:n]
	return r.Hops
}

// Postcard reports whether r is about the reporting node alone, without a stack.
func (r *Report) Postcard() bool { return r.Kind == KindPostcard && r.INT == 0 }

// WholePath reports whether Hops is the whole path of the packet: no node was refused, and nothing that names a hop was
// cut off.
func (r *Report) WholePath() bool {
	if r.Flags&(HopLimit|MTU|Overflow) != 0 || len(r.Hops) == 0 {
		return false
	}
	if r.Flags&Truncated == 0 {
		return true
	}
	if r.Announced == 0 || len(r.Hops) < int(r.Announced) {
		return false
	}
	for i := range r.Hops {
		if r.Hops[i].Has&HopNodeID == 0 {
			return false
		}
	}
	return true
}

// CutOff reports whether r stands for reports that were cut off. Such a report holds only its exporter, and perhaps
// its sequence number.
func (r *Report) CutOff() bool { return r.Kind == 0 && r.Flags&Truncated != 0 && r.Err.Reason == 0 }

// CutShort reports whether r, the last report of a cut datagram or frame, lacks its subject. The subject is the hops
// of a stack or trace, by its header's count, a digest, or both hop and flow of a postcard. The subject of drop and
// queue reports is in their header, so that they lack nothing.
func (r *Report) CutShort() bool {
	switch r.Kind {
	case KindStack, KindTrace, KindProbe:
		return r.Flags&(Truncated|Sampled) == Truncated && (r.Announced == 0 || len(r.Hops) < int(r.Announced))
	case KindPostcard:
		return len(r.Hops) == 0 && r.Has&HasFlow == 0
	case KindDigest:
		return r.Has&HasDigest == 0
	}
	return r.CutOff()
}

// Fail records why reading stopped. The first failure wins.
func (r *Report) Fail(format Format, field string, offset int, reason Reason) {
	if r.Err.Reason == 0 {
		r.Err = Error{Format: format, Field: field, Offset: offset, Reason: reason}
	}
}

// Error returns the failure as an error, or nil.
func (r *Report) Error() error {
	if r.Err.Reason == 0 {
		return nil
	}
	return &r.Err
}

// Batch is a reusable list of reports. It grows to the largest number of reports that it ever held and allocates
// nothing after that.
type Batch struct {
	// Reports are valid until Reset. The capacity behind its end holds reports to be used again, or nil.
	Reports []*Report
	// Cut is the number of reports behind the captured parts of the batch's frames and datagrams, as far as headers
	// count them. For each datagram without such a count one report is in Reports: see [Report.CutOff].
	Cut uint64
}

// Next appends an empty report and returns it.
func (b *Batch) Next() *Report {
	if n := len(b.Reports); n < cap(b.Reports) {
		if used := b.Reports[:n+1]; used[n] != nil {
			b.Reports = used
			r := used[n]
			if r.swollen() { // Reset, without a call for nearly all reports
				r.trim()
			}
			r.empty()
			return r
		}
	}
	r := &Report{Hops: make([]Hop, 0, 8)}
	exchange(&b.Reports, r)
	return r
}

// Cancel removes the last report of Next.
func (b *Batch) Cancel() { b.Reports = b.Reports[:len(b.Reports)-1] }

// Reset empties the batch. The reports that were in it will be handed out again.
func (b *Batch) Reset() { b.Reports, b.Cut = b.Reports[:0], 0 }

// Scatter moves every report of b to the batch that pick chooses, in order and without copying, and leaves b empty.
// The batches return unused reports in exchange, so that neither side runs out of them. A report for which pick
// returns nil stays in b, to be used again.
func (b *Batch) Scatter(pick func(*Report) *Batch) {
	for i, r := range b.Reports {
		dst := pick(r)
		if dst == nil {
			continue
		}
		b.Reports[i] = exchange(&dst.Reports, r)
	}
	b.Reports = b.Reports[:0]
}

// exchange appends r to a list and returns the unused element behind its end, or nil.
func exchange[T any](list *[]*T, r *T) (unused *T) {
	n := len(*list)
	if n == cap(*list) {
		*list = slices.Grow(*list, 1)
		clear((*list)[n:cap(*list)])
	}
	*list = (*list)[:n+1]
	unused, (*list)[n] = (*list)[n], r
	return unused
}
