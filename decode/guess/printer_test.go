package guess_test

import (
	"io"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/reportjson"
	"github.com/hopscope/hopscope/internal/exportertest"
)

// What a capture cut off is said with what it costs, wherever the cut is; of whole frames nothing is.
func TestCutFrames(t *testing.T) {
	profile, _ := demux.Lookup("geant")
	frame := func(payload []byte) []byte {
		ip := packet.AppendIPv4(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4),
			&packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 0, 3}, Dst: [4]byte{10, 0, 0, 1}}, packet.UDPLen+len(payload))
		return append(packet.AppendUDP(ip, 4000, profile.ReportPorts[0], len(payload)), payload...)
	}
	whole := frame(exportertest.Payloads(t, "../testdata/geant-int10-reports.pcap")[0])
	read := func(n int) (summary string, remarks []guess.Remark) {
		p := guess.Printer{
			W: io.Discard, Decoder: demux.NewVerbatim(profile, nil), Watch: guess.NewWatch(nil, false), Known: func(uint16) bool { return true },
			Append: func(dst []byte, frame uint64, r *decode.Report) []byte { return reportjson.Append(dst, frame, r) },
		}
		p.Frame(1, guess.Sample{Link: packet.LinkEthernet, Data: whole[:n:n], Length: len(whole)})
		return p.Summary(false), p.Remarks()
	}
	isShort := func(list []guess.Remark) bool { return strings.Contains(remarksOf(list), "capture cut its frame") }
	for n := range whole {
		summary, remarks := read(n)
		if !strings.Contains(summary, "the capture holds only a part of 1 frame (tcpdump -s 0 holds all)") {
			t.Fatalf("%d of %d bytes: %s", n, len(whole), summary)
		}
		blind := strings.Contains(summary, ", and 1 end before what they may have held")
		if blind != (n < 14+20+4) || isShort(remarks) == blind {
			t.Errorf("%d of %d bytes: %s, %v", n, len(whole), summary, remarks)
		}
	}
	if summary, remarks := read(len(whole)); strings.Contains(summary, "capture") || isShort(remarks) {
		t.Errorf("whole: %s, %v", summary, remarks)
	}
}

func remarksOf(list []guess.Remark) (s string) {
	for i := range list {
		s += list[i].String() + "\n"
	}
	return s
}
