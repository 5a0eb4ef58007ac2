package collector

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// vxlan is packet i of a tunnel from this port: identification 0, and a UDP header that never changes, with checksum 0. The packet inside does.
func vxlan(port uint16, i int) []byte {
	inner := append(make([]byte, 12), 8, 0, 0x45, 0, 0, 28, byte(i>>8), byte(i), 0, 0, 64, 17, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2, 4, 87, 0, 53, 0, 8, 0, 0, 0, 0) // two bytes of padding: reports are whole words
	b := []byte{0x45, 0, 0, byte(36 + len(inner)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, byte(port >> 8), byte(port), 0x12, 0xb5, 0, byte(16 + len(inner)), 0, 0, 8, 0, 0, 0, 0, 0, 7, 0}
	var sum uint32
	for k := 0; k < 20; k += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[k:]))
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
	return append(b, inner...)
}

// Switches write digests into packets of a tunnel. If the packet id is a hash of the tunnel's UDP header, as in
// pint.p4, all packets have one id. The hops that do not write into it are then named. If the hash takes bytes of the
// inner packet, nothing is logged.
func TestFewPacketIDs(t *testing.T) {
	network, plan, _ := fabricOfDigests(t)
	path := []uint32{1, 100, 2}
	outer := func(p []byte) uint32 { return crc32.ChecksumIEEE(p[20:28]) }
	inside := func(p []byte) uint32 { return crc32.ChecksumIEEE(p[20:]) }
	port, silent := uint16(49152), []string{}
	for ; len(silent) != 2; port++ {
		scheme, written := plan.Queries[0].Scheme, uint64(0)
		for n := range scheme.Instances() {
			k := scheme.Packet(outer(vxlan(port+1, 0)), n)
			written |= scheme.Writers(&k, len(path))
		}
		silent = silent[:0]
		for h := range path {
			if written>>h&1 == 0 {
				silent = append(silent, fmt.Sprint(h+1))
			}
		}
	}
	named := fmt.Sprintf("2 of 3 hops (%s) wrote into none of the last 64", strings.Join(silent, ", "))
	for name, tt := range map[string]struct {
		first, then func([]byte) uint32 // 640 packets each
		few         uint64              // digests of rounds with few ids
		want        string
	}{
		"outer headers": {outer, outer, 1280, named},
		"inner packets": {inside, inside, 0, ""},
		"mended":        {outer, inside, 640, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var frames [][]byte
			for i := range 1280 {
				p, id := vxlan(port, i), tt.first
				if i >= 640 {
					id = tt.then
				}
				d := decode.Digest{Epoch: plan.Epoch, Hops: uint8(len(path)), ID: id(p)}
				for k, node := range path {
					d.Value = plan.Write(d.Value, d.ID, k+1, pint.Values{Node: node}, 0)
				}
				h := telemetry.Header{Flags: decode.Tracked, Inner: telemetry.InnerIPv4, Digest: &d, DigestBits: plan.Bits}
				frames = append(frames, append(telemetry.Append20(telemetry.AppendGroup(nil, 0, uint32(i), 2), &h, len(p)), p...))
			}
			src := &sender{canned{workers: 1, batches: 1, frames: frames, waits: true, times: func(_, _ int) int64 { return 1e18 }}, netip.MustParseAddr("10.1.0.1")}
			c := newEngine(t, func(p *program) { p.Shards, p.Window = 1, time.Hour },
				Options{Policy: Replay, Seed: 7, Sources: []Source{{Name: "canned", Source: src}}, Network: network, Plans: []*pint.Plan{plan}})
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(c.Status().Problems, "\n")
			if got := strings.Contains(problems, "few packet ids"); got != (tt.want != "") || got && !(strings.Contains(problems, "(192.168.0.1:1111 > 192.168.0.2:53 udp)") && strings.Contains(problems, tt.want)) {
				t.Errorf("problems %q, want %q", problems, tt.want)
			}
			s := c.Summary(1, 0)
			if s.Digests.FewIDs.Digests != tt.few || (s.Digests.FewIDs.Flows == 1) != (tt.want != "") {
				b, _ := json.Marshal(s.Digests)
				t.Errorf("%s, want %d digests of few ids", b, tt.few)
			}
		})
	}
}
