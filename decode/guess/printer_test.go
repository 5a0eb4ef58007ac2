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
	"github.com/hopscope/hopscope/internal/plain"
)

// A cut capture is reported with its cost, for any place of the cut. Whole frames are not.
func TestCutFrames(t *testing.T) {
	profile, _ := demux.Lookup("geant")
	whole := reportFrame(t, profile)
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

// reportFrame is a frame with the first report of a capture.
func reportFrame(t *testing.T, profile demux.Profile) []byte {
	payload := plain.Payloads(t, "../testdata/geant-int10-reports.pcap")[0]
	ip := packet.AppendIPv4(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4),
		&packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 0, 3}, Dst: [4]byte{10, 0, 0, 1}}, packet.UDPLen+len(payload))
	return append(packet.AppendUDP(ip, 4000, profile.ReportPorts[0], len(payload)), payload...)
}

// TestFrameAllocations: a frame with a report costs no allocation.
func TestFrameAllocations(t *testing.T) {
	profile, _ := demux.Lookup("geant")
	s := guess.Sample{Link: packet.LinkEthernet, Data: reportFrame(t, profile)}
	s.Length = len(s.Data)
	p := guess.Printer{
		W: io.Discard, Decoder: demux.NewVerbatim(profile, nil), Watch: guess.NewWatch(nil, false), Known: func(uint16) bool { return true },
		Append: func(dst []byte, frame uint64, r *decode.Report) []byte { return reportjson.Append(dst, frame, r) },
	}
	n := testing.AllocsPerRun(1000, func() {
		p.Frame(1, s)
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func remarksOf(list []guess.Remark) (s string) {
	for i := range list {
		s += list[i].String() + "\n"
	}
	return s
}
