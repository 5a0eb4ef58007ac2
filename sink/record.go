package sink

import (
	"encoding/binary"
	"math"
	"strings"
)

// A record is what waits in memory and in the spool: some points of one batch, as the writer encodes them, behind
//
//	0x80 0x00 version<1b> flags<1b> batch<8b big endian> part<uvarint> series<uvarint> { name<string> points<uvarint> }
//	string: length<uvarint> bytes
//
// Earlier versions had the number of points<uvarint> there alone. They wrote it in as few bytes as it needs, and so never
// began with 0x80 0x00.
//
// recordHead is the head of one of the records into which a batch is cut. The reports of the batch go with the last
// one. They are stored when all points of the batch are. A head therefore holds the batch, the record's place in it,
// and whether an earlier record was lost. This outlives the process that lost it.
type recordHead struct {
	batch   uint64 // 0 in a record of an earlier version; later batches have higher numbers
	part    uint64 // counts the records of a batch from 0
	last    bool   // the record with the reports
	spoiled Stage  // where points of an earlier record ended; Stored if none are known to
	series  []SeriesCount
	points  uint64 // sum of series
}

const (
	recordMark    = "\x80\x00"
	recordVersion = 1
	flagsAt       = len(recordMark) + 1

	flagLast      = 1
	spoiledShift  = 1
	spoiledMask   = 7
	maxSeriesName = 1 << 16
)

// spoiledCodes are the stages that a record can name, by their code.
var spoiledCodes = [...]Stage{Stored, DroppedMemory, DroppedDisk, DroppedEncoding}

func (h *recordHead) flags() byte {
	var f byte
	if h.last {
		f = flagLast
	}
	for code, s := range spoiledCodes {
		if s == h.spoiled {
			f |= byte(code) << spoiledShift
		}
	}
	return f
}

func appendRecordHead(dst []byte, h *recordHead) []byte {
	dst = append(dst, recordMark...)
	dst = append(dst, recordVersion, h.flags())
	dst = binary.BigEndian.AppendUint64(dst, h.batch)
	dst = binary.AppendUvarint(dst, h.part)
	dst = binary.AppendUvarint(dst, uint64(len(h.series)))
	for _, c := range h.series {
		dst = binary.AppendUvarint(dst, uint64(len(c.Series)))
		dst = append(dst, c.Series...)
		dst = binary.AppendUvarint(dst, c.Points)
	}
	return dst
}

// parseRecord parses the head of a record, before the payload. ok is false for a record that this version cannot read.
func parseRecord(record []byte) (h recordHead, payload []byte, ok bool) {
	rest, marked := strings.CutPrefix(string(record[:min(len(record), len(recordMark))]), recordMark)
	if !marked || rest != "" {
		n, used := binary.Uvarint(record)
		if used <= 0 || n > math.MaxInt64 {
			return recordHead{last: true, spoiled: Stored}, record, false
		}
		return recordHead{last: true, spoiled: Stored, points: n}, record[used:], true
	}
	d := decoder{b: record, at: len(recordMark)}
	version, flags, batch := d.byte(), d.byte(), d.uint64()
	h = recordHead{batch: batch, part: d.uvarint(), last: flags&flagLast != 0, spoiled: Stored}
	code := int(flags >> spoiledShift & spoiledMask)
	if version != recordVersion || code >= len(spoiledCodes) {
		return recordHead{last: true, spoiled: Stored}, record, false
	}
	h.spoiled = spoiledCodes[code]
	for range d.count() {
		n := d.uvarint()
		if d.bad || n > maxSeriesName || n > uint64(len(d.b)-d.at) {
			d.bad = true
			break
		}
		name := string(d.b[d.at : d.at+int(n)])
		d.at += int(n)
		c := SeriesCount{name, d.uvarint()}
		if c.Points > math.MaxInt64-h.points {
			d.bad = true
			break
		}
		h.points += c.Points
		h.series = append(h.series, c)
	}
	if d.bad {
		return recordHead{last: true, spoiled: Stored}, record, false
	}
	return h, record[d.at:], true
}

// countSeries counts points by series.
func countSeries(points []Point) (counts []SeriesCount) {
	for i := range points {
		counts = AddSeries(counts, points[i].Measurement, 1)
	}
	return counts
}
