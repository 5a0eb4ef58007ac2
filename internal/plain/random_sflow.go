package plain

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/hopscope/hopscope/decode/sflow"
)

// RandomSFlow makes a datagram with up to eight samples, with unknown among them some of unknown tags.
func RandomSFlow(rnd *rand.Rand, unknown bool) []byte {
	d := sflow.Datagram{SubAgent: rnd.Uint32N(4), Seq: rnd.Uint32(), Uptime: rnd.Uint32(), Samples: 1 + rnd.Uint32N(8), IPv: 4}
	copy(d.Agent[10:], []byte{0xff, 0xff, 10, 0, 0, byte(rnd.Uint32())})
	if rnd.IntN(4) == 0 {
		d.IPv = 6
		binary.BigEndian.PutUint64(d.Agent[:], rnd.Uint64())
	}
	b := sflow.AppendDatagram(nil, &d)
	for range d.Samples {
		if unknown && rnd.IntN(16) == 0 {
			n := 4 * rnd.Uint32N(5)
			b = binary.BigEndian.AppendUint32(b, 0x1000+rnd.Uint32N(9))
			b = binary.BigEndian.AppendUint32(b, n)
			b = append(b, make([]byte, n)...)
			continue
		}
		s := RandomSFlowSample(rnd)
		b = sflow.AppendSample(b, &s)
	}
	return b
}

// RandomSFlowSample makes a sample with some records.
func RandomSFlowSample(rnd *rand.Rand) (s sflow.Sample) {
	s = sflow.Sample{Kind: sflow.Kind(1 + rnd.IntN(3)), Expanded: rnd.IntN(2) == 0, Seq: rnd.Uint32(), Class: rnd.Uint32N(3), Index: rnd.Uint32N(1 << 24), Rate: 1 + rnd.Uint32N(1<<16),
		Pool: rnd.Uint32(), Drops: rnd.Uint32(), Input: sflow.Port{Value: rnd.Uint32N(1 << 16)}, Output: sflow.Port{Format: rnd.Uint32N(3), Value: rnd.Uint32N(1 << 16)}, Reason: 256 + rnd.Uint32N(117)}
	if s.Kind == sflow.Discard {
		s.Output.Format = 0
	}
	text := func() []byte {
		b := make([]byte, rnd.IntN(65))
		for i := range b {
			b[i] = byte('a' + rnd.IntN(26))
		}
		return b
	}
	if s.Kind == sflow.Counters {
		if s.Has = sflow.HasInterface; rnd.IntN(2) == 0 {
			s.Has |= sflow.HasPortName
		}
		s.PortName = text()
		s.Interface = sflow.Interface{Index: s.Index, Type: 6, Speed: 1e11, Direction: 1, Status: 3, InOctets: rnd.Uint64(), InUnicast: rnd.Uint32(), InMulticast: rnd.Uint32(),
			InBroadcast: rnd.Uint32(), InDiscards: rnd.Uint32(), InErrors: rnd.Uint32(), InUnknown: rnd.Uint32(), OutOctets: rnd.Uint64(), OutUnicast: rnd.Uint32(),
			OutMulticast: rnd.Uint32(), OutBroadcast: rnd.Uint32(), OutDiscards: rnd.Uint32(), OutErrors: rnd.Uint32(), Promiscuous: rnd.Uint32N(2)}
		return s
	}
	s.Has = sflow.HasHeader | sflow.Field(rnd.Uint32())&(sflow.HasTime<<1-1)
	s.Protocol, s.FrameLen, s.Stripped, s.Header = 1, 64+rnd.Uint32N(1400), 4, make([]byte, 128)
	h := s.Header
	h[12], h[14], h[22], h[23] = 8, 0x45, 64, 17
	binary.BigEndian.PutUint16(h[16:], uint16(s.FrameLen-18))
	binary.BigEndian.PutUint64(h[26:], rnd.Uint64())
	binary.BigEndian.PutUint32(h[34:], rnd.Uint32())
	if rnd.IntN(4) == 0 {
		s.Has |= sflow.HasIP
		p := &s.IP
		*p = sflow.IP{Version: 4, Length: 20 + rnd.Uint32N(1480), Proto: [...]uint32{1, 6, 17, 47}[rnd.IntN(4)], SrcPort: rnd.Uint32N(1 << 16), DstPort: rnd.Uint32N(1 << 16), TCPFlags: rnd.Uint32N(256), Class: rnd.Uint32N(256)}
		binary.BigEndian.PutUint32(p.Src[12:], rnd.Uint32())
		binary.BigEndian.PutUint32(p.Dst[12:], rnd.Uint32())
		if p.Src[10], p.Src[11], p.Dst[10], p.Dst[11] = 0xff, 0xff, 0xff, 0xff; rnd.IntN(2) == 0 {
			p.Version = 6
			binary.BigEndian.PutUint64(p.Src[:], rnd.Uint64())
			binary.BigEndian.PutUint64(p.Dst[:], rnd.Uint64())
		}
	}
	s.InVLAN, s.InPriority, s.OutVLAN, s.OutPriority = rnd.Uint32N(4096), rnd.Uint32N(8), rnd.Uint32N(4096), rnd.Uint32N(8)
	s.Queue, s.Delay, s.Depth, s.Time = rnd.Uint32N(8), rnd.Uint32(), rnd.Uint32(), rnd.Uint64()
	s.ACL, s.ACLName, s.ACLDirection = rnd.Uint32N(100), text(), rnd.Uint32N(3)
	s.Function, s.Group, s.Trap, s.LinuxReason = text(), text(), text(), text()
	return s
}
