package rate

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
)

// flowLoad is datagrams that flow collectors read: sFlow with samples of packets, or IPFIX and NetFlow 9 with records.
type flowLoad struct {
	version uint16   // of IPFIX or NetFlow; 0 is sFlow
	turn    []uint32 // of each exporter
	flow    uint32
	packet  []byte
	define  decode.Template
}

const (
	flowSamples   = 4  // packets of a datagram of sFlow
	flowRecords   = 20 // of a message
	flowTemplates = 32 // messages from one with the template to the next
)

func newFlowLoad(version uint16, exporters int) *flowLoad {
	f := &flowLoad{version: version, turn: make([]uint32, exporters)}
	f.packet = append(f.packet, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0)
	f.packet = packet.AppendIPv4(f.packet, &packet.IPv4{TTL: 62, Proto: packet.ProtoUDP, Dst: [4]byte{192, 0, 2, 1}}, 100)
	f.packet = append(packet.AppendUDP(f.packet, 0, 443, 92), make([]byte, 128-14-packet.IPv4Len-packet.UDPLen)...)
	f.define = decode.Template{Version: version, ID: 300, Fields: []decode.Element{
		{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 7, Length: 2}, {ID: 11, Length: 2}, {ID: 4, Length: 1}, {ID: 5, Length: 1},
		{ID: 10, Length: 4}, {ID: 14, Length: 4}, {ID: 1, Length: 8}, {ID: 2, Length: 8}, {ID: 22, Length: 4}, {ID: 21, Length: 4}}}
	return f
}

func (f *flowLoad) Exporters() int { return len(f.turn) }

func (f *flowLoad) Bytes() int { return 1200 }

// next is the source address and port of the next flow.
func (f *flowLoad) next() (addr uint32, port uint16) {
	f.flow = f.flow*1664525 + 1013904223
	return 10<<24 | f.flow>>8, uint16(1024 + f.flow>>17)
}

func (f *flowLoad) NextFrom(exporter int, buf []byte) []byte {
	turn := f.turn[exporter]
	f.turn[exporter]++
	if f.version == 0 {
		return f.samples(buf[:0], exporter, turn)
	}
	m := ipfix.Message{Version: f.version, Uptime: 3_600_000, Time: 1_700_000_000, Seq: turn, Domain: uint32(exporter + 1), Count: flowRecords}
	if f.version != ipfix.V9 {
		m.Seq *= flowRecords // it counts them
	}
	defines := turn%flowTemplates == 0
	if defines {
		m.Count++
	}
	return ipfix.AppendMessage(buf[:0], &m, func(b []byte) []byte {
		if defines {
			b = ipfix.AppendSet(b, ipfix.TemplateSet(&f.define), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, &f.define) })
		}
		return ipfix.AppendSet(b, f.define.ID, 0, f.records)
	})
}

func (f *flowLoad) records(b []byte) []byte {
	be := binary.BigEndian
	for range flowRecords {
		addr, port := f.next()
		b = be.AppendUint32(be.AppendUint32(b, addr), 192<<24|2<<8|1)
		b = append(be.AppendUint16(be.AppendUint16(b, port), 443), packet.ProtoUDP, 0)
		b = be.AppendUint32(be.AppendUint32(b, 1), 2)
		b = be.AppendUint64(be.AppendUint64(b, 6400), 10)
		b = be.AppendUint32(be.AppendUint32(b, 3_599_000), 3_599_900)
	}
	return b
}

func (f *flowLoad) samples(b []byte, exporter int, turn uint32) []byte {
	b = sflow.AppendDatagram(b, &sflow.Datagram{Agent: decode.AddrFrom4([]byte{198, 18, 0, byte(exporter + 1)}), IPv: 4, Seq: turn + 1, Uptime: 3_600_000, Samples: flowSamples})
	for i := range uint32(flowSamples) {
		addr, port := f.next()
		binary.BigEndian.PutUint32(f.packet[14+12:], addr)
		binary.BigEndian.PutUint16(f.packet[14+packet.IPv4Len:], port)
		n := turn*flowSamples + i + 1
		b = sflow.AppendSample(b, &sflow.Sample{Kind: sflow.Flow, Has: sflow.HasHeader, Seq: n, Index: 1, Rate: 1000, Pool: n * 1000,
			Input: sflow.Port{Value: 1}, Output: sflow.Port{Value: 2}, Protocol: 1, FrameLen: 1000, Stripped: 4, Header: f.packet})
	}
	return b
}

// payloads are what [UDP] sends, and where each has its number.
var payloads = map[string]sequenceField{
	"report": {0, 1<<22 - 1}, "netflow5": {16, 1<<32 - 1}, "netflow9": {12, 1<<32 - 1}, "ipfix": {8, 1<<32 - 1}, "sflow": {16, 1<<32 - 1},
	"softflowd-netflow9": {12, 1<<32 - 1}, "softflowd-ipfix": {8, 1<<32 - 1},
}
