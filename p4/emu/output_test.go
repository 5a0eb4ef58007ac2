package emu

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
)

func TestRecordingRepeatsWithNewNumbers(t *testing.T) {
	for _, d := range []Dialect{md21, md10, local05} {
		cfg := DefaultConfig()
		cfg.Dialect, cfg.HardwareIDs, cfg.ReportsPerDatagram, cfg.FirstSequence = d, 2, 2, 1<<22-100
		cfg.Probes = someProbes()
		r, err := Record(mustNew(t, cfg, 5), 3000)
		if err != nil {
			t.Fatal(err)
		}
		// Every subsystem counts on without a gap, over three passes.
		type subsystem struct {
			node uint32
			hw   uint8
		}
		next := map[subsystem]uint32{}
		bytes, probes := 0, 0
		n := mustNew(t, cfg, 5)
		for range 3 {
			for i := range r.Len() {
				dg := r.At(i)
				bytes += len(dg.Payload)
				if dg.Port == cfg.ProbePort {
					probes++
				}
				reports := decodeStrictly(t, n, dg, 5)
				if reports[0].Format != decode.TelemetryReport {
					continue
				}
				k := subsystem{reports[0].NodeID, reports[0].HWID}
				want, seen := next[k]
				if seen && reports[0].Seq != want {
					t.Fatalf("%v: %v has sequence number %d, want %d", d, k, reports[0].Seq, want)
				}
				next[k] = reports[0].Seq + 1
				if reports[0].SeqBits == 22 {
					next[k] &= 1<<22 - 1
				}
			}
			r.Renumber()
		}
		if r.Len() != 3000 || bytes != 3*r.Bytes() || probes == 0 || len(next) < 10 {
			t.Errorf("%d datagrams, %d bytes of 3 x %d, %d probes, %d subsystems", r.Len(), bytes, r.Bytes(), probes, len(next))
		}
	}
	// Numbers stay unique when datagrams are late, the first ones too.
	cfg := DefaultConfig()
	for i := range 8 {
		name := fmt.Sprintf("edge-%d-%d", i/2, i%2)
		cfg.Script = append(cfg.Script, Fault{Kind: ReorderReports, For: time.Hour, Node: name, Value: 0.5})
	}
	n := mustNew(t, cfg, 6)
	r, err := Record(n, 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]uint32]bool{}
	for range 3 {
		for i := range r.Len() {
			report := decodeStrictly(t, n, r.At(i), 6)[0]
			if k := [2]uint32{report.NodeID, report.Seq}; seen[k] {
				t.Fatalf("node %d sends number %d twice", k[0], k[1])
			} else {
				seen[k] = true
			}
		}
		r.Renumber()
	}
	cfg = DefaultConfig()
	cfg.Flows = 0
	if _, err := Record(mustNew(t, cfg, 1), 1); err == nil || !strings.Contains(err.Error(), "0 of 1 datagrams") {
		t.Errorf("Record of a silent network: %v", err)
	}
}

// A pcap file is read back by another implementation, checksums included, and its frames decode as the datagrams do.
func TestPcap(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Probes, cfg.InnerBytes = someProbes(), 5 // odd lengths with report 1.0
	cfg.Dialect = md10
	n := mustNew(t, cfg, 3)
	var file bytes.Buffer
	collector := netip.MustParseAddr("127.0.0.1")
	w, err := newPcapWriter(&file, collector, cfg.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	var sent []Datagram
	n.Run(300*time.Millisecond, func(d Datagram) {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
		d.Payload = bytes.Clone(d.Payload)
		sent = append(sent, d)
	})
	r, err := pcapgo.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	dec := demux.New(profile(t, "auto"))
	for i, d := range sent {
		data, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		if !info.Timestamp.Equal(cfg.Epoch.Add(d.At)) || info.Length != len(data) {
			t.Fatalf("frame %d: %v, want %v", i, info, cfg.Epoch.Add(d.At))
		}
		checkPacket(t, data[ethLen:], len(data)-ethLen)
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok || uint16(u.DstPort) != d.Port || !bytes.Equal(u.Payload, d.Payload) {
			t.Fatalf("frame %d: %v", i, p)
		}
		if ip := p.NetworkLayer().NetworkFlow(); ip.Src().String() != d.From.Addr().String() || ip.Dst().String() != "127.0.0.1" {
			t.Fatalf("frame %d: %v, from %v", i, ip, d.From)
		}
		var b decode.Batch
		if !d.Probe && (dec.Frame(&b, 1, data, len(data), 0) != 1 || b.Reports[0].Error() != nil || b.Reports[0].Exporter != decode.AddrFrom(d.From.Addr())) {
			t.Fatalf("frame %d: %+v", i, b.Reports)
		}
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) || len(sent) < 500 {
		t.Errorf("after %d frames: %v", len(sent), err)
	}
	if _, err := newPcapWriter(&file, netip.MustParseAddr("::1"), cfg.Epoch); err == nil {
		t.Error("NewPcapWriter took an IPv6 address")
	}
}
