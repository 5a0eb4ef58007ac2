package ioam

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// IPv6 reads the IOAM options in hop-by-hop and destination headers of IPv6. It has no options.
type IPv6 struct{}

var (
	_ packet.Format       = IPv6{}
	_ packet.ReportReader = IPv6{}
)

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
	c := newCursor(p, data)
	for ; c.find(); n++ {
		r := b.Next()
		p.Report(r, data)
		c.decode(r)
	}
	return n
}

// ReadReport reads the first trace of a packet.
func (IPv6) ReadReport(r *decode.Report, p *packet.Packet, data []byte) bool {
	if p.IP != 6 {
		return false
	}
	c := newCursor(p, data)
	for c.find() {
		if c.trace() {
			c.decode(r)
			return true
		}
	}
	return false
}

// FindTrace returns the first pre-allocated trace of a hop-by-hop or destination header, from its option type up to the
// end of the header; nil if there is none.
func FindTrace(header []byte) []byte {
	if len(header) < 2 {
		return nil
	}
	c := cursor{data: header, limit: len(header), option: 2, end: (int(header[1]) + 1) * 8}
	for c.search() {
		if c.trace() && c.data[c.found+3] == TypeTrace {
			return c.data[c.found:min(len(c.data), c.end)]
		}
	}
	return nil
}

// cursor walks the IOAM options of a packet.
type cursor struct {
	data  []byte // up to the end of the packet
	limit int    // that end, by the packet's length: the capture may have less

	next    uint8 // number of the header at at
	at      int
	headers int // that may follow

	option, end int // of the present header with options: the place of the next one, and its end; both 0 without one
	found       int // the present option
}

func newCursor(p *packet.Packet, data []byte) cursor {
	return cursor{data: data[:min(len(data), p.End)], limit: p.End, next: data[p.L3+6], at: p.L3 + packet.IPv6Len, headers: maxExtensions}
}

// find moves to the next IOAM option. It returns false if there is none.
func (c *cursor) find() bool {
	for !c.search() {
		if !c.header() {
			return false
		}
	}
	return true
}

// header moves behind the next extension header, whose options are searched then if it has some. It returns false if
// there is none.
func (c *cursor) header() bool {
	c.option, c.end = 0, 0
	if c.headers == 0 {
		return false
	}
	c.headers--
	switch c.next {
	case hopByHop, routing, fragment, authentication, destination:
	default:
		return false
	}
	if len(c.data)-c.at < 8 {
		return false
	}
	h := c.data[c.at:]
	size := (int(h[1]) + 1) * 8
	switch c.next {
	case hopByHop, destination:
		c.option, c.end = c.at+2, c.at+size
	case fragment:
		if binary.BigEndian.Uint16(h[2:])&0xfff8 != 0 {
			return false // what follows is the middle of something
		}
		size = 8
	case authentication:
		size = (int(h[1]) + 2) * 4
	}
	c.next = h[0]
	c.at += size
	return true
}

// search moves to the next IOAM option of the present header. It returns false if there is none.
func (c *cursor) search() bool {
	b := c.data[:min(len(c.data), c.end)]
	for at := c.option; at < len(b); {
		kind := b[at]
		if kind == 0 { // Pad1 has no length
			at++
			continue
		}
		next := len(b)
		if at+1 < len(b) {
			next = at + 2 + int(b[at+1])
		}
		if kind == OptionChanging || kind == OptionFixed {
			c.found, c.option = at, next
			if c.end > c.limit {
				c.option = len(b) // no other one can be believed
			}
			return true
		}
		at = next
	}
	c.option = len(b)
	return false
}

// trace reports whether the present option is a trace, in a header that the packet has room for.
func (c *cursor) trace() bool {
	b := c.data[:min(len(c.data), c.end)]
	return c.end <= c.limit && len(b)-c.found >= optionLen && b[c.found+3] <= TypeIncremental
}

// decode reads the present option into r.
func (c *cursor) decode(r *decode.Report) {
	if c.end > c.limit { // a header that the packet has no room for holds nothing that can be believed
		r.Format = decode.IOAM
		r.Fail(decode.IOAM, "opt_data_len", c.found+1, decode.BadLength)
		return
	}
	DecodeOption(r, c.data[c.found:min(len(c.data), c.end)], c.end-c.found, c.found)
}
