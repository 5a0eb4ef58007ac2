package guess

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/ipfix"
	"github.com/hopscope/hopscope/decode/packet"
)

// Packets in GRE in records, and flows in GRE without a packet, are not mentioned if they hold no INT. This holds for
// any content and any length.
func TestRecordsOfGRE(t *testing.T) {
	auto, _ := demux.Lookup("auto")
	inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
	inner = packet.AppendUDP(inner, 4000, 5000, 0)
	gre := append([]byte{0, 0, 0x12, 0x34}, inner...)
	sampled := append(packet.AppendIPv4(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4),
		&packet.IPv4{TTL: 60, Proto: packet.ProtoGRE, Src: [4]byte{10, 0, 3, 1}, Dst: [4]byte{10, 0, 3, 2}}, len(gre)), gre...)
	flow := &decode.Template{Version: ipfix.V10, ID: 300, Fields: []decode.Element{{ID: 8, Length: 4}, {ID: 12, Length: 4}, {ID: 4, Length: 1}}}
	src := decode.AddrFrom4([]byte{192, 0, 2, 1})
	w := NewWatch(Builtin(), true)
	rt := demux.NewRouter(auto, nil)
	for i := range 200 {
		tp, record := flow, []byte{10, 0, 0, 1, 10, 0, 0, 2, 47}
		if n := i % (len(sampled) + 1); i%2 == 0 && n > 0 {
			tp, record = &decode.Template{Version: ipfix.V10, ID: 301, Fields: []decode.Element{{ID: 315, Length: uint16(n)}}}, sampled[:n]
		}
		m := ipfix.Message{Version: ipfix.V10, Seq: uint32(i), Time: 1_700_000_000}
		b := ipfix.AppendMessage(nil, &m, func(b []byte) []byte {
			b = ipfix.AppendSet(b, ipfix.TemplateSet(tp), 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, tp) })
			return ipfix.AppendSet(b, tp.ID, 0, func(b []byte) []byte { return append(b, record...) })
		})
		var out decode.Batch
		rt.Datagram(&out, src, b, int64(i)*1e8)
		if out.Reports[len(out.Reports)-1].Flow.Proto != packet.ProtoGRE && tp == flow {
			t.Fatalf("%+v", out.Reports)
		}
		w.Look(func(decode.Addr) *demux.Profile { return &auto }, Sample{Link: Datagram, Src: src, Data: b, Length: len(b), Time: int64(i) * 1e8}, out.Reports)
	}
	w.Finish()
	for _, f := range w.Findings() {
		t.Error(f.String())
	}
}
