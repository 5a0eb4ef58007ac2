package sflow

import (
	"encoding/binary"
)

// AppendDatagram appends the header of a datagram, behind which d.Samples samples come.
func AppendDatagram(b []byte, d *Datagram) []byte {
	b = words(b, 5)
	switch d.IPv {
	case 4:
		b = append(words(b, 1), d.Agent[12:]...)
	case 6:
		b = append(words(b, 2), d.Agent[:]...)
	default:
		b = words(b, 0)
	}
	return words(b, d.SubAgent, d.Seq, d.Uptime, d.Samples)
}

// AppendSample appends a flow sample, counter sample or discarded packet with the records that s.Has names.
func AppendSample(b []byte, s *Sample) []byte {
	tag := map[Kind]uint32{Flow: 1, Counters: 2, Discard: 5}[s.Kind]
	if s.Expanded && s.Kind != Discard {
		tag += 2
	}
	b = words(b, tag, 0)
	at := len(b)
	if b = words(b, s.Seq); s.Expanded || s.Kind == Discard {
		b = words(b, s.Class, s.Index)
	} else {
		b = words(b, s.Class<<24|s.Index&0xffffff)
	}
	switch {
	case s.Kind == Discard:
		b = words(b, s.Drops, s.Input.Value, s.Output.Value, s.Reason)
	case s.Kind == Counters:
	case s.Expanded:
		b = words(b, s.Rate, s.Pool, s.Drops, s.Input.Format, s.Input.Value, s.Output.Format, s.Output.Value)
	default:
		b = words(b, s.Rate, s.Pool, s.Drops, s.Input.Format<<30|s.Input.Value&0x3fffffff, s.Output.Format<<30|s.Output.Value&0x3fffffff)
	}
	b = words(b, 0)
	count := len(b)
	n := uint32(0)
	record := func(tag uint32, x []byte) {
		b = append(words(b, tag, uint32(len(x))), x...)
		n++
	}
	has := func(f Field) bool { return s.Has&f != 0 }
	if has(HasHeader) {
		x := words(nil, s.Protocol, s.FrameLen, s.Stripped)
		record(1, str(x, s.Header))
	}
	if p := &s.IP; has(HasIP) {
		tag, x := uint32(3), words(nil, p.Length, p.Proto)
		if p.Version == 6 {
			tag, x = 4, append(append(x, p.Src[:]...), p.Dst[:]...)
		} else {
			x = append(append(x, p.Src[12:]...), p.Dst[12:]...)
		}
		record(tag, words(x, p.SrcPort, p.DstPort, p.TCPFlags, p.Class))
	}
	if has(HasSwitch) {
		record(1001, words(nil, s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority))
	}
	if has(HasQueue) {
		record(1036, words(nil, s.Queue))
	}
	if has(HasACL) {
		record(1037, words(str(words(nil, s.ACL), s.ACLName), s.ACLDirection))
	}
	if has(HasFunction) {
		record(1038, str(nil, s.Function))
	}
	if has(HasDelay) {
		record(1039, words(nil, s.Delay))
	}
	if has(HasDepth) {
		record(1040, words(nil, s.Depth))
	}
	if has(HasTrap) {
		record(1041, str(str(nil, s.Group), s.Trap))
	}
	if has(HasLinuxReason) {
		record(1042, str(nil, s.LinuxReason))
	}
	if has(HasTime) {
		record(1043, binary.BigEndian.AppendUint64(nil, s.Time))
	}
	if has(HasInterface) {
		i := &s.Interface
		x := binary.BigEndian.AppendUint64(words(nil, i.Index, i.Type), i.Speed)
		x = binary.BigEndian.AppendUint64(words(x, i.Direction, i.Status), i.InOctets)
		x = words(x, i.InUnicast, i.InMulticast, i.InBroadcast, i.InDiscards, i.InErrors, i.InUnknown)
		x = binary.BigEndian.AppendUint64(x, i.OutOctets)
		record(1, words(x, i.OutUnicast, i.OutMulticast, i.OutBroadcast, i.OutDiscards, i.OutErrors, i.Promiscuous))
	}
	if has(HasPortName) {
		record(1005, str(nil, s.PortName))
	}
	binary.BigEndian.PutUint32(b[count-4:], n)
	binary.BigEndian.PutUint32(b[at-4:], uint32(len(b)-at))
	return b
}

func words(b []byte, list ...uint32) []byte {
	for _, v := range list {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// str appends a string with its length and padding.
func str(b, s []byte) []byte {
	b = append(words(b, uint32(len(s))), s...)
	return append(b, make([]byte, (4-len(s)%4)%4)...)
}
