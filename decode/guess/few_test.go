package guess

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// Reports that are read and have no trait of a dialect are not unread. Those about packets of another protocol than
// IP are not, nor those beside some that cannot be read.
func TestFewUnread(t *testing.T) {
	frame := func(ether uint16, b ...byte) []byte {
		return append(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, ether), b...)
	}
	plain := append(packet.AppendIPv4(frame(packet.EtherIPv4), &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8),
		packet.AppendUDP(nil, 4000, 5000, 0)...)
	arp := frame(0x0806, 0, 1, 8, 0, 6, 4, 0, 1)
	label := append(frame(0x8847, 0, 6, 0x41, 64), plain[14:]...)
	lldp := frame(0x88cc, 2, 7, 4, 2, 0, 0, 0, 0, 1)
	report := func(version int, inner []byte) []byte {
		h := telemetry.Header{NodeID: 5, Flags: decode.Tracked, Inner: telemetry.InnerEthernet}
		switch version {
		case 5:
			return append(telemetry.Append05(nil, &h), inner...)
		case 10:
			return append(telemetry.Append10(nil, &h), inner...)
		}
		for len(inner)%4 != 0 {
			inner = append(inner[:len(inner):len(inner)], 0)
		}
		return append(telemetry.Append20(telemetry.AppendGroup(nil, 1, 7, 5), &h, len(inner)), inner...)
	}
	garbage := []byte{0x1f, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	auto, _ := demux.Lookup("auto")
	for _, c := range []struct {
		name    string
		inners  [][]byte
		garbage int // of 60
	}{
		{"plain packets", [][]byte{plain}, 0}, {"ARP", [][]byte{arp}, 0}, {"labels", [][]byte{label}, 0}, {"LLDP", [][]byte{lldp}, 0},
		{"all", [][]byte{plain, arp, label, lldp}, 0}, {"some garbage", [][]byte{plain, arp}, 3}, {"garbage", nil, 60},
	} {
		for _, version := range []int{5, 10, 20} {
			w := NewWatch(Builtin(), true)
			src := decode.AddrFrom4([]byte{192, 0, 2, 1})
			for k := range 60 {
				b, bad := garbage, k%20 == 10 && c.garbage > 0 || c.inners == nil
				if !bad {
					b = report(version, c.inners[k%len(c.inners)])
				}
				w.Unread(src, &auto, 1, bad, int64(k)*1e8)
				w.Add(Sample{Src: src, Link: Datagram, Data: b, Time: int64(k) * 1e8})
			}
			w.Finish()
			list := w.Findings()
			if c.garbage == 0 {
				if len(list) != 0 {
					t.Errorf("%s, version %d: %s", c.name, version, list[0].String())
				}
				continue
			}
			if len(list) != 1 || list[0].State != Unknown || list[0].Unread != uint64(c.garbage) || list[0].Stored != 0 || !strings.Contains(list[0].String(), "cannot be read") {
				t.Errorf("%s, version %d: %+v", c.name, version, list)
			}
		}
	}
}
