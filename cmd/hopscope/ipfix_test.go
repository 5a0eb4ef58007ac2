package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ipfix"
)

// ipfixCapture writes what a Juniper router and a Broadcom switch send in ten seconds. The router's template comes behind its first data, and some of its
// messages are lost.
func ipfixCapture(t *testing.T) string {
	be, le := binary.BigEndian, binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 65535), 1)
	inner := make([]byte, 64)
	inner[12], inner[14], inner[17], inner[22], inner[23] = 8, 0x45, 50, 60, 6
	copy(inner[26:], []byte{10, 1, 0, 1, 10, 2, 0, 2, 0x9c, 0x40, 0, 80})
	write := func(i uint32, from byte, payload []byte) {
		f := make([]byte, 42)
		f[12], f[14], f[22], f[23] = 8, 0x45, 64, 17
		be.PutUint16(f[16:], uint16(28+len(payload)))
		copy(f[26:], []byte{192, 0, 2, from, 10, 9, 9, 9})
		be.PutUint32(f[34:], 50000<<16|4739)
		be.PutUint16(f[38:], uint16(8+len(payload)))
		f = append(f, payload...)
		b = le.AppendUint32(le.AppendUint32(b, 1_790_000_000+i/10), i%10*100_000+uint32(from))
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f))), f...)
	}
	message := func(seq uint32, sets ...[]byte) []byte {
		m := ipfix.Message{Version: ipfix.V10, Seq: seq, Domain: 1, Time: 1_790_000_000}
		return ipfix.AppendMessage(nil, &m, func(b []byte) []byte { return append(b, bytes.Join(sets, nil)...) })
	}
	template := &decode.Template{Version: ipfix.V10, ID: 384, Fields: []decode.Element{{PEN: ipfix.Juniper, ID: 137, Length: 4}, {PEN: ipfix.Juniper, ID: 137, Length: 2},
		{ID: 10, Length: 4}, {ID: 14, Length: 4}, {ID: 312, Length: 2}, {ID: 315, Length: decode.VariableLength}}}
	options := &decode.Template{Version: ipfix.V10, ID: 385, Scopes: 1, Fields: []decode.Element{{ID: 10, Length: 4}, {ID: 82, Length: 12}}}
	record, _ := hex.DecodeString("0400000008c3" + "000002e1" + "00000000" + "05dc")
	data := ipfix.AppendSet(nil, 384, 0, func(b []byte) []byte {
		for range 2 {
			b = ipfix.AppendValue(append(b, record...), inner)
		}
		return b
	})
	define := slices.Concat(
		ipfix.AppendSet(nil, 2, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, template) }),
		ipfix.AppendSet(nil, 3, 0, func(b []byte) []byte { return ipfix.AppendTemplate(b, options) }),
		ipfix.AppendSet(nil, 385, 0, func(b []byte) []byte { return append(be.AppendUint32(b, 737), "et-0/0/3\x00\x00\x00\x00"...) }))
	chip, _ := hex.DecodeString("6ab13b80" + "00000005" + "00000007" + "00000003" + "1a00123400ff0040")
	drop := func(i uint32) []byte { // another one each time: the chip has nanoseconds
		be.PutUint32(chip[4:], i)
		return message(1, ipfix.AppendSet(nil, ipfix.Tomahawk5, 0, func(b []byte) []byte { return append(append(b, chip...), inner...) }))
	}
	for i := range uint32(100) {
		if i == 1 {
			write(i, 1, message(2, define))
		}
		if seq := 2*i + min(i, 1); i%10 != 5 || i < 20 { // else lost on the way
			write(i, 1, message(seq, data))
		}
		write(i, 2, drop(i))
	}
	file := filepath.Join(t.TempDir(), "ipfix.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A network that speaks IPFIX: drops with their reasons, those that came before their template among them, names of interfaces, and what was lost.
func TestIPFIXReplay(t *testing.T) {
	file := ipfixCapture(t)
	s := runReplay(t, file)
	if want := map[string]uint64{"ipfix drop": 100 + 2*92, "ipfix record": 2}; !maps.Equal(s.ByKind, want) || s.Malformed != 0 {
		t.Errorf("%v, %d malformed, want %v", s.ByKind, s.Malformed, want)
	}
	at := slices.IndexFunc(s.Exporters, func(e collector.ExporterSummary) bool { return e.Address == "192.0.2.1" })
	if at < 0 || s.Exporters[at].Lost != 16 {
		t.Errorf("exporters %+v, want 16 lost of 192.0.2.1", s.Exporters)
	}
	var table bytes.Buffer
	c := replayCommand()
	c.SetOut(&table)
	c.SetErr(io.Discard)
	c.SetArgs([]string{file})
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"node 7 dropped 100 packets for reason Broadcom: L3 destination discard (26)", "dropped 184 packets for reason Juniper: exception code (195)"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	stdout, _, err := runDecode(t.Context(), file, "--format", "table")
	if err != nil || strings.Count(stdout, "reason Juniper: exception code (195)") != 184 || strings.Count(stdout, "reason Broadcom: L3 destination discard (26)") != 100 {
		t.Errorf("%v, %.600s", err, stdout)
	}
	off := filepath.Join(t.TempDir(), "hopscope.yaml")
	if err := os.WriteFile(off, []byte("ipfix:\n  enabled: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := runReplay(t, file, "--config", off); s.Malformed != 193 || len(s.ByKind) > 0 {
		t.Errorf("switched off: %v, %d malformed", s.ByKind, s.Malformed)
	}
}

// What a capture prints follows the settings of a collector: the dialect of each exporter, and how IPFIX is read.
func TestDecodeSettings(t *testing.T) {
	file := ipfixCapture(t)
	config := func(text string) (by map[string]map[string]int) {
		settings := filepath.Join(t.TempDir(), "settings.yaml")
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, stderr, err := runDecode(t.Context(), file, "--config", settings)
		if err != nil {
			t.Fatal(err, stderr)
		}
		by = map[string]map[string]int{}
		for _, o := range objects(t, out) {
			from, how := o["exporter"].(string), "read"
			if e, ok := o["error"].(map[string]any); ok {
				how = e["reason"].(string)
			}
			if by[from] == nil {
				by[from] = map[string]int{}
			}
			by[from][how]++
		}
		return by
	}
	if by := config(""); by["192.0.2.2"]["read"] != 100 || by["192.0.2.1"]["read"] != 186 {
		t.Errorf("by default: %v", by)
	}
	if by := config("ipfix:\n  parked_sets: 0\n"); by["192.0.2.1"]["read"] >= 186 {
		t.Errorf("nothing waits for its template: %v", by)
	}
	if by := config("ipfix:\n  enabled: false\n"); len(by["192.0.2.1"]) != 1 || by["192.0.2.1"]["not-read"] < 90 || by["192.0.2.2"]["not-read"] != 100 {
		t.Errorf("switched off: %v", by)
	}
	by := config("exporters:\n  profiles:\n    - {prefix: 192.0.2.2, profile: fabric-tna}\n")
	if by["192.0.2.2"]["not-read"] != 100 || by["192.0.2.1"]["read"] != 186 {
		t.Errorf("one exporter of another profile: %v", by)
	}
}
