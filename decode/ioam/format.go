package ioam

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// IPv6 reads the IOAM options in hop-by-hop and destination headers of IPv6. It has no options.
type IPv6 struct{}

var _ packet.Format = IPv6{}

// Extension headers that are walked over, as numbered by IANA.
const (
	hopByHop       = 0
	routing        = 43
	fragment       = 44
	authentication = 51
	destination    = 60
	maxExtensions  = 16
)

// Where is every packet with an IP header.
func (IPv6) Where() packet.Where {
	return packet.Where{Any: true, Mark: "IPv6 option 0x31, 0x11"}
}

// NewReader returns f itself, which keeps nothing.
func (f IPv6) NewReader() packet.Reader { return f }

func (IPv6) String() string { return "IOAM in IPv6" }

// Read reads all IOAM options of a packet: one report each.
func (IPv6) Read(b *decode.Batch, p *packet.Packet, data []byte) (n int) {
	if p.IP != 6 {
		return 0
	}
	data = data[:min(len(data), p.End)]
	next, at := data[p.L3+6], p.L3+packet.IPv6Len
	for range maxExtensions {
		switch next {
		case hopByHop, routing, fragment, authentication, destination:
		default:
			return n
		}
		if len(data)-at < 8 {
			return n
		}
		size := (int(data[at+1]) + 1) * 8
		switch next {
		case hopByHop, destination:
			n += options(b, p, data, at, size)
		case fragment:
			if binary.BigEndian.Uint16(data[at+2:])&0xfff8 != 0 {
				return n // what follows is the middle of something
			}
			size = 8
		case authentication:
			size = (int(data[at+1]) + 2) * 4
		}
		next = data[at]
		at += size
	}
	return n
}

// options reads the IOAM options of the header of size bytes at data[at].
func options(b *decode.Batch, p *packet.Packet, data []byte, at, size int) (n int) {
	end := at + size
	captured := data[:min(len(data), end)]
	at += 2
	for at < len(captured) {
		switch captured[at] {
		case 0: // Pad1 has no length
			at++
			continue
		case OptionChanging, OptionFixed:
			r := b.Next()
			p.Report(r, data)
			n++
			if end > p.End { // a header that the packet has no room for holds nothing that can be believed
				r.Format = decode.IOAM
				r.Fail(decode.IOAM, "opt_data_len", at+1, decode.BadLength)
				return n
			}
			DecodeOption(r, captured[at:], end-at, at)
		}
		if at+1 >= len(captured) {
			return n
		}
		at += 2 + int(captured[at+1])
	}
	return n
}
