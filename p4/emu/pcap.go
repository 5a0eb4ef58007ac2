package emu

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// PcapWriter writes datagrams as the frames in which a collector's interface would see them.
type PcapWriter struct {
	w     *pcapgo.Writer
	to    netip.Addr
	epoch time.Time
	buf   []byte
	id    uint16
}

// NewPcapWriter begins a pcap file with nanosecond times, counted from epoch. The collector's address must be IPv4.
func NewPcapWriter(w io.Writer, collector netip.Addr, epoch time.Time) (*PcapWriter, error) {
	if !collector.Is4() {
		return nil, fmt.Errorf("pcap: collector %v has no IPv4 address", collector)
	}
	p := &PcapWriter{w: pcapgo.NewWriterNanos(w), to: collector, epoch: epoch}
	return p, p.w.WriteFileHeader(1<<16, layers.LinkTypeEthernet)
}

// Write adds one datagram.
func (p *PcapWriter) Write(d Datagram) error {
	p.buf = AppendFrame(p.buf[:0], d, p.to, p.id)
	p.id++
	info := gopacket.CaptureInfo{Timestamp: p.epoch.Add(d.At), CaptureLength: len(p.buf), Length: len(p.buf)}
	return p.w.WritePacket(info, p.buf)
}

// AppendFrame appends d as an Ethernet frame with IPv4 and UDP headers, checksums included. id is the IPv4
// identification. Both addresses must be IPv4.
func AppendFrame(b []byte, d Datagram, to netip.Addr, id uint16) []byte {
	src, dst := d.From.Addr().As4(), to.As4()
	start := len(b)
	b = appendMAC(b, macHost, int(be.Uint32(dst[:])))
	b = appendMAC(b, macSwitch, int(be.Uint32(src[:])))
	b = append(b, 8, 0, 0x45, 0)
	b = be.AppendUint16(b, uint16(20+udpLen+len(d.Payload)))
	b = be.AppendUint16(b, id)
	b = append(b, 0, 0, 64, udp, 0, 0)
	b = append(append(b, src[:]...), dst[:]...)
	ip := b[start+ethLen:]
	be.PutUint16(ip[10:], ^fold(sum(ip)))
	u := len(b)
	b = be.AppendUint16(b, d.From.Port())
	b = be.AppendUint16(b, d.Port)
	b = be.AppendUint16(b, uint16(udpLen+len(d.Payload)))
	b = append(b, 0, 0)
	b = append(b, d.Payload...)
	seg := b[u:]
	s := sum(ip[12:20]) + udp + uint64(len(seg)) + sum(seg)
	if len(seg)&1 != 0 {
		s += uint64(seg[len(seg)-1]) << 8
	}
	if c := ^fold(s); c != 0 {
		be.PutUint16(seg[6:], c)
	} else {
		be.PutUint16(seg[6:], 0xffff)
	}
	return b
}
