package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var whenever = time.Unix(1_700_000_000, 5)

// appendV1 appends a record as version 1 wrote it.
func appendV1(dst []byte, reports uint64, payload []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.BigEndian.AppendUint64(dst, reports)
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
	return append(appendSum(dst, start), payload...)
}

// sampleV1 is a spool of version 1 with segments 3 to 5 and records 1 to 12, of which two are stored.
func sampleV1() *memDisk {
	d := newMemDisk()
	var head placeV1
	for n := range uint64(3) {
		b := []byte(magicV1)
		for i := range uint64(4) {
			id := n*4 + i + 1
			b = appendV1(b, id, payload(int(id), 30))
			if id == 2 {
				head = placeV1{3, int64(len(b))}
			}
		}
		d.put(segmentNameV1(3+n), b)
	}
	d.put(headNameV1, []byte(head.String()))
	return d
}

// What version 1 left is read first, and its place is kept over restarts; new records are of version 2.
func TestV1(t *testing.T) {
	d := sampleV1()
	c := damageConfig()
	for first := uint64(3); first <= 13; first += 2 {
		s := mustOpen(t, c, d)
		if first == 3 {
			if st := s.Stats(); st.Records != 10 || st.Reports != 75 || st.UnackedBytes == 0 || st.OldestUnacked.IsZero() {
				t.Errorf("Stats = %+v", st)
			}
			mustAppend(t, s, 13, 5)
			mustAppend(t, s, 14, 5)
			s.Close()
			s = mustOpen(t, c, d)
		}
		records := drain(t, s)
		if got := numbers(records); !slices.Equal(got, sequence(first, 14)) {
			t.Fatalf("read %v, want %d to 14", got, first)
		}
		if got := s.Commit(records[1].End); got.Reports != 2*first+1 {
			t.Errorf("Commit = %+v", got)
		}
		if lost := s.DrainLost(); lost != (Lost{}) {
			t.Errorf("lost %+v", lost)
		}
		if old := s.segments[0].version == 1; (s.headV1 != nil) != old {
			t.Errorf("from record %d on: segments of version 1 are left: %t, its head is open: %t", first, old, s.headV1 != nil)
		}
		if s.Close(); d.opened != 0 {
			t.Errorf("from record %d on: %d files are open", first, d.opened)
		}
	}
	for name := range d.files {
		if _, version := parseSegmentName(name); version == 1 || name == headNameV1 {
			t.Errorf("%s is left", name)
		}
	}
	// An operator went back to version 1 in the meantime, which begins again at 1.
	b := appendV1([]byte(magicV1), 77, payload(77, 1))
	d.put(segmentNameV1(1), b)
	s := mustOpen(t, c, d)
	mustAppend(t, s, 15, 5)
	if got := numbers(drain(t, s)); !slices.Equal(got, []uint64{77, 15}) {
		t.Errorf("read %v", got)
	}
}

// A damaged header of version 1 is one record, of which is said what is known. A head of it that cannot be removed is an error of the disk.
func TestV1Damage(t *testing.T) {
	d := sampleV1()
	name, size := segmentNameV1(4), int64(headerLenV1+len(payload(7, 30)))
	off := int64(len(magicV1)) + 2*size
	d.files[name].b[off+5] ^= 1 // of the number of reports of record 7
	s := mustOpen(t, damageConfig(), d)
	s.Events()
	d.fault = func(_ int, what, name string) error {
		if what == "remove" && name == headNameV1 {
			return syscall.EIO
		}
		return nil
	}
	records := drain(t, s)
	if got := numbers(records); !slices.Equal(got, []uint64{3, 4, 5, 6, 8, 9, 10, 11, 12}) {
		t.Errorf("read %v", got)
	}
	want := event{Kind: "damaged", Segment: name, Offset: off, Bytes: size, Records: 1, Message: "damaged header; how many reports it stood for is not known"}
	if e := s.Events(); len(e) != 1 || e[0] != want {
		t.Errorf("%+v, want %+v", e, want)
	}
	mustAppend(t, s, 13, 5)
	for _, r := range append(records, drain(t, s)...) {
		s.Commit(r.End)
	}
	if st := s.Stats(); !strings.Contains(st.LastError, syscall.EIO.Error()) {
		t.Errorf("%+v", st)
	}
}

// One flipped bit costs one record of version 1 as well.
func TestV1FlippedBit(t *testing.T) {
	whole := sampleV1()
	for _, name := range sortedNames(whole) {
		for at := range whole.files[name].b {
			d := whole.clone()
			d.files[name].b[at] ^= 1 << (at % 8)
			where := fmt.Sprintf("%s byte %d", name, at)
			s := mustOpen(t, damageConfig(), d)
			held := s.Stats()
			var read Lost
			var ids []uint64
			for {
				r, err := s.Read(nil)
				if err != nil {
					break
				}
				if string(r.Payload) != string(payload(int(r.Reports), 30)) {
					t.Fatalf("%s: read %d %q", where, r.Reports, r.Payload)
				}
				ids = append(ids, r.Reports)
				read.Reports += s.Commit(r.End).Reports
			}
			lost := s.DrainLost()
			if held.Reports != read.Reports+lost.Reports {
				t.Fatalf("%s: held %d, read %d, lost %d", where, held.Reports, read.Reports, lost.Reports)
			}
			if name == headNameV1 {
				if len(ids) < 10 {
					t.Fatalf("%s: read %v", where, ids)
				}
				continue
			}
			if len(ids) < 9 || len(ids) == 9 && len(s.Events()) == 0 {
				t.Fatalf("%s: read %v", where, ids)
			}
			s.Close()
		}
	}
}
