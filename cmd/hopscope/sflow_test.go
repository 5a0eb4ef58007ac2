package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

// sflowCapture writes what a switch sends in ten seconds: counters of a busy interface, samples with delays, and drops of a full queue.
func sflowCapture(t *testing.T) string {
	be, le := binary.BigEndian, binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1)
	packet := make([]byte, 64)
	packet[12], packet[14], packet[17], packet[22], packet[23] = 8, 0x45, 50, 60, 6
	copy(packet[26:], []byte{10, 1, 0, 1, 10, 2, 0, 2, 0x9c, 0x40, 0, 80})
	octets := uint64(1 << 40)
	for i := range uint32(100) {
		octets += 1e10 / 8 / 10 * 9 / 10 // nine tenths of 10 Gbit/s, for a tenth of a second
		both := sflow.Sample{Seq: i, Class: 0, Index: 7, Has: sflow.HasHeader | sflow.HasQueue, Protocol: 1, FrameLen: 1500, Header: packet, Queue: 3,
			Input: sflow.Port{Value: 4}, Output: sflow.Port{Value: 7}}
		drop, slow, counters := both, both, sflow.Sample{Kind: sflow.Counters, Seq: i, Index: 7, Has: sflow.HasInterface | sflow.HasPortName, PortName: []byte("Ethernet24"),
			Interface: sflow.Interface{Index: 7, Speed: 1e10, OutOctets: octets}}
		drop.Kind, drop.Reason = sflow.Discard, 259
		slow.Kind, slow.Rate, slow.Delay, slow.Depth = sflow.Flow, 1000, 250_000, 90_000
		slow.Has |= sflow.HasDelay | sflow.HasDepth
		d := sflow.Datagram{IPv: 4, Agent: decode.AddrFrom4([]byte{10, 0, 0, 9}), Seq: i, Uptime: 1000 + 100*i, Samples: 3}
		if i%10 == 5 {
			continue // lost on the way
		}
		payload := sflow.AppendDatagram(nil, &d)
		for _, s := range []*sflow.Sample{&drop, &slow, &counters} {
			payload = sflow.AppendSample(payload, s)
		}
		f := make([]byte, 42)
		f[12], f[14], f[22], f[23] = 8, 0x45, 64, 17
		be.PutUint16(f[16:], uint16(28+len(payload)))
		copy(f[26:], []byte{192, 0, 2, 1, 10, 9, 9, 9})
		be.PutUint32(f[34:], 50000<<16|6343)
		be.PutUint16(f[38:], uint16(8+len(payload)))
		f = append(f, payload...)
		b = le.AppendUint32(le.AppendUint32(b, 1_790_000_000+i/10), i%10*100_000)
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f))), f...)
	}
	file := filepath.Join(t.TempDir(), "sflow.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A network with sFlow alone: drops with their reason, a congested interface, delays, loss on the way, and a flow that counts by the rate.
func TestSFlowReplay(t *testing.T) {
	file := sflowCapture(t)
	s := runReplay(t, file)
	if want := map[string]uint64{"sflow drop": 90, "sflow postcard": 90, "sflow counters": 89}; !maps.Equal(s.ByKind, want) || s.Malformed != 0 {
		t.Errorf("%v, %d malformed, want %v", s.ByKind, s.Malformed, want)
	}
	if len(s.Flows) != 1 || s.Flows[0].Packets != 90+90*1000 {
		t.Errorf("flows %+v, want one of 90090 packets", s.Flows)
	}
	if len(s.Hops) != 1 || s.Hops[0].NodeID != 0x0a000009 || s.Hops[0].EgressIf != 7 || s.Hops[0].Latency.P50 < 245_000 || s.Hops[0].Latency.P50 > 255_000 {
		t.Errorf("hops %+v", s.Hops)
	}
	if len(s.Exporters) != 1 || s.Exporters[0].Address != "10.0.0.9" || s.Exporters[0].Lost != 10 {
		t.Errorf("exporters %+v, want 10 lost of 10.0.0.9", s.Exporters)
	}
	drops := slices.IndexFunc(s.Findings, func(f collector.FindingSummary) bool { return f.Kind == "drops" })
	if drops < 0 || s.Findings[drops].Value != 90 {
		t.Errorf("findings %+v, want 90 drops", s.Findings)
	}
	if drops >= 0 && !strings.Contains(s.Findings[drops].Text, "167772169") {
		t.Errorf("%s", s.Findings[drops].Text)
	}
	var table bytes.Buffer
	c := replayCommand()
	c.SetOut(&table)
	c.SetErr(io.Discard)
	c.SetArgs([]string{file})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"10.0.0.9 (167772169)", "Ethernet24 (7)", "sFlow: no buffer space"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	stdout, _, err := runDecode(t.Context(), file, "--format", "table")
	if err != nil || strings.Count(stdout, "reason no buffer space]") != 90 {
		t.Errorf("%v, %.600s", err, stdout)
	}
}
