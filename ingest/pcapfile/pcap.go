package pcapfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/ingest"
)

const (
	magicMicro = 0xa1b2c3d4
	magicNano  = 0xa1b23c4d

	fileHeaderLen   = 24
	recordHeaderLen = 16
)

// startPcap reads the header of a pcap file, whose magic number is known.
//
// Layout: magic 4, major version 2, minor version 2, reserved 8, snapshot length 4, FCS length 4 bits, 12 bits, link type 2.
func (r *Reader) startPcap(magic uint32) error {
	if err := r.header(fileHeaderLen); err != nil {
		return err
	}
	major, minor := r.u16(r.buf[4:]), r.u16(r.buf[6:])
	if major != 2 || minor != 4 {
		e := &Error{File: r.name, Offset: 4, Err: errFormat}
		e.Detail = "pcap version " + version(major, minor) + " is not read, only 2.4"
		return e
	}
	r.fileHeader(magic, r.buf)
	r.pos = fileHeaderLen
	return nil
}

// fileHeader takes from the header b how the records that follow it are read.
func (r *Reader) fileHeader(magic uint32, b []byte) {
	r.scale = 1000
	if magic == magicNano {
		r.scale = 1
	}
	r.link = canonicalLink(uint16(r.u32(b[20:])))
}

// nextHeader reports whether h, in place of a record or block, begins the header of another pcap file, and in which
// byte order. Captures are thus concatenated by programs that write to a FIFO, or by cat. As a record, h would be an
// empty packet of the year 2055 that had no bytes on the wire either. As a block it would have no valid length.
func nextHeader(h []byte) (magic uint32, swap, ok bool) {
	le, be := binary.LittleEndian, binary.BigEndian
	magic, order := le.Uint32(h), binary.ByteOrder(le)
	if magic != magicMicro && magic != magicNano {
		if magic, order, swap = be.Uint32(h), be, true; magic != magicMicro && magic != magicNano {
			return 0, false, false
		}
	}
	return magic, swap, order.Uint16(h[4:]) == 2 && order.Uint16(h[6:]) == 4 && le.Uint32(h[8:]) == 0
}

// nextSection is nextHeader for a pcapng file. As a record it would have more bytes than one can have.
func nextSection(h []byte) bool {
	mark := binary.LittleEndian.Uint32(h[8:])
	return binary.LittleEndian.Uint32(h) == magicSection && (mark == byteOrderMagic || mark == bits.ReverseBytes32(byteOrderMagic))
}

// parsePcap appends the records that are whole in the window to b.
//
// Layout: seconds 4, micro- or nanoseconds 4, capture length 4, length on the wire 4, data.
func (r *Reader) parsePcap(b *ingest.Batch, limit int) {
	buf, pos := r.buf[:r.end], r.pos
	for len(b.Frames) < limit {
		if len(buf)-pos < recordHeaderLen {
			r.need = recordHeaderLen
			break
		}
		h := buf[pos : pos+recordHeaderLen : pos+recordHeaderLen]
		le := binary.LittleEndian
		sec, frac, captured, length := le.Uint32(h), le.Uint32(h[4:]), le.Uint32(h[8:]), le.Uint32(h[12:])
		if r.swap {
			sec, frac = bits.ReverseBytes32(sec), bits.ReverseBytes32(frac)
			captured, length = bits.ReverseBytes32(captured), bits.ReverseBytes32(length)
		}
		if captured > maxCapture {
			if nextSection(h) {
				r.ng, r.need = true, 1
				break
			}
			r.fail(r.at(pos), errDamaged, "capture length %d exceeds %d", captured, maxCapture)
			break
		}
		if captured == 0 && length == 0 {
			if magic, swap, ok := nextHeader(h); ok {
				if len(buf)-pos < fileHeaderLen {
					r.need = fileHeaderLen
					break
				}
				r.swap = swap
				r.fileHeader(magic, buf[pos:])
				pos += fileHeaderLen
				continue
			}
		}
		n := recordHeaderLen + int(captured)
		if len(buf)-pos < n {
			r.need = n
			break
		}
		r.number++
		b.Frames = append(b.Frames, ingest.Frame{
			Data:   buf[pos+recordHeaderLen : pos+n : pos+n],
			Time:   int64(sec)*1e9 + int64(frac)*r.scale,
			Number: r.number,
			Length: int(max(length, captured)),
			Link:   r.link,
		})
		pos += n
	}
	r.pos = pos
}

// canonicalLink returns the registered number of raw IP for the two that some systems write.
func canonicalLink(link uint16) uint16 {
	if link == 12 || link == 14 {
		return ingest.LinkRaw
	}
	return link
}

func (r *Reader) u16(b []byte) uint16 {
	if r.swap {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (r *Reader) u32(b []byte) uint32 {
	if r.swap {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *Reader) u64(b []byte) uint64 {
	if r.swap {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}
