package emu

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	headers "github.com/hopscope/hopscope/decode/packet"
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
	b = headers.AppendEthernet(b, mac(macHost, int(be.Uint32(dst[:]))), mac(macSwitch, int(be.Uint32(src[:]))), headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: udp, ID: id, Src: src, Dst: dst}, udpLen+len(d.Payload))
	at := len(b)
	b = headers.AppendUDP(b, d.From.Port(), d.Port, len(d.Payload))
	b = append(b, d.Payload...)
	headers.ChecksumUDP(b[at:], headers.PseudoHeader(b[at-8:at], udp, len(b)-at))
	return b
}
