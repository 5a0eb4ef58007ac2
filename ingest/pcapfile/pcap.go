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
	r.scale = 1000
	if magic == magicNano {
		r.scale = 1
	}
	major, minor := r.u16(r.buf[4:]), r.u16(r.buf[6:])
	if major != 2 || minor != 4 {
		e := &Error{File: r.name, Offset: 4, Err: ErrFormat}
		e.Detail = "pcap version " + version(major, minor) + " is not read, only 2.4"
		return e
	}
	r.link = canonicalLink(uint16(r.u32(r.buf[20:])))
	r.pos = fileHeaderLen
	return nil
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
		if captured > MaxCapture {
			r.fail(r.at(pos), ErrDamaged, "capture length %d exceeds %d", captured, MaxCapture)
			break
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

// canonicalLink gives the registered number of raw IP for the two that some systems write.
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
