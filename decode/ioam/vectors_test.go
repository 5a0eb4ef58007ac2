package ioam

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/internal/testkit"
)

func vector(t testing.TB, name string) []byte {
	t.Helper()
	b, err := testkit.Vector(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packetWith puts an IPv6 header and a hop-by-hop header with options before a UDP header.
func packetWith(t testing.TB, options ...[]byte) []byte {
	t.Helper()
	ext, err := AppendExtension(nil, packet.ProtoUDP, options...)
	if err != nil {
		t.Fatal(err)
	}
	ip := packet.IPv6{HopLimit: 61, Proto: hopByHop, Src: [16]byte{0: 0xfd, 15: 1}, Dst: [16]byte{0: 0xfd, 15: 2}}
	b := append(packet.AppendIPv6(nil, &ip, len(ext)+packet.UDPLen), ext...)
	return packet.AppendUDP(b, 1111, 2222, 0)
}

// read returns the reports of an IPv6 packet of length bytes, of which data was captured.
func read(b *decode.Batch, data []byte, length int) int {
	var p packet.Packet
	p.Frame(packet.LinkRaw, data, length)
	return IPv6{}.Read(b, &p, data)
}

// lines returns the reports of a packet as JSON without what all of them have.
func lines(t testing.TB, data []byte, length int) (list []string) {
	t.Helper()
	var b decode.Batch
	if n := read(&b, data, length); n != len(b.Reports) {
		t.Errorf("Read = %d, %d reports", n, len(b.Reports))
	}
	for _, r := range b.Reports {
		line := string(reportjson.Append(nil, 1, r))
		line, ok := strings.CutPrefix(line, `{"frame":1,"time_ns":0,"format":"ioam",`)
		if !ok {
			t.Errorf("unexpected beginning of %s", line)
		}
		list = append(list, strings.TrimSuffix(line, "}"))
	}
	return list
}

const flow = `"flow":{"src":"fd00::1","dst":"fd00::2","proto":17,"src_port":1111,"dst_port":2222}`

func TestVectors(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"ioam-opaque", `"kind":"trace",` + flow + `,"namespace":0,"instructions":"0x800002","remaining_len":1,"hops":[{"node_id":1,"hop_limit":63},` +
			`{"node_id":2,"hop_limit":62,"schema_id":766,"opaque":"0x4142434445464748"}]`},
		{"ioam-wide", `"kind":"trace",` + flow + `,"flags":["active"],"namespace":32769,"instructions":"0xfff000","remaining_len":0,"hops":[` +
			`{"node_id":9,"node_id_wide":22222222,"hop_limit":60,"ingress_if":1,"egress_if":2,"egress_if_wide":65538,"latency":2500,` +
			`"queue_occupancy":5,"ingress_seconds":1700000000,"ingress_fraction":123456,"buffer_occupancy":4096,` +
			`"namespace_data":"0xabcd0001","namespace_data_wide":"0x1122334400000001"}]`},
		{"ioam-dex", `"seq":7,"kind":"export",` + flow + `,"flow_id":21,"namespace":7,"instructions":"0xf00000"`},
		{"ioam-e2e", `"seq":41,"kind":"edge",` + flow + `,"namespace":7,"instructions":"0x7000","seconds":1700000000,"fraction":500000`},
		{"ioam-pot", `"kind":"proof",` + flow + `,"namespace":7,"proof_packet":"0x0102030405060708","proof_cumulative":"0x1112131415161718"`},
	} {
		b := packetWith(t, vector(t, tt.name))
		if got := lines(t, b, len(b)); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
	b := vector(t, "ioam-trace")
	const want = `"kind":"trace","flow":{"src":"fd00:1::1","dst":"fd00:2::1","proto":58},"namespace":123,"instructions":"0xf00000",` +
		`"remaining_len":4,"hops":[{"node_id":1,"hop_limit":63,"egress_if":101,"ingress_seconds":1700000000,"ingress_fraction":123456},` +
		`{"node_id":2,"hop_limit":62,"ingress_if":201,"egress_if":202,"ingress_seconds":1700000000,"ingress_fraction":123789}]`
	got := lines(t, b, len(b))
	if len(got) != 1 || got[0] != want {
		t.Errorf("ioam-trace:\n got %s\nwant %s", got, want)
	}
	body := vector(t, "ioam-incremental")
	var r decode.Report
	DecodeBody(&r, TypeIncremental, body, len(body), 1)
	const inc = `{"frame":1,"time_ns":0,"format":"ioam","kind":"trace","flags":["overflow"],"namespace":1,"instructions":"0x088000","remaining_len":2,` +
		`"hops":[{"node_id_wide":1,"hop_limit":63,"latency":2500},{"node_id_wide":168496141,"hop_limit":61,"latency":2147483648}]}`
	if got := string(reportjson.Append(nil, 1, &r)); got != inc {
		t.Errorf("ioam-incremental:\n got %s\nwant %s", got, inc)
	}
	if first, last := r.Hops[0], r.Hops[1]; first.NodeID != 1 || last.NodeID != 0x0a0b0c0d {
		t.Errorf("nodes %d and %d, not those of the wide ids", first.NodeID, last.NodeID)
	}
	body = bytes.Clone(body)
	body[15] = 1 // the newest node's wide id has 33 bits now
	r.Reset()
	if DecodeBody(&r, TypeIncremental, body, len(body), 1); r.Hops[1].Has&decode.HopNodeID != 0 || r.Hops[1].NodeID != 0 {
		t.Errorf("node %d of a wide id of %#x", r.Hops[1].NodeID, r.AddRare().IOAM.Nodes[1].NodeIDWide)
	}
}

// One packet can hold several options, in several headers, of several namespaces; what is padding or something else
// stands between them.
func TestSeveralOptions(t *testing.T) {
	b := packetWith(t, vector(t, "ioam-pot"), []byte{5, 2, 0, 0}, vector(t, "ioam-opaque"), []byte{0}, vector(t, "ioam-dex"))
	got := lines(t, b, len(b))
	if len(got) != 3 || !strings.Contains(got[0], `"proof"`) || !strings.Contains(got[1], `"namespace":0`) || !strings.Contains(got[2], `"export"`) {
		t.Errorf("%q", got)
	}
	if got := lines(t, packetWith(t), 8); len(got) != 0 {
		t.Errorf("%q of a packet without options", got)
	}
}

// The nodes of the vectors, put together by the encoders as routers would.
func TestEncodersWriteTheVectors(t *testing.T) {
	h := decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf, NodeID: 1, EgressIf: 101}
	x := decode.IOAMNode{Has: decode.IOAMHopLimit | decode.IOAMIngressSeconds | decode.IOAMIngressFraction, HopLimit: 63,
		IngressSeconds: 1700000000, IngressFraction: 123456}
	option, err := AppendTrace(nil, &Trace{Namespace: 123, Type: BitNodeID | BitInterfaces | BitSeconds | BitFraction, Words: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := AddNode(option, 7, &h, &x); err != nil { // another namespace
		t.Fatal(err)
	}
	for range 2 {
		if err := AddNode(option, 123, &h, &x); err != nil {
			t.Fatal(err)
		}
		h.Has |= decode.HopIngressIf
		h.NodeID, h.IngressIf, h.EgressIf, x.HopLimit, x.IngressFraction = 2, 201, 202, 62, 123789
	}
	if want := vector(t, "ioam-trace")[44:104]; !bytes.Equal(option, want) {
		t.Errorf("trace\n%x, want\n%x", option, want)
	}
	for range 2 { // one more fits, and then none
		if err := AddNode(option, 123, &h, &x); err != nil {
			t.Fatal(err)
		}
	}
	if got := binary.BigEndian.Uint16(option[6:]); got != 0x2400 {
		t.Errorf("NodeLen, flags and RemainingLen of a full trace: %#x", got)
	}

	option, _ = AppendTrace(nil, &Trace{Type: BitNodeID | BitSnapshot, Words: 7})
	id := decode.Hop{Has: decode.HopNodeID, NodeID: 1}
	AddNode(option, 0, &id, &decode.IOAMNode{Has: decode.IOAMHopLimit, HopLimit: 63})
	id.NodeID = 2
	AddNode(option, 0, &id, &decode.IOAMNode{Has: decode.IOAMHopLimit | decode.IOAMSchemaID | decode.IOAMOpaque, HopLimit: 62, SchemaID: 766, Opaque: []byte("ABCDEFGH")})
	if want := vector(t, "ioam-opaque"); !bytes.Equal(option, want) {
		t.Errorf("snapshots\n%x, want\n%x", option, want)
	}
	if got, want := AppendProof(nil, 7, 0x0102030405060708, 0x1112131415161718), vector(t, "ioam-pot"); !bytes.Equal(got, want) {
		t.Errorf("proof\n%x, want\n%x", got, want)
	}
	if got, want := AppendExport(nil, 7, 0xf00000, 21, 7), vector(t, "ioam-dex"); !bytes.Equal(got, want) {
		t.Errorf("direct export\n%x, want\n%x", got, want)
	}
	times := decode.IOAMSeconds | decode.IOAMFraction
	got, err := AppendEdge(nil, EdgeSeq32|EdgeSeconds|EdgeFraction, &decode.IOAMOption{Has: times, Namespace: 7, Seq: 41, Seconds: 1700000000, Fraction: 500000})
	if want := vector(t, "ioam-e2e"); !bytes.Equal(got, want) || err != nil {
		t.Errorf("edge to edge\n%x, %v, want\n%x", got, err, want)
	}
}

// frames calls each with the frames of a capture.
func frames(t testing.TB, name string, each func(number uint64, time int64, frame []byte)) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	b = b[24:]
	for number := uint64(1); len(b) >= 16; number++ {
		n := int(le.Uint32(b[8:]))
		each(number, int64(le.Uint32(b))*1e9+int64(le.Uint32(b[4:]))*1e3, b[16:16+n:16+n])
		b = b[16+n:]
	}
}

// The bytes of Linux decode to the golden lines.
func TestRecordings(t *testing.T) {
	for _, name := range []string{"ioam6-linux", "ioam6-linux-inside"} {
		f, err := os.Open("testdata/" + name + ".jsonl.gz")
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		golden, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.SplitAfter(string(golden), "\n")
		var got []string
		var b decode.Batch
		frames(t, name, func(number uint64, time int64, frame []byte) {
			b.Reset()
			var p packet.Packet
			p.Frame(packet.LinkEthernet, frame, len(frame))
			IPv6{}.Read(&b, &p, frame)
			for _, r := range b.Reports {
				r.Time = time
				got = append(got, string(reportjson.Append(nil, number, r))+"\n")
			}
		})
		if len(got) != len(want)-1 || len(got) != 360 {
			t.Fatalf("%s: %d reports, want %d", name, len(got), len(want)-1)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s:\n got %swant %s", name, got[i], want[i])
			}
		}
	}
}
