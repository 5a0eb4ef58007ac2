package demux

import (
	"path/filepath"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/internal/testkit"
)

// everyone returns a decoder for each profile.
func everyone(t testing.TB) (list []*Decoder) {
	for _, name := range Profiles() {
		p := profile(t, name)
		p.INT.GREProtocol, p.INT.ProbeMarker, p.INT.Tunnels = 0x4569, 0xaaaaaaaabbbbbbbb, true
		list = append(list, New(p))
	}
	return list
}

func FuzzDatagram(f *testing.F) {
	for _, c := range reportCases(f) {
		f.Add(c.payload)
	}
	for _, d := range datagrams() {
		f.Add(d.payload)
	}
	decoders := everyone(f)
	var b decode.Batch
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, d := range decoders {
			b.Reset()
			if n := d.Datagram(&b, exporter, payload, 7); n < 1 || n != len(b.Reports) {
				t.Fatalf("Datagram(%x) = %d, %d reports", payload, n, len(b.Reports))
			}
			sane(t, &b, len(payload))
		}
	})
}

func FuzzFrame(f *testing.F) {
	for _, c := range frameCases(f) {
		f.Add(c.link, c.data, 0)
	}
	for _, c := range pintCases(f) {
		f.Add(c.link, c.data, 0)
	}
	for _, c := range captures {
		frames := capture(f, filepath.Join("../testdata", c.name+".pcap"))
		f.Add(uint16(1), frames[0].data, 0)
		f.Add(uint16(1), frames[len(frames)-1].data, 0)
	}
	for _, name := range testkit.VectorNames() {
		b, err := testkit.Vector(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(1), b, 0)
	}
	decoders := everyone(f)
	var b decode.Batch
	f.Fuzz(func(t *testing.T, link uint16, data []byte, more int) {
		length := len(data) + max(0, more%2000)
		for _, d := range decoders {
			b.Reset()
			if n := d.Frame(&b, link, data, length, 7); n != len(b.Reports) {
				t.Fatalf("Frame(%d, %x, %d) = %d, %d reports", link, data, length, n, len(b.Reports))
			}
			sane(t, &b, length)
		}
	})
}
