package emu

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"

	headers "github.com/hopscope/hopscope/decode/packet"
)

// pcapWriter writes datagrams as the frames in which a collector's interface would see them.
type pcapWriter struct {
	w     io.Writer
	to    netip.Addr
	epoch time.Time
	buf   []byte
	id    uint16
}

// newPcapWriter begins a pcap file with nanosecond times, counted from epoch. The collector's address must be IPv4.
func newPcapWriter(w io.Writer, collector netip.Addr, epoch time.Time) (*pcapWriter, error) {
	if !collector.Is4() {
		return nil, fmt.Errorf("pcap: collector %v has no IPv4 address", collector)
	}
	le := binary.LittleEndian
	var header [pcapHeaderLen]byte
	le.PutUint32(header[0:], 0xa1b23c4d) // nanoseconds
	le.PutUint16(header[4:], 2)          // version 2.4
	le.PutUint16(header[6:], 4)
	le.PutUint32(header[16:], 1<<16) // longest frame
	le.PutUint32(header[20:], 1)     // Ethernet
	_, err := w.Write(header[:])
	return &pcapWriter{w: w, to: collector, epoch: epoch}, err
}

// Write adds one datagram.
func (p *pcapWriter) Write(d Datagram) error {
	var record [pcapRecordLen]byte
	p.buf = appendFrame(append(p.buf[:0], record[:]...), d, p.to, p.id)
	p.id++
	le, at, length := binary.LittleEndian, p.epoch.Add(d.At), uint32(len(p.buf)-pcapRecordLen)
	le.PutUint32(p.buf[0:], uint32(at.Unix()))
	le.PutUint32(p.buf[4:], uint32(at.Nanosecond()))
	le.PutUint32(p.buf[8:], length)  // captured
	le.PutUint32(p.buf[12:], length) // on the wire
	_, err := p.w.Write(p.buf)
	return err
}

// Lengths of a pcap file's header, and of the one before each frame.
const (
	pcapHeaderLen = 24
	pcapRecordLen = 16
)

// appendFrame appends d as an Ethernet frame with IPv4 and UDP headers, checksums included. id is the IPv4
// identification. Both addresses must be IPv4.
func appendFrame(b []byte, d Datagram, to netip.Addr, id uint16) []byte {
	src, dst := d.From.Addr().As4(), to.As4()
	b = headers.AppendEthernet(b, mac(macHost, int(be.Uint32(dst[:]))), mac(macSwitch, int(be.Uint32(src[:]))), headers.EtherIPv4)
	b = headers.AppendIPv4(b, &headers.IPv4{TTL: 64, Proto: udp, ID: id, Src: src, Dst: dst}, udpLen+len(d.Payload))
	at := len(b)
	b = headers.AppendUDP(b, d.From.Port(), d.Port, len(d.Payload))
	b = append(b, d.Payload...)
	headers.ChecksumUDP(b[at:], headers.PseudoHeader(b[at-8:at], udp, len(b)-at))
	return b
}
