package collector

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// framesOf reads the Ethernet frames of a capture.
func framesOf(t *testing.T, file string) (frames []ingest.Frame) {
	t.Helper()
	r, err := pcapfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if err == io.EOF {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Data = append([]byte(nil), f.Data...)
		frames = append(frames, f)
	}
}

// mixed returns reports of one node with headers of different lengths, in consecutively numbered datagrams. They are
// of version 1.0 with and without metadata, or of 2.0 with one, two and three reports.
func mixed(version decode.Version) (frames []ingest.Frame) {
	hop := decode.Hop{Has: decode.HopNodeID | decode.HopLatency, NodeID: 5, Latency: 700}
	for seq := range uint32(60) {
		h := telemetry.Header{HWID: 1, Seq: seq, NodeID: 5, Inner: telemetry.InnerIPv4, Hop: hop, Flags: decode.Tracked}
		if seq%3 > 0 {
			h.Metadata = telemetry.MDInterfaces | telemetry.MDLatency
		}
		inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
		inner = packet.AppendUDP(inner, 5000, 6000, 0)
		var payload []byte
		if version == decode.V10 {
			payload = append(telemetry.Append10(nil, &h), inner...)
		} else {
			payload = telemetry.AppendGroup(nil, h.HWID, seq, h.NodeID)
			for range 1 + seq%3 {
				payload = append(telemetry.Append20(payload, &h, len(inner)), inner...)
			}
		}
		data := packet.AppendEthernet(nil, packet.MAC{}, packet.MAC{}, packet.EtherIPv4)
		data = packet.AppendIPv4(data, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 0, 5}, Dst: [4]byte{10, 0, 0, 9}}, 8+len(payload))
		data = append(packet.AppendUDP(data, 1, 32766, len(payload)), payload...)
		frames = append(frames, ingest.Frame{Data: data, Link: ingest.LinkEthernet, Length: len(data), Time: int64(seq)})
	}
	return frames
}

// The frames of a capture, or the datagrams of a socket, are cut to any length. Every sequence number that is left
// counts, and none is lost that is not lost in whole frames.
func TestCutInventsNoLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, profile string
		frames        []ingest.Frame
		numbered      int // bytes of a frame, up to the sequence number's end or what else is needed for it
	}{
		{"report 0.5", "fabric-tna", framesOf(t, "../decode/testdata/fabric-report05.pcap"), 42 + 8},
		{"Intel's report 0.5", "host-int", framesOf(t, "../decode/testdata/hostint05-reports.pcap"), 42 + 8},
		{"report 1.0", "geant", framesOf(t, "../decode/testdata/geant-int10-reports.pcap"), 42 + 12},
		{"report 1.0, headers of several lengths", "auto", mixed(decode.V10), 42 + 12},
		{"groups of report 2.0", "auto", mixed(decode.V20), 42 + 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			profile, ok := demux.Lookup(c.profile)
			if !ok {
				t.Fatal(c.profile)
			}
			longest := 0
			for i := range c.frames {
				longest = max(longest, len(c.frames[i].Data))
			}
			figures := func(cut int, datagrams bool) (sequenced, lost, restarts, malformed uint64, spaces int) {
				d, e := demux.New(profile), sequence.New(sequence.DefaultConfig(), 1)
				for i := range c.frames {
					f := &c.frames[i]
					data := f.Data[:min(cut, len(f.Data))]
					var b decode.Batch
					if datagrams {
						if cut < 42 {
							return
						}
						d.DatagramCut(&b, decode.AddrFrom4(f.Data[26:]), data[42:], f.Length-42, f.Time)
					} else {
						d.Frame(&b, f.Link, data, f.Length, f.Time)
					}
					for _, r := range b.Reports {
						e.Observe(r)
					}
				}
				for _, x := range e.Cut(nil, 1<<62) {
					if x.Sequenced {
						sequenced++
					}
					lost, restarts, malformed = lost+uint64(x.Lost), restarts+uint64(x.Restarts), malformed+uint64(x.Malformed)
					spaces++
				}
				return
			}
			text := func(cut int, datagrams bool) string {
				sequenced, lost, restarts, malformed, spaces := figures(cut, datagrams)
				return fmt.Sprintf("%d sequences, %d lost, %d restarts, %d malformed, %d exporters", sequenced, lost, restarts, malformed, spaces)
			}
			whole := text(longest, false)
			for cut := min(longest, 150); cut >= 0; cut-- {
				if cut%testkit.Stride() != 0 && cut != c.numbered && cut != c.numbered-1 && cut != longest-1 {
					continue
				}
				for _, datagrams := range []bool{false, true} {
					if cut >= c.numbered {
						if got := text(cut, datagrams); got != whole {
							t.Fatalf("cut at %d: %s; whole: %s", cut, got, whole)
						}
					} else if sequenced, lost, restarts, malformed, _ := figures(cut, datagrams); sequenced+lost+restarts+malformed != 0 {
						t.Errorf("cut at %d: %s", cut, text(cut, datagrams))
					}
				}
			}
			t.Log(whole)
		})
	}
}

// numbered returns datagrams of report 2.0 with one report each of the numbers in seqs.
func numbered(seqs ...uint32) (frames [][]byte) {
	for _, seq := range seqs {
		h := telemetry.Header{HWID: 1, Seq: seq, NodeID: 5, Metadata: telemetry.MDLatency} // one that holds nothing is no report
		frames = append(frames, telemetry.Append20(telemetry.AppendGroup(nil, h.HWID, seq, h.NodeID), &h, 0))
	}
	return frames
}

// The loss in the last window of a capture, which may be its only one, is a finding. No later window could publish it.
func TestReplayReportsLossOfLastWindow(t *testing.T) {
	for _, batches := range []int{1, 5} {
		m := &canned{workers: 1, batches: batches, times: func(_, batch int) int64 { return 1e18 + int64(batch)*int64(time.Second) }}
		m.before = func(batch int) {
			first := uint32(20 * batch)
			m.frames = numbered(first, first+1, first+2, first+3, first+4, first+5, first+6, first+7, first+8, first+9,
				first+10, first+11, first+12, first+13, first+14, first+15, first+16, first+17, first+18, first+19)
			if batch == batches-1 {
				m.frames = append(m.frames[:5], m.frames[12:]...)
			}
		}
		keep := &keeper{}
		c := newEngine(t, func(p *program) { p.Window = time.Second },
			Options{Policy: Replay, Sources: []Source{{Name: "memory", Source: m}}, Writers: []sink.WindowWriter{keep}})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		s := c.Summary(1, 1)
		if len(s.Exporters) != 1 || s.Exporters[0].Lost != 7 {
			t.Fatalf("exporters %+v, want 7 lost", s.Exporters)
		}
		last := keep.windows[len(keep.windows)-1]
		if len(s.Findings) != 1 || s.Findings[0].Kind != inference.ExporterLoss.String() || len(last.Findings) != 1 {
			t.Errorf("%d windows: findings %+v, in the last window %+v; want the loss", len(keep.windows), s.Findings, last.Findings)
		}
	}
}

// Datagrams that are longer than the memory for them count as truncated, with the reports that are there, and no report
// in them is malformed.
func TestDatagramsCutBySocket(t *testing.T) {
	cfg := testConfig()
	cfg.UDP.MaxDatagramBytes = 64
	r := start(t, cfg)
	conn, err := net.Dial("udp", r.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	frames := mixed(decode.V20)
	long, reports, cut := uint64(0), uint64(0), int64(0)
	for i, f := range frames {
		payload := f.Data[42:]
		if _, err := conn.Write(payload); err != nil {
			t.Fatal(err)
		}
		reports++ // of each datagram the first one fits
		if len(payload) > cfg.UDP.MaxDatagramBytes {
			long++
		}
		if i%3 > 0 {
			reports++ // what stands for the rest
			cut++
		}
	}
	r.waitFor("all datagrams", func() bool { return r.opt.Sources[0].Stats().Frames == uint64(len(frames)) })
	s := r.stop()
	b := s.Ledger.Balance
	if st := r.opt.Sources[0].Stats(); st.Truncated != long || long == 0 {
		t.Errorf("%d datagrams truncated, want %d", st.Truncated, long)
	}
	if s.Malformed != 0 || b.Dropped["malformed"] != 0 || b.Received != reports || b.Unsettled != 0 || b.Dropped["cut"] != cut || cut == 0 {
		t.Errorf("%d malformed, want none; %d reports received, want %d, of them %d cut; %s", s.Malformed, b.Received, reports, cut, LedgerLine(&b))
	}
	if len(s.Exporters) != 1 || s.Exporters[0].Lost != 0 || s.Exporters[0].Restarts != 0 {
		t.Errorf("exporters %+v, want one that lost nothing", s.Exporters)
	}
}

// captured writes a capture of frames with a snapshot length.
func captured(t *testing.T, frames []ingest.Frame, snap int) (path string) {
	t.Helper()
	le := binary.LittleEndian
	b := append(le.AppendUint32(nil, 0xa1b2c3d4), 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint32(le.AppendUint32(b, uint32(snap)), uint32(ingest.LinkEthernet))
	for _, f := range frames {
		data := f.Data[:min(snap, len(f.Data))]
		for _, x := range []int{1_700_000_000, 0, len(data), len(f.Data)} {
			b = le.AppendUint32(b, uint32(x))
		}
		b = append(b, data...)
	}
	path = filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every frame of a capture that was cut to any length ends in the ledger. It counts with the reports that are left, as
// foreign if its headers show that it holds none, and as cut otherwise.
func TestCutCaptureInLedger(t *testing.T) {
	t.Parallel()
	frames := mixed(decode.V20)
	strange := make([]byte, 64) // of a protocol that no report has
	strange[12], strange[13] = 0x88, 0xcc
	const others = 7
	for range others {
		frames = append(frames, ingest.Frame{Data: strange})
	}
	reports, whole := len(frames)-others, 0
	for i := range reports {
		whole += 1 + i%3
	}
	for snap := 1; snap <= 120; snap++ {
		if snap%testkit.Stride() != 0 && !slices.Contains([]int{1, 13, 14, 41, 42, 49, 50, 63, 64}, snap) { // headers, a report and a stranger end
			continue
		}
		src := pcapfile.NewSource(pcapfile.DefaultConfig(), captured(t, frames, snap))
		c := newEngine(t, func(p *program) { p.Window = time.Hour }, Options{Policy: Replay, Sources: []Source{{Name: "pcap", Source: src}}})
		if err := run(t, c); err != nil {
			t.Fatal(err)
		}
		b := c.Summary(1, 1).Ledger.Balance
		foreign, cut := others, reports
		if snap < 14 { // nothing says what is in them
			foreign, cut = 0, reports+others
		}
		if snap >= 42+8 { // the first report of each is there
			cut = int(b.Dropped["cut"])
		}
		if b.Unsettled != 0 || b.Dropped["malformed"] != 0 || int(b.Dropped["foreign"]) != foreign || int(b.Dropped["cut"]) != cut || int(b.Received) < len(frames) || int(b.Received) > whole+others {
			t.Errorf("%d bytes: %s; want %d foreign and %d cut", snap, LedgerLine(&b), foreign, cut)
		}
		if said := strings.Join(c.Status().LeftOut, "\n"); !strings.Contains(said, "67 frames of captures were cut, and what is beyond the cut is lost: raise the snapshot length") && snap < 64 {
			t.Errorf("%d bytes: left out: %q", snap, said)
		}
	}
}

// Frames that were cut inside of their INT stacks, and before, are in the ledger as cut: hops are missing in them. What is stored has all
// hops, with the node of each.
func TestCutStacksInLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, profile string
		hops          int // of a report
		stack, stride int // where the stack begins, the bytes of a hop, whose node is in the first four
	}{
		{"geant-int10-reports.pcap", "geant", 3, 112, 40},
		{"hostint05-reports.pcap", "host-int", 2, 110, 4},
	} {
		profile, _ := demux.Lookup(c.profile)
		d := demux.New(profile)
		frames := slices.DeleteFunc(framesOf(t, "../decode/testdata/"+c.name), func(f ingest.Frame) bool {
			var b decode.Batch
			d.Frame(&b, f.Link, f.Data, f.Length, f.Time)
			return b.Reports[0].Kind != decode.KindStack || b.Reports[0].Flow.Proto != packet.ProtoUDP // others are longer before the stack
		})
		whole := c.stack + (c.hops-1)*c.stride + 4
		for snap := 42; snap <= len(frames[0].Data); snap++ {
			if snap%testkit.Stride() != 0 && snap != whole && snap != whole-1 && snap != c.stack {
				continue
			}
			src := pcapfile.NewSource(pcapfile.DefaultConfig(), captured(t, frames, snap))
			e := newEngine(t, func(p *program) { p.Window, p.Exporters.Profile = time.Hour, c.profile },
				Options{Policy: Replay, Sources: []Source{{Name: "pcap", Source: src}}})
			if err := run(t, e); err != nil {
				t.Fatal(err)
			}
			s := e.Summary(1, 100)
			b, hops, cut := s.Ledger.Balance, uint64(0), len(frames)
			for _, h := range s.Hops {
				hops += h.Reports
			}
			if snap >= whole {
				cut = 0
			}
			if b.Received != uint64(len(frames)) || int(b.Dropped["cut"]) != cut || b.Stored != b.Received-uint64(cut) || hops != uint64(c.hops)*b.Stored {
				t.Errorf("%s, %d bytes: %s, %d hops; want %d cut", c.name, snap, LedgerLine(&b), hops, cut)
			}
		}
	}
}
