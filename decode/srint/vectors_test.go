package srint

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/reportjson"
)

// vector reads a hex file that the P4 programs share.
func vector(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../internal/testkit/vectors/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.Join(strings.Fields(line), ""))
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// udp puts a UDP header before a payload.
func udp(payload []byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint16(be.AppendUint16(nil, 40000), PathPort)
	b = be.AppendUint16(be.AppendUint16(b, uint16(len(payload)+8)), 0)
	return append(b, payload...)
}

// ipv4 puts Ethernet, IPv4 and UDP headers before a payload; IPv4 begins at byte 14.
func ipv4(payload []byte) []byte {
	be := binary.BigEndian
	b := make([]byte, 34, 34+8+len(payload))
	b[12], b[14], b[22], b[23] = 8, 0x45, 64, 17
	be.PutUint16(b[16:], uint16(28+len(payload)))
	copy(b[26:], []byte{10, 0, 0, 101, 10, 0, 0, 102})
	be.PutUint16(b[24:], checksum(b[14:34]))
	return append(b, udp(payload)...)
}

// checksum is that of RFC 1071; 0 over a header that holds a right one.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func label(node uint32, in, out uint16, ingress uint64, enq, depth, delay, deq uint32) decode.Hop {
	return decode.Hop{
		Has: pathHas, TimeBits: 48, NodeID: node, IngressIf: in, EgressIf: out, IngressTime: ingress, EnqTime: enq,
		QueueOccupancy: depth, QueueDelay: delay, DeqOccupancy: deq,
	}
}

func probeLabel(node uint32, in, out uint16, ingress, egress uint64, enq, depth, delay, deq uint32) decode.Hop {
	h := label(node, in, out, ingress, enq, depth, delay, deq)
	h.Has, h.EgressTime = probeHas, egress
	return h
}

// The hops of the vectors, first hop first.
var (
	pathHops = []decode.Hop{
		label(0, 3, 2, 1000100, 1000150, 0, 12, 1),
		label(1, 1, 4, 2000500, 2000555, 7, 340, 5),
		label(2, 2, 1, 3000900, 3000960, 2, 45, 0),
	}
	probeHops = []decode.Hop{
		probeLabel(4, 1, 3, 100000, 100400, 100050, 0, 300, 2),
		probeLabel(9, 2, 2, 200000, 200250, 200040, 1, 180, 0),
	}
)

func TestPathVectors(t *testing.T) {
	sent, err := AppendPath(nil, []int{2, 4, 1}, 5)
	if err != nil || !bytes.Equal(sent, vector(t, "int-path-sent")) {
		t.Fatalf("AppendPath = %x, %v", sent, err)
	}
	// Through three switches, as they change it.
	frame := ipv4(sent)
	for i, want := range []struct {
		last byte // of the route
		port int
		size uint16
	}{{0x03, 2, 98}, {0x00, 4, 120}, {0x00, 1, 142}} {
		port, err := PopPort(frame, 14)
		if err != nil || port != want.port || frame[42+63] != want.last {
			t.Fatalf("device %d: PopPort = %d, %v, last byte of the route %#x; want %d, %#x", i, port, err, frame[42+63], want.port, want.last)
		}
		if frame, err = PushLabel(frame, 14, &pathHops[i]); err != nil {
			t.Fatal(err)
		}
		if size := binary.BigEndian.Uint16(frame[38:]); size != want.size || int(binary.BigEndian.Uint16(frame[16:])) != len(frame)-14 {
			t.Fatalf("device %d: UDP length %d, want %d", i, size, want.size)
		}
		if checksum(frame[14:34]) != 0 {
			t.Errorf("device %d: IPv4 checksum is wrong", i)
		}
	}
	if !bytes.Equal(frame[42:], vector(t, "int-path-received")) {
		t.Fatalf("at the receiver: %x", frame[42:])
	}
	var r decode.Report
	DecodePath(&r, frame[34:], len(frame)-34, 34, false)
	wantReport(t, "int-path-received", &r, decode.Report{
		Format: decode.INTPath, Kind: decode.KindProbe, Has: decode.HasActionID, ActionID: 5, Hops: pathHops,
	})
}

func TestProbeVectors(t *testing.T) {
	macs := vector(t, "int-probe-sent")[:12]
	frame, err := AppendProbe(bytes.Clone(macs), []int{3, 2})
	if err != nil || !bytes.Equal(frame, vector(t, "int-probe-sent")) {
		t.Fatalf("AppendProbe = %x, %v", frame, err)
	}
	route := []byte{0, 3, 0, 2}
	for i, name := range []string{"int-probe-one-hop", "int-probe-two-hops"} {
		var port int
		if frame, port, err = PopProbePort(frame, 12); err != nil || port != 3-i {
			t.Fatalf("PopProbePort = %d, %v, want %d", port, err, 3-i)
		}
		if frame, err = PushProbeLabel(frame, 12, &probeHops[i]); err != nil || !bytes.Equal(frame, vector(t, name)) {
			t.Fatalf("%s: %x, %v", name, frame, err)
		}
		want := decode.Report{Format: decode.INTProbe, Kind: decode.KindProbe, Hops: probeHops[:i+1]}
		if left := route[2*(i+1):]; len(left) > 0 {
			want.Has, want.SRPorts = decode.HasSRPorts, left
		}
		var r decode.Report
		if !DecodeProbe(&r, binary.BigEndian.Uint16(frame[12:]), frame[14:], len(frame)-14, 14) {
			t.Fatalf("%s: no probe", name)
		}
		wantReport(t, name, &r, want)
	}
}

// frames reads a recording.
func frames(t testing.TB, name string, each func(number uint64, time int64, frame []byte)) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for number := uint64(1); ; number++ {
		data, ci, err := r.ReadPacketData()
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		each(number, ci.Timestamp.UnixNano(), data)
	}
}

func TestRecordings(t *testing.T) {
	be := binary.BigEndian
	var path, probe bytes.Buffer
	var r decode.Report
	frames(t, "int-path.pcap", func(number uint64, time int64, b []byte) {
		if be.Uint16(b[12:]) != typeIPv4 || b[23] != 17 || be.Uint16(b[36:]) != PathPort {
			return
		}
		r.Reset()
		r.Time, r.PacketID = time, be.Uint16(b[18:])
		r.Has = decode.HasFlow | decode.HasPorts | decode.HasPacketID
		r.Flow = decode.FlowKey{Src: decode.AddrFrom4(b[26:]), Dst: decode.AddrFrom4(b[30:]), SrcPort: be.Uint16(b[34:]), DstPort: PathPort, Proto: 17, IPVersion: 4}
		DecodePath(&r, b[34:], int(be.Uint16(b[16:]))-20, 34, false)
		path.Write(append(reportjson.Append(nil, number, &r), '\n'))
	})
	frames(t, "int-probe.pcap", func(number uint64, time int64, b []byte) {
		kind := be.Uint16(b[12:])
		if kind != TypeRoute && kind != TypeINT {
			return
		}
		r.Reset()
		r.Time = time
		if DecodeProbe(&r, kind, b[14:], len(b)-14, 14) {
			probe.Write(append(reportjson.Append(nil, number, &r), '\n'))
		}
	})
	for name, got := range map[string]*bytes.Buffer{"int-path": &path, "int-probe": &probe} {
		golden, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		have, want := strings.Split(got.String(), "\n"), strings.Split(string(golden), "\n")
		if len(have) != len(want) {
			t.Errorf("%s: %d reports, want %d", name, len(have)-1, len(want)-1)
			continue
		}
		for i := range want {
			if have[i] != want[i] {
				t.Errorf("%s:\n got %s\nwant %s", name, have[i], want[i])
			}
		}
	}
}
