package pcapfile

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/hopscope/hopscope/ingest"
)

// Block types, draft-ietf-opsawg-pcapng-02 §4.
const (
	magicSection   = 0x0a0d0d0a // the same in both byte orders
	blockInterface = 1
	blockPacket    = 2 // obsolete
	blockSimple    = 3
	blockEnhanced  = 6

	byteOrderMagic = 0x1a2b3c4d

	optTimeResolution = 9
	optTimeOffset     = 14
)

// Limits against hostile files: the longest block that is decoded (a packet and its options), and the interfaces in a
// section. Longer blocks of other types are skipped unread.
const (
	maxBlock      = maxCapture + 64<<10
	maxInterfaces = 4096
)

// iface is one interface of the current section.
type iface struct {
	link      uint16
	snap      uint32
	perSecond uint64 // ticks; times are counted in them
	offset    int64  // seconds to add
}

// parseNG appends the packets that are whole in the window to b, and takes note of sections and interfaces between
// them.
//
// Layout of a block: type 4, total length 4, body, total length again 4; padded to a multiple of 4 bytes.
func (r *Reader) parseNG(b *ingest.Batch, limit int) {
	for len(b.Frames) < limit && r.err == nil && r.skip == 0 {
		buf := r.buf[r.pos:r.end]
		if len(buf) < 12 {
			r.need = 12
			return
		}
		kind := r.u32(buf)
		if magic, swap, ok := nextHeader(buf); ok {
			if len(buf) < fileHeaderLen {
				r.need = fileHeaderLen
				return
			}
			r.ng, r.swap, r.need = false, swap, 1
			r.fileHeader(magic, buf)
			r.pos += fileHeaderLen
			return
		}
		if kind == magicSection {
			if !r.byteOrder(buf[8:]) {
				return
			}
		}
		n := r.u32(buf[4:])
		if n < 12 || n%4 != 0 {
			r.fail(r.at(r.pos), errDamaged, "block of %d bytes", n)
			return
		}
		if n > maxBlock {
			if least(kind) > 0 {
				r.fail(r.at(r.pos), errDamaged, "block of %d bytes exceeds %d", n, maxBlock)
				return
			}
			r.skip, r.skipFrom = int64(n), r.at(r.pos)
			r.discard()
			continue
		}
		if uint32(len(buf)) < n {
			r.need = int(n)
			return
		}
		if last := r.u32(buf[n-4:]); last != n {
			r.fail(r.at(r.pos), errDamaged, "block of %d bytes says %d at its end", n, last)
			return
		}
		body := buf[8 : n-4 : n-4]
		if len(body) < least(kind) {
			r.fail(r.at(r.pos), errDamaged, "block of type %d with %d bytes of content, at least %d", kind, len(body), least(kind))
			return
		}
		switch kind {
		case magicSection:
			r.section(body)
		case blockInterface:
			r.newInterface(body)
		case blockEnhanced:
			r.packet(b, r.u32(body), body)
		case blockPacket:
			r.packet(b, uint32(r.u16(body)), body)
		case blockSimple:
			r.simple(b, body)
		}
		r.pos += int(n)
	}
}

// least is the least size of the content of a block that matters for the frames, 0 for all others.
func least(kind uint32) int {
	switch kind {
	case magicSection:
		return 16
	case blockInterface:
		return 8
	case blockPacket, blockEnhanced:
		return 20
	case blockSimple:
		return 4
	}
	return 0
}

// byteOrder reads a section's byte order mark.
func (r *Reader) byteOrder(mark []byte) bool {
	switch m := binary.LittleEndian.Uint32(mark); m {
	case byteOrderMagic:
		r.swap = false
	case bits.ReverseBytes32(byteOrderMagic):
		r.swap = true
	default:
		r.fail(r.at(r.pos), errDamaged, "byte order mark %x", mark[:4])
		return false
	}
	return true
}

// section begins a section: byte order mark 4, major version 2, minor version 2, section length 8, options.
func (r *Reader) section(body []byte) {
	major, minor := r.u16(body[4:]), r.u16(body[6:])
	if major != 1 || minor != 0 && minor != 2 { // 2 was written by mistake and means 0
		r.fail(r.at(r.pos), errFormat, "pcapng version %s is not read, only 1.0", version(major, minor))
	}
	r.ifaces = r.ifaces[:0]
}

// newInterface reads an interface description: link type 2, reserved 2, snapshot length 4, options.
func (r *Reader) newInterface(body []byte) {
	if len(r.ifaces) == maxInterfaces {
		r.fail(r.at(r.pos), errDamaged, "more than %d interfaces", maxInterfaces)
		return
	}
	f := iface{link: canonicalLink(r.u16(body)), snap: r.u32(body[4:]), perSecond: 1e6}
	for opts := body[8:]; len(opts) >= 4; {
		code, n := r.u16(opts), int(r.u16(opts[2:]))
		if code == 0 {
			break
		}
		padded := 4 + (n+3)&^3
		if padded > len(opts) {
			r.fail(r.at(r.pos), errDamaged, "interface option %d of %d bytes is longer than its block", code, n)
			return
		}
		switch value := opts[4 : 4+n]; {
		case code == optTimeResolution && n == 1:
			if f.perSecond = resolution(value[0]); f.perSecond == 0 {
				r.fail(r.at(r.pos), errDamaged, "time resolution %#02x of an interface", value[0])
				return
			}
		case code == optTimeOffset && n == 8:
			f.offset = int64(r.u64(value))
		}
		opts = opts[padded:]
	}
	r.ifaces = append(r.ifaces, f)
}

// resolution returns the ticks in a second: a negative power of 10, or of 2 with the top bit set. It returns 0 if a
// 64-bit time cannot hold a second.
func resolution(b byte) uint64 {
	exp := b & 0x7f
	if b&0x80 != 0 {
		if exp > 63 {
			return 0
		}
		return 1 << exp
	}
	if exp > 19 {
		return 0
	}
	n := uint64(1)
	for range exp {
		n *= 10
	}
	return n
}

// time converts ticks to nanoseconds since 1970.
func (f *iface) time(ticks uint64) int64 {
	const second = 1_000_000_000
	switch f.perSecond {
	case second:
		return int64(ticks) + f.offset*second
	case 1e6:
		return int64(ticks)*1000 + f.offset*second
	}
	hi, lo := bits.Mul64(ticks%f.perSecond, second)
	frac, _ := bits.Div64(hi, lo, f.perSecond) // hi < perSecond, since the remainder is
	return (int64(ticks/f.perSecond)+f.offset)*second + int64(frac)
}

// packet reads an enhanced packet block or the obsolete one. The former has interface 4, time 8 as two halves, capture
// length 4, length on the wire 4, data, options. The latter begins with interface 2, drops 2.
func (r *Reader) packet(b *ingest.Batch, id uint32, body []byte) {
	captured, length := r.u32(body[12:]), r.u32(body[16:])
	switch {
	case uint64(id) >= uint64(len(r.ifaces)):
		r.fail(r.at(r.pos), errDamaged, "interface %d of %d", id, len(r.ifaces))
		return
	case captured > maxCapture:
		r.fail(r.at(r.pos), errDamaged, "capture length %d exceeds %d", captured, maxCapture)
		return
	case int(captured) > len(body)-20:
		r.fail(r.at(r.pos), errDamaged, "capture length %d exceeds the %d bytes of its block", captured, len(body)-20)
		return
	}
	f := &r.ifaces[id]
	ticks := uint64(r.u32(body[4:]))<<32 | uint64(r.u32(body[8:]))
	r.add(b, f, body[20:20+captured:20+captured], f.time(ticks), length)
}

// simple reads a simple packet block: length on the wire 4, data up to the snapshot length of the first interface.
func (r *Reader) simple(b *ingest.Batch, body []byte) {
	if len(r.ifaces) == 0 {
		r.fail(r.at(r.pos), errDamaged, "packet without an interface")
		return
	}
	f := &r.ifaces[0]
	length := r.u32(body)
	captured := length
	if f.snap > 0 {
		captured = min(length, f.snap)
	}
	if int64(captured) > int64(len(body)-4) {
		r.fail(r.at(r.pos), errDamaged, "length %d exceeds the %d bytes of its block", captured, len(body)-4)
		return
	}
	r.add(b, f, body[4:4+captured:4+captured], 0, length)
}

func (r *Reader) add(b *ingest.Batch, f *iface, data []byte, time int64, length uint32) {
	r.number++
	b.Frames = append(b.Frames, ingest.Frame{
		Data: data, Time: time, Number: r.number, Length: max(int(length), len(data)), Link: f.link,
	})
}

func version(major, minor uint16) string { return fmt.Sprintf("%d.%d", major, minor) }
