package sflow

import (
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/decode"
)

// Datagram is the header of a datagram.
type Datagram struct {
	Agent    decode.Addr // the exporter and the node, for any source address of the datagram
	IPv      uint8       // 4, 6, or 0 where the agent has no address
	SubAgent uint32      // several processes or line cards of one agent
	Seq      uint32      // of datagrams, by agent and sub-agent
	Uptime   uint32      // ms
	Samples  uint32
}

// Kind is the subject of a sample.
type Kind uint8

// The kinds of sample.
const (
	Other    Kind = iota // a tag that is not known: only Tag is set
	Flow                 // one of Rate packets
	Counters             // of an interface
	Discard              // one packet that was dropped
)

// Field is a set of the records of a [Sample].
type Field uint16

// One bit for each record that is read.
const (
	HasHeader Field = 1 << iota
	HasSwitch
	HasQueue
	HasACL
	HasFunction
	HasDelay
	HasDepth
	HasTrap
	HasLinuxReason
	HasTime
	HasInterface // Counters: generic interface counters
	HasPortName  // Counters: name of the interface
	HasIP        // the packet's values by an agent without its header
)

// Port is an interface as a sample names it.
type Port struct {
	Format uint32 // 0: Value is an ifIndex, 0 unknown; 1: discarded, Value is the reason; 2: Value interfaces
	Value  uint32
}

// Internal is the ifIndex of the device itself.
const Internal = 0x3fffffff

// Saturated is the largest transit delay, which includes all longer ones.
const Saturated = 0xffffffff

// Sample is one sample. Values that Has does not mark are left over from an earlier sample.
type Sample struct {
	Kind         Kind
	Expanded     bool
	Tag          uint32 // enterprise in the upper 20 bits, format in the lower 12
	Has          Field
	Seq          uint32 // by source
	Class, Index uint32 // of the source
	Rate         uint32 // Flow: the sample stands for so many packets
	Pool         uint32 // Flow
	Drops        uint32 // Flow, Discard: samples that the agent lost or could not send, since it began
	Input        Port
	Output       Port
	Reason       uint32 // Discard
	Skipped      uint32 // records of tags that are not known

	Protocol, FrameLen, Stripped uint32 // of the header
	Header                       []byte
	HeaderAt                     int // where it is in the data

	InVLAN, InPriority, OutVLAN, OutPriority uint32
	Queue, Depth                             uint32
	Delay                                    uint32 // ns
	Time                                     uint64 // ns since 1970
	ACL, ACLDirection                        uint32
	ACLName, Function, Group, Trap           []byte
	LinuxReason, PortName                    []byte
	Interface                                Interface
	IP                                       IP
}

// IP is the IP header of a packet by an agent that sends its values instead of its bytes.
type IP struct {
	Version          uint8       // 4 or 6
	Src, Dst         decode.Addr // as in a [decode.FlowKey]
	Length           uint32      // of the packet, without the layers below IP
	Proto            uint32
	SrcPort, DstPort uint32 // 0 where the protocol has none
	TCPFlags, Class  uint32 // type of service, or priority
}

// Interface is the generic counters of an interface, since it began.
type Interface struct {
	Index, Type                            uint32
	Speed                                  uint64 // bit/s
	Direction, Status                      uint32
	InOctets                               uint64
	InUnicast, InMulticast, InBroadcast    uint32
	InDiscards, InErrors, InUnknown        uint32
	OutOctets                              uint64
	OutUnicast, OutMulticast, OutBroadcast uint32
	OutDiscards, OutErrors, Promiscuous    uint32
}

// maxString is the longest string of a record.
const maxString = 64

// Reader reads the samples of one datagram, one Next each. It is for one goroutine and can be started again and again.
type Reader struct {
	Err  decode.Error // why reading stopped; Reason is 0 where all was read
	Cut  bool         // the capture ends before the datagram does
	Gone uint32       // samples behind that end, of which none was read; no more than the datagram has room for
	data []byte
	pos  int
	end  int
	left uint32
}

func (rd *Reader) fail(field string, at int, reason decode.Reason) bool {
	if rd.Err.Reason == 0 {
		rd.Err = decode.Error{Format: decode.SFlow, Field: field, Offset: min(at, len(rd.data)), Reason: reason}
	}
	rd.left = 0
	return false
}

// have reports whether n bytes at at are there.
func (rd *Reader) have(at, n int, field string) bool {
	switch {
	case min(len(rd.data), rd.end)-at >= n:
		return true
	case rd.end-at < n:
		return rd.fail(field, at, decode.Short)
	}
	rd.cut()
	return false
}

// leastSample is the shortest sample: its tag and its length.
const leastSample = 8

// cut ends the reading where the capture does.
func (rd *Reader) cut() {
	room := uint32(max(rd.end-rd.pos, 0)+leastSample-1) / leastSample
	rd.Cut, rd.Gone, rd.left = true, min(rd.left, room), 0
}

// Start reads the header of the datagram in data[at:end], of which data may hold less. If it returns false there are
// no samples. Offsets of errors count from data[0].
func (rd *Reader) Start(d *Datagram, data []byte, at, end int) bool {
	be := binary.BigEndian
	*rd = Reader{data: data, pos: at, end: end}
	*d = Datagram{}
	if !rd.have(at, 8, "version") {
		return false
	}
	if be.Uint32(data[at:]) != 5 {
		return rd.fail("version", at, decode.BadVersion)
	}
	size := 0
	switch be.Uint32(data[at+4:]) {
	case 0:
	case 1:
		size, d.IPv = 4, 4
	case 2:
		size, d.IPv = 16, 6
	default:
		return rd.fail("agent_address_type", at+4, decode.BadType)
	}
	if at += 8; !rd.have(at, size+16, "agent_address") {
		return false
	}
	switch d.IPv {
	case 4:
		d.Agent = decode.AddrFrom4(data[at:])
	case 6:
		copy(d.Agent[:], data[at:at+16])
	}
	h := data[at+size : at+size+16 : at+size+16]
	d.SubAgent, d.Seq, d.Uptime, d.Samples = be.Uint32(h), be.Uint32(h[4:]), be.Uint32(h[8:]), be.Uint32(h[12:])
	rd.pos, rd.left = at+size+16, d.Samples
	return true
}

// Next reads the next sample into s. It returns false if there is none, or none that can be read. Err then holds the
// error, if any. A datagram may be followed by bytes that its number of samples does not count.
func (rd *Reader) Next(s *Sample) bool {
	if rd.left == 0 {
		return false
	}
	at := rd.pos
	if !rd.have(at, leastSample, "sample_tag") {
		return false
	}
	be := binary.BigEndian
	tag, n := be.Uint32(rd.data[at:]), int(be.Uint32(rd.data[at+4:]))
	if at += 8; n%4 != 0 || n > rd.end-at {
		return rd.fail("sample_length", at-4, decode.BadLength)
	}
	if n > len(rd.data)-at {
		rd.cut()
		return false
	}
	rd.pos = at + n
	rd.left--
	s.Kind, s.Tag, s.Has, s.Skipped, s.Expanded = Other, tag, 0, 0, false
	b := rd.data[at : at+n : at+n]
	switch tag {
	case 1:
		return rd.flow(s, b, at)
	case 3:
		return rd.expandedFlow(s, b, at)
	case 2, 4:
		return rd.counters(s, b, at, tag == 4)
	case 5:
		return rd.discard(s, b, at)
	}
	return true
}

func (rd *Reader) flow(s *Sample, b []byte, at int) bool {
	if len(b) < 32 {
		return rd.fail("flow_sample", at, decode.Short)
	}
	be, h := binary.BigEndian, b[:32:32]
	src, in, out := be.Uint32(h[4:]), be.Uint32(h[20:]), be.Uint32(h[24:])
	s.Kind, s.Seq, s.Class, s.Index = Flow, be.Uint32(h), src>>24, src&0xffffff
	s.Rate, s.Pool, s.Drops = be.Uint32(h[8:]), be.Uint32(h[12:]), be.Uint32(h[16:])
	s.Input, s.Output = Port{in >> 30, in & 0x3fffffff}, Port{out >> 30, out & 0x3fffffff}
	return rd.records(s, b[32:], at+32, be.Uint32(h[28:]))
}

func (rd *Reader) expandedFlow(s *Sample, b []byte, at int) bool {
	if len(b) < 44 {
		return rd.fail("flow_sample", at, decode.Short)
	}
	be, h := binary.BigEndian, b[:44:44]
	s.Kind, s.Expanded, s.Seq, s.Class, s.Index = Flow, true, be.Uint32(h), be.Uint32(h[4:]), be.Uint32(h[8:])
	s.Rate, s.Pool, s.Drops = be.Uint32(h[12:]), be.Uint32(h[16:]), be.Uint32(h[20:])
	s.Input, s.Output = Port{be.Uint32(h[24:]), be.Uint32(h[28:])}, Port{be.Uint32(h[32:]), be.Uint32(h[36:])}
	return rd.records(s, b[44:], at+44, be.Uint32(h[40:]))
}

func (rd *Reader) discard(s *Sample, b []byte, at int) bool {
	if len(b) < 32 {
		return rd.fail("discard_sample", at, decode.Short)
	}
	be, h := binary.BigEndian, b[:32:32]
	s.Kind, s.Expanded, s.Seq, s.Class, s.Index = Discard, true, be.Uint32(h), be.Uint32(h[4:]), be.Uint32(h[8:])
	s.Rate, s.Pool, s.Drops = 1, 0, be.Uint32(h[12:])
	s.Input, s.Output, s.Reason = Port{0, be.Uint32(h[16:])}, Port{0, be.Uint32(h[20:])}, be.Uint32(h[24:])
	return rd.records(s, b[32:], at+32, be.Uint32(h[28:]))
}

func (rd *Reader) counters(s *Sample, b []byte, at int, expanded bool) bool {
	be, size := binary.BigEndian, 12
	if expanded {
		size = 16
	}
	if len(b) < size {
		return rd.fail("counter_sample", at, decode.Short)
	}
	s.Kind, s.Expanded, s.Seq = Counters, expanded, be.Uint32(b)
	if s.Class, s.Index = be.Uint32(b[4:])>>24, be.Uint32(b[4:])&0xffffff; expanded {
		s.Class, s.Index = be.Uint32(b[4:]), be.Uint32(b[8:])
	}
	return rd.records(s, b[size:], at+size, be.Uint32(b[size-4:]))
}

// records reads n records in b, which is at at.
func (rd *Reader) records(s *Sample, b []byte, at int, n uint32) bool {
	be := binary.BigEndian
	for ; n > 0; n-- {
		if len(b) < 8 {
			return rd.fail("record_tag", at, decode.Short)
		}
		tag, size := be.Uint32(b), int(be.Uint32(b[4:]))
		if size%4 != 0 || size > len(b)-8 {
			return rd.fail("record_length", at+4, decode.BadLength)
		}
		x := b[8 : 8+size : 8+size]
		known := true
		if s.Kind == Counters {
			known = s.counterRecord(tag, x)
		} else {
			known = s.record(tag, x, at+8)
		}
		if !known {
			s.Skipped++
		}
		b, at = b[8+size:], at+8+size
	}
	return true
}

// record reads a record of a packet. It returns false for an unknown or invalid record, which is no error of the
// sample.
func (s *Sample) record(tag uint32, x []byte, at int) bool {
	be := binary.BigEndian
	switch {
	case tag == 1 && len(x) >= 16:
		n := int(be.Uint32(x[12:]))
		if n > len(x)-16 {
			return false
		}
		s.Protocol, s.FrameLen, s.Stripped = be.Uint32(x), be.Uint32(x[4:]), be.Uint32(x[8:])
		s.Header, s.HeaderAt = x[16:16+n:16+n], at+16
		s.Has |= HasHeader
	case tag == 3 && len(x) >= 32:
		return s.ip(4, x[:32:32], x[8:12], x[12:16])
	case tag == 4 && len(x) >= 56:
		return s.ip(6, x[:56:56], x[8:24], x[24:40])
	case tag == 1001 && len(x) >= 16:
		s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority = be.Uint32(x), be.Uint32(x[4:]), be.Uint32(x[8:]), be.Uint32(x[12:])
		s.Has |= HasSwitch
	case tag == 1036 && len(x) >= 4:
		s.Queue = be.Uint32(x)
		s.Has |= HasQueue
	case tag == 1037 && len(x) >= 12:
		name, rest, ok := text(x[4:])
		if !ok || len(rest) < 4 {
			return false
		}
		s.ACL, s.ACLName, s.ACLDirection = be.Uint32(x), name, be.Uint32(rest)
		s.Has |= HasACL
	case tag == 1038:
		return s.text(&s.Function, HasFunction, x)
	case tag == 1039 && len(x) >= 4:
		s.Delay = be.Uint32(x)
		s.Has |= HasDelay
	case tag == 1040 && len(x) >= 4:
		s.Depth = be.Uint32(x)
		s.Has |= HasDepth
	case tag == 1041:
		group, rest, ok := text(x)
		if !ok {
			return false
		}
		s.Group = group
		return s.text(&s.Trap, HasTrap, rest)
	case tag == 1042:
		return s.text(&s.LinuxReason, HasLinuxReason, x)
	case tag == 1043 && len(x) >= 8:
		s.Time = be.Uint64(x)
		s.Has |= HasTime
	default:
		return false
	}
	return true
}

// ip reads an agent's values of an IP header, with its addresses. Impossible numbers make the record invalid.
func (s *Sample) ip(version uint8, x, src, dst []byte) bool {
	be, rest := binary.BigEndian, x[len(x)-16:]
	p := IP{Version: version, Length: be.Uint32(x), Proto: be.Uint32(x[4:]), SrcPort: be.Uint32(rest), DstPort: be.Uint32(rest[4:]), TCPFlags: be.Uint32(rest[8:]), Class: be.Uint32(rest[12:])}
	if p.Proto > math.MaxUint8 || p.SrcPort > math.MaxUint16 || p.DstPort > math.MaxUint16 {
		return false
	}
	if version == 4 {
		p.Src, p.Dst = decode.AddrFrom4(src), decode.AddrFrom4(dst)
	} else {
		p.Src, p.Dst = decode.Addr(src), decode.Addr(dst)
	}
	s.IP = p
	s.Has |= HasIP
	return true
}

// Why is the device's own name of the reason why the packet was discarded: that of a trap, or of Linux. It is nil if
// there is none.
func (s *Sample) Why() []byte {
	if s.Has&HasTrap != 0 && len(s.Trap) > 0 {
		return s.Trap
	}
	if s.Has&HasLinuxReason != 0 && string(s.LinuxReason) != "NOT_SPECIFIED" {
		return s.LinuxReason
	}
	return nil
}

// counterRecord is record for a counter sample.
func (s *Sample) counterRecord(tag uint32, x []byte) bool {
	be := binary.BigEndian
	switch {
	case tag == 1 && len(x) >= 88:
		x = x[:88:88]
		s.Interface = Interface{
			Index: be.Uint32(x), Type: be.Uint32(x[4:]), Speed: be.Uint64(x[8:]), Direction: be.Uint32(x[16:]), Status: be.Uint32(x[20:]),
			InOctets: be.Uint64(x[24:]), InUnicast: be.Uint32(x[32:]), InMulticast: be.Uint32(x[36:]), InBroadcast: be.Uint32(x[40:]),
			InDiscards: be.Uint32(x[44:]), InErrors: be.Uint32(x[48:]), InUnknown: be.Uint32(x[52:]),
			OutOctets: be.Uint64(x[56:]), OutUnicast: be.Uint32(x[64:]), OutMulticast: be.Uint32(x[68:]), OutBroadcast: be.Uint32(x[72:]),
			OutDiscards: be.Uint32(x[76:]), OutErrors: be.Uint32(x[80:]), Promiscuous: be.Uint32(x[84:]),
		}
		s.Has |= HasInterface
	case tag == 1005:
		return s.text(&s.PortName, HasPortName, x)
	default:
		return false
	}
	return true
}

func (s *Sample) text(to *[]byte, has Field, x []byte) bool {
	v, _, ok := text(x)
	if ok {
		*to = v
		s.Has |= has
	}
	return ok
}

// text reads a string and returns the bytes behind it and its padding.
func text(x []byte) (v, rest []byte, ok bool) {
	if len(x) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(x)
	if n > maxString || int(n+3)/4*4 > len(x)-4 {
		return nil, nil, false
	}
	return x[4 : 4+n : 4+n], x[4+(n+3)/4*4:], true
}
