package demux

import (
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/testkit"
)

// singles returns decoders that differ in the options of the short path.
func singles(t testing.TB) (list []*Decoder) {
	for _, name := range Profiles() {
		list = append(list, New(profile(t, name)))
	}
	for _, change := range []func(*Profile){
		func(p *Profile) { p.INT.ProbeMarker = 0xaaaaaaaabbbbbbbb },
		func(p *Profile) { p.INT.BehindOptions = true },
		func(p *Profile) { p.INT.GREProtocol, p.INT.TailPort = 0x4569, hostPort },
		func(p *Profile) { p.INT.Tunnels, p.INT.DSCPMask = false, 0 },
		func(p *Profile) { p.INT.Ports = []uint16{intmd.PortVXLANGPE, intmd.PortGeneve} },
		func(p *Profile) { p.INT.LeastFirst = true },
		func(p *Profile) { p.INT.SwapNPT2 = true },
		func(p *Profile) { p.INT.Versions = intmd.V10 },
		func(p *Profile) { p.INT.Domains = []intmd.Domain{{ID: 0x1234, SourceWords: [16]uint8{1}}} },
		func(p *Profile) { p.Report.NoSequence, p.Report.ZeroToEnd, p.Report.ShortToEnd = true, true, true },
		func(p *Profile) { p.INT.Versions = intmd.V21 },
		func(p *Profile) { p.INT.WideTimes = true },
		func(p *Profile) { p.INT.HostINT = true },
		func(p *Profile) { p.INT.Version0 = true },
		func(p *Profile) { p.Report.FlagsFirst = true },
		func(p *Profile) { p.Report.Postcard = true },
		func(p *Profile) { p.Report.Unflagged = true },
		func(p *Profile) { p.Report.Versions = telemetry.V20 },
		func(p *Profile) { p.OuterFlow = true },
	} {
		p := profile(t, "auto")
		change(&p)
		list = append(list, New(p))
	}
	return list
}

// FuzzSingle holds that both ways to read a datagram give the same reports.
func FuzzSingle(f *testing.F) {
	for _, c := range reportCases(f) {
		f.Add(c.payload, uint8(0), uint8(0))
	}
	for _, d := range datagrams() {
		f.Add(d.payload, uint8(0), uint8(0))
		f.Add(d.payload, uint8(3), uint8(9))
	}
	md := func(npt byte, bitmap uint16, n int) []byte {
		b := int21(bitmap, n)
		b[0] = 0x10 | npt<<2
		return b
	}
	gpe := []byte{0x0c, 0, 0, 0x82, 0, 0, 0, 0}
	marker := []byte{0xaa, 0xaa, 0xaa, 0xaa, 0xbb, 0xbb, 0xbb, 0xbb}
	for _, inner := range [][]byte{
		ether(f, ipv4(0x17, 17, udp(5000, md(0, 0xf000, 0)))),
		ipv6(0x17, 17, udp(17768, md(0, 0x8000, 1))),
		ipv4(0x17, 6, tcp(80, 0, md(0, 0xf001, 2))),
		ipv4(0x17, 6, tcp(80, 1, md(0, 0xf000, 2))),
		ipv4(0x17, 17, udp(5000, md(1, 0xf000, 2))),
		ipv4(0, 17, udp(5000, md(0, 0xf000, 2))),
		ipv4(0, 17, udp(5000, append(marker, md(0, 0xf000, 2)...))),
		ipv4(0, 17, udp(17768, md(2, 0xf000, 2))),
		ipv4(0, 17, udp(17768, md(1, 0, 0))),
		ipv4(0, 17, udp(17768, make([]byte, 1020-8-28))),
		ipv4(0, 17, udp(hostPort, md(1, 0xf000, 2))),
		ipv4(0, 17, udp(intmd.PortVXLANGPE, append(gpe, md(0, 0xf000, 2)...))),
	} {
		f.Add(report20(flagF, 0, nil, inner), uint8(0), uint8(0))
	}
	for _, bits := range []uint16{0x0800, 0x0001, 0x4001, 0x8000, 0xc000} {
		f.Add(report20(flagD, bits, make([]byte, 4*packet.Words(packet.INT2, bits)), ipv4(0, 17, udp(5000, nil))), uint8(0), uint8(0))
	}
	for _, bitmap := range []uint16{0, 0x8000, 0xf000, 0xfc00, 0xfd00, 0xff00, 0x3000, 0xffff} {
		for _, inner := range [][]byte{
			ipv4(0x17, 17, udp(5000, int10(bitmap, 3))),
			ipv4(0x17, 6, tcp(80, 0, int10(bitmap, 2))),
			ipv4(0x17, 17, udp(intmd.PortVXLANGPE, int10(bitmap, 1))),
			ipv4(0x17, 17, udp(5000, int10(bitmap, 0))),
			ipv4(0, 17, udp(5000, int10(bitmap, 2))),
		} {
			f.Add(headed10(1, 0x41, inner), uint8(0), uint8(0))
			f.Add(headed10(1, 0x01, inner), uint8(0), uint8(0)) // without F
			f.Add(headed10(0, 0x41, ether(f, inner)), uint8(2), uint8(0))
		}
	}
	decoders := singles(f)
	f.Fuzz(func(t *testing.T, data []byte, skip, cut uint8) {
		at := min(int(skip), len(data))
		end := len(data) + int(cut) // behind what was captured
		if cut > 128 {
			end = max(len(data)-int(cut-128), 0) // before: trailing bytes
		}
		for _, d := range decoders {
			bothWays(t, d, data, at, end)
		}
	})
}

// bothWays reads data[at:end] in both ways and compares.
func bothWays(t *testing.T, d *Decoder, data []byte, at, end int) {
	t.Helper()
	if whole := data[min(at, end, len(data)):min(end, len(data))]; len(whole) > 0 && (Recognise(whole, end-at) != 0 || begins(whole) != 0) {
		return // what its first bytes show to be another format goes neither way
	}
	var short, long decode.Batch
	src := exporter
	n := d.reports(&short, &src, data, at, end, 7)
	m := d.group(&long, &src, data, at, end, 7)
	if n != m || !reflect.DeepEqual(short.Reports, long.Reports) {
		t.Fatalf("profile %+v, data[%d:%d] of %x: %d reports, want %d", d.profile, at, end, data, n, m)
	}
}

// headed10 makes a report 1.0 without metadata, about a packet of a kind, with the last byte of its first word.
func headed10(nprot, last byte, inner []byte) []byte {
	return append([]byte{1<<4 | 4, nprot << 5, 0, last, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9}, inner...)
}

// TestSingleEveryByte changes the usual datagrams in every bit, and cuts them at every byte.
func TestSingleEveryByte(t *testing.T) {
	testkit.Long(t)
	for _, d := range singles(t) {
		for _, c := range datagrams() {
			for at, old := range c.payload {
				bothWays(t, d, c.payload[:at], 0, at)
				bothWays(t, d, c.payload[:at], 0, len(c.payload))
				for bit := range 8 {
					c.payload[at] = old ^ 1<<bit
					bothWays(t, d, c.payload, 0, len(c.payload))
				}
				c.payload[at] = 0xff
				bothWays(t, d, c.payload, 0, len(c.payload))
				c.payload[at] = old
			}
		}
	}
}

// TestSingle holds that the usual datagrams go the short way.
func TestSingle(t *testing.T) {
	d := New(profile(t, "auto"))
	for _, c := range datagrams() {
		var r decode.Report
		if !d.single(&r, &exporter, c.payload) {
			t.Errorf("%s: single = false", c.name)
		}
	}
}
